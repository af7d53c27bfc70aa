//! One cell under the clock: the way of a frame, and the loops around it.

use half::{bf16, f16};
use prony_backend::{BackendError, Buffer, Session, SlotInput, Timing};
use prony_judge::steady::SteadyDetector;
use prony_types::{Detection, Phase, PostSpec, Sample, TensorSpec, TensorView};
use prony_vision::{Decoder, HeadError, Letterbox, Preprocessor};

use crate::agreement::Outputs;
use crate::frames::{Feed, Items};
use crate::tensors::{fill, fill_image, fill_plane, output_spec};
use crate::{RingWriter, now_ns};

/// A fixed warm-up ends when it is asked to; a free one at this many seconds even if nothing settled.
pub const WARMUP_LIMIT_S: f64 = 10.0;
/// Frames at the start of a round that bring caches and clocks back after the pause; they are not counted.
const LEAD_IN_FRAMES: u32 = 3;
/// A frame longer than this is its own lead-in.
const LONG_FRAME_NS: u64 = 100_000_000;
/// Throughput is counted over at least this many calls a slot.
const CALLS_PER_SLOT: u64 = 4;

/// Why a frame did not make it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MeasureError {
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error(transparent)]
    Head(#[from] HeadError),
}

/// What happens before and after the model.
pub(crate) enum Pipeline {
    /// Letterbox before, boxes after.
    Detector(Box<Detector>),
    /// Nothing.
    Plain,
}

pub(crate) struct Detector {
    pub(crate) preprocessor: Preprocessor,
    /// Absent until the first outputs have been seen.
    pub(crate) decoder: Option<Decoder>,
    /// How the image lies that an input holds, by slot, then by item of the batch; absent until there is one. Only
    /// [`Cell::load`] writes to the inputs, so that their bars can stay from frame to frame.
    letterboxes: Vec<Vec<Option<Letterbox>>>,
    /// One image in 32 bits, on its way into an input of 16.
    scratch: Vec<f32>,
    detections: Vec<Detection>,
}

impl Detector {
    pub(crate) fn new(width: u32, height: u32, slots: usize, batch: usize) -> Detector {
        Detector {
            preprocessor: Preprocessor::new(width, height),
            decoder: None,
            letterboxes: vec![vec![None; batch]; slots],
            scratch: Vec::new(),
            detections: Vec::with_capacity(1024),
        }
    }
}

/// A cell, ready to be timed.
pub(crate) struct Cell {
    pub(crate) session: Box<dyn Session>,
    pub(crate) pipeline: Pipeline,
    pub(crate) feed: Feed,
    pub(crate) batch: usize,
    pub(crate) ring: RingWriter,
    /// Calls whose outputs were looked at, and those among them with a NaN or an infinity.
    pub(crate) checked_calls: u64,
    pub(crate) non_finite_calls: u64,
    next: usize,
    last_total_ns: u64,
}

impl Cell {
    pub(crate) fn new(
        session: Box<dyn Session>,
        pipeline: Pipeline,
        feed: Feed,
        batch: usize,
        ring: RingWriter,
    ) -> Cell {
        Cell { session, pipeline, feed, batch, ring, checked_calls: 0, non_finite_calls: 0, next: 0, last_total_ns: 0 }
    }

    /// Fills the input of a slot with the next frames; returns the number of the first.
    fn load(&mut self, slot: usize) -> usize {
        let first = self.next;
        let count = self.feed.len();
        for item in 0..self.batch {
            let frame = (first + item) % count;
            match (&self.feed.items, &mut self.pipeline) {
                (Items::Images(images), Pipeline::Detector(detector)) => {
                    let Detector { preprocessor, letterboxes, scratch, .. } = &mut **detector;
                    let place = [item, self.batch];
                    let input = self.session.input(slot, 0);
                    let placed = &mut letterboxes[slot][item];
                    *placed = fill_image(preprocessor, &images[frame], input, place, *placed, scratch);
                }
                (Items::Tensors(frames), _) => {
                    for (index, values) in frames[frame].iter().enumerate() {
                        fill(values, self.session.input(slot, index));
                    }
                    // A tensor already is a whole batch.
                    self.next = (first + 1) % count;
                    return first;
                }
                (Items::Images(_), Pipeline::Plain) => {}
            }
        }
        self.next = (first + self.batch) % count;
        first
    }

