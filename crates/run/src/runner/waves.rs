//! Cells are loaded together as far as the memory goes, measured and ended before the next ones are loaded. Only cells of one
//! wave have rounds in common, so the cells of one model stay together where they can.

use prony_probe::{MemoryRoom, private_peak_bytes};
use prony_types::{CellStatus, Command, Doing, EventKind, GpuRecord, Resident, RunEventKind, WaveRecord};

use super::cell::RunCell;
use super::{Run, Waited};
use crate::footprint::{self, Footprint};
use crate::oom::memory_root;

const MIB: u64 = 1 << 20;
/// Share of a device's memory that cells may take; the rest is the driver's and other programs'.
const DEVICE_SHARE: f64 = 0.9;

/// What stays free of the host's memory: 5 %, at least 32 MiB, at most 1 GiB.
fn reserve(total: u64) -> u64 {
    (total / 20).clamp(32 * MIB, 1024 * MIB)
}

/// Whether a cell's device takes its memory from the host.
fn unified(gpus: &[GpuRecord], cell: &RunCell) -> bool {
    gpus.get(cell.spec.device as usize).and_then(|gpu| gpu.integrated).unwrap_or(false)
}

impl Run {
    /// Loads and warms up as many of the waiting cells as may be loaded together, one after the other, so that no cold start
    /// is disturbed by another.
    /// Returns why others were not, where that is so.
    pub(super) fn load_wave(&mut self) -> Option<String> {
        self.estimate_footprints();
        let before = MemoryRoom::read(&memory_root());
        let mut obstacle = None;
        for index in self.wave_order() {
            if self.interrupt.asked() {
                break;
            }
            let group = self.group_of(index);
            match self.obstacle(&group, before) {
                Some(reason) => {
                    obstacle.get_or_insert(reason);
                }
                None => self.load(index),
            }
        }
        obstacle
    }

    /// Notes which cells are loaded together, and says so where others must wait.
    pub(super) fn record_wave(&mut self, obstacle: Option<String>) {
        let loaded: Vec<String> = self.running().map(|index| self.cells[index].spec.id.clone()).collect();
        let waiting = self.cells.iter().filter(|cell| cell.is_waiting()).count();
        if loaded.is_empty() || self.interrupt.asked() {
            return;
        }
        let reason = obstacle.unwrap_or_else(|| "the others ran out of memory and are measured alone".to_owned());
        if waiting > 0 {
            let (count, all) = (loaded.len(), loaded.len() + waiting);
            let first = self.fold.record().waves.is_empty();
            let unpaired = if first { "; cells that are measured later are compared with these unpaired" } else { "" };
            self.say(format!("  {count} of {all} cells loaded: {reason}{unpaired}"));
        }
        self.emit(RunEventKind::Wave { wave: WaveRecord { cells: loaded, reason: (waiting > 0).then_some(reason) } });
    }

    /// Loads a cell and warms it up.
    fn load(&mut self, index: usize) {
        self.set_doing(index, Doing::Loading);
        if let Err(error) = self.start_worker(index) {
            self.close(index, CellStatus::Failed, Some(format!("cannot start a worker: {error:#}")));
            return;
        }
        let ready = self.wait(index, |event| matches!(event, EventKind::Frames { .. }));
        if ready == Waited::Answered && self.plan().timed && !self.interrupt.asked() {
            self.order(index, &Command::WarmUp, Doing::WarmingUp);
            self.wait(index, |event| matches!(event, EventKind::Steady { .. }));
        }
        self.read_peak(index);
        self.sensors.point_at(None);
        let cell = &self.cells[index];
        if let (Some(estimate), true) = (cell.footprint, cell.worker.is_some()) {
            self.ledger.learn(&cell.spec, estimate.host, self.taken(index).host);
        }
    }

    /// The cells that are loaded.
    pub(super) fn running(&self) -> impl Iterator<Item = usize> {
        (0..self.cells.len()).filter(|&index| self.is_running(index))
    }

    /// The waiting cells in the order in which they are loaded: those of the first one's model before others. A cell that ran
    /// out of memory comes when all others are done, and alone.
    fn wave_order(&self) -> Vec<usize> {
        let waiting = |index: &usize| self.cells[*index].is_waiting();
        let all: Vec<usize> = self.loading_order().into_iter().filter(waiting).collect();
        let mut order: Vec<usize> = all.iter().copied().filter(|&index| !self.cells[index].alone).collect();
        match order.first() {
            None => all.into_iter().take(1).collect(),
            Some(&first) => {
                order.sort_by_key(|&index| !self.same_model(index, first));
                order
            }
        }
    }

    fn same_model(&self, a: usize, b: usize) -> bool {
        self.cells[a].spec.model == self.cells[b].spec.model
    }

    /// What is loaded with a cell or not at all: where none of its model is loaded yet, all that wait of its model, because
    /// they are compared with each other.
    fn group_of(&self, index: usize) -> Vec<usize> {
        if self.running().any(|other| self.same_model(other, index)) {
            return vec![index];
        }
        let with_it = |other: &usize| {
            let cell = &self.cells[*other];
            cell.is_waiting() && !cell.alone && self.same_model(*other, index)
        };
        let group: Vec<usize> = (0..self.cells.len()).filter(with_it).collect();
        if group.is_empty() { vec![index] } else { group }
    }

    /// Why cells are not loaded beside those that are. Where none is, nothing stands in the way of the first: whether it fits
    /// alone is seen by loading it.
    fn obstacle(&self, group: &[usize], before: Option<MemoryRoom>) -> Option<String> {
        let loaded: Vec<usize> = self.running().collect();
        if loaded.is_empty() {
            return None;
        }
        match self.plan().resident {
            Resident::AtMost(most) => {
                let fits = loaded.len() + group.len() <= most as usize;
                (!fits).then(|| format!("--resident is {most}"))
            }
            Resident::Auto => {
                self.no_room_on_host(group, &loaded, before?).or_else(|| self.no_room_on_device(group, &loaded))
            }
        }
    }

