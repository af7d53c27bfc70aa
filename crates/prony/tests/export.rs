//! Checkpoints as ONNX, by the real binary: what it writes, what it says, and what it refuses.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use std::process::Output;

use prony_model::sha256_hex;
use serde_json::Value;
use support::{Place, expect_code, prony, stderr, stdout};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// A small checkpoint of the forge's tests, at a place where something may be written beside it.
fn checkpoint(place: &Place, name: &str) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../forge/tests/golden").join(format!("{name}.pt"));
    let path = place.path(&format!("{name}.pt"));
    fs::copy(golden, &path).unwrap();
    path
}

fn export(model: &Path, more: &[&str]) -> Output {
    prony().arg("export").arg(model).args(more).output().unwrap()
}

#[test]
fn a_checkpoint_becomes_a_graph_that_runs() {
    let place = Place::new();
    let model = checkpoint(&place, "classic");
    let output = export(&model, &[]);
    expect_code(&output, 0);
    let text = stdout(&output);
    let onnx = place.path("classic.onnx");
    for fact in [
        onnx.to_str().unwrap(),
        "images [1, 3, 64, 64]",
        "output0 [1, 7, 84]",
        "one-to-many",
        "3: person, driver's, 6\" nail",
        "operator set 17",
    ] {
        assert!(text.contains(fact), "{fact}: {text}");
    }
    assert!(stderr(&output).is_empty(), "{}", stderr(&output));
    let output = prony().args(["inspect", "--json"]).arg(&onnx).output().unwrap();
    expect_code(&output, 0);
    let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(facts["info"]["metadata"]["names"][1], "driver's");
    let cells = place.path("x.npy");
    let grey = vec![0.5f32; 3 * 64 * 64];
    fs::write(&cells, support::numpy::npy("<f4", &[1, 3, 64, 64], &grey, f32::to_le_bytes)).unwrap();
    let output = prony().args(["run", "--json", "--input"]).arg(&cells).arg(&onnx).output().unwrap();
    expect_code(&output, 0);
}

#[test]
fn json_says_what_was_written() {
    let place = Place::new();
    let model = checkpoint(&place, "ten");
    let target = place.path("out.onnx");
    let flags = ["-o", target.to_str().unwrap(), "--dynamic", "--opset", "13", "--json", "--imgsz", "128x64"];
    let output = export(&model, &flags);
    expect_code(&output, 0);
    let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
    let bytes = fs::read(&target).unwrap();
    assert_eq!((&facts["sha256"], &facts["bytes"]), (&sha256_hex(&bytes).into(), &bytes.len().into()));
    assert_eq!(facts["input"]["dims"], serde_json::json!(["batch", 3, "height", "width"]));
    assert_eq!(facts["output"]["dims"], serde_json::json!(["batch", 160, 6]));
    assert_eq!((&facts["end2end"], &facts["opset"], &facts["classes"]), (&true.into(), &13.into(), &3.into()));
    assert!(facts["notes"][0].as_str().unwrap().contains("at least 160 places"), "{facts}");
    let output = export(&model, &["--end2end", "no", "--json"]);
    expect_code(&output, 0);
    let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&facts["end2end"], &facts["output"]["dims"][1]), (&false.into(), &7.into()));
}