    /// Turns the outputs of a slot into boxes; their number.
    pub(crate) fn decode(&mut self, slot: usize) -> Result<u32, MeasureError> {
        let Pipeline::Detector(detector) = &mut self.pipeline else { return Ok(0) };
        let Some(decoder) = &mut detector.decoder else { return Ok(0) };
        let mut found = 0;
        with_outputs(&*self.session, slot, |outputs| {
            for (item, letterbox) in detector.letterboxes[slot].iter().enumerate() {
                let Some(letterbox) = letterbox else { continue };
                detector.detections.clear();
                decoder.decode(outputs, item, letterbox, &mut detector.detections)?;
                found += detector.detections.len() as u32;
            }
            Ok(found)
        })
    }

    /// One frame (or batch), one in flight: the thing that is timed.
    pub(crate) fn frame(&mut self, phase: Phase, round: u32) -> Result<Sample, MeasureError> {
        let plain = matches!(self.pipeline, Pipeline::Plain);
        // A model that is not a detector takes its tensors as they are: bringing them to the buffer is not its work.
        let ready = if plain { Some(self.load(0)) } else { None };
        let start = now_ns();
        let frame = match ready {
            Some(frame) => frame,
            None => self.load(0),
        };
        let loaded = now_ns();
        let timing = self.session.run(0)?;
        let ran = now_ns();
        let detections = self.decode(0)?;
        let end = now_ns();
        let around = |from: u64, to: u64| if plain { None } else { Some(to - from) };
        Ok(sample(phase, round, frame, detections, [start, end], timing, around(start, loaded), around(ran, end)))
    }

    /// One frame, into the ring.
    pub(crate) fn timed(&mut self, phase: Phase, round: u32) -> Result<Sample, MeasureError> {
        let sample = self.frame(phase, round)?;
        self.ring.push(&sample);
        self.last_total_ns = sample.total_ns;
        Ok(sample)
    }

    /// Runs until nothing changes any more, or for a fixed time. Frames, seconds, and whether it settled.
    pub(crate) fn warm_up(&mut self, fixed_s: Option<f64>) -> Result<(u64, f64, bool), MeasureError> {
        let begun = now_ns();
        let mut detector = SteadyDetector::new();
        let mut frames = 0;
        loop {
            let sample = self.timed(Phase::Warmup, 0)?;
            frames += 1;
            let seconds = (now_ns() - begun) as f64 / 1e9;
            let steady = detector.push(sample.start_ns, sample.total_ns);
            if self.ring.asked_to_stop() {
                return Ok((frames, seconds, false));
            }
            match fixed_s {
                Some(limit) if seconds >= limit => return Ok((frames, seconds, true)),
                Some(_) => {}
                None if steady => return Ok((frames, seconds, true)),
                None if seconds >= WARMUP_LIMIT_S => return Ok((frames, seconds, false)),
                None => {}
            }
        }
    }

    /// A round of timed frames, one in flight; their number and how long they took.
    pub(crate) fn round(
        &mut self,
        round: u32,
        seconds: f64,
        max_samples: Option<u64>,
    ) -> Result<(u64, f64), MeasureError> {
        for _ in 0..LEAD_IN_FRAMES {
            if self.last_total_ns > LONG_FRAME_NS || self.ring.asked_to_stop() {
                break;
            }
            self.timed(Phase::Warmup, round)?;
        }
        let begun = now_ns();
        let deadline = begun + (seconds * 1e9) as u64;
        let mut frames = 0;
        let mut now = begun;
        while now < deadline && max_samples.is_none_or(|max| frames < max) && !self.ring.asked_to_stop() {
            self.timed(Phase::Steady, round)?;
            frames += 1;
            now = now_ns();
        }
        self.look_at_outputs(0);
        Ok((frames, (now - begun) as f64 / 1e9))
    }

