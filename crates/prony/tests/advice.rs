//! What Prony advises where something cannot be done: it must be true, and the commands in it must work.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use prony_standin::Standin;
use prony_types::{CellStatus, ModelSource};
use support::{Place, SHORT, at_home, engine_plan, expect_code, has_gpu, installed, prony, skip, stderr, stdout};

impl Place {
    /// `prony …` in this place, with no runtime but what is named.
    fn at_home(&self, args: &[&str]) -> Output {
        let home = self.home(&[]).unwrap();
        at_home(prony().args(args), &home).current_dir(self.dir.path()).output().unwrap()
    }

    /// A data set as `data synth` makes it.
    fn scenes(&self, name: &str) {
        expect_code(&self.at_home(&["data", "synth", "--count", "3", "--quiet", name]), 0);
    }

    fn onnx(&self, name: &str) {
        fs::write(self.path(name), prony_model::builtin(prony_types::SceneKind::Rgb)).unwrap();
    }
}

/// The commands within backticks.
fn commands(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[track_caller]
fn refused(output: &Output, words: &[&str]) {
    expect_code(output, 2);
    let text = stderr(output);
    assert!(words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
}

#[test]
fn fp8_was_said_to_be_made_by_commands_that_cannot() {
    for precision in ["fp8", "nvfp4"] {
        let place = Place::new();
        place.onnx("yolo.onnx");
        let args = ["bench", "yolo.onnx", "--backends", "rten,openvino,ort-cpu", "--precision", precision];
        expect_code(&place.at_home(&args), 1);
        for cell in place.record().cells {
            let reason = cell.reason.unwrap();
            assert!(
                reason.contains(&format!("no {precision} arithmetic")) || reason.contains("Model Optimizer"),
                "{reason}"
            );
            assert_eq!(commands(&reason), [""; 0], "no command makes it");
        }
        let convert = place.at_home(&["convert", "yolo.onnx", "--precision", precision]);
        refused(&convert, &["Prony does not make", "Model Optimizer"]);
    }
}

#[test]
fn tensorrt_says_who_makes_fp8() {
    let Some(standin) = Standin::new("10.8.0") else { return };
    standin.set("compute", "100");
    for precision in ["fp8", "nvfp4"] {
        let place = Place::new();
        let home = place.home(&[]).unwrap();
        let mut bench = place.bench(&["builtin-rgb", "--backends", "tensorrt", "--precision", precision]);
        at_home(&mut bench, &home).env("LD_LIBRARY_PATH", standin.folder());
        for (name, path) in [
            ("nvinfer", standin.library()),
            ("nvonnxparser", standin.parser()),
            ("nvinfer-plugin", standin.plugins()),
            ("cuda", standin.driver()),
        ] {
            bench.arg("--library").arg(format!("{name}={}", path.display()));
        }
        expect_code(&bench.output().unwrap(), 1);
        let reason = place.record().cells[0].reason.clone().unwrap();
        assert!(reason.contains(&format!("this file is fp32, not {precision}; Prony does not make")), "{reason}");
        assert!(reason.contains("NVIDIA's Model Optimizer"), "{reason}");
    }
}

#[test]
fn exporting_onnx_said_to_name_another_file() {
    let place = Place::new();
    place.onnx("yolo.onnx");
    for name in ["yolo.onnx", "builtin-rgb"] {
        let output = place.at_home(&["export", name]);
        refused(&output, &[&format!("{name} is ONNX already"), "`prony convert`", "`prony quantize`", "`prony build`"]);
        let bench = &commands(&stderr(&output))[0];
        assert_eq!(*bench, format!("prony bench {name}"));
        let words: Vec<&str> = bench.split(' ').skip(1).chain(["--dry-run"]).collect();
        expect_code(&place.at_home(&words), 0);
    }
    fs::write(place.path("a.trt"), engine_plan([10, 3, 0, 0])).unwrap();
    refused(&place.at_home(&["export", "a.trt"]), &["a.trt is a TensorRT engine", "give the checkpoint (.pt)"]);
    refused(&place.at_home(&["export", "none.onnx"]), &["cannot read model none.onnx: No such file"]);
    refused(&place.at_home(&["export", "film.mkv"]), &["film.mkv is a video, not a model"]);
}

#[test]
fn a_gpu_backend_without_a_gpu_advised_a_package() {
    if has_gpu() {
        skip("there is a GPU here");
        return;
    }
    for backend in ["ort-cuda", "ort-tensorrt", "tensorrt", "trtexec"] {
        let place = Place::new();
        expect_code(&place.at_home(&[&["bench", "builtin-rgb", "--backends", backend][..], &SHORT].concat()), 1);
        let cell = place.record().cells[0].clone();
        let reason = cell.reason.unwrap();
        assert_eq!(cell.status, CellStatus::Failed);
        assert!(reason.contains("NVIDIA GPU") && !reason.contains("prony runtime install"), "{reason}");
    }
}

#[test]
fn a_video_as_a_model_was_called_no_onnx_and_as_a_source_no_folder() {
    let place = Place::new();
    fs::write(place.path("video.mp4"), b"\0\0\0\x20ftypisom").unwrap();
    for name in ["video.mp4", "gone.mp4"] {
        let words = [&format!("{name} is a video, not a model"), "ffmpeg -i", "--source frames"];
        for verb in [&["bench"][..], &["inspect"], &["build"], &["quantize", "--calib", "scenes"]] {
            refused(&place.at_home(&[verb, &[name]].concat()), &words);
        }
        let words = [&format!("{name}: videos cannot be read yet"), "ffmpeg -i"];
        let (int8, quantize) = (["--precision", "int8", "--calib"], ["quantize", "builtin-rgb", "--calib"]);
        for args in [
            &["bench", "builtin-rgb", "--source"][..],
            &["compare-outputs", "builtin-rgb", "builtin-rgb", "--source"],
            &[&["bench", "builtin-rgb"][..], &int8].concat(),
            &[&["build", "builtin-rgb"][..], &int8].concat(),
            &quantize,
        ] {
            refused(&place.at_home(&[args, &[name]].concat()), &words);
        }
    }
    refused(
        &place.at_home(&["bench", "photo.jpg"]),
        &["photo.jpg is an image, not a model", "prony run MODEL --input"],
    );
}

#[test]
fn the_advice_on_videos_works() {
    let Some(folder) = installed("ffmpeg", None) else { return };
    let place = Place::new();
    let home = folder.parent().unwrap().parent().unwrap().parent().unwrap();
    let program = stdout(&prony().args(["runtime", "path", "ffmpeg", "--home"]).arg(home).output().unwrap());
    fs::create_dir(place.path("bin")).unwrap();
    std::os::unix::fs::symlink(program.trim_end(), place.path("bin/ffmpeg")).unwrap();
    let shell = |command: &str| {
        let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
        let output = Command::new("sh").args(["-c", command]).env("PATH", path).current_dir(place.dir.path()).output();
        expect_code(&output.unwrap(), 0);
    };
    shell("ffmpeg -f lavfi -i testsrc=duration=1:size=320x240:rate=5 \"it's mine.mp4\"");
    let output = place.at_home(&["bench", "builtin-rgb", "--source", "it's mine.mp4"]);
    refused(&output, &["videos cannot be read yet"]);
    shell(&commands(&stderr(&output))[0]);
    expect_code(&place.at_home(&[&["bench", "builtin-rgb", "--source", "frames"][..], &SHORT].concat()), 0);
    assert_eq!(place.record().cells[0].input.as_ref().unwrap().frames, 5);
}

#[test]
fn a_trt_file_was_taken_for_onnx() {
    let place = Place::new();
    // Ultralytics' header hides how an engine begins: only the name tells.
    let plan = engine_plan([10, 3, 0, 0]);
    let metadata = br#"{"task": "detect", "imgsz": [320, 320], "batch": 1}"#;
    let headed = [&(metadata.len() as u32).to_le_bytes()[..], metadata, &plan].concat();
    for (file, bytes) in [("headed.trt", &headed), ("headed.engine", &headed), ("headed.plan", &headed)] {
        fs::write(place.path(file), bytes).unwrap();
        let inspect = place.at_home(&["inspect", file]);
        expect_code(&inspect, 0);
        let text = stdout(&inspect);
        assert!(text.starts_with(&format!("{file}: TensorRT engine")) && text.contains("TensorRT 10.3.0"), "{text}");
        assert!(ModelSource::File(file.into()).is_engine());
        refused(&place.at_home(&["build", file]), &["is an engine already"]);
        refused(&place.at_home(&["export", file]), &["is a TensorRT engine"]);
        // Taken for what it is, it needs what engines need.
        let compared = place.at_home(&["compare-outputs", file, file]);
        assert!(!compared.status.success() && stderr(&compared).contains("tensorrt"), "{}", stderr(&compared));
        // An option of engines is for this model, although no backend was named.
        let dry = place.at_home(&["bench", file, "--gpu-mem-limit", "1GB", "--dry-run"]);
        assert!(stdout(&dry).contains("headed:tensorrt:native"), "{}{}", stdout(&dry), stderr(&dry));
        fs::remove_file(place.path(file)).unwrap();
    }
    fs::write(place.path("headed.trt"), &headed).unwrap();
    let by_stem = place.at_home(&["inspect", "headed"]);
    assert!(stdout(&by_stem).contains("TensorRT engine"), "{}{}", stdout(&by_stem), stderr(&by_stem));
    fs::write(place.path("text.trt"), "no engine\n").unwrap();
    refused(&place.at_home(&["bench", "text.trt"]), &["text.trt is not a TensorRT engine"]);
}

#[test]
fn the_folder_of_data_synth_had_no_images() {
    let place = Place::new();
    place.scenes("set");
    let said = "set: using the 3 images in set/images";
    let bench = place.at_home(&[&["bench", "builtin-rgb", "--source", "set"][..], &SHORT].concat());
    expect_code(&bench, 0);
    assert!(stderr(&bench).contains(&format!("--source {said}")), "{}", stderr(&bench));
    assert_eq!(place.record().cells[0].input.as_ref().unwrap().frames, 3);

    let quantize = ["quantize", "builtin-rgb", "--calib", "set", "--samples", "2", "-o", "q.onnx"];
    let quantize = place.at_home(&quantize);
    expect_code(&quantize, 0);
    assert!(stderr(&quantize).contains(&format!("--calib {said}")), "{}", stderr(&quantize));

    let compare = place.at_home(&["compare-outputs", "builtin-rgb", "builtin-rgb", "--source", "set", "--frames", "1"]);
    expect_code(&compare, 0);

    fs::remove_dir_all(place.runs()).unwrap();
    let int8 = ["--precision", "int8", "--calib", "set", "--calibration-frames", "2"];
    let bench = place.at_home(&[&["bench", "builtin-rgb"], &int8[..], &SHORT].concat());
    assert!(matches!(bench.status.code(), Some(0 | 3)), "{}", stderr(&bench));
    assert_eq!(place.record().cells[0].status, CellStatus::Completed, "{}", stderr(&bench));
    assert!(stderr(&bench).contains(said), "{}", stderr(&bench));
}

#[test]
fn a_data_set_whose_images_are_elsewhere_is_followed() {
    let place = Place::new();
    place.scenes("set");
    fs::create_dir_all(place.path("coco/annotations")).unwrap();
    fs::rename(place.path("set/images"), place.path("coco/val2017")).unwrap();
    fs::rename(place.path("set/annotations/instances.json"), place.path("coco/annotations/instances_val2017.json"))
        .unwrap();
    let bench = place.at_home(&[&["bench", "builtin-rgb", "--source", "coco"][..], &SHORT].concat());
    expect_code(&bench, 0);
    assert!(stderr(&bench).contains("using the 3 images in coco/val2017"), "{}", stderr(&bench));
    let nothing = place.at_home(&["bench", "builtin-rgb", "--source", "set"]);
    refused(&nothing, &["set: no images", "or in its images/"]);
}

#[test]
fn a_folder_called_scenes_is_not_taken_in_silence_for_the_built_in_ones() {
    let place = Place::new();
    place.scenes("scenes");
    let dry = place.at_home(&["bench", "builtin-rgb", "--source", "scenes", "--dry-run"]);
    expect_code(&dry, 0);
    let said = format!("{}{}", stdout(&dry), stderr(&dry));
    assert!(
        said.contains("--source scenes: using the built-in scenes; for the folder of that name give ./scenes"),
        "{said}"
    );
    assert!(Path::new(&place.path("scenes/images")).is_dir());
}