#[test]
fn parameters_and_flops_of_a_checkpoint_are_those_of_its_graph() {
    let place = Place::new();
    let facts = |output: Output| -> Value {
        expect_code(&output, 0);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    for name in ["classic", "rep", "ten", "attention"] {
        let model = checkpoint(&place, name);
        let made = facts(export(&model, &["--json"]));
        let inspect = |path: &Path| {
            facts(prony().args(["inspect", "--json", "--no-backends"]).arg(path).output().unwrap()) //
        };
        let (pt, onnx) = (inspect(&model), inspect(&model.with_extension("onnx")));
        let (parameters, flops) = (&onnx["info"]["parameters"], &onnx["graph"]["flops"]);
        assert!(parameters.as_u64().unwrap() > 10_000 && flops.as_u64().unwrap() > 1_000_000, "{name}");
        assert_eq!((&pt["parameters"], &pt["flops"]), (parameters, flops), "{name}");
        assert_eq!((&made["parameters"], &made["gflops"]), (parameters, &(flops.as_f64().unwrap() / 1e9).into()));
        // Weights alone, as PyTorch counts them after fusing: no anchors, strides or scales.
        let stored = pt["stored_elements"]["f16"].as_u64().unwrap();
        assert!(parameters.as_u64().unwrap() < stored, "{name}: {parameters} of {stored}");
    }
}

#[test]
fn a_file_that_is_there_is_not_replaced_unasked() {
    let place = Place::new();
    let model = checkpoint(&place, "classic");
    let onnx = place.path("classic.onnx");
    fs::write(&onnx, "mine").unwrap();
    let output = export(&model, &[]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("is there already; give --force"), "{}", stderr(&output));
    assert_eq!(fs::read(&onnx).unwrap(), b"mine");
    let before = fs::read(&model).unwrap();
    let output = export(&model, &["-o", model.to_str().unwrap(), "--force"]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("is the model itself"), "{}", stderr(&output));
    assert_eq!(fs::read(&model).unwrap(), before);
    expect_code(&export(&model, &["--force"]), 0);
    assert!(fs::metadata(&onnx).unwrap().len() > 10_000);
    let nowhere = place.path("no/such/x.onnx");
    let output = export(&model, &["-o", nowhere.to_str().unwrap()]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("is no folder"), "{}", stderr(&output));
}

#[test]
fn wrong_options_get_one_line_and_leave_nothing() {
    let place = Place::new();
    let model = checkpoint(&place, "classic");
    let cases: [(&[&str], &str); 6] = [
        (&["--imgsz", "100"], "--imgsz 128x128 does"),
        (&["--end2end", "yes"], "no branches that give each object once"),
        (&["--opset", "12"], "13 to 18"),
        (&["--batch", "0"], "0"),
        (&["--end2end", "maybe"], "maybe"),
        (&["--imgsz", "x"], "is not a size"),
    ];
    for (flags, reason) in cases {
        let output = export(&model, flags);
        expect_code(&output, 2);
        let text = stderr(&output);
        assert!(text.contains(reason) && text.trim_end().lines().count() == 1, "{flags:?}: {text}");
    }
    assert!(!place.path("classic.onnx").exists());
}

/// A checkpoint's container around a pickle.
fn container(pickle: &[u8], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in [("data.pkl", pickle), ("version", b"3\n"), ("data/0", &[0; 8])] {
        zip.start_file(format!("best/{name}"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn what_is_foreign_damaged_or_hostile_is_refused() {
    let place = Place::new();
    let proof = place.path("executed");
    let command = format!("touch {}", proof.display());
    let length = u32::try_from(command.len()).unwrap().to_le_bytes();
    let hostile = [b"\x80\x02cposix\nsystem\nX".as_slice(), &length, command.as_bytes(), b"\x85R."].concat();
    let resnet = b"\x80\x02ctorchvision.models.resnet\nResNet\n)\x81}(X\x08\x00\x00\x00_modules}ub.";
    let whole = fs::read(checkpoint(&place, "classic")).unwrap();
    let stored = CompressionMethod::Stored;
    let cases = [
        ("hostile", container(&hostile, stored), "it would call posix.system"),
        ("text", b"this is text".to_vec(), "does not start as the zip file that torch.save writes"),
        ("cut", whole[..whole.len() / 2].to_vec(), "it is cut short"),
        ("bomb", container(&vec![0; 80 << 20], CompressionMethod::Deflated), "claims 83886080 bytes"),
        ("resnet", container(resnet, stored), "its model is torchvision.models.resnet.ResNet; supported are"),
        ("empty", Vec::new(), "does not start as the zip file"),
    ];
    for (name, bytes, reason) in cases {
        let path = place.path(&format!("{name}-bad.pt"));
        fs::write(&path, bytes).unwrap();
        let output = export(&path, &[]);
        expect_code(&output, 2);
        let text = stderr(&output);
        assert!(text.contains(reason) && text.trim_end().lines().count() == 1, "{name}: {text}");
        assert!(!path.with_extension("onnx").exists(), "{name}");
    }
    assert!(!proof.exists());
    let output = export(&place.path("nosuch.pt"), &[]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("nosuch.pt"), "{}", stderr(&output));
}
