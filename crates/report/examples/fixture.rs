//! Writes the page of a made-up run, to look at it: `fixture OUT.html [two|twelve|nothing|hostile|scored|alone] [PNG…]`.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::{env, error, fs};

use prony_report::{Picture, html};

fn main() -> Result<(), Box<dyn error::Error>> {
    let mut args = env::args().skip(1);
    let path = args.next().ok_or("usage: fixture OUT.html [two|twelve|nothing|hostile|scored|alone] [PNG…]")?;
    let record = match args.next().as_deref() {
        None | Some("two") => fixture::two_cells(),
        Some("twelve") => fixture::twelve_cells(),
        Some("nothing") => fixture::nothing_completed(),
        Some("hostile") => fixture::hostile_scored(),
        Some("scored") => fixture::scored(),
        Some("alone") => fixture::accuracy_alone(),
        Some(other) => return Err(format!("no fixture is called `{other}`").into()),
    };
    let given: Vec<Vec<u8>> = args.map(fs::read).collect::<Result<_, _>>()?;
    let drawn = || (0..4).map(|i| png(320, 240, i)).collect();
    let images: Vec<Vec<u8>> = if given.is_empty() { drawn() } else { given };
    let pictures: Vec<Picture> = record
        .cells
        .iter()
        .filter(|cell| !cell.thumbnails.is_empty())
        .flat_map(|cell| {
            images.iter().enumerate().map(|(i, image)| Picture {
                cell: cell.id.clone(),
                file: format!("frame-{i:03}.png"),
                caption: format!("scene {i}, {} boxes", 3 + i),
                bytes: image.clone(),
            })
        })
        .collect();
    fs::write(&path, html(&record, &pictures)?)?;
    Ok(())
}

/// A landscape with a few outlined boxes, as an uncompressed PNG.
fn png(width: u32, height: u32, seed: u32) -> Vec<u8> {
    let mut rows = Vec::new();
    for y in 0..height {
        rows.push(0);
        for x in 0..width {
            let boxes = (0..3 + seed).map(|i| (20 + (i * 83 + seed * 41) % 230, 60 + (i * 57 + seed * 23) % 110));
            let edge = |a: u32, from: u32, to: u32| a.abs_diff(from) < 2 || a.abs_diff(to) < 2;
            let on_box = boxes.into_iter().any(|(bx, by)| {
                let inside = (bx..=bx + 60).contains(&x) && (by..=by + 44).contains(&y);
                inside && (edge(x, bx, bx + 60) || edge(y, by, by + 44))
            });
            let sky = y < 110 + (x / 9 + seed * 7) % 13;
            let shade = ((x * 7 + y * 13 + seed * 31) % 17) as u8;
            rows.extend(match (on_box, sky) {
                (true, _) => [255, 196, 61],
                (false, true) => [120 + shade, 158 + shade, 190],
                (false, false) => [86 + shade, 104 + shade, 78],
            });
        }
    }
    let mut zlib = vec![0x78, 0x01];
    let mut blocks = rows.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        zlib.push(u8::from(blocks.peek().is_none()));
        zlib.extend(length.to_le_bytes());
        zlib.extend((!length).to_le_bytes());
        zlib.extend(block);
    }
    let (a, b) = rows.iter().fold((1u32, 0u32), |(a, b), &byte| {
        let a = (a + u32::from(byte)) % 65521;
        (a, (b + a) % 65521)
    });
    zlib.extend(((b << 16) | a).to_be_bytes());

    let mut head = Vec::new();
    head.extend(width.to_be_bytes());
    head.extend(height.to_be_bytes());
    head.extend([8, 2, 0, 0, 0]);
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [(b"IHDR", &head), (b"IDAT", &zlib), (b"IEND", &Vec::new())] {
        let body: Vec<u8> = kind.iter().chain(data).copied().collect();
        out.extend((data.len() as u32).to_be_bytes());
        out.extend(&body);
        out.extend(crc32(&body).to_be_bytes());
    }
    out
}

fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}
