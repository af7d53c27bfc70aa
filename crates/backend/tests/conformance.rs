//! Every backend that is there passes every check.
#![expect(clippy::disallowed_macros, reason = "tests")]

mod runtimes;

use prony_backend::conformance;
use prony_types::BackendName;

/// The backends that are put through the checks, where their library is there.
const BACKENDS: &[BackendName] = &[BackendName::Rten, BackendName::OrtCpu, BackendName::Openvino];

/// Checks that a backend is known not to pass, with the reason. Empty is the goal.
const EXCUSED: &[(BackendName, &str, &str)] = &[(
    BackendName::Rten,
    "half-precision inputs and outputs keep their values",
    "rten computes in 32 bits; an fp16 input is refused when the model is opened",
)];

#[test]
fn every_backend_conforms() {
    let mut failures = Vec::new();
    for &name in BACKENDS {
        let Some(subject) = runtimes::subject(name) else { continue };
        for (check, run) in conformance::CHECKS {
            let excuse = EXCUSED.iter().find(|(who, what, _)| *who == name && what == check);
            match (run(&subject), excuse) {
                (Ok(()), None) => {}
                (Ok(()), Some(_)) => failures.push(format!("{name}: {check}: passes now; remove the excuse")),
                (Err(error), None) => failures.push(format!("{name}: {check}: {error}")),
                (Err(_), Some((_, _, why))) => println!("{name}: {check}: excused: {why}"),
            }
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
