//! The logger: where TensorRT says what it does and why something failed.

use std::collections::VecDeque;
use std::ffi::{c_char, c_void};
use std::fmt;
use std::sync::Mutex;

use super::{Face, Object, Table, body, destroy, guarded, lock, plain, text, versioned};
use crate::Family;

/// Lines of a kind that a logger keeps.
const KEPT: usize = 64;

/// How serious a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// TensorRT itself is broken.
    InternalError,
    /// The call failed.
    Error,
    /// Something is not as it should be, and the call goes on.
    Warning,
    /// News.
    Info,
    /// Everything else.
    Verbose,
}

impl Severity {
    /// A number that we do not know is taken for chatter.
    pub(super) fn from_number(number: i32) -> Severity {
        match number {
            0 => Severity::InternalError,
            1 => Severity::Error,
            2 => Severity::Warning,
            3 => Severity::Info,
            _ => Severity::Verbose,
        }
    }
}

/// Takes a line.
type Sink = dyn Fn(Severity, &str) + Send + Sync;

struct Body {
    sink: Box<Sink>,
    errors: Mutex<Lines>,
    warnings: Mutex<Lines>,
}

/// The last lines of a kind.
#[derive(Default)]
struct Lines {
    lines: VecDeque<String>,
    /// How many there were in all.
    count: u64,
}

impl Lines {
    fn push(&mut self, line: &str) {
        self.count += 1;
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(line.trim_end().to_owned());
    }

    /// Those that came after so many, as far as they are kept.
    fn since(&self, count: u64) -> Vec<String> {
        let new = usize::try_from(self.count - count).unwrap_or(usize::MAX);
        self.lines.iter().skip(self.lines.len().saturating_sub(new)).cloned().collect()
    }
}

/// Receives every line of the libraries that it is given to.
///
/// TensorRT keeps the first logger that it sees and may write to it when the process ends, so a logger is never taken
/// apart: make one and clone it.
#[derive(Clone, Copy)]
pub struct Logger(&'static Object<Body>);

pub(super) static OLD: Table<5> = plain!["log" => log, "~complete" => destroy, "~deleting" => destroy];
pub(super) static NEW: Table<7> = versioned![c"ILogger"; "log" => log];

impl Logger {
    /// A logger that hands every line on. `sink` is called from any thread; what it panics with is swallowed.
    pub fn new(sink: impl Fn(Severity, &str) + Send + Sync + 'static) -> Logger {
        let body = Body { sink: Box::new(sink), errors: Mutex::default(), warnings: Mutex::default() };
        Logger(Box::leak(Box::new(Object::new(body, [OLD.slots(), OLD.slots(), NEW.slots()]))))
    }

    /// The last errors, oldest first.
    pub fn recent_errors(&self) -> Vec<String> {
        self.errors_since(Mark(0))
    }

    /// Now, for [`Logger::errors_since`].
    pub(crate) fn mark(&self) -> Mark {
        Mark(lock(&self.0.body.errors).count)
    }

    /// The errors that came after a mark, as far as they are kept.
    pub(crate) fn errors_since(&self, mark: Mark) -> Vec<String> {
        lock(&self.0.body.errors).since(mark.0)
    }

    /// Does something, and returns with its result what TensorRT warned of meanwhile, in any thread, each line once.
    pub fn warnings_during<R>(&self, work: impl FnOnce() -> R) -> (R, Vec<String>) {
        let warnings = &self.0.body.warnings;
        let before = lock(warnings).count;
        let result = work();
        let mut seen: Vec<String> = Vec::new();
        for line in lock(warnings).since(before) {
            if !seen.contains(&line) {
                seen.push(line);
            }
        }
        (result, seen)
    }

    /// What a library of this family is given.
    pub(crate) fn object(&self, family: Family) -> *mut c_void {
        self.0.address(family)
    }
}

/// A moment in what a logger heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(u64);

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logger").field("recent_errors", &self.recent_errors()).finish()
    }
}

