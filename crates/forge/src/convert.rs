//! stub
use serde::Serialize;
/// x
#[derive(Serialize)]
pub struct ConvertReport {}
impl ConvertReport {
    /// x
    pub fn notes(&self) -> Vec<String> {
        vec![]
    }
}
/// x
pub struct Converted {
    /// x
    pub bytes: Vec<u8>,
    /// x
    pub report: ConvertReport,
}
/// x
pub fn convert(_: &prony_backend::ModelFile, _: &prony_types::HalfSpec) -> Result<Converted, crate::ForgeError> {
    Err(crate::ForgeError::Unsupported("stub".into()))
}
