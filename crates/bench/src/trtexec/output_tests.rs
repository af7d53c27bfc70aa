//! Texts in the published form of each generation, written for this test; no trtexec was at hand.

use super::*;

const OLD: &str = "&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --loadEngine=a.engine
[11/15/2026-10:00:00] [I] Engine loaded in 0.0124 sec.
[11/15/2026-10:00:00] [I] Engine deserialized in 0.02 sec.
[11/15/2026-10:00:00] [I] Using random values for input images
[11/15/2026-10:00:00] [I] Input binding for images with dimensions 1x3x640x640 is created.
[11/15/2026-10:00:00] [I] Output binding for output0 with dimensions 1x84x8400 is created.
[11/15/2026-10:00:03] [I] Average on 10 runs - GPU latency: 1.5 ms - Host latency: 2.1 ms (enqueue 0.3 ms)
[11/15/2026-10:00:03] [I] === Performance summary ===
[11/15/2026-10:00:03] [I] Throughput: 614.25 qps
[11/15/2026-10:00:03] [I] Latency: min = 2.01 ms, max = 3.5 ms, mean = 2.11 ms, median = 2.1 ms, percentile(90%) = 2.2 ms, percentile(95%) = 2.3 ms, percentile(99%) = 3.1 ms
[11/15/2026-10:00:03] [I] Enqueue Time: min = 0.2 ms, max = 0.5 ms, mean = 0.3 ms, median = 0.3 ms, percentile(99%) = 0.4 ms
[11/15/2026-10:00:03] [I] H2D Latency: min = 0.4 ms, max = 0.6 ms, mean = 0.41 ms, median = 0.4 ms, percentile(99%) = 0.5 ms
[11/15/2026-10:00:03] [I] GPU Compute Time: min = 1.5 ms, max = 2.6 ms, mean = 1.6 ms, median = 1.59 ms, percentile(99%) = 2.5 ms
[11/15/2026-10:00:03] [I] D2H Latency: min = 0.1 ms, max = 0.2 ms, mean = 0.11 ms, median = 0.1 ms, percentile(99%) = 0.2 ms
[11/15/2026-10:00:03] [I] Total Host Walltime: 3.00366 s
[11/15/2026-10:00:03] [I] Total GPU Compute Time: 2.9 s
[11/15/2026-10:00:03] [W] * GPU compute time is unstable, with coefficient of variance = 7.5%.
&&&& PASSED TensorRT.trtexec [TensorRT v8601] # trtexec --loadEngine=a.engine
";

#[test]
fn the_summary_of_8_is_read() {
    let printed = read(OLD);
    assert_eq!(printed.throughput_qps, Some(614.25));
    assert_eq!(printed.latency, Some(Metric { min: 2.01, max: 3.5, mean: 2.11, median: 2.1 }));
    assert_eq!(printed.compute.unwrap().median, 1.59);
    assert_eq!((printed.h2d.unwrap().mean, printed.d2h.unwrap().max), (0.41, 0.2));
    assert_eq!(printed.inputs, [("images".to_owned(), vec![1, 3, 640, 640])]);
    assert!((printed.load_ms.unwrap() - 12.4).abs() < 1e-9);
    assert!(printed.passed && printed.errors.is_empty());
}

#[test]
fn the_summary_of_10_and_11_is_read() {
    let ten = "&&&& RUNNING TensorRT.trtexec [TensorRT v100300] [b26] # trtexec --loadEngine=a.engine
[11/15/2026-10:00:00] [I] Engine deserialized in 0.00850436 sec.
[11/15/2026-10:00:00] [I] Created input binding for images with dimensions 4x3x320x320
[11/15/2026-10:00:03] [I] Throughput: 1.25e+03 qps
[11/15/2026-10:00:03] [I] GPU Compute Time: min = 0.7 ms, max = 0.9 ms, mean = 0.78 ms, median = 0.77 ms, percentile(90%) = 0.8 ms
&&&& PASSED TensorRT.trtexec [TensorRT v100300] [b26] # trtexec
";
    let printed = read(ten);
    assert_eq!(printed.throughput_qps, Some(1250.0));
    assert_eq!(printed.inputs[0].1, [4, 3, 320, 320]);
    assert!(printed.h2d.is_none() && printed.passed);
    let eleven = "[I] Latency: min = 0.7 ms, max = 0.9 ms, mean = 0.78 ms, median = 0.77 ms, percentile(90%) = 0.8 ms
[I] H2D Latency: min = 0 ms, max = 0 ms, mean = 0 ms, median = 0 ms, percentile(90%) = 0 ms";
    assert_eq!(read(eleven).h2d.unwrap().max, 0.0);
    assert_eq!(read(eleven).latency.unwrap().median, 0.77);
}

#[test]
fn the_banner_tells_the_generation() {
    for (banner, version, generation) in [
        (OLD, "8.6.1", Generation::V8),
        ("&&&& RUNNING TensorRT.trtexec [TensorRT v8401] # trtexec", "8.4.1", Generation::V8),
        ("[TensorRT v100001] # ./trtexec", "10.0.1", Generation::V10),
        ("[TensorRT v101600] [b21] # trtexec", "10.16.0", Generation::V10),
        ("[TensorRT v110000] [b114]", "11.0.0", Generation::V11),
    ] {
        let found = Version::in_banner(banner).unwrap();
        assert_eq!((found.to_string().as_str(), found.generation()), (version, Ok(generation)));
    }
    assert!(Generation::V10.has_transfers() && !Generation::V11.has_transfers());
    assert_eq!(Version::in_banner("bash: trtexec: command not found"), None);
    let later = Version::in_banner("[TensorRT v120000]").unwrap().generation().unwrap_err();
    assert!(later.starts_with("trtexec 12.0.0 is not known"), "{later}");
    assert!(Version::in_banner("[TensorRT v7203]").unwrap().generation().is_err());
}

#[test]
fn errors_are_kept_and_garbage_is_nothing() {
    let failed = "&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec
[11/15/2026-10:00:00] [E] Error[1]: [runtime.cpp::parsePlan::314] Error Code 1: Serialization
[11/15/2026-10:00:00] [E] Engine deserialization failed
&&&& FAILED TensorRT.trtexec [TensorRT v100300] # trtexec";
    let printed = read(failed);
    assert_eq!(printed.errors.last().unwrap(), "Engine deserialization failed");
    assert!(!printed.passed);
    let garbage =
        "Throughput: fast\nLatency: min = x ms\n[[[[\n] Input binding for a with dimensions 1xfoo is created.";
    assert_eq!(read(garbage), Printed::default());
}
