//! How a precision is asked of TensorRT: by flags on 8 and 10, by the graph itself on 11.
//!
//! Flags are permissions. `int8` permits int8 and nothing beside fp32, as `trtexec --int8` does: with fp16 allowed too,
//! an engine that is called int8 could turn out to be fp16. What a build really took is proved by its layers.

use prony_nvinfer::{Family, Flag, Version};
use prony_types::{CalibrationMethod, Precision};

use crate::error::ForgeError;

/// What decides how a precision is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    pub(crate) family: Family,
    pub(crate) version: Version,
    /// Compute capability of the GPU.
    pub(crate) compute: (u32, u32),
    /// What the graph itself carries.
    pub(crate) brings: Precision,
    /// How int8 ranges are found; `None` where there are no data to find them on.
    pub(crate) calibrated: Option<CalibrationMethod>,
}

/// How a precision is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arithmetic {
    /// Flags to set or to clear.
    pub(crate) flags: Vec<(Flag, bool)>,
    /// Tensors have the types that the graph says.
    pub(crate) strongly_typed: bool,
    /// Ranges are found on data.
    pub(crate) calibrate: bool,
}

/// Decides it, or says what is in the way and what would help.
pub(crate) fn arithmetic(asked: Precision, at: Situation) -> Result<Arithmetic, ForgeError> {
    let asked = if asked == Precision::Native { at.brings } else { asked };
    needs_gpu(asked, at.compute)?;
    match asked {
        Precision::Fp8 | Precision::Nvfp4 => narrow_float(asked, at),
        _ if at.family == Family::V11 => typed(asked, at),
        _ => flagged(asked, at),
    }
}

fn unsupported<T>(text: String) -> Result<T, ForgeError> {
    Err(ForgeError::Unsupported(text))
}

/// Arithmetic that a GPU has or has not.
fn needs_gpu(asked: Precision, compute: (u32, u32)) -> Result<(), ForgeError> {
    let needed = match asked {
        Precision::Tf32 | Precision::Bf16 => (8, 0),
        Precision::Fp8 => (8, 9),
        Precision::Nvfp4 => (10, 0),
        _ => return Ok(()),
    };
    if compute >= needed {
        return Ok(());
    }
    let ((major, minor), (has_major, has_minor)) = (needed, compute);
    unsupported(format!(
        "{asked} needs a GPU of compute capability {major}.{minor} and this one has {has_major}.{has_minor}"
    ))
}

/// fp8 and nvfp4 exist only where the graph says so, node by node.
fn narrow_float(asked: Precision, at: Situation) -> Result<Arithmetic, ForgeError> {
    let since = if asked == Precision::Nvfp4 { Version { major: 10, minor: 8, patch: 0 } } else { TEN };
    if at.version < since {
        return unsupported(format!("{asked} needs TensorRT {since} and this is {}", at.version));
    }
    if at.brings != asked {
        let how = prony_backend::made_elsewhere(asked).unwrap_or_default();
        return unsupported(format!("this file is {}, not {asked}; {how}", at.brings));
    }
    Ok(Arithmetic { strongly_typed: true, ..Arithmetic::default() })
}

const TEN: Version = Version { major: 10, minor: 0, patch: 0 };

/// On 11 there are no flags: the graph is what is built.
fn typed(asked: Precision, at: Situation) -> Result<Arithmetic, ForgeError> {
    let carries = if asked == Precision::Tf32 { Precision::Fp32 } else { asked };
    if carries != at.brings {
        let needed = match carries {
            Precision::Fp16 => "an fp16 ONNX, made by `prony convert --precision fp16`",
            Precision::Bf16 => "a bf16 ONNX, made by `prony convert --precision bf16`",
            Precision::Int8 => "an ONNX with int8 Q/DQ nodes, made by `prony quantize --for tensorrt`",
            _ => "the fp32 ONNX",
        };
        return unsupported(format!(
            "TensorRT {} builds a graph in the types that it carries, and this file is {}: {asked} needs {needed}",
            at.version, at.brings
        ));
    }
    Ok(Arithmetic { flags: vec![tf32(asked)], strongly_typed: true, calibrate: false })
}