    /// Keeps every slot busy; frames and seconds, from the first call's start to the last call's end.
    pub(crate) fn throughput(&mut self, seconds: f64) -> Result<(u64, f64), MeasureError> {
        let slots = self.session.slots();
        let begun = now_ns();
        let deadline = begun + (seconds * 1e9) as u64;
        let mut started = vec![(0, 0); slots];
        for (slot, started) in started.iter_mut().enumerate() {
            *started = (now_ns(), self.load(slot));
            self.session.submit(slot)?;
        }
        let mut calls = 0u64;
        let mut slot = 0;
        let mut open = slots;
        while open > 0 {
            let timing = self.session.collect(slot)?;
            let detections = self.decode(slot)?;
            calls += 1;
            let now = now_ns();
            let (start, frame) = started[slot];
            // Latency here is with others in flight; it is kept apart by its phase.
            self.ring.push(&sample(Phase::Throughput, 0, frame, detections, [start, now], timing, None, None));
            let enough = calls >= CALLS_PER_SLOT * slots as u64 && now >= deadline;
            if enough || self.ring.asked_to_stop() {
                open -= 1;
            } else {
                started[slot] = (now, self.load(slot));
                self.session.submit(slot)?;
            }
            slot = (slot + 1) % slots;
        }
        Ok((calls * self.batch as u64, (now_ns() - begun) as f64 / 1e9))
    }

    /// Looks for values that are not numbers, outside the clock.
    pub(crate) fn look_at_outputs(&mut self, slot: usize) {
        let finite = (0..self.session.output_count()).all(|index| match self.session.output(slot, index).data {
            prony_types::TensorData::F32(data) => data.iter().all(|x| x.is_finite()),
            _ => true,
        });
        self.checked_calls += 1;
        self.non_finite_calls += u64::from(!finite);
    }

    /// Runs one particular frame (with those after it, for a batch), outside the statistics.
    pub(crate) fn replay(&mut self, frame: usize) -> Result<(), MeasureError> {
        self.next = frame % self.feed.len();
        self.load(0);
        self.run_filled()
    }

    /// Runs one particular frame in every item of the batch, so that no other frame can have a part in it.
    pub(crate) fn replay_alone(&mut self, frame: usize) -> Result<(), MeasureError> {
        self.fill_alone(frame);
        self.run_filled()
    }

    /// The same with every value of the inputs moved by the share `epsilon` of itself, up or down.
    pub(crate) fn replay_perturbed(&mut self, frame: usize, epsilon: f64) -> Result<(), MeasureError> {
        self.fill_alone(frame);
        let inputs = 0..self.session.inputs().len();
        let plain: Vec<Buffer> = inputs.clone().map(|index| Buffer::copy_of(&self.session.input(0, index))).collect();
        inputs.for_each(|index| perturb(self.session.input(0, index), epsilon, frame as u64));
        let outcome = self.run_filled();
        // The bars around an image stay from frame to frame, so they must be what they were.
        plain.iter().enumerate().for_each(|(index, values)| {
            values.copy_to(self.session.input(0, index));
        });
        outcome
    }

    fn fill_alone(&mut self, frame: usize) {
        self.next = frame % self.feed.len();
        self.load(0);
        if self.batch > 1 {
            self.repeat_first_item();
        }
    }

    /// Writes a frame that was made ready elsewhere into an item of the batch in slot 0.
    pub(crate) fn fill(&mut self, item: usize, plane: &[f32], letterbox: Letterbox) {
        let Pipeline::Detector(detector) = &mut self.pipeline else { return };
        fill_plane(plane, self.session.input(0, 0), [item, self.batch]);
        detector.letterboxes[0][item] = Some(letterbox);
    }

    /// Puts the first image of slot 0 into every item of the batch.
    pub(crate) fn repeat_first_item(&mut self) {
        let Pipeline::Detector(detector) = &mut self.pipeline else { return };
        let first = detector.letterboxes[0][0];
        detector.letterboxes[0].fill(first);
        match self.session.input(0, 0) {
            SlotInput::F32(input) => repeat_first(input, self.batch),
            SlotInput::F16(input) => repeat_first(input, self.batch),
            _ => {}
        }
    }

    /// Runs what slot 0 was filled with, outside the statistics.
    pub(crate) fn run_filled(&mut self) -> Result<(), MeasureError> {
        self.session.run(0)?;
        self.look_at_outputs(0);
        self.ring.beat();
        Ok(())
    }

    /// Other thresholds for the boxes; the ones that were.
    pub(crate) fn with_post(&mut self, post: &PostSpec) -> PostSpec {
        let Pipeline::Detector(detector) = &mut self.pipeline else { return *post };
        let Some(decoder) = &mut detector.decoder else { return *post };
        let before = decoder.post();
        decoder.set_post(post);
        before
    }