extern "C" fn log(this: *const Face<Body>, severity: i32, line: *const c_char) {
    guarded((), || {
        // SAFETY: called through a table of ours, and a logger lives until the process ends.
        let body = unsafe { body(this) };
        // SAFETY: TensorRT hands over a text that lives until we return.
        let line = unsafe { text(line) };
        let severity = Severity::from_number(severity);
        match severity {
            Severity::InternalError | Severity::Error => lock(&body.errors).push(&line),
            Severity::Warning => lock(&body.warnings).push(&line),
            Severity::Info | Severity::Verbose => {}
        }
        (body.sink)(severity, &line);
    });
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::thread;

    use super::*;
    use crate::callback::calls::{FAMILIES, c, destructors, information, slot};

    type Log = unsafe extern "C" fn(*mut c_void, i32, *const c_char);

    /// Where `log` is in a family.
    fn log_of(logger: Logger, family: Family) -> (Log, *mut c_void) {
        let object = logger.object(family);
        // SAFETY: slot 0 in 8.x and 10.x, 4 in 11.x, with this signature.
        (unsafe { slot(object, if family == Family::V11 { 4 } else { 0 }) }, object)
    }

    #[test]
    fn a_line_arrives_with_its_severity_in_every_layout() {
        for family in FAMILIES {
            let heard = Arc::new(Mutex::new(Vec::new()));
            let into = Arc::clone(&heard);
            let logger = Logger::new(move |severity, line| into.lock().unwrap().push((severity, line.to_owned())));
            let (log, object) = log_of(logger, family);
            for (severity, line) in [(0, "broken\n"), (1, "wrong"), (2, "odd"), (3, "news"), (4, "talk"), (9, "?")] {
                let line = c(line);
                // SAFETY: an object and a method of ours.
                unsafe { log(object, severity, line.as_ptr()) };
            }
            // SAFETY: as above; no text at all.
            unsafe { log(object, 2, std::ptr::null()) };
            use Severity::{Error, Info, InternalError, Verbose, Warning};
            let expected = [
                (InternalError, "broken\n"),
                (Error, "wrong"),
                (Warning, "odd"),
                (Info, "news"),
                (Verbose, "talk"),
                (Verbose, "?"),
                (Warning, ""),
            ];
            assert_eq!(
                *heard.lock().unwrap(),
                expected.map(|(severity, line)| (severity, line.to_owned())),
                "{family:?}"
            );
            assert_eq!(logger.recent_errors(), ["broken", "wrong"]);
            destructors(object, if family == Family::V11 { 2 } else { 1 });
        }
        assert_eq!(information(Logger::new(|_, _| ()).object(Family::V11)), (0, "ILogger".to_owned(), 1, 0));
    }

    #[test]
    fn a_sink_that_panics_hurts_nobody_and_the_line_is_kept() {
        for family in FAMILIES {
            let logger = Logger::new(|_, _| panic!("the sink is broken"));
            let (log, object) = log_of(logger, family);
            for line in ["first", "second"] {
                let line = c(line);
                // SAFETY: an object and a method of ours.
                unsafe { log(object, 1, line.as_ptr()) };
            }
            assert_eq!(logger.recent_errors(), ["first", "second"]);
        }
    }

    #[test]
    fn many_threads_write_and_only_the_last_errors_are_kept() {
        let logger = Logger::new(|_, _| ());
        let before = logger.mark();
        thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || {
                    let (log, object) = log_of(logger, FAMILIES[thread % 3]);
                    for line in 0..100 {
                        let line = c(&format!("{thread} {line}"));
                        // SAFETY: an object and a method of ours.
                        unsafe { log(object, 1, line.as_ptr()) };
                    }
                });
            }
        });
        let errors = logger.recent_errors();
        assert_eq!(errors.len(), KEPT);
        assert_eq!(logger.errors_since(before), errors);
        let mark = logger.mark();
        assert_eq!(logger.errors_since(mark), [""; 0]);
        let (log, object) = log_of(logger, Family::V8);
        // SAFETY: an object and a method of ours.
        unsafe { log(object, 0, c"one more".as_ptr()) };
        assert_eq!(logger.errors_since(mark), ["one more"]);
        assert_eq!(logger.recent_errors().len(), KEPT);
    }

    #[test]
    fn warnings_of_a_call_are_told_apart_from_earlier_ones() {
        for family in FAMILIES {
            let logger = Logger::new(|_, _| ());
            let (log, object) = log_of(logger, family);
            // SAFETY: an object and a method of ours.
            let warn = |line: &std::ffi::CStr| unsafe { log(object, 2, line.as_ptr()) };
            warn(c"earlier");
            let (result, warnings) = logger.warnings_during(|| {
                [c"odd", c"odd", c"strange\n"].iter().for_each(|line| warn(line));
                // SAFETY: as above.
                unsafe { log(object, 1, c"an error".as_ptr()) };
                7
            });
            assert_eq!((result, warnings), (7, vec!["odd".to_owned(), "strange".to_owned()]), "{family:?}");
            assert_eq!(logger.warnings_during(|| ()).1, [""; 0]);
            assert_eq!(logger.recent_errors(), ["an error"]);
        }
    }
}
