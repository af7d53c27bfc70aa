//! Which files of a wheel make up a runtime, and where they go. Libraries lie flat in the runtime's folder, as they do
//! in one folder of the wheel: ONNX Runtime opens its providers beside itself, OpenVINO's libraries look in `$ORIGIN`.

use crate::{Package, Version};

/// The first ONNX Runtime release whose wheel has a shared library beside the Python module.
const FIRST_WITH_LIBRARY: &str = "1.19.0";

/// Where a file of the wheel goes in the runtime's folder; `None` for what is not needed.
pub fn place(runtime: Package, path: &str) -> Option<&str> {
    match runtime {
        Package::Onnxruntime | Package::OnnxruntimeGpu => {
            let name = path.strip_prefix("onnxruntime/capi/")?;
            (name.starts_with("libonnxruntime") && is_library(name)).then_some(name)
        }
        Package::Openvino => {
            // Beside libraries: tuned kernels of the GPU plugin (cache.json), and plugins.xml in old releases.
            let name = path.strip_prefix("openvino/libs/")?;
            (is_library(name) || name.ends_with(".json") || name.ends_with(".xml")).then_some(name)
        }
        Package::Ffmpeg => {
            let name = path.strip_prefix("imageio_ffmpeg/binaries/")?;
            name.starts_with("ffmpeg-linux").then_some("ffmpeg")
        }
    }
}

fn is_library(name: &str) -> bool {
    !name.contains('/') && (name.ends_with(".so") || name.contains(".so."))
}

/// The one file that a user of the runtime opens.
pub fn is_main(runtime: Package, placed: &str) -> bool {
    let stem = plain_name(runtime);
    placed == stem || placed.strip_prefix(stem).is_some_and(|rest| rest.starts_with('.'))
}

/// The main file's name without a version: a link of that name is made where the file itself has another.
pub fn plain_name(runtime: Package) -> &'static str {
    match runtime {
        Package::Onnxruntime | Package::OnnxruntimeGpu => "libonnxruntime.so",
        Package::Openvino => "libopenvino_c.so",
        Package::Ffmpeg => "ffmpeg",
    }
}

/// Whether what is unpacked is a program.
pub fn is_program(runtime: Package) -> bool {
    runtime == Package::Ffmpeg
}

/// What to say of a wheel without the main file.
pub fn nothing_inside(runtime: Package, version: &Version) -> String {
    let main = plain_name(runtime);
    let package = runtime.package();
    let lowest = match FIRST_WITH_LIBRARY.parse::<Version>() {
        Ok(lowest) if main == "libonnxruntime.so" && *version < lowest => {
            format!("; the lowest version that does is {lowest}: `prony runtime install {runtime}@{lowest}`")
        }
        _ => String::new(),
    };
    format!("the wheel of {package} {version} carries no {main}{lowest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_is_taken() {
        let taken = |runtime, paths: &[&'static str]| {
            paths.iter().filter_map(|path| place(runtime, path)).collect::<Vec<_>>().join(" ")
        };
        let paths = [
            "onnxruntime/__init__.py",
            "onnxruntime/capi/libonnxruntime.so.1.31.1",
            "onnxruntime/capi/libonnxruntime_providers_shared.so",
            "onnxruntime/capi/onnxruntime_pybind11_state.cpython-313-x86_64-linux-gnu.so",
        ];
        let expected = "libonnxruntime.so.1.31.1 libonnxruntime_providers_shared.so";
        assert_eq!(taken(Package::Onnxruntime, &paths), expected);
        let paths = [
            "openvino/_pyopenvino.cpython-313-x86_64-linux-gnu.so",
            "openvino/libs/libopenvino_c.so.2641",
            "openvino/libs/cache.json",
            "openvino/libs/tbb.pc",
        ];
        assert_eq!(taken(Package::Openvino, &paths), "libopenvino_c.so.2641 cache.json");
        let paths = ["imageio_ffmpeg/binaries/README.md", "imageio_ffmpeg/binaries/ffmpeg-linux-x86_64-v7.0.2"];
        assert_eq!(taken(Package::Ffmpeg, &paths), "ffmpeg");
    }

    #[test]
    fn the_main_library_is_no_provider() {
        let is = |name| is_main(Package::OnnxruntimeGpu, name);
        assert!(is("libonnxruntime.so.1.31.1") && is("libonnxruntime.so"));
        assert!(!is("libonnxruntime_providers_cuda.so"));
        assert!(is_main(Package::Openvino, "libopenvino_c.so.2641"));
        assert!(!is_main(Package::Openvino, "libopenvino.so.2641"));
    }

    #[test]
    fn an_old_wheel_is_told_the_lowest_version() {
        let said = nothing_inside(Package::Onnxruntime, &"1.18.1".parse().unwrap());
        assert!(said.contains("1.18.1 carries no libonnxruntime.so") && said.contains("@1.19.0"), "{said}");
        let said = nothing_inside(Package::Openvino, &"1.18.1".parse().unwrap());
        assert_eq!(said, "the wheel of openvino 1.18.1 carries no libopenvino_c.so");
    }
}
