use super::*;

/// As TensorRT 8.6 tells a detailed engine: layouts and types in one phrase.
const OLD: &str = r#"{"Layers": [
  {"Name": "Reformatting CopyNode for Input Tensor 0 to Conv_0 + Relu_1", "LayerType": "Reformat",
   "Inputs": [{"Name": "images", "Location": "Device", "Dimensions": [1,3,320,320], "Format/Datatype": "Row major linear FP32"}],
   "Outputs": [{"Name": "Reformatted Input Tensor 0", "Location": "Device", "Dimensions": [1,3,320,320],
     "Format/Datatype": "Four wide channel vectorized row major Int8 format"}],
   "ParameterType": "Reformat", "Origin": "REFORMAT", "TacticValue": "0x0"},
  {"Name": "Conv_0 + Relu_1", "LayerType": "CaskConvolution",
   "Inputs": [{"Name": "Reformatted Input Tensor 0", "Dimensions": [1,3,320,320],
     "Format/Datatype": "Four wide channel vectorized row major Int8 format"}],
   "Outputs": [{"Name": "a", "Dimensions": [1,16,160,160], "Format/Datatype": "Channel major FP16 format where channel % 8 == 0"}],
   "ParameterType": "Convolution", "Kernel": [3,3], "Groups": 1, "Weights": {"Type": "Int8", "Count": 432},
   "HasReLU": 1, "TacticName": "sm80_xmma_fprop_implicit_gemm", "TacticValue": "0x12"},
  {"Name": "Conv_2", "LayerType": "CaskConvolution",
   "Inputs": [{"Name": "a", "Dimensions": [1,16,160,160], "Format/Datatype": "Channel major FP16 format where channel % 8 == 0"}],
   "Outputs": [{"Name": "output0", "Dimensions": [1,84,2100], "Format/Datatype": "Row major linear FP32"}],
   "ParameterType": "Convolution"},
  {"Name": "PWN(Sigmoid_3)", "LayerType": "PointWiseV2",
   "Inputs": [{"Name": "b", "Dimensions": [1,84,2100], "Format/Datatype": "Row major linear FP32"}], "Outputs": []}
], "Bindings": ["images", "output0"]}"#;

/// As TensorRT 10 tells it: bare types, streams, and layers that only wait.
const NEW: &str = r#"{"Layers": [
  {"Name": "__myl_Move_myl0_0", "LayerType": "kgen", "Inputs": [{"Name": "images", "Dimensions": [1,3,320,320], "Format/Datatype": "Float"}],
   "Outputs": [{"Name": "x", "Format/Datatype": "Half"}], "TacticName": "__myl_Move", "StreamId": 0, "Metadata": ""},
  {"Name": "/model.0/conv/Conv", "LayerType": "gemm", "Inputs": [{"Name": "x", "Dimensions": [1,3,320,320], "Format": "Linear", "Datatype": "Half"},
    {"Name": "w", "Format/Datatype": "Half"}], "Outputs": [{"Name": "y", "Format/Datatype": "Half"}], "StreamId": 0},
  {"Name": "/model.1/conv/Conv", "LayerType": "gemm", "Inputs": [{"Name": "y", "Format/Datatype": "FP8"}], "Outputs": [{"Format/Datatype": "BFloat16"}]},
  {"Name": "constant", "LayerType": "Constant", "Inputs": [], "Outputs": [{"Name": "c", "Format/Datatype": "Int64"}]},
  {"Name": "stream wait", "LayerType": "wait", "Inputs": [], "Outputs": [], "StreamId": 1},
  {"Name": "stream signal", "LayerType": "Signal", "Inputs": [], "Outputs": [], "StreamId": 0}
], "Bindings": ["images"]}"#;

/// Any version, of an engine that was built without detailed verbosity.
const NAMES: &str =
    r#"{"Layers": ["Reformatting CopyNode for Input Tensor 0 to Conv_0", "Conv_0", "Conv_1"], "Bindings": ["images"]}"#;

fn types(json: &str) -> Vec<(&'static str, bool)> {
    parse(json).unwrap().iter().map(|layer| (layer.dtype, layer.reformats)).collect()
}

#[test]
fn phrases_of_the_old_versions_are_understood() {
    assert_eq!(types(OLD), [("fp32", true), ("int8", false), ("fp16", false), ("fp32", false)]);
}

#[test]
fn words_of_the_new_versions_are_understood() {
    assert_eq!(types(NEW), [("fp32", false), ("fp16", false), ("fp8", false), ("int64", false)]);
}

#[test]
fn bare_names_tell_no_type() {
    assert_eq!(types(NAMES), [(UNKNOWN, true), (UNKNOWN, false), (UNKNOWN, false)]);
    let record = record(&parse(NAMES).unwrap(), &[], 0);
    assert_eq!(record.to_string(), "unknown 2 of 3 layers; 1 only reformat");
}

#[test]
fn a_precision_that_is_named_outright_decides() {
    let json = r#"{"Layers": [{"Name": "a", "LayerType": "CaskConvolution", "Precision": "INT8",
        "Inputs": [{"Format/Datatype": "Half"}], "Outputs": []}]}"#;
    assert_eq!(types(json), [("int8", false)]);
}

