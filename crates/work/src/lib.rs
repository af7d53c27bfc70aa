//! What work needs that takes its time: children that end when we do, an ear for Ctrl-C, and somebody who is told how far it is.

mod child;
mod death;
mod interrupt;
mod mortal;
mod watch;

pub use self::child::{Supervised, WORKER_VERB};
pub use self::death::Death;
pub use self::interrupt::Interrupt;
pub use self::mortal::{CHILD_VERB, die_with_parent, mortal, run_child};
pub use self::watch::{Length, Step, Unwatched, Watcher, megabytes, short_time};
