//! What a person reads.

use super::*;
use crate::environment_at;
use crate::fixture::Fixture;
use prony_types::{Check, Outcome, PythonPackage};

fn runtime(name: RuntimeName, state: RuntimeState) -> RuntimeRecord {
    RuntimeRecord {
        name,
        state,
        path: None,
        found_by: None,
        version: None,
        provides: vec![],
        reason: None,
        trusted: None,
        looked: vec![],
        remedy: None,
    }
}

#[test]
fn the_report_is_aligned_and_says_what_is_unknown() {
    let text = env_report(&environment_at(Fixture::laptop().root()));
    assert!(text.contains("\nSystem\n  host:            ann-box\n  system:          Ubuntu 24.04.1 LTS\n"), "{text}");
    assert!(text.contains("  virtual machine: no\n"), "{text}");
    assert!(text.contains("  highest clock:  4800 MHz\n"), "{text}");
    assert!(text.contains("  memory:       15.3 GiB\n  available:    8789 MiB\n"), "{text}");
    assert!(text.contains("  swap:         1953 MiB, 488 MiB in use\n"), "{text}");
    assert!(text.contains("\nGPU\n  name: none found\n"), "{text}");
    assert!(text.contains("\nSensors\n  cpu time, memory, load average"), "{text}");
    let bare = env_report(&Environment { arch: "aarch64".into(), ..Environment::default() });
    assert!(bare.contains("  kernel:          unknown\n") && bare.contains("\nSensors\n  none\n"), "{bare}");
    assert!(bare.contains("\nRuntimes\n  not looked for\n"), "{bare}");
    assert!(bare.contains("\nPython packages\n  none of those that matter here\n"), "{bare}");
}

#[test]
fn gpu_and_runtimes_have_a_line_a_copy() {
    let ready = |version: &str, path: &str| RuntimeRecord {
        version: Some(version.into()),
        path: Some(path.into()),
        ..runtime(RuntimeName::Onnxruntime, RuntimeState::Ready)
    };
    let environment = Environment {
        driver: Some("580.65".into()),
        gpus: vec![GpuRecord {
            name: "NVIDIA H200".into(),
            compute: Some("9.0".into()),
            sms: Some(132),
            mem_total_bytes: Some(139 << 30),
            integrated: Some(false),
            ..GpuRecord::default()
        }],
        runtimes: vec![
            RuntimeRecord { provides: vec!["CPU".into(), "CUDA".into()], ..ready("1.23.0", "/a/libonnxruntime.so") },
            ready("1.20.1", "/b/libonnxruntime.so"),
            RuntimeRecord { version: Some("13.0".into()), ..runtime(RuntimeName::Cuda, RuntimeState::Ready) },
            RuntimeRecord {
                path: Some("/c/libcudnn.so.9".into()),
                reason: Some("libcublas.so.12 is not found".into()),
                remedy: Some("install CUDA 12".into()),
                ..runtime(RuntimeName::Cudnn, RuntimeState::Broken)
            },
            RuntimeRecord {
                looked: (1..=6).map(|n| format!("/lib{n}")).collect(),
                remedy: Some("run `prony runtime install openvino`".into()),
                ..runtime(RuntimeName::Openvino, RuntimeState::Missing)
            },
        ],
        python: vec![PythonPackage { name: "numpy".into(), version: "2.2".into(), place: "/p/site-packages".into() }],
        ..Environment::default()
    };
    let text = env_report(&environment);
    let gpu = "
GPU
  name:               NVIDIA H200
  SMs:                132
  compute capability: 9.0
  memory:             139.0 GiB
  driver:             580.65
  CUDA of the driver: 13.0
  CUDA toolkit:       unknown
";
    assert!(text.contains(gpu), "{text}");
    let runtimes = "
Runtimes
  onnxruntime  ready    1.23.0  /a/libonnxruntime.so
               provides: CPU, CUDA
               ready    1.20.1  /b/libonnxruntime.so
  cuda         ready    13.0
  cudnn        broken   -       /c/libcudnn.so.9
               why: libcublas.so.12 is not found
               fix: install CUDA 12
  openvino     missing  run `prony runtime install openvino`
               looked in: /lib1, /lib2, /lib3, /lib4 and 2 more (--json lists them)

Python packages
  numpy  2.2  /p/site-packages
";
    assert!(text.contains(runtimes), "{text}");
    assert!(!text.contains("\nJetson\n") && !text.contains("\nPreflight\n"), "{text}");
}

#[test]
fn the_preflight_says_each_thing_once() {
    let finding = "the load average is 9.00 on 2 usable CPUs: other work takes the CPUs".to_owned();
    let fix = Some("ps | head".to_owned());
    let load = Check { name: "load".into(), outcome: Outcome::Fail, finding: finding.clone(), fix };
    let calm = Check { name: "CPU governor".into(), outcome: Outcome::Pass, finding: "performance".into(), fix: None };
    let mut environment =
        Environment { preflight: vec![load, calm], notes: vec![finding.clone()], ..Environment::default() };
    let text = env_report(&environment);
    let lines = format!(
        "\nPreflight\n  FAIL  load          {finding}\n{:22}fix: ps | head\n  PASS  CPU governor  performance\n",
        ""
    );
    assert!(text.contains(&lines) && !text.contains("Notes"), "{text}");
    environment.notes.push("something else".into());
    assert!(env_report(&environment).ends_with("\nNotes\n  - something else\n"));
}

#[test]
fn long_lines_are_broken_at_words_under_their_beginning() {
    let mut environment = Environment::default();
    environment.cpu.features = (0..40).map(|n| format!("feature_{n}")).collect();
    let text = env_report(&environment);
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    let begin = "  features:       feature_0 feature_1 ";
    let next = text.lines().skip_while(|line| !line.starts_with(begin)).nth(1).unwrap();
    assert!(next.starts_with(&format!("{:18}feature_", "")), "{next}");
    assert!(text.contains("feature_39\n"), "{text}");
}

#[test]
fn what_was_not_opened_and_what_was_trusted_is_said() {
    let runtimes = vec![
        RuntimeRecord {
            path: Some("/a/libonnxruntime.so".into()),
            version: Some("1.30.0".into()),
            trusted: Some("/a belongs to bob (uid 1001)".into()),
            ..runtime(RuntimeName::Onnxruntime, RuntimeState::Ready)
        },
        RuntimeRecord {
            path: Some("/b/libcuda.so.1".into()),
            reason: Some("/b is writable by everyone (mode 777)".into()),
            remedy: Some("chmod o-w /b".into()),
            ..runtime(RuntimeName::Cuda, RuntimeState::NotOpened)
        },
    ];
    let text = env_report(&Environment { runtimes, ..Environment::default() });
    let expected = "
  onnxruntime  ready       1.30.0  /a/libonnxruntime.so
               trusted: /a belongs to bob (uid 1001); opened because of --trust-library
  cuda         not opened  -       /b/libcuda.so.1
               why: /b is writable by everyone (mode 777)
               fix: chmod o-w /b
";
    assert!(text.contains(expected), "{text}");
}
