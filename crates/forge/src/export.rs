//! stub
use serde::Serialize;
/// x
#[derive(Clone, Debug, Serialize)]
pub struct ExportOptions {
    /// x
    pub imgsz: Option<[u32; 2]>,
    /// x
    pub batch: u32,
    /// x
    pub dynamic: bool,
    /// x
    pub half: bool,
    /// x
    pub opset: u32,
    /// x
    pub end2end: EndToEnd,
}
/// x
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub enum EndToEnd {
    /// x
    Auto,
    /// x
    Yes,
    /// x
    No,
}
impl Default for ExportOptions {
    fn default() -> Self {
        ExportOptions { imgsz: None, batch: 1, dynamic: false, half: false, opset: 17, end2end: EndToEnd::Auto }
    }
}
/// x
pub struct Exported {
    /// x
    pub bytes: Vec<u8>,
    /// x
    pub notes: Vec<String>,
}
/// x
pub fn export(_: &prony_model::pt::Checkpoint, _: &ExportOptions) -> Result<Exported, crate::ForgeError> {
    Err(crate::ForgeError::Unsupported("stub".into()))
}
