//! How far a build is and how long it still takes: from the builder's own steps where it tells them, from earlier builds
//! where it does not.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::recipe::Recipe;
use crate::sidecar::EngineSidecar;

/// Below this share the builder's steps say little about the time that is left.
const ENOUGH: f64 = 0.05;

/// The phases of a build, as the builder reports them. They nest: a phase runs within one step of its parent.
#[derive(Debug, Default)]
pub(crate) struct Phases(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    open: Vec<Phase>,
    stop: bool,
}

#[derive(Debug)]
struct Phase {
    name: String,
    parent: Option<String>,
    steps: f64,
    done: f64,
}

impl Phases {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the build at its next step.
    pub(crate) fn stop(&self) {
        self.state().stop = true;
    }

    /// What the builder is at, and which share is done.
    pub(crate) fn now(&self) -> Option<(String, f64)> {
        let state = self.state();
        let root = state.open.iter().find(|phase| phase.parent.is_none())?;
        let doing = state.open.last().map(|phase| phase.name.clone())?;
        Some((doing, share(&state.open, root).clamp(0.0, 1.0)))
    }
}

fn share(open: &[Phase], phase: &Phase) -> f64 {
    let within = open.iter().filter(|child| child.parent.as_deref() == Some(&phase.name)).map(|child| {
        // A phase that is its own parent would have no end.
        if child.name == phase.name { 0.0 } else { share(open, child) }
    });
    let within = within.fold(0.0, f64::max).min(1.0);
    ((phase.done + within) / phase.steps).min(1.0)
}

impl prony_nvinfer::BuildListener for Phases {
    fn phase_start(&self, phase: &str, parent: Option<&str>, steps: i32) {
        let (name, parent) = (phase.to_owned(), parent.map(str::to_owned));
        self.state().open.push(Phase { name, parent, steps: f64::from(steps.max(1)), done: 0.0 });
    }

    fn step(&self, phase: &str, step: i32) -> bool {
        let mut state = self.state();
        if let Some(phase) = state.open.iter_mut().rev().find(|open| open.name == phase) {
            phase.done = (f64::from(step) + 1.0).max(phase.done);
        }
        !state.stop
    }

    fn phase_finish(&self, phase: &str) {
        let mut state = self.state();
        if let Some(index) = state.open.iter().rposition(|open| open.name == phase) {
            state.open.remove(index);
        }
    }
}

/// Seconds that are left, by the builder's steps or by what such a build took before.
pub(crate) fn eta_s(elapsed_s: f64, done: Option<f64>, expected_s: Option<f64>) -> Option<f64> {
    match done.filter(|&done| done >= ENOUGH) {
        Some(done) => Some(elapsed_s * (1.0 - done) / done),
        // Past the expected time nobody knows.
        None => expected_s.map(|expected| expected - elapsed_s).filter(|&left| left > 0.0),
    }
}

/// How long such a build took before: the same model in that precision, else others by their size.
pub(crate) fn expected_s(earlier: &[(String, EngineSidecar)], recipe: &Recipe, onnx_bytes: u64) -> Option<f64> {
    let same_place = |old: &Recipe| {
        old.identity.gpu == recipe.identity.gpu
            && old.engine.precision == recipe.engine.precision
            && old.engine.level == recipe.engine.level
    };
    let alike: Vec<&EngineSidecar> =
        earlier.iter().map(|(_, sidecar)| sidecar).filter(|sidecar| same_place(&sidecar.recipe)).collect();
    if let Some(same) = alike.iter().rev().find(|sidecar| sidecar.recipe.onnx_sha256 == recipe.onnx_sha256) {
        return Some(same.build_s);
    }
    let mut scaled: Vec<f64> = alike
        .iter()
        .filter(|sidecar| sidecar.onnx_bytes > 0)
        .map(|sidecar| sidecar.build_s * onnx_bytes as f64 / sidecar.onnx_bytes as f64)
        .collect();
    scaled.sort_by(f64::total_cmp);
    scaled.get(scaled.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use prony_nvinfer::BuildListener as _;
    use prony_types::Precision;

    use super::*;
    use crate::recipe::tests::recipe;

    #[test]
    fn phases_nest() {
        let phases = Phases::default();
        assert_eq!(phases.now(), None);
        phases.phase_start("build", None, 4);
        assert!(phases.step("build", 0));
        phases.phase_start("tactics", Some("build"), 10);
        assert!(phases.step("tactics", 4));
        let (doing, done) = phases.now().unwrap();
        assert_eq!(doing, "tactics");
        assert!((done - (1.0 + 0.5) / 4.0).abs() < 1e-12, "{done}");
        phases.phase_finish("tactics");
        assert_eq!(phases.now(), Some(("build".into(), 0.25)));
        phases.stop();
        assert!(!phases.step("build", 1));
        phases.phase_finish("build");
        assert_eq!(phases.now(), None);
    }

    #[test]
    fn a_builder_that_counts_oddly_does_not_pass_the_end() {
        let phases = Phases::default();
        phases.phase_start("build", None, 0);
        phases.phase_start("build", Some("build"), 2);
        phases.step("build", 9);
        phases.step("nobody", 3);
        assert!(phases.now().unwrap().1 <= 1.0);
    }

    #[test]
    fn steps_beat_history_once_there_are_enough() {
        assert_eq!(eta_s(10.0, Some(0.25), Some(300.0)), Some(30.0));
        assert_eq!(eta_s(10.0, Some(0.01), Some(300.0)), Some(290.0));
        assert_eq!(eta_s(10.0, None, Some(300.0)), Some(290.0));
        assert_eq!(eta_s(310.0, None, Some(300.0)), None);
        assert_eq!(eta_s(10.0, None, None), None);
    }

    #[test]
    fn the_same_model_tells_best_and_others_by_size() {
        let sidecar = |change: &dyn Fn(&mut EngineSidecar)| {
            let mut sidecar = EngineSidecar {
                schema: prony_model::ENGINE_SCHEMA.into(),
                prony: String::new(),
                created: String::new(),
                model: String::new(),
                onnx_bytes: 1000,
                recipe: recipe(),
                engine_sha256: String::new(),
                size_bytes: 0,
                build_s: 50.0,
                notes: Vec::new(),
                host_peak_bytes: None,
                host_available_low_bytes: None,
                device_peak_bytes: None,
            };
            change(&mut sidecar);
            (String::new(), sidecar)
        };
        let same = sidecar(&|_| {});
        let other = sidecar(&|s| s.recipe.onnx_sha256 = "other".into());
        let int8 = sidecar(&|s| (s.recipe.engine.precision, s.build_s) = (Precision::Int8, 900.0));
        assert_eq!(expected_s(&[same, other.clone(), int8.clone()], &recipe(), 2000), Some(50.0));
        assert_eq!(expected_s(&[other, int8.clone()], &recipe(), 2000), Some(100.0));
        assert_eq!(expected_s(&[int8], &recipe(), 2000), None);
    }
}
