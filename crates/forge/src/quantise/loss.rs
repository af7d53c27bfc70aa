//! What bytes cost: each layer's output against fp32, and the outputs of the network when one layer alone is quantised.

use prony_backend::{ModelFile, Session};
use prony_types::{BuildProgress, ModelSource, Precision, QuantiseSpec, TensorData};
use prost::Message as _;
use serde::{Deserialize, Serialize};

use super::collect::{Subject, Told, place as place_of, step};
use super::place::{Known, Placement, reach};
use super::weight::Noise;
use super::write::{Plan, write};
use super::{Examined, Site, examined, ranges};
use crate::error::ForgeError;

/// Frames on which outputs are compared: noise of rounding is much the same on all.
const FRAMES: usize = 4;
/// Tensors that are compared in one run.
const AT_ONCE: usize = 32;

/// What a layer costs when it alone is quantised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerLoss {
    /// Its node.
    pub name: String,
    /// Signal against noise where boxes and scores leave the network, the worst of these tensors; absent without noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sqnr_db: Option<f64>,
}

/// Each layer's output in fp32 against the quantised graph's; `None` where there is no noise.
pub(crate) fn activations(
    subject: Subject<'_>,
    quantised: &ModelFile,
    known: &Known<'_>,
    placement: &Placement,
    told: &mut Told<'_>,
) -> Result<Vec<Option<f64>>, ForgeError> {
    let outputs: Vec<&str> =
        placement.layers.iter().map(|layer| known.graph.node[layer.node].output[0].as_str()).collect();
    let mut found = Vec::new();
    for chunk in outputs.chunks(AT_ONCE) {
        told.tell("comparing layers with fp32".to_owned(), found.len() as f64 / outputs.len() as f64)?;
        let mut reference = Probe::open(subject, subject.model, chunk, Precision::Fp32)?;
        let mut other = Probe::open(subject, quantised, chunk, Precision::Native)?;
        found.extend(noise(subject, &mut reference, &mut other, told)?.iter().map(Noise::sqnr_db));
    }
    Ok(found)
}

/// The layers by what they cost, the dearest first.
pub fn sensitivity(
    model: &ModelFile,
    source: &ModelSource,
    spec: &QuantiseSpec,
    site: &Site<'_>,
    on_progress: &mut dyn FnMut(BuildProgress),
    beat: &dyn Fn() -> Result<(), ForgeError>,
) -> Result<Vec<LayerLoss>, ForgeError> {
    let told = &mut Told { on_progress, beat };
    let subject = Subject { model, source, data: &spec.calibration, site };
    examined(subject, spec, told, weighed)
}

/// Quantises one layer after the other, each alone.
fn weighed(examined: Examined<'_>, told: &mut Told<'_>) -> Result<Vec<LayerLoss>, ForgeError> {
    let Examined { subject, spec, file, known, placement, collected } = examined;
    let ends = ends(known);
    let reference = Probe::open(subject, subject.model, &ends, Precision::Fp32)?.values(subject, told)?;
    let mut losses = Vec::new();
    for (index, layer) in placement.layers.iter().enumerate() {
        let done = index as f64 / placement.layers.len() as f64;
        told.tell(format!("weighing layer {} of {}", index + 1, placement.layers.len()), done)?;
        let layers = vec![layer.clone()];
        let tensors = reach(known, &layers, spec.target);
        let alone = Placement { layers, float: Vec::new(), tensors };
        let scales = ranges(&alone, &collected.histograms, spec).into_iter().map(|(name, r)| (name, r.scale)).collect();
        let plan = Plan { placement: &alone, scales: &scales, per_channel: spec.per_channel, target: spec.target };
        let (one, _) = write(file, known, &plan, &[])?;
        let one = ModelFile::from_bytes("the model with one layer quantised", one.encode_to_vec().into())
            .map_err(|error| ForgeError::Build(error.to_string()))?;
        let got = Probe::open(subject, &one, &ends, Precision::Native)?.values(subject, told)?;
        losses.push(LayerLoss { name: layer.name.clone(), sqnr_db: worst(&reference, &got) });
    }
    losses.sort_by(|a, b| key(a).total_cmp(&key(b)));
    Ok(losses)
}

/// Without noise nothing is lost.
fn key(loss: &LayerLoss) -> f64 {
    loss.sqnr_db.unwrap_or(f64::INFINITY)
}

/// Where boxes and scores leave the network, before they are put together: behind, large coordinates would hide what
/// happens to small scores.
fn ends<'a>(known: &Known<'a>) -> Vec<&'a str> {
    if known.ends.is_empty() {
        return known.graph.output.iter().map(|output| output.name.as_str()).collect();
    }
    known.ends.clone()
}

/// The noisiest of several tensors.
fn worst(reference: &[Vec<f32>], got: &[Vec<f32>]) -> Option<f64> {
    let each = reference.iter().zip(got).filter_map(|(is, became)| {
        Noise::between(is.iter().copied(), became.iter().copied()).sqnr_db() //
    });
    each.min_by(f64::total_cmp)
}

/// A session of which some tensors are looked at.
struct Probe {
    session: Box<dyn Session>,
    places: Vec<usize>,
}

impl Probe {
    fn open(
        subject: Subject<'_>,
        model: &ModelFile,
        tensors: &[&str],
        precision: Precision,
    ) -> Result<Probe, ForgeError> {
        let tapped = subject.tapped(model, tensors)?;
        let places = tensors.iter().map(|tensor| place_of(&tapped, tensor)).collect::<Result<_, _>>()?;
        Ok(Probe { session: subject.open(&tapped, precision)?, places })
    }

    fn read(&self, index: usize) -> &[f32] {
        match self.session.output(0, self.places[index]).data {
            TensorData::F32(values) => values,
            _ => &[],
        }
    }

    /// All values of each tensor over the first frames.
    fn values(&mut self, subject: Subject<'_>, told: &Told<'_>) -> Result<Vec<Vec<f32>>, ForgeError> {
        let mut feed = subject.feed(&*self.session)?;
        let mut all = vec![Vec::new(); self.places.len()];
        for _ in 0..FRAMES {
            (told.beat)()?;
            if step(&mut *self.session, &mut feed)?.is_none() {
                break;
            }
            all.iter_mut().enumerate().for_each(|(index, values)| values.extend(self.read(index)));
        }
        Ok(all)
    }
}

/// The noise of each tensor over the first frames.
fn noise(
    subject: Subject<'_>,
    reference: &mut Probe,
    other: &mut Probe,
    told: &Told<'_>,
) -> Result<Vec<Noise>, ForgeError> {
    let mut feeds = [subject.feed(&*reference.session)?, subject.feed(&*other.session)?];
    let mut noises = vec![Noise::default(); reference.places.len()];
    for _ in 0..FRAMES {
        (told.beat)()?;
        let [first, second] = &mut feeds;
        if step(&mut *reference.session, first)?.is_none() || step(&mut *other.session, second)?.is_none() {
            break;
        }
        for (index, noise) in noises.iter_mut().enumerate() {
            noise.add(reference.read(index).iter().copied(), other.read(index).iter().copied());
        }
    }
    Ok(noises)
}