/// fp32 is fp32, so TF32 is cleared there; elsewhere it stays on for the layers that remain in fp32, as TensorRT has it.
fn tf32(asked: Precision) -> (Flag, bool) {
    (Flag::Tf32, asked != Precision::Fp32)
}

/// On 8 and 10 flags permit what the graph need not carry.
fn flagged(asked: Precision, at: Situation) -> Result<Arithmetic, ForgeError> {
    let own = match asked {
        Precision::Fp16 => Some(Flag::Fp16),
        Precision::Bf16 => Some(Flag::Bf16),
        Precision::Int8 => Some(Flag::Int8),
        _ => None,
    };
    if asked == Precision::Bf16 && at.version < TEN {
        return unsupported(format!("bf16 needs TensorRT {TEN} and this is {}; use fp16", at.version));
    }
    // What the graph carries cannot be taken back: a file of 16-bit weights makes no fp32 engine.
    let fits = at.brings == Precision::Fp32 || at.brings == asked;
    if !fits {
        return unsupported(format!(
            "the file is {}, so this would be no {asked} engine; use --precision {} or native, or give the fp32 ONNX",
            at.brings, at.brings
        ));
    }
    let calibrate = asked == Precision::Int8 && at.brings != Precision::Int8;
    if let (true, Some(method @ (CalibrationMethod::Percentile | CalibrationMethod::Mse))) = (calibrate, at.calibrated)
    {
        return unsupported(format!(
            "TensorRT finds ranges by entropy or minmax, not by {method}; use one of these, or give the ONNX that \
             `prony quantize --method {method}` makes"
        ));
    }
    if calibrate && at.calibrated.is_none() {
        return Err(ForgeError::Calibration(
            "int8 needs ranges: a graph with Q/DQ nodes, or data to find them on (--calibration scenes, a folder or x.npz)"
                .to_owned(),
        ));
    }
    let flags = [Some(tf32(asked)), own.map(|flag| (flag, true))].into_iter().flatten().collect();
    Ok(Arithmetic { flags, strongly_typed: false, calibrate })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOPPER: (u32, u32) = (9, 0);

    fn at(version: &str, brings: Precision) -> Situation {
        let version: Version = version.parse().unwrap();
        let family = match version.major {
            8 => Family::V8,
            10 => Family::V10,
            _ => Family::V11,
        };
        Situation { family, version, compute: HOPPER, brings, calibrated: Some(CalibrationMethod::Entropy) }
    }

    fn flags(asked: Precision, situation: Situation) -> Vec<(Flag, bool)> {
        arithmetic(asked, situation).unwrap().flags
    }

    fn refused(asked: Precision, situation: Situation) -> String {
        let error = arithmetic(asked, situation).unwrap_err();
        assert_eq!(error.kind(), prony_types::FailureKind::Unsupported);
        error.to_string()
    }

    #[test]
    fn flags_permit_one_precision_each() {
        use Precision::{Bf16, Fp16, Fp32, Int8, Native, Tf32};
        for version in ["8.6.0", "10.3.0"] {
            let here = at(version, Fp32);
            assert_eq!(flags(Fp32, here), [(Flag::Tf32, false)]);
            assert_eq!(flags(Native, here), [(Flag::Tf32, false)]);
            assert_eq!(flags(Tf32, here), [(Flag::Tf32, true)]);
            assert_eq!(flags(Fp16, here), [(Flag::Tf32, true), (Flag::Fp16, true)]);
            assert_eq!(flags(Int8, here), [(Flag::Tf32, true), (Flag::Int8, true)]);
            assert!(arithmetic(Int8, here).unwrap().calibrate);
            assert!(!arithmetic(Int8, at(version, Int8)).unwrap().calibrate, "the graph brings its ranges");
            assert_eq!(flags(Native, at(version, Fp16)), flags(Fp16, here));
        }
        assert_eq!(flags(Bf16, at("10.3.0", Fp32)), [(Flag::Tf32, true), (Flag::Bf16, true)]);
        assert!(refused(Bf16, at("8.6.0", Fp32)).starts_with("bf16 needs TensorRT 10.0.0 and this is 8.6.0"));
    }

    #[test]
    fn what_the_graph_carries_is_not_taken_back() {
        let text = refused(Precision::Fp32, at("8.6.0", Precision::Fp16));
        assert!(text.starts_with("the file is fp16, so this would be no fp32 engine"), "{text}");
        assert!(refused(Precision::Fp16, at("10.3.0", Precision::Int8)).starts_with("the file is int8"));
    }

    #[test]
    fn eleven_refuses_what_the_graph_does_not_carry() {
        let text = refused(Precision::Fp16, at("11.1.0", Precision::Fp32));
        assert_eq!(
            text,
            "TensorRT 11.1.0 builds a graph in the types that it carries, and this file is fp32: fp16 needs an fp16 ONNX, \
             made by `prony convert --precision fp16`"
        );
        assert!(refused(Precision::Int8, at("11.1.0", Precision::Fp32)).contains("int8 Q/DQ nodes"));
        let fp32 = arithmetic(Precision::Fp32, at("11.1.0", Precision::Fp32)).unwrap();
        assert_eq!((fp32.flags, fp32.strongly_typed), (vec![(Flag::Tf32, false)], true));
        assert!(!arithmetic(Precision::Int8, at("11.1.0", Precision::Int8)).unwrap().calibrate);
    }

    #[test]
    fn only_its_own_ways_of_finding_ranges_are_asked_of_tensorrt() {
        for method in [CalibrationMethod::Percentile, CalibrationMethod::Mse] {
            let asked = Situation { calibrated: Some(method), ..at("8.6.0", Precision::Fp32) };
            assert!(refused(Precision::Int8, asked).contains(&format!("not by {method}")));
            assert!(arithmetic(Precision::Int8, Situation { brings: Precision::Int8, ..asked }).is_ok());
        }
    }

    #[test]
    fn int8_without_ranges_is_bad_input() {
        let error = arithmetic(Precision::Int8, Situation { calibrated: None, ..at("8.6.0", Precision::Fp32) });
        let error = error.unwrap_err();
        assert_eq!(error.kind(), prony_types::FailureKind::Input);
        assert!(error.to_string().starts_with("calibration: int8 needs ranges"), "{error}");
    }

    #[test]
    fn narrow_floats_are_tried_where_version_gpu_and_graph_have_them() {
        use Precision::{Fp8, Fp32, Nvfp4};
        let ada = |version| Situation { compute: (8, 9), ..at(version, Fp8) };
        assert!(arithmetic(Fp8, ada("10.3.0")).unwrap().strongly_typed);
        assert_eq!(refused(Fp8, ada("8.6.0")), "fp8 needs TensorRT 10.0.0 and this is 8.6.0");
        let refusal = refused(Fp8, at("10.3.0", Fp32));
        assert!(refusal.starts_with("this file is fp32, not fp8; Prony does not make fp8 models"), "{refusal}");
        let orin = Situation { compute: (8, 7), ..at("10.3.0", Fp8) };
        assert_eq!(refused(Fp8, orin), "fp8 needs a GPU of compute capability 8.9 and this one has 8.7");
        assert!(refused(Nvfp4, at("10.8.0", Nvfp4)).contains("compute capability 10.0"));
        let blackwell = |version| Situation { compute: (10, 0), ..at(version, Nvfp4) };
        assert!(refused(Nvfp4, blackwell("10.7.0")).starts_with("nvfp4 needs TensorRT 10.8.0"));
        assert!(arithmetic(Nvfp4, blackwell("10.8.0")).unwrap().strongly_typed);
        assert!(arithmetic(Precision::Native, blackwell("10.8.0")).unwrap().strongly_typed, "as the graph has it");
    }

    #[test]
    fn quantisers_of_one_type_make_no_engine_of_another() {
        use Precision::{Fp8, Int8, Nvfp4};
        for version in ["10.8.0", "11.1.0"] {
            let blackwell = |brings| Situation { compute: (10, 0), ..at(version, brings) };
            for (asked, brings) in [(Fp8, Int8), (Fp8, Nvfp4), (Nvfp4, Int8), (Nvfp4, Fp8)] {
                let text = refused(asked, blackwell(brings));
                assert!(text.starts_with(&format!("this file is {brings}, not {asked}; ")), "{text}");
            }
            for brings in [Fp8, Nvfp4] {
                let text = refused(Int8, blackwell(brings));
                assert!(text.contains(&format!("file is {brings}")), "{text}");
            }
        }
    }
}