    /// Boxes of one item of the last replayed batch.
    pub(crate) fn boxes(&mut self, item: usize) -> Result<Vec<Detection>, MeasureError> {
        let Pipeline::Detector(detector) = &mut self.pipeline else { return Ok(Vec::new()) };
        let Some(decoder) = &mut detector.decoder else { return Ok(Vec::new()) };
        let Some(letterbox) = &detector.letterboxes[0][item] else { return Ok(Vec::new()) };
        with_outputs(&*self.session, 0, |outputs| {
            let mut boxes = Vec::new();
            decoder.decode(outputs, item, letterbox, &mut boxes)?;
            Ok(boxes)
        })
    }

    /// An item of what the last call left in slot 0; a model that is not a detector has one item.
    pub(crate) fn taken(&mut self, item: usize) -> Result<Outputs, MeasureError> {
        let Pipeline::Detector(detector) = &mut self.pipeline else {
            return Ok(Outputs::of(&*self.session, None, [0, 1])?);
        };
        let letterbox = detector.letterboxes[0][item];
        Ok(Outputs::of(&*self.session, detector.decoder.as_mut().zip(letterbox.as_ref()), [item, self.batch])?)
    }

    /// Everything that the last call left in slot 0.
    pub(crate) fn all_taken(&mut self) -> Result<Vec<Outputs>, MeasureError> {
        let items = if matches!(self.pipeline, Pipeline::Detector(_)) { self.batch } else { 1 };
        (0..items).map(|item| self.taken(item)).collect()
    }

    /// The outputs of the last call as they really are.
    pub(crate) fn output_specs(&self) -> Vec<TensorSpec> {
        (0..self.session.output_count()).map(|i| output_spec(&self.session.output(0, i))).collect()
    }
}

/// Moves every float by the share `epsilon` of itself, up or down by a coin that is the same in every run.
fn perturb(input: SlotInput<'_>, epsilon: f64, seed: u64) {
    let mut state = seed;
    let mut moved = |value: f64| {
        // One step of SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        if (mixed ^ (mixed >> 31)) & 1 == 0 { value * (1.0 + epsilon) } else { value * (1.0 - epsilon) }
    };
    match input {
        SlotInput::F32(data) => data.iter_mut().for_each(|x| *x = moved((*x).into()) as f32),
        SlotInput::F64(data) => data.iter_mut().for_each(|x| *x = moved(*x)),
        SlotInput::F16(data) => data.iter_mut().for_each(|x| *x = f16::from_f64(moved(x.to_f64()))),
        SlotInput::Bf16(data) => data.iter_mut().for_each(|x| *x = bf16::from_f64(moved(x.to_f64()))),
        // Whole numbers are not rounded.
        SlotInput::I8(_) | SlotInput::U8(_) | SlotInput::I32(_) | SlotInput::I64(_) => {}
    }
}

fn repeat_first<T: Copy>(input: &mut [T], batch: usize) {
    let (first, rest) = input.split_at_mut(input.len() / batch);
    rest.chunks_exact_mut(first.len().max(1)).for_each(|item| item.copy_from_slice(first));
}

/// Most outputs a detector has; beyond that the list is made on the heap.
const FEW_OUTPUTS: usize = 8;

/// Hands the outputs of a slot over as a slice, without allocating for the usual few.
fn with_outputs<T>(session: &dyn Session, slot: usize, f: impl FnOnce(&[TensorView<'_>]) -> T) -> T {
    let count = session.output_count();
    if (1..=FEW_OUTPUTS).contains(&count) {
        let views: [TensorView<'_>; FEW_OUTPUTS] = std::array::from_fn(|i| session.output(slot, i.min(count - 1)));
        f(&views[..count])
    } else {
        let views: Vec<TensorView<'_>> = (0..count).map(|i| session.output(slot, i)).collect();
        f(&views)
    }
}

#[expect(clippy::too_many_arguments, reason = "a sample is made in one place from what one frame gave")]
fn sample(
    phase: Phase,
    round: u32,
    frame: usize,
    detections: u32,
    [start, end]: [u64; 2],
    timing: Timing,
    preprocess: Option<u64>,
    postprocess: Option<u64>,
) -> Sample {
    Sample {
        start_ns: start,
        phase,
        round,
        frame: frame as u32,
        detections,
        parts_ns: [preprocess, timing.h2d_ns, Some(timing.inference_ns), timing.d2h_ns, postprocess],
        total_ns: end - start,
    }
}
