//! What a file is by the ending of its name: an image, or a video, which cannot be read yet.

use std::path::Path;

/// File name endings that count as images, in lower case.
const ENDINGS: [&str; 4] = ["jpg", "jpeg", "png", "bmp"];

/// File name endings that count as videos, in lower case. Not `ts`: that is TorchScript too.
const VIDEO_ENDINGS: [&str; 14] =
    ["mp4", "m4v", "mov", "avi", "mkv", "webm", "mpg", "mpeg", "wmv", "flv", "ogv", "3gp", "h264", "h265"];

/// Whether a file is an image by its name.
pub fn is_image_name(path: &Path) -> bool {
    ends_in(path, &ENDINGS)
}

/// Whether a file is a video by its name.
pub fn is_video_name(path: &Path) -> bool {
    ends_in(path, &VIDEO_ENDINGS)
}

fn ends_in(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    endings.iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// How to make a folder `frames` of a video, which cannot be read yet: a clause with a command for a shell.
pub fn how_to_extract_frames(video: &Path) -> String {
    let name = video.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
    let quoted = if name.chars().all(plain) { name } else { format!("'{}'", name.replace('\'', r"'\''")) };
    format!("extract its frames with `mkdir frames && ffmpeg -i {quoted} -qscale:v 2 frames/%06d.jpg`")
}
