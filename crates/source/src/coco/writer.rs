//! Writes a result file while a detector runs: a row a line, no row in memory.

use std::io::{self, BufWriter, IntoInnerError, Write as _};
use std::path::{Path, PathBuf};

use prony_files::{Draft, Folder};

use super::ResultRow;
use crate::SourceError;

/// A result file in the making. It gets its name when it is finished; until then, and after a crash, there is only a
/// hidden draft beside it. Dropping it unfinished removes the draft.
#[derive(Debug)]
pub struct ResultWriter {
    place: PathBuf,
    out: BufWriter<Draft>,
    rows: u64,
}

impl ResultWriter {
    /// Starts one that will be `place`.
    pub fn create(place: &Path) -> Result<ResultWriter, SourceError> {
        let begin = || {
            let draft =
                Folder::open(place.parent().unwrap_or(Path::new("")))?.draft(place.file_name().unwrap_or_default())?;
            let mut out = BufWriter::with_capacity(1 << 16, draft);
            out.write_all(b"[")?;
            Ok(out)
        };
        let out = begin().map_err(SourceError::io(place, "write the file"))?;
        Ok(ResultWriter { place: place.to_path_buf(), out, rows: 0 })
    }

    /// Adds a row. One that JSON cannot hold is refused.
    pub fn push(&mut self, row: &ResultRow) -> Result<(), SourceError> {
        self.put(row).map_err(SourceError::io(&self.place, "write a box"))
    }

    fn put(&mut self, row: &ResultRow) -> io::Result<()> {
        let ResultRow { image_id, category_id, bbox: [x, y, w, h], score } = *row;
        if ![x, y, w, h, score].iter().all(|v| v.is_finite()) {
            let text = format!("image {image_id}: a number of {:?}, score {score} is not finite", row.bbox);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let out = &mut self.out;
        out.write_all(if self.rows == 0 { b"\n" } else { b",\n" })?;
        self.rows += 1;
        // `{:?}` writes the fewest digits that read back as the same number, in a form that is JSON.
        write!(
            out,
            "{{\"image_id\":{image_id},\"category_id\":{category_id},\"bbox\":[{x:?},{y:?},{w:?},{h:?}],\"score\":{score:?}}}"
        )
    }

    /// Ends the list, puts the file into its place and says how many rows it has.
    pub fn finish(self) -> Result<u64, SourceError> {
        let ResultWriter { place, mut out, rows } = self;
        let close = || {
            out.write_all(b"\n]\n")?;
            out.into_inner().map_err(IntoInnerError::into_error)?.commit()
        };
        close().map_err(SourceError::io(&place, "write the file"))?;
        Ok(rows)
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
