//! Writes a result file while a detector runs: a row a line, no row in memory.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::ResultRow;
use crate::SourceError;

/// A result file in the making. It gets its name when it is finished; until then, and after a crash, there is only a
/// hidden draft beside it. Dropping it unfinished removes the draft.
#[derive(Debug)]
pub struct ResultWriter {
    place: PathBuf,
    draft: PathBuf,
    /// Taken when it is finished.
    out: Option<BufWriter<File>>,
    rows: u64,
}

impl ResultWriter {
    /// Starts one that will be `place`.
    pub fn create(place: &Path) -> Result<ResultWriter, SourceError> {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let draft = place.with_file_name(format!(".{name}.{}.draft", std::process::id()));
        let file = File::create(&draft).map_err(SourceError::io(place, "write the file"))?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        out.write_all(b"[").map_err(SourceError::io(place, "write the file"))?;
        Ok(ResultWriter { place: place.to_path_buf(), draft, out: Some(out), rows: 0 })
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
        let Some(out) = &mut self.out else { return Ok(()) };
        out.write_all(if self.rows == 0 { b"\n" } else { b",\n" })?;
        self.rows += 1;
        // `{:?}` writes the fewest digits that read back as the same number, in a form that is JSON.
        write!(
            out,
            "{{\"image_id\":{image_id},\"category_id\":{category_id},\"bbox\":[{x:?},{y:?},{w:?},{h:?}],\"score\":{score:?}}}"
        )
    }

    /// Ends the list, puts the file into its place and says how many rows it has.
    pub fn finish(mut self) -> Result<u64, SourceError> {
        self.close().map_err(SourceError::io(&self.place, "write the file"))?;
        Ok(self.rows)
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(mut out) = self.out.take() else { return Ok(()) };
        let written = out
            .write_all(b"\n]\n")
            .and_then(|()| out.flush())
            .and_then(|()| out.get_ref().sync_all())
            .and_then(|()| fs::rename(&self.draft, &self.place));
        written.inspect_err(|_| drop(fs::remove_file(&self.draft)))
    }
}

impl Drop for ResultWriter {
    fn drop(&mut self) {
        if let Some(out) = self.out.take() {
            // The rows in its buffer go nowhere.
            drop(out.into_parts());
            let _ = fs::remove_file(&self.draft);
        }
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
