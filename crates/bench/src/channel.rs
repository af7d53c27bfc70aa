//! The two pipes between a worker and its parent: commands in, events out.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Stdin, Write as _};

use prony_types::{Command, Event, EventKind, Job};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio;

use crate::now_ns;

/// The worker's end.
pub(crate) struct Channel {
    commands: BufReader<Stdin>,
    events: File,
    cell: String,
    slot: u32,
}

impl Channel {
    /// Takes over stdin and stdout. From here on, whatever a library prints goes to stderr, which is the cell's log.
    pub(crate) fn take_over() -> io::Result<Channel> {
        let events = fcntl_dupfd_cloexec(stdio::stdout(), 3)?;
        stdio::dup2_stdout(stdio::stderr())?;
        Ok(Channel { commands: BufReader::new(io::stdin()), events: File::from(events), cell: String::new(), slot: 0 })
    }

    /// The job: the first line.
    pub(crate) fn job(&mut self) -> io::Result<Job> {
        let line = self.line()?.ok_or_else(|| io::Error::other("no job on stdin"))?;
        let job: Job = serde_json::from_str(&line)?;
        match &job {
            Job::Measure(measure) => {
                self.cell.clone_from(&measure.cell.id);
                self.slot = measure.slot;
            }
            Job::Reference(reference) => self.cell.clone_from(&reference.cell.id),
            Job::Prepare(prepare) => self.cell.clone_from(&prepare.cell),
            Job::Rewrite(rewrite) => self.cell.clone_from(&rewrite.cell),
            Job::Discover(_) | Job::Inspect(_) => {}
        }
        Ok(job)
    }

    /// The next command; `None` when the parent closed the pipe.
    pub(crate) fn command(&mut self) -> io::Result<Option<Command>> {
        Ok(self.line()?.map(|line| serde_json::from_str(&line)).transpose()?)
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        Ok((self.commands.read_line(&mut line)? > 0).then_some(line))
    }

    /// Tells the parent. Never called inside the timed loop.
    pub(crate) fn emit(&mut self, kind: EventKind) -> io::Result<()> {
        let event = Event { t_ns: now_ns(), cell: self.cell.clone(), slot: self.slot, kind };
        let mut line = serde_json::to_vec(&event)?;
        line.push(b'\n');
        self.events.write_all(&line)
    }
}
