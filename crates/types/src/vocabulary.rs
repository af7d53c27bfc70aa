//! Closed vocabularies: words of the command line, of plan files and of records.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A name that is not one of the known ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// What kind of thing was named, e.g. `backend`.
    pub what: &'static str,
    /// The name that was given.
    pub name: String,
    /// The names that would have been understood.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} `{}`; known: {}", self.what, self.name, self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

/// Declares a closed vocabulary: the enum, its words, `Display`, `FromStr` and serde by word.
macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$vmeta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vmeta])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every word, in the order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word used on the command line and in reports.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $name {
            type Err = UnknownName;

            fn from_str(s: &str) -> Result<$name, UnknownName> {
                $name::ALL.iter().copied().find(|v| v.name() == s).ok_or_else(|| UnknownName {
                    what: $what,
                    name: s.to_owned(),
                    known: $name::ALL.iter().map(|v| v.name()).collect(),
                })
            }
        }
    };
}
pub(crate) use vocabulary;

vocabulary! {
    /// What executes a model.
    BackendName, "backend" {
        /// The embedded engine: always there.
        Rten = "rten",
        /// ONNX Runtime on the CPU.
        OrtCpu = "ort-cpu",
        /// ONNX Runtime with its CUDA provider.
        OrtCuda = "ort-cuda",
        /// ONNX Runtime with its TensorRT provider.
        OrtTensorrt = "ort-tensorrt",
        /// ONNX Runtime with its OpenVINO provider.
        OrtOpenvino = "ort-openvino",
        /// OpenVINO through its own library.
        Openvino = "openvino",
        /// TensorRT through its own library.
        Tensorrt = "tensorrt",
        /// TensorRT's own benchmark, as a program.
        Trtexec = "trtexec",
    }
}

impl BackendName {
    /// Whether it executes on an NVIDIA GPU.
    pub const fn on_gpu(self) -> bool {
        matches!(self, BackendName::OrtCuda | BackendName::OrtTensorrt | BackendName::Tensorrt | BackendName::Trtexec)
    }

    /// Whether what it runs is an engine, not a graph.
    pub const fn runs_engines(self) -> bool {
        matches!(self, BackendName::Tensorrt | BackendName::Trtexec)
    }
}

vocabulary! {
    /// Something on the machine that a backend, a source or a person may need.
    RuntimeName, "runtime" {
        /// `libonnxruntime`.
        Onnxruntime = "onnxruntime",
        /// `libopenvino_c`.
        Openvino = "openvino",
        /// `libnvinfer`: TensorRT.
        Nvinfer = "nvinfer",
        /// `libnvonnxparser`: TensorRT's reader of ONNX files.
        Nvonnxparser = "nvonnxparser",
        /// `libnvinfer_plugin`.
        NvinferPlugin = "nvinfer-plugin",
        /// `libnvinfer_lean`: runs version-compatible engines, builds none.
        NvinferLean = "nvinfer-lean",
        /// TensorRT's own benchmark.
        Trtexec = "trtexec",
        /// `libcuda`: the driver.
        Cuda = "cuda",
        /// `libcudart`: the CUDA toolkit.
        Cudart = "cudart",
        /// `libcudnn`.
        Cudnn = "cudnn",
        /// `libnvidia-ml`: the GPU's sensors.
        Nvml = "nvml",
        /// The video decoder.
        Ffmpeg = "ffmpeg",
        /// The camera pipelines of JetPack.
        Gstreamer = "gstreamer",
    }
}

vocabulary! {
    /// Arithmetic that was asked for.
    Precision, "precision" {
        /// 32-bit float, TF32 off.
        Fp32 = "fp32",
        /// 32-bit float with TF32 products.
        Tf32 = "tf32",
        /// 16-bit float.
        Fp16 = "fp16",
        /// bfloat16.
        Bf16 = "bf16",
        /// 8-bit integer.
        Int8 = "int8",
        /// 8-bit float.
        Fp8 = "fp8",
        /// 4-bit float in blocks.
        Nvfp4 = "nvfp4",
        /// Whatever the file brings.
        Native = "native",
    }
}

vocabulary! {
    /// Which of the built-in worlds.
    SceneKind, "scene kind" {
        /// Colour images.
        Rgb = "rgb",
        /// 16-bit heat images.
        Thermal = "thermal",
    }
}

vocabulary! {
    /// How outputs become boxes.
    HeadChoice, "head" {
        /// From shapes and metadata.
        Auto = "auto",
        /// `[N,4+nc,A]` or its transpose: v8, v9, 11, 12.
        Dense = "dense",
        /// `[N,A,5+nc]` with objectness: v5.
        Objectness = "objectness",
        /// `[N,64+nc,A]`: distances still as distributions.
        Dfl = "dfl",
        /// `[N,300,6]`: v10, 26.
        EndToEnd = "end2end",
        /// `num_dets`, boxes, scores, classes.
        EfficientNms = "efficient-nms",
        /// `[N,300,4+nc]` with boxes from 0 to 1.
        RtDetr = "rtdetr",
        /// Not a detector: nothing before, nothing after.
        None = "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_names_the_known_ones() {
        let error = "nosuch".parse::<BackendName>().unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown backend `nosuch`; known: rten, ort-cpu, ort-cuda, ort-tensorrt, ort-openvino, openvino, tensorrt, trtexec"
        );
        assert_eq!("int8".parse::<Precision>(), Ok(Precision::Int8));
    }
}
