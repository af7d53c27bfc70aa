//! An object that TensorRT made: how it is called, what it needs alive, and how it ends.

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::callback::{ErrorRecorder, Logger, Mark};
use crate::library::Create;
use crate::pointer::{Ptr, Str};
use crate::tables::{Everywhere, Method};
use crate::{Driver, Error, Family, Library, Version};

/// Addresses below are no objects: without a driver 10.x and 11.x answer with 0x228.
pub(crate) const LOWEST: usize = 64 * 1024;
/// The deleting destructor in the table of a public object.
pub(crate) const DELETE: usize = 1;

/// The word of a public object with the address of its implementation.
pub(crate) const IMPLEMENTATION: usize = 1;

/// How an object is called and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A public object with its implementation behind it, ours to delete.
    Owned,
    /// As above, but another object deletes it.
    Borrowed,
    /// An object that is called itself, with its deleting destructor at this slot.
    Interface(usize),
}

/// A live object. Its children and whatever uses it hold it, so it ends after them.
pub(crate) struct Object {
    public: NonNull<std::ffi::c_void>,
    kind: Kind,
    library: Library,
    logger: Logger,
    recorder: Mutex<Option<ErrorRecorder>>,
    /// What TensorRT was given a pointer to, by that pointer. Goes after the object itself.
    kept: Mutex<BTreeMap<usize, Box<dyn Any + Send + Sync>>>,
    parent: Option<Arc<Object>>,
}

// SAFETY: TensorRT's objects may be used from any thread, one at a time.
unsafe impl Send for Object {}
// SAFETY: methods are called by the wrappers alone, and those are not `Sync`; what else an object has is behind locks.
unsafe impl Sync for Object {}

/// A moment, to tell what was said after it.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    log: Mark,
    recorded: usize,
}

impl Object {
    /// Takes what a create function of the library returns, if that is an object.
    pub(crate) fn create(
        library: &Library,
        create: Create,
        what: &str,
        _: &Driver,
        logger: &Logger,
    ) -> Result<Held, Error> {
        let since = logger.mark();
        // SAFETY: the create functions take a logger, which lives until the process ends, and the library's own version;
        // that there is a driver was checked.
        let pointer = unsafe { create(logger.object(library.family()), library.version().number()) };
        let object = Object::adopt(pointer, Kind::Owned, library, logger, None);
        object.ok_or_else(|| Error::NotCreated { what: what.to_owned(), log: logger.errors_since(since) })
    }

    /// Takes what a method of this object returned, if that is an object.
    pub(crate) fn child(
        self: &Arc<Object>,
        kind: Kind,
        what: &str,
        pointer: Ptr,
        since: Moment,
    ) -> Result<Held, Error> {
        let object = Object::adopt(pointer, kind, &self.library, &self.logger, Some(Arc::clone(self)));
        object.ok_or_else(|| Error::NotCreated { what: what.to_owned(), log: self.said(since) })
    }

    /// Takes memory that a method of this object returned. It stands on its own: a builder need not wait for its engine's
    /// bytes to be used before it gives its own memory back.
    pub(crate) fn product(&self, what: &str, pointer: Ptr, since: Moment) -> Result<Held, Error> {
        let object = Object::adopt(pointer, Kind::Owned, &self.library, &self.logger, None);
        object.ok_or_else(|| Error::NotCreated { what: what.to_owned(), log: self.said(since) })
    }

    fn adopt(
        pointer: Ptr,
        kind: Kind,
        library: &Library,
        logger: &Logger,
        parent: Option<Arc<Object>>,
    ) -> Option<Held> {
        let public = NonNull::new(pointer).filter(|pointer| pointer.addr().get() >= LOWEST)?;
        let (recorder, kept) = (Mutex::default(), Mutex::default());
        let object = Object { public, kind, library: library.clone(), logger: *logger, recorder, kept, parent };
        if object.this().addr() < LOWEST {
            // Nothing that could be called, not even to delete it.
            std::mem::forget(object);
            return None;
        }
        Some(Held { object: Arc::new(object), not_sync: PhantomData })
    }

    /// What TensorRT knows it by.
    pub(crate) fn public(&self) -> Ptr {
        self.public.as_ptr()
    }

    pub(crate) fn library(&self) -> &Library {
        &self.library
    }

    pub(crate) fn version(&self) -> Version {
        self.library.version()
    }

    pub(crate) fn family(&self) -> Family {
        self.library.family()
    }

    /// What methods are called on.
    fn this(&self) -> Ptr {
        match self.kind {
            Kind::Interface(_) => self.public(),
            // SAFETY: a public object is two pointers, its table and its implementation.
            Kind::Owned | Kind::Borrowed => unsafe { *self.public().cast::<Ptr>().add(IMPLEMENTATION) },
        }
    }

    /// A method that every version has, and what to call it on.
    ///
    /// # Safety
    /// The method is one of this object's class.
    pub(crate) unsafe fn everywhere<F: Copy>(&self, method: &Everywhere<F>) -> (F, Ptr) {
        let this = self.this();
        // SAFETY: the object is alive and the table says that this slot of its class has this signature.
        (unsafe { function(this, method.slot(self.family())) }, this)
    }

