//! stub
use serde::Serialize;
/// x
#[derive(Serialize)]
pub struct QuantiseReport {}
impl QuantiseReport {
    /// x
    pub fn notes(&self) -> Vec<String> {
        vec![]
    }
}
/// x
pub struct Quantised {
    /// x
    pub bytes: Vec<u8>,
    /// x
    pub report: QuantiseReport,
}
/// x
pub struct Site<'a> {
    /// x
    pub cache: Option<&'a std::path::Path>,
    /// x
    pub runtime: Option<&'a prony_types::RuntimeSpec>,
    /// x
    pub imgsz: Option<[u32; 2]>,
    /// x
    pub threads: Option<u32>,
}
/// x
pub fn quantise(
    _: &prony_backend::ModelFile,
    _: &prony_types::ModelSource,
    _: &prony_types::QuantiseSpec,
    _: &Site<'_>,
    _: &mut dyn FnMut(prony_types::BuildProgress),
    _: &dyn Fn(),
) -> Result<Quantised, crate::ForgeError> {
    Err(crate::ForgeError::Unsupported("stub".into()))
}