#[test]
fn spellings_are_told_apart() {
    for (text, expected) in [
        ("Half", "fp16"),
        ("Float", "fp32"),
        ("BFloat16", "bf16"),
        ("Row major linear FP16 format", "fp16"),
        ("Thirty-two wide channel vectorized row major Int8 format", "int8"),
        ("UInt8", "uint8"),
        ("FP8", "fp8"),
        ("FP4", "nvfp4"),
        ("Row major linear INT32", "int32"),
        ("Bool", "bool"),
    ] {
        assert_eq!(word(text), Some(expected), "{text}");
    }
    assert_eq!(word("Opaque"), None);
}

#[test]
fn time_is_shared_out_by_type() {
    let times = [
        ("Reformatting CopyNode for Input Tensor 0 to Conv_0 + Relu_1", 0.1),
        ("Conv_0 + Relu_1", 0.6),
        ("Conv_2", 0.2),
        ("PWN(Sigmoid_3)", 0.05),
        ("of another name", 0.05),
    ];
    let times: Vec<(String, f32)> = times.iter().cycle().take(10).map(|(name, ms)| ((*name).to_owned(), *ms)).collect();
    let record = record(&parse(OLD).unwrap(), &times, 2);
    let share = |dtype: &str| {
        let found = record.by_type.iter().find(|share| share.dtype == dtype).unwrap();
        (found.layers, (found.time.unwrap() * 100.0).round() as u32)
    };
    assert_eq!((record.layers, record.reformats), (4, 1));
    assert_eq!([share("int8"), share("fp16"), share("fp32"), share(UNKNOWN)], [(1, 60), (1, 20), (1, 5), (0, 5)]);
    assert_eq!(record.by_type[0].dtype, "int8", "most time first");
    assert_eq!((record.reformat_time.unwrap() * 100.0).round() as u32, 10);
    assert_eq!((record.slowest[0].name.as_str(), record.slowest[0].dtype.as_str()), ("Conv_0 + Relu_1", "int8"));
    assert!((record.slowest[0].ms - 0.6).abs() < 1e-6);
    assert_eq!(record.slowest.len(), SLOWEST);
}

#[test]
fn without_times_there_are_no_shares() {
    let record = record(&parse(OLD).unwrap(), &[], 10);
    assert!(record.by_type.iter().all(|share| share.time.is_none()) && record.reformat_time.is_none());
    assert!(record.slowest.is_empty());
}

#[test]
fn what_is_executed_is_what_the_layers_say() {
    assert_eq!(executed(parse(OLD), Precision::Int8), "int8 (1 of 3 layers), fp16 (1), fp32 (1)");
    assert_eq!(executed(parse(NEW), Precision::Fp16), "fp16 (1 of 4 layers), fp8 (1), fp32 (1)");
    assert_eq!(executed(parse(NAMES), Precision::Fp16), "fp16, as built");
    assert_eq!(executed(Err("no inspector".into()), Precision::Native), "as built");
    let all_fp32 = r#"{"Layers": [{"Name": "a", "Inputs": [{"Format/Datatype": "FP32"}], "Outputs": []}]}"#;
    assert_eq!(executed(parse(all_fp32), Precision::Int8), "fp32 (1 of 1 layers)", "not what was asked for");
}

#[test]
fn an_engine_with_int8_layers_was_called_fp32_because_most_layers_are() {
    let layer = |name: &str, dtype: &str| {
        format!(r#"{{"Name": "{name}", "Inputs": [{{"Format/Datatype": "{dtype}"}}], "Outputs": []}}"#)
    };
    let json = format!(r#"{{"Layers": [{}, {}, {}]}}"#, layer("a", "FP32"), layer("b", "FP32"), layer("c", "Int8"));
    assert_eq!(executed(parse(&json), Precision::Native), "int8 (1 of 3 layers), fp32 (2)");
    assert_eq!(executed(parse(&json), Precision::Fp32), "fp32 (2 of 3 layers), int8 (1)");
}

#[test]
fn what_is_no_json_is_an_error() {
    assert!(parse("not json").unwrap_err().contains("cannot be read"));
    assert!(parse("{}").is_err());
}

/// As TensorRT 8.6.0 really writes them: the names of merged layers are joined by a control character.
#[test]
fn merged_layers_are_read_although_their_names_are_no_json() {
    let json = "{\"Layers\": [{\n  \"Name\": \"PWN(PWN(/stem/Sigmoid), /stem/Mul)\",\n  \"LayerType\": \"PointWiseV2\",\n  \
                \"Inputs\": [{\"Name\": \"x\", \"Format/Datatype\": \"Row major linear FP16 format\"}],\n  \
                \"Metadata\": \"[ONNX Layer: /stem/Sigmoid]\u{1e}[ONNX Layer: /stem/Mul]\"\n}]}";
    let layers = parse(json).unwrap();
    assert_eq!((layers.len(), layers[0].dtype), (1, "fp16"));
}
