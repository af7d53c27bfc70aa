//! One of the two: a model on a backend, and what comes out of it.

use anyhow::Context as _;
use prony_backend::{Session, SessionSpec, affinity, backend};
use prony_bench::agreement::Outputs as Compared;
use prony_bench::parts::{floats, is_final};
use prony_bench::tensors::{Values, describe, fill, fill_image, image_size, output_spec};
use prony_model::ModelFile;
use prony_types::{
    BackendName, HeadChoice, Image, PostSpec, Precision, ProviderSpec, RuntimeSpec, TensorSpec, TensorView,
};
use prony_vision::{Decoder, Fit, Head, HeadError, Letterbox, Preprocessor};

use super::finding::SideRecord;
use super::frames::{Frame, SharedFrames};
use crate::inline::BuiltEngine;
use prony_plan::image_size as size_of_input;
use prony_plan::named::Opened;

/// What becomes of outputs, as in `bench`.
const POST: PostSpec = PostSpec { conf: 0.25, iou: 0.45, max_det: 300, multi_label: false };

/// All that a side's sessions are made from.
pub struct Prepared {
    /// The model, opened.
    pub model: Opened,
    /// What executes it.
    pub backend: BackendName,
    /// The backend's library.
    pub runtime: Option<RuntimeSpec>,
    /// Options for the library.
    pub provider: ProviderSpec,
    /// Height and width of its input.
    pub imgsz: Option<[u32; 2]>,
    /// The arithmetic that was asked for.
    pub precision: Precision,
    /// The engine that was built from the model.
    pub built: Option<BuiltEngine>,
}

pub(super) struct Side<'a> {
    pub(super) name: &'a str,
    pub(super) model: &'a ModelFile,
    of: &'a Prepared,
    session: Box<dyn Session>,
    decoder: Option<Decoder>,
    output_names: Vec<String>,
}

/// What came out of one frame.
pub(super) struct Outputs {
    /// Values by output.
    pub(super) values: Vec<Vec<f32>>,
    /// Boxes and values by what they are, where a head is known.
    pub(super) compared: Option<Compared>,
}