    fn no_room_on_host(&self, group: &[usize], loaded: &[usize], before: MemoryRoom) -> Option<String> {
        let now = MemoryRoom::read(&memory_root()).unwrap_or(before);
        let taken: u64 = loaded.iter().map(|&index| self.taken(index).host).sum();
        // What a loaded cell touches only later is not free either.
        let free = now.available.min(before.available.saturating_sub(taken));
        let need = |index: usize| {
            let cell = &self.cells[index];
            self.ledger.need(&cell.spec, cell.footprint.unwrap_or_default().host)
        };
        let sum = group.iter().map(|&index| need(index)).fold(0, u64::saturating_add);
        // In the end a cell opens a second session, and the reference is computed beside all of them.
        let checks = group.iter().chain(loaded).map(|&index| need(index)).max().unwrap_or(0);
        let fits = sum.saturating_add(checks).saturating_add(reserve(now.total)) <= free;
        (!fits).then(|| {
            let whose = if now.of_cgroup { " in this control group" } else { "" };
            let [sum, checks, free, total] = [sum, checks, free, now.total].map(|bytes| bytes / MIB);
            format!(
                "{} about {sum} MiB, and {checks} MiB to check outputs; {free} MiB of {total} MiB are free{whose}",
                self.subject(group)
            )
        })
    }

    fn no_room_on_device(&self, group: &[usize], loaded: &[usize]) -> Option<String> {
        let device = self.cells[*group.first()?].spec.device;
        let total = self.fold.record().environment.gpus.get(device as usize)?.mem_total_bytes?;
        let on_it = |index: &&usize| self.cells[**index].spec.device == device;
        let taken: u64 = loaded.iter().filter(on_it).map(|&index| self.taken(index).device).sum();
        let needs = group.iter().map(|&index| self.cells[index].footprint.unwrap_or_default().device);
        let (sum, free) =
            (needs.fold(0, u64::saturating_add), ((total as f64 * DEVICE_SHARE) as u64).saturating_sub(taken));
        (sum > 0 && sum > free).then(|| {
            let [sum, free, total] = [sum, free, total].map(|bytes| bytes / MIB);
            format!("{} about {sum} MiB on GPU {device}; {free} MiB of {total} MiB are left", self.subject(group))
        })
    }

    /// `a:rten:fp32 takes`, `3 cells of a take`.
    fn subject(&self, group: &[usize]) -> String {
        match group {
            [one] => format!("{} takes", self.cells[*one].spec.id),
            several => format!("{} cells of {} take", several.len(), self.cells[several[0]].spec.model.name),
        }
    }

    /// What a loaded cell has taken, at the most so far.
    fn taken(&self, index: usize) -> Footprint {
        let cell = &self.cells[index];
        let device = self.fold.cell(index).record.memory.load_device_mib.map_or(0, |mib| (mib * MIB as f64) as u64);
        match unified(&self.fold.record().environment.gpus, cell) {
            true => Footprint { host: cell.peak_bytes.saturating_add(device), device: 0 },
            false => Footprint { host: cell.peak_bytes, device },
        }
    }

    /// Estimates what the waiting cells will take, where that can make a difference.
    fn estimate_footprints(&mut self) {
        if self.plan().resident != Resident::Auto || self.cells.iter().filter(|cell| cell.is_waiting()).count() < 2 {
            return;
        }
        let Run { cells, fold, models, .. } = self;
        let record = fold.record();
        for cell in cells.iter_mut().filter(|cell| cell.is_waiting() && cell.footprint.is_none()) {
            let unified = unified(&record.environment.gpus, cell);
            let cost = models.cost(&cell.spec);
            let bytes = footprint::file_bytes(&cell.spec);
            let cost = cost.as_ref().as_ref().ok();
            let estimate = Footprint::estimate(&cell.spec, &record.plan.input, cost, bytes, unified);
            cell.footprint = Some(estimate);
        }
    }

    /// Reads how much memory a worker has taken. Not while it is timed.
    pub(super) fn read_peak(&mut self, index: usize) {
        let cell = &mut self.cells[index];
        let read = cell.worker.as_ref().and_then(|worker| private_peak_bytes(worker.pid()));
        cell.peak_bytes = cell.peak_bytes.max(read.unwrap_or(0));
    }

    /// What becomes of a cell whose worker the kernel killed for want of memory: it is measured once more when the others are
    /// done, alone.
    pub(super) fn out_of_memory(&mut self, index: usize) {
        let beside = self.running().filter(|&other| other != index).count();
        let cell = &self.cells[index];
        let used = Some(cell.peak_bytes).filter(|&bytes| bytes > 0);
        let death = self.oom.describe(cell.doing.words(), used, beside);
        // Nothing else is loaded while something is made: there is no more room the second time.
        if cell.alone || cell.is_being_made() || self.interrupt.asked() {
            let again = if cell.alone { "was again " } else { "was " };
            let reason = format!("worker {again}{death}, after {} timed samples; {ADVICE}", cell.steady);
            self.close(index, CellStatus::Failed, Some(reason));
            return;
        }
        let cell = &mut self.cells[index];
        cell.worker = None;
        cell.begin_again();
        let cell = cell.spec.id.clone();
        self.emit(RunEventKind::Restarted { cell, death });
        self.publish();
    }
}

const ADVICE: &str = "close other programs, raise the limit, or use a smaller batch or input";
