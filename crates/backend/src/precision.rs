//! What a file's own arithmetic is, and what that means for a precision that was asked for.

use prony_types::{DType, ModelFormat, ModelInfo, Precision};

use crate::unsupported::Unsupported;

/// The precision that a file brings: that of its quantisers where it has some, else by the type of its weights. What an
/// engine computes in is known once it was opened.
pub fn precision_of(model: &ModelInfo) -> Precision {
    if model.format == ModelFormat::Engine {
        return Precision::Native;
    }
    if let Some(quantised) = model.quantised {
        return quantised;
    }
    match model.weights {
        Some(DType::F16) => Precision::Fp16,
        Some(DType::Bf16) => Precision::Bf16,
        Some(DType::I8 | DType::U8) => Precision::Int8,
        _ => Precision::Fp32,
    }
}

/// What makes a graph in a precision that Prony does not make; `None` for a precision that it does. fp8 and nvfp4 exist only
/// as quantizers that stand in the graph, node by node.
pub fn made_elsewhere(precision: Precision) -> Option<String> {
    matches!(precision, Precision::Fp8 | Precision::Nvfp4).then(|| {
        format!(
            "Prony does not make {precision} models: quantize the model to {precision} with NVIDIA's Model Optimizer and give \
             the ONNX file that it exports, with its {precision} Q/DQ nodes"
        )
    })
}

/// Whether a file can be executed as it is in a precision, by a backend that changes nothing about it.
pub(crate) fn as_it_is(backend: &'static str, precision: Precision, model: &ModelInfo) -> Result<(), Unsupported> {
    if model.format == ModelFormat::Engine {
        return Err(Unsupported::Engine { backend });
    }
    let brings = precision_of(model);
    match precision {
        Precision::Native => Ok(()),
        asked if asked == brings => Ok(()),
        Precision::Fp32 => Err(Unsupported::NotFp32 { brings }),
        Precision::Tf32 => Err(Unsupported::Tf32 { backend }),
        asked => {
            let how = match (made_elsewhere(asked), brings) {
                (Some(how), _) => how,
                (None, Precision::Fp32) => {
                    let command = if asked == Precision::Int8 { "quantize" } else { "convert" };
                    format!("`prony {command}` makes an {asked} model of it")
                }
                (None, _) => format!("give the {asked} model, or the fp32 one to make it from"),
            };
            Err(Unsupported::OtherPrecision { backend, brings, asked, how })
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A file with weights and operators, and nothing else.
    pub(crate) fn model(weights: Option<DType>, operators: &[&str]) -> ModelInfo {
        ModelInfo {
            format: ModelFormat::Onnx,
            inputs: Vec::new(),
            outputs: Vec::new(),
            metadata: Default::default(),
            opset: None,
            operators: operators.iter().map(|op| (*op).to_owned()).collect(),
            quantised: None,
            weights,
            parameters: 0,
            files: Vec::new(),
        }
    }

    /// A file with fp32 weights behind quantisers.
    pub(crate) fn quantised(to: Precision) -> ModelInfo {
        let operators = ["Conv", "DequantizeLinear", "QuantizeLinear"];
        ModelInfo { quantised: Some(to), ..model(Some(DType::F32), &operators) }
    }

    #[test]
    fn a_file_says_what_it_is() {
        assert_eq!(precision_of(&model(Some(DType::F32), &["Conv"])), Precision::Fp32);
        assert_eq!(precision_of(&model(Some(DType::F16), &["Conv"])), Precision::Fp16);
        // Weights of a Q/DQ graph are often kept in fp32 behind their quantisers.
        for precision in [Precision::Int8, Precision::Fp8, Precision::Nvfp4] {
            assert_eq!(precision_of(&quantised(precision)), precision);
        }
        assert_eq!(precision_of(&model(None, &["Relu"])), Precision::Fp32);
    }

    #[test]
    fn an_engine_is_for_tensorrt() {
        let engine = ModelInfo { format: ModelFormat::Engine, ..model(None, &[]) };
        assert_eq!(precision_of(&engine), Precision::Native);
        for precision in [Precision::Native, Precision::Fp32] {
            let error = as_it_is("rten", precision, &engine).unwrap_err().to_string();
            assert_eq!(error, "rten does not execute TensorRT engines; use --backends tensorrt");
        }
    }

    #[test]
    fn a_file_is_executed_in_its_own_precision_only() {
        let half = model(Some(DType::F16), &["Conv"]);
        assert_eq!(as_it_is("ort-cpu", Precision::Fp16, &half), Ok(()));
        assert_eq!(as_it_is("ort-cpu", Precision::Native, &half), Ok(()));
        assert!(as_it_is("ort-cpu", Precision::Fp32, &half).unwrap_err().to_string().contains("--precision fp16"));
        let single = model(Some(DType::F32), &["Conv"]);
        assert!(as_it_is("ort-cpu", Precision::Int8, &single).unwrap_err().to_string().contains("`prony quantize`"));
        assert!(as_it_is("ort-cpu", Precision::Bf16, &single).unwrap_err().to_string().contains("`prony convert`"));
        let narrow = quantised(Precision::Fp8);
        assert_eq!(as_it_is("ort-cpu", Precision::Fp8, &narrow), Ok(()));
        let refusal = as_it_is("ort-cpu", Precision::Int8, &narrow).unwrap_err().to_string();
        assert!(
            refusal.ends_with("this one is fp8, not int8; give the int8 model, or the fp32 one to make it from"),
            "{refusal}"
        );
    }

    #[test]
    fn fp8_was_said_to_be_made_by_commands_that_cannot() {
        let single = model(Some(DType::F32), &["Conv"]);
        for narrow in [Precision::Fp8, Precision::Nvfp4] {
            let refusal = as_it_is("ort-cpu", narrow, &single).unwrap_err().to_string();
            assert!(refusal.contains(&format!("Prony does not make {narrow} models")), "{refusal}");
            assert!(refusal.contains("Model Optimizer") && !refusal.contains('`'), "{refusal}");
        }
        for made in [Precision::Fp32, Precision::Fp16, Precision::Bf16, Precision::Int8] {
            assert_eq!(made_elsewhere(made), None);
        }
    }
}