impl<'a> Side<'a> {
    pub(super) fn open(name: &'a str, of: &'a Prepared) -> anyhow::Result<Side<'a>> {
        Side::with_model(name, &of.model.file, of)
    }

    /// The same side with these tensors among its outputs, and no boxes.
    pub(super) fn tapped<'b>(&self, model: &'b ModelFile) -> anyhow::Result<Side<'b>>
    where
        'a: 'b,
    {
        Side::with_model(self.name, model, self.of)
    }

    fn with_model(name: &'a str, model: &'a ModelFile, of: &'a Prepared) -> anyhow::Result<Side<'a>> {
        let spec = SessionSpec {
            precision: of.precision,
            threads: affinity::choose(None).len() as u32,
            runtime: of.runtime.clone(),
            provider: of.provider.clone(),
            artifact: of.built.as_ref().map(|built| built.file.clone()),
            imgsz: of.imgsz,
            ..SessionSpec::new(model)
        };
        let session = backend(of.backend).open(&spec)?;
        let output_names = match of.backend {
            // An engine says what comes out of it, and in which order, once it is open.
            BackendName::Tensorrt => {
                (0..session.output_count()).map(|i| session.output(0, i).name.to_owned()).collect()
            }
            _ => model.info.outputs.iter().map(|output| output.name.clone()).collect(),
        };
        Ok(Side { name, model, of, session, decoder: None, output_names })
    }

    pub(super) fn backend(&self) -> BackendName {
        self.of.backend
    }

    /// Whether it runs an engine, be it the user's own or one that was built.
    pub(super) fn is_engine(&self) -> bool {
        self.of.backend == BackendName::Tensorrt
    }

    /// The precision whose rounding explains a difference: what was asked for; of an engine of the user's own, the coarsest that
    /// its layers compute in, as far as it says so.
    pub(super) fn precision(&self) -> Precision {
        let executed = self.session.executed();
        let types = executed.split(", ").filter_map(|part| part.split(' ').next()?.parse::<Precision>().ok());
        match self.of.precision {
            Precision::Native if self.model.engine.is_some() => {
                types.reduce(super::coarser).unwrap_or(Precision::Native)
            }
            asked => asked,
        }
    }

    /// What its library warned of.
    pub(super) fn warnings(&self) -> Vec<String> {
        let told = |warning: &String| format!("{}: {} warned on loading: {warning}", self.name, self.of.backend);
        self.session.record().warnings.iter().map(told).collect()
    }

    /// How the head of the other side wants its image.
    pub(super) fn fit(&self) -> Fit {
        self.decoder.as_ref().map_or(Fit::Letterbox, |decoder| decoder.head().fit())
    }

    pub(super) fn inputs(&self) -> &[TensorSpec] {
        self.session.inputs()
    }

    /// Shapes alone: one of the two may take halves.
    pub(super) fn input_shapes(&self) -> String {
        let shape = |input: &TensorSpec| format!("{:?}", input.shape).replace(' ', "");
        self.session.inputs().iter().map(shape).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn output_names(&self) -> &[String] {
        &self.output_names
    }

    /// Boxes that come out final come in the order of their scores, so that values say nothing.
    pub(super) fn has_final_boxes(&self) -> bool {
        is_final(self.decoder.as_ref().map(Decoder::head))
    }

    /// Looks at real outputs to find out how they become boxes.
    pub(super) fn find_head(
        &mut self,
        frames: &SharedFrames,
        choice: HeadChoice,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<()> {
        let Some(size) = self.session.inputs().first().and_then(image_size) else { return Ok(()) };
        self.run_as(frames, 0, Fit::Letterbox)?;
        let outputs: Vec<TensorSpec> = self.views().iter().map(output_spec).collect();
        match Head::choose(choice, &outputs, &self.model.info.metadata, Some(size)) {
            Ok(Head::None) => {}
            Ok(head) => self.decoder = Some(Decoder::new(head, &POST, size)),
            Err(error @ HeadError::NoFit { .. }) if choice == HeadChoice::Auto => {
                notes.push(format!("{}: no boxes: {error}", self.name));
            }
            Err(error) => return Err(error).with_context(|| self.name.to_owned()),
        }
        Ok(())
    }

    pub(super) fn run(&mut self, frames: &SharedFrames, frame: usize) -> anyhow::Result<Outputs> {
        self.run_fitted(frames, frame, self.fit())
    }

    /// The same with the image brought to size as another model wants it.
    pub(super) fn run_fitted(&mut self, frames: &SharedFrames, frame: usize, fit: Fit) -> anyhow::Result<Outputs> {
        let letterbox = self.run_as(frames, frame, fit)?;
        let views = self.views();
        let values: Vec<Vec<f32>> = views.iter().map(|view| floats(view.data)).collect();
        let decoding = self.decoder.as_mut().zip(letterbox.as_ref());
        let batch = self.session.inputs().first().map_or(1, |input| input.shape[0]);
        let compared = match decoding {
            Some(decoding) => Some(Compared::of(&*self.session, Some(decoding), [0, batch])?),
            None => None,
        };
        Ok(Outputs { values, compared })
    }

    fn run_as(&mut self, frames: &SharedFrames, frame: usize, fit: Fit) -> anyhow::Result<Option<Letterbox>> {
        let mut letterbox = None;
        match frames.frame(frame) {
            Frame::Image(image) => letterbox = self.fill_images(image, fit),
            Frame::Values(values) => {
                for (index, values) in values.iter().enumerate() {
                    let input = self.session.inputs()[index].clone();
                    let converted = Values::floats(input.dtype, values.iter().copied()).with_context(|| {
                        let what = describe(input.dtype, &input.shape);
                        format!(
                            "input `{}` is {what}, and only you know what it takes; use `prony run` for each",
                            input.name
                        )
                    })?;
                    fill(&converted, self.session.input(0, index));
                }
            }
        }
        self.session.run(0)?;
        Ok(letterbox)
    }

    fn fill_images(&mut self, image: &Image, fit: Fit) -> Option<Letterbox> {
        let input = &self.session.inputs()[0];
        let (batch, [height, width]) = (input.shape[0], image_size(input)?);
        let mut preprocessor = Preprocessor::with_fit(width, height, fit);
        let mut scratch = Vec::new();
        let mut letterbox = None;
        for item in 0..batch {
            let input = self.session.input(0, 0);
            letterbox = fill_image(&mut preprocessor, image, input, [item, batch], None, &mut scratch);
        }
        letterbox
    }

    fn views(&self) -> Vec<TensorView<'_>> {
        (0..self.session.output_count()).map(|i| self.session.output(0, i)).collect()
    }

    pub(super) fn record(&self) -> SideRecord {
        SideRecord {
            model: self.name.to_owned(),
            sha256: self.model.sha256.clone(),
            engine: self.of.built.as_ref().map(|built| built.artifact.clone()),
            backend: self.session.record(),
            executed: self.session.executed(),
            head: self.decoder.as_ref().map(|decoder| decoder.head().to_string()),
        }
    }
}

/// Height and width of a model's input: asked for, or as the model has it.
pub fn image_size_of(
    name: &str,
    model: &ModelFile,
    asked: Option<[u32; 2]>,
    head: HeadChoice,
) -> anyhow::Result<Option<[u32; 2]>> {
    let takes_image = model.info.inputs.first().is_some_and(|input| input.dims.len() == 4);
    let choice = if takes_image { head } else { HeadChoice::None };
    size_of_input(&asked, choice, &model.info).map_err(|why| anyhow::anyhow!("{name} {why}"))
}
