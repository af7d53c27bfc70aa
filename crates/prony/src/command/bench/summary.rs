//! A plan in one line: what will be measured, for how long, and what must be built first.

use prony_types::{ArtifactKind, CellSpec, Plan};

use prony_plan::listed;
use prony_run::{estimate_s, longest_s};
use prony_work::short_time;

/// More cells than this are counted, not named.
const NAMED: usize = 8;

/// What will be done about the cells that are left to run.
pub(super) fn summary(plan: &Plan, to_run: &[&CellSpec], engines: usize) -> String {
    let count = to_run.len();
    if count == 0 {
        return "nothing: no cell can run".to_owned();
    }
    let plural = |n: usize, word: &str| if n == 1 { format!("{n} {word}") } else { format!("{n} {word}s") };
    let cells = plural(count, "cell");
    let what = if count > NAMED { cells } else { format!("{cells}, {}", named(to_run)) };
    let time = match (plan.timed, estimate_s(&plan.budget), plan.budget.at_least) {
        (false, ..) => ": every image once, not timed".to_owned(),
        (true, None, _) => ": as long as the samples take".to_owned(),
        (true, Some(s), None) => {
            let longest = longest_s(&plan.budget).map(|s| short_time(s * count as f64));
            let longest = longest.map_or_else(String::new, |time| format!(" (up to {time} on a noisy machine)"));
            format!(": about {}{longest}", short_time(s * count as f64))
        }
        (true, Some(s), Some(floor)) => {
            let least = short_time(s * count as f64);
            format!(": at least {least}, until each has {} samples", floor.samples)
        }
    };
    // How long a build takes is known to nobody before the first one.
    let building = match engines {
        0 => String::new(),
        1 => ", plus building 1 TensorRT engine (minutes)".to_owned(),
        n => format!(", plus building {n} TensorRT engines (minutes each)"),
    };
    let graphs = to_run.iter().filter(|cell| cell.artifact_kind() == Some(ArtifactKind::Graph)).count();
    let making = match graphs {
        0 => String::new(),
        n => format!(", plus converting {}", plural(n, "model file")),
    };
    format!("{what}{time}{building}{making}")
}

/// `a and b on x:fp16 and y:fp32`, or model by model where they differ.
fn named(cells: &[&CellSpec]) -> String {
    let mut models: Vec<(&str, Vec<&str>)> = Vec::new();
    for cell in cells {
        let name = cell.model.name.as_str();
        let on = cell.id.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')).unwrap_or(&cell.id);
        match models.iter_mut().find(|(known, _)| *known == name) {
            Some((_, places)) => places.push(on),
            None => models.push((name, vec![on])),
        }
    }
    let alike = models.windows(2).all(|pair| pair[0].1 == pair[1].1);
    match &models[..] {
        [(_, places), ..] if alike => {
            let names: Vec<&str> = models.iter().map(|(name, _)| *name).collect();
            format!("{} on {}", listed(&names), listed(places))
        }
        _ => {
            let each: Vec<String> =
                models.iter().map(|(name, places)| format!("{name} on {}", listed(places))).collect();
            each.join("; ")
        }
    }
}

#[cfg(test)]
mod tests {
    use prony_types::{BackendName, ModelSource, ModelSpec, Precision, SceneKind};

    use super::*;

    fn cell(model: &str, backend: BackendName, precision: Precision) -> CellSpec {
        CellSpec::new(ModelSpec::new(model, ModelSource::Builtin(SceneKind::Rgb), "1"), backend, precision)
    }

    #[test]
    fn models_on_the_same_backends_stand_together() {
        use BackendName::{OrtCpu, Tensorrt};
        let cells = [
            cell("a", Tensorrt, Precision::Fp16),
            cell("a", OrtCpu, Precision::Fp32),
            cell("b", Tensorrt, Precision::Fp16),
            cell("b", OrtCpu, Precision::Fp32),
        ];
        let of = |cells: &[CellSpec]| named(&cells.iter().collect::<Vec<_>>());
        assert_eq!(of(&cells), "a and b on tensorrt:fp16 and ort-cpu:fp32");
        assert_eq!(of(&cells[..3]), "a on tensorrt:fp16 and ort-cpu:fp32; b on tensorrt:fp16");
        assert_eq!(of(&cells[..1]), "a on tensorrt:fp16");
    }
}
