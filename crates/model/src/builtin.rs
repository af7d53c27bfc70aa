//! The detectors that come with Prony, so that everything can be tried on any machine.

use prony_types::SceneKind;

/// The ONNX file of a built-in detector.
pub fn builtin(kind: SceneKind) -> &'static [u8] {
    match kind {
        SceneKind::Rgb => include_bytes!("../assets/builtin-rgb.onnx"),
        SceneKind::Thermal => include_bytes!("../assets/builtin-thermal.onnx"),
    }
}

#[cfg(test)]
mod tests {
    use prony_types::{Dim, SceneKind};

    use crate::ModelFile;

    #[test]
    fn built_in_detectors_say_what_they_are() {
        for &kind in SceneKind::ALL {
            let file = ModelFile::builtin(kind).unwrap();
            let info = &file.info;
            assert!(file.bytes.len() <= 2_000_000, "{kind}: {} bytes", file.bytes.len());
            assert_eq!(info.metadata.task.as_deref(), Some("detect"));
            assert_eq!(info.metadata.imgsz, Some([320, 320]));
            assert_eq!(info.metadata.stride, Some(32));
            assert!(!info.metadata.names.is_empty());
            assert_eq!(info.inputs.len(), 1);
            assert_eq!(info.inputs[0].dims[1..], [Dim::Fixed(3), Dim::Fixed(320), Dim::Fixed(320)]);
            assert_eq!(info.outputs.len(), 1);
            assert_eq!(info.outputs[0].dims[1], Dim::Fixed(4 + info.metadata.names.len() as u64));
        }
    }
}