    /// A method, where this version has it, and what to call it on.
    ///
    /// # Safety
    /// The method is one of this object's class.
    pub(crate) unsafe fn method<F: Copy>(&self, method: &Method<F>) -> Result<(F, Ptr), Error> {
        let this = self.this();
        // SAFETY: as above, and this version is not older than the slot.
        Ok((unsafe { function(this, method.slot(self.version())?) }, this))
    }

    /// Keeps what TensorRT was given a pointer to until the object is gone, even where it was given another since: an
    /// engine may still use the allocator that it was loaded with.
    pub(crate) fn keep(&self, pointer: Ptr, what: impl Any + Send + Sync) {
        lock(&self.kept).entry(pointer.addr()).or_insert_with(|| Box::new(what));
    }

    /// Keeps a recorder and lets errors of this object and its children carry what it heard.
    pub(crate) fn keep_recorder(&self, pointer: Ptr, recorder: &ErrorRecorder) {
        *lock(&self.recorder) = Some(recorder.clone());
        self.keep(pointer, recorder.clone());
    }

    /// The recorder that this object reports to: its own or the nearest ancestor's.
    fn recorder(&self) -> Option<ErrorRecorder> {
        let own = lock(&self.recorder).clone();
        own.or_else(|| self.parent.as_ref().and_then(|parent| parent.recorder()))
    }

    /// Now.
    pub(crate) fn now(&self) -> Moment {
        let recorded = self.recorder().map_or(0, |recorder| recorder.texts().len());
        Moment { log: self.logger.mark(), recorded }
    }

    /// Now, for the timed path: all that the recorder ever heard counts as new.
    pub(crate) fn glance(&self) -> Moment {
        Moment { log: self.logger.mark(), recorded: 0 }
    }

    /// What logger and recorder heard since.
    pub(crate) fn said(&self, since: Moment) -> Vec<String> {
        let mut said = self.logger.errors_since(since.log);
        let recorded = self.recorder().map(|recorder| recorder.texts()).unwrap_or_default();
        // Fewer than before: somebody took them out meanwhile.
        let new = recorded.get(since.recorded..).unwrap_or(&recorded);
        for text in new {
            // Some versions tell both.
            if !said.iter().any(|line| line.contains(text.trim())) {
                said.push(text.clone());
            }
        }
        said
    }

    /// The error for a method that said no.
    pub(crate) fn refused(&self, what: impl Into<String>, since: Moment) -> Error {
        Error::Refused { what: what.into(), log: self.said(since) }
    }

    /// Nothing where the method said yes.
    pub(crate) fn accepted(&self, yes: bool, what: impl FnOnce() -> String, since: Moment) -> Result<(), Error> {
        if yes { Ok(()) } else { Err(self.refused(what(), since)) }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let slot = match self.kind {
            Kind::Owned => DELETE,
            Kind::Interface(slot) => slot,
            Kind::Borrowed => return,
        };
        // SAFETY: the deleting destructor takes the object alone; nothing else holds it any more, as all that would has an
        // `Arc` of it.
        unsafe {
            let delete: unsafe extern "C" fn(Ptr) = function(self.public(), slot);
            delete(self.public());
        }
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object").field("at", &self.public).field("kind", &self.kind).finish()
    }
}

/// A wrapper's hold on its object: may go to another thread, is not used by two.
#[derive(Debug)]
pub(crate) struct Held {
    object: Arc<Object>,
    not_sync: PhantomData<Cell<()>>,
}

impl Deref for Held {
    type Target = Arc<Object>;

    fn deref(&self) -> &Arc<Object> {
        &self.object
    }
}

/// Calls a method that every version has, in an `unsafe` block.
macro_rules! call {
    ($object:expr, $method:expr $(, $arg:expr)*) => {{
        let (function, this) = $object.everywhere(&$method);
        function(this $(, $arg)*)
    }};
}

/// Calls a method that not every version has, in an `unsafe` block; returns the error where this one has not.
macro_rules! try_call {
    ($object:expr, $method:expr $(, $arg:expr)*) => {{
        let (function, this) = $object.method(&$method)?;
        function(this $(, $arg)*)
    }};
}

pub(crate) use {call, try_call};

/// The function in a slot.
///
/// # Safety
/// `object` is a live C++ object whose table has that slot, and `F` is a function pointer of its signature.
pub(crate) unsafe fn function<F: Copy>(object: Ptr, slot: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<Ptr>()) };
    // SAFETY: the first word of such an object is the address of its table; the rest is the caller's promise.
    unsafe {
        let table = *object.cast::<*const Ptr>();
        std::mem::transmute_copy(&*table.add(slot))
    }
}

/// A text for TensorRT.
pub(crate) fn c_text(what: &str, text: impl Into<Vec<u8>>) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::Text { what: what.to_owned(), reason: "has a NUL in it".to_owned() })
}

/// A copy of a text from TensorRT; none for null.
///
/// # Safety
/// Null, or a text with a NUL at its end.
pub(crate) unsafe fn copied(what: &str, text: Str) -> Result<Option<String>, Error> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not null; the rest is the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    let bad = |error: std::str::Utf8Error| Error::Text { what: what.to_owned(), reason: error.to_string() };
    Ok(Some(text.map_err(bad)?.to_owned()))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
