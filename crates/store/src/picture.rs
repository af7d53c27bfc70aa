//! Pictures of a run, for its page.

use std::io::{Error, Result};

use prony_files::{Folder, Kind};

/// Largest picture that goes into a page; Prony's own have some 30 KB.
const LARGEST: u64 = 4 << 20;

/// A picture of a cell: a regular file of the cell's own folder that begins as a JPEG or PNG file does.
pub fn picture_of(run: &Folder, slug: &str, name: &str) -> Result<Vec<u8>> {
    let cell = run.sub("cells")?.sub(slug)?;
    let bytes = cell.open_file(name, Kind::Image)?.metadata()?.len();
    if bytes > LARGEST {
        return Err(Error::other(format!("has {bytes} bytes, too many for a page")));
    }
    let picture = cell.read(name, Kind::Image)?;
    if picture.starts_with(b"\xff\xd8\xff") || picture.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Ok(picture);
    }
    Err(Error::other("is not a JPEG or PNG image"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const JPEG: &[u8] = b"\xff\xd8\xff\xe0picture";

    #[test]
    fn a_linked_secret_was_put_into_the_page() {
        let top = tempfile::tempdir().unwrap();
        let cell = top.path().join("run/cells/c");
        fs::create_dir_all(&cell).unwrap();
        fs::create_dir(top.path().join("elsewhere")).unwrap();
        fs::write(top.path().join("secret.jpg"), JPEG).unwrap();
        fs::write(top.path().join("elsewhere/frame-000.jpg"), JPEG).unwrap();
        fs::write(cell.join("frame-000.jpg"), JPEG).unwrap();
        fs::write(cell.join("text.jpg"), b"root:x:0:0").unwrap();
        fs::File::create(cell.join("huge.jpg")).unwrap().set_len(5 << 20).unwrap();
        symlink(top.path().join("secret.jpg"), cell.join("link.jpg")).unwrap();
        symlink("/dev/zero", cell.join("zero.jpg")).unwrap();
        symlink(top.path().join("elsewhere"), top.path().join("run/cells/linked")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(cell.join("pipe.jpg")).status().unwrap().success());
        // A link to the run folder is the user's own.
        symlink(top.path().join("run"), top.path().join("latest")).unwrap();
        for run in ["run", "latest"] {
            let run = Folder::open(&top.path().join(run)).unwrap();
            assert_eq!(picture_of(&run, "c", "frame-000.jpg").unwrap(), JPEG);
            for (slug, name) in [
                ("c", "link.jpg"),
                ("c", "zero.jpg"),
                ("c", "pipe.jpg"),
                ("c", "text.jpg"),
                ("c", "huge.jpg"),
                ("c", "../../../secret.jpg"),
                ("c", "/etc/passwd"),
                ("linked", "frame-000.jpg"),
                ("..", "frame-000.jpg"),
                ("../../elsewhere", "frame-000.jpg"),
            ] {
                picture_of(&run, slug, name).expect_err(&format!("{slug} {name}"));
            }
        }
    }
}
