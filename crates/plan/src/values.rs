//! Values of options: times, sizes, devices, as they are typed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// Which device of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceIndex(pub u32);

impl FromStr for DeviceIndex {
    type Err = String;

    fn from_str(text: &str) -> Result<DeviceIndex, String> {
        text.trim().parse().map(DeviceIndex).map_err(|_| {
            format!(
                "`{text}` is not the index of a device, like 0 for the first GPU; for the CPU choose a CPU backend with \
                 --backends (`prony run`: --backend): ort-cpu, openvino or rten"
            )
        })
    }
}

impl fmt::Display for DeviceIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for DeviceIndex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DeviceIndex, D::Error> {
        from_text_or_number(deserializer)
    }
}

/// A number of bytes; units are powers of 1024, as memory is sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let upper = text.trim().to_ascii_uppercase();
        let plain = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
        let units = [("K", 10), ("M", 20), ("G", 30), ("T", 40)];
        let (number, shift) =
            units.iter().find_map(|&(unit, shift)| Some((plain.strip_suffix(unit)?, shift))).unwrap_or((plain, 0));
        let wrong = || format!("`{text}` is not a size, like 512MB or 4GB");
        let value: f64 = number.trim().parse().map_err(|_| wrong())?;
        let bytes = value * (1u64 << shift) as f64;
        if (1.0..=1e15).contains(&bytes) { Ok(Size(bytes as u64)) } else { Err(wrong()) }
    }
}

/// A length of time; a bare number is seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seconds(pub f64);

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seconds, String> {
        let text = text.trim();
        let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
        let (number, scale) =
            units.iter().find_map(|&(unit, scale)| Some((text.strip_suffix(unit)?, scale))).unwrap_or((text, 1.0));
        let value =
            number.trim().parse::<f64>().map_err(|_| format!("`{text}` is not a time, like 500ms, 10s, 2m or 10"))?;
        let seconds = value * scale;
        if (0.0..=86_400.0).contains(&seconds) {
            Ok(Seconds(seconds))
        } else {
            Err("must lie between 0 and 24h".into())
        }
    }
}

/// Height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageSize(pub [u32; 2]);

impl FromStr for ImageSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ImageSize, String> {
        let side =
            |s: &str| s.trim().parse::<u32>().map_err(|_| format!("`{text}` is not a size, like 640 or 480x640"));
        let size = match text.split_once('x') {
            Some((height, width)) => [side(height)?, side(width)?],
            None => [side(text)?; 2],
        };
        let fits = size.iter().all(|side| (1..=8192).contains(side));
        if fits { Ok(ImageSize(size)) } else { Err("each side must lie between 1 and 8192".into()) }
    }
}

/// Lets a TOML number stand for the text that a flag would be.
pub(crate) fn from_text_or_number<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: fmt::Display,
{
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a number or a text")]
    enum Raw {
        Text(String),
        Int(i64),
        Float(f64),
    }
    let text = match Raw::deserialize(deserializer)? {
        Raw::Text(text) => text,
        Raw::Int(n) => n.to_string(),
        Raw::Float(x) => x.to_string(),
    };
    text.parse().map_err(serde::de::Error::custom)
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seconds, D::Error> {
        from_text_or_number(deserializer)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        from_text_or_number(deserializer)
    }
}

impl<'de> Deserialize<'de> for ImageSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ImageSize, D::Error> {
        from_text_or_number(deserializer)
    }
}
