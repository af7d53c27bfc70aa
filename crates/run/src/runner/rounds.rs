//! What is next among the cells that are loaded: rounds there and back, then throughput.

use prony_types::{Command, Doing, EventKind};

use super::{Run, figures};
use crate::schedule;

impl Run {
    /// Rounds over all cells that are loaded, there and back, until each has enough. They go on counting from wave to wave, so
    /// that cells of different waves have none in common.
    pub(super) fn measure_rounds(&mut self) {
        for round in self.rounds + 1.. {
            let mut open: Vec<usize> = (0..self.cells.len()).filter(|&i| self.wants_more(i)).collect();
            if open.is_empty() {
                return;
            }
            if round % 2 == 0 {
                open.reverse();
            }
            self.rounds = round;
            let alone = open.len() == 1;
            for index in open {
                if self.interrupt.asked() {
                    return;
                }
                std::thread::sleep(schedule::pause(alone));
                self.measure_round(index, round);
            }
            self.publish_if_due();
        }
    }

    fn measure_round(&mut self, index: usize, round: u32) {
        let cell = &self.cells[index];
        let slice = schedule::slice(&self.plan().budget, cell.measured_s, cell.steady, cell.rounds);
        let command = Command::Round { round, seconds: slice.seconds, max_samples: slice.max_samples };
        self.order(index, &command, Doing::Measuring);
        self.wait(index, |event| matches!(event, EventKind::RoundDone { round: r, .. } if *r == round));
        self.read_peak(index);
        self.sensors.point_at(None);
    }

    pub(super) fn wants_more(&self, index: usize) -> bool {
        let (cell, plan) = (&self.cells[index], self.plan());
        if !plan.timed || !self.is_running(index) {
            return false;
        }
        let standing = figures::standing(&plan.budget, cell, self.fold.cell(index));
        schedule::more(&plan.budget, standing, cell.rounds)
    }

    pub(super) fn measure_throughput(&mut self) {
        for index in 0..self.cells.len() {
            if self.interrupt.asked() {
                return;
            }
            if self.is_running(index) {
                let seconds = schedule::throughput_seconds(&self.plan().budget);
                std::thread::sleep(schedule::pause(false));
                self.order(index, &Command::Throughput { seconds }, Doing::Throughput);
                self.wait(index, |event| matches!(event, EventKind::Throughput { .. }));
                self.sensors.point_at(None);
            }
        }
    }
}
