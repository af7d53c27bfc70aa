//! A stand-in with an engine in its folder, and a process that runs on it.

use std::path::{Path, PathBuf};
use std::process::Command;

use prony_backend::{BackendError, ModelFile, Session, SessionSpec, backend};
use prony_nvinfer::{Builder, BuilderConfig, Driver, Library, Logger, ParserLibrary, Selector};
use prony_standin::Standin;
use prony_standin::onnx::Model;
use prony_types::{BackendName, Precision, RuntimeSpec, TensorData};

/// Tells a test that it is the process on the stand-in, and where that is.
const FOLDER: &str = "PRONY_TEST_STANDIN";
/// Which version it is.
const VERSION: &str = "PRONY_TEST_STANDIN_VERSION";
/// Values of `images` in the models here.
pub(crate) const PIXELS: usize = 3 * 8 * 8;

/// Where a test is: in the process on the stand-in.
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) version: String,
}

/// What a test is to find when it starts.
pub(crate) struct Setting<'a> {
    pub(crate) test: &'a str,
    pub(crate) version: &'a str,
    pub(crate) model: Model,
    /// How the stand-in behaves.
    pub(crate) behaviour: &'a [(&'a str, &'a str)],
    pub(crate) environment: &'a [(&'a str, &'a str)],
}

impl<'a> Setting<'a> {
    /// An engine of a detector, nothing out of the ordinary.
    pub(crate) fn new(test: &'a str, version: &'a str) -> Setting<'a> {
        Setting { test, version, model: Model::detector(), behaviour: &[], environment: &[] }
    }

    /// Runs the test on it: here, if this is the process for that, or in a process of its own.
    pub(crate) fn run(&self, inside: impl FnOnce(&Place)) {
        if let (Some(folder), Ok(version)) = (std::env::var_os(FOLDER), std::env::var(VERSION)) {
            if version == self.version {
                inside(&Place { folder: folder.into(), version });
            }
            return;
        }
        let Some(standin) = Standin::new(self.version) else { return };
        build(&standin, &self.model, &standin.folder().join("x.engine"));
        for (key, value) in self.behaviour {
            standin.set(key, value);
        }
        let output = Command::new(std::env::current_exe().unwrap())
            .args([self.test, "--exact", "--nocapture"])
            .env("LD_LIBRARY_PATH", standin.folder())
            .env(FOLDER, standin.folder())
            .env(VERSION, self.version)
            .envs(self.environment.iter().copied())
            .output()
            .unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("1 passed"), "{} on {}: {}\n{said}", self.test, self.version, output.status);
        assert_eq!(standin.complaints(), [""; 0], "{}: {:#?}", self.version, standin.journal());
    }
}

impl Place {
    pub(crate) fn engine(&self) -> PathBuf {
        self.folder.join("x.engine")
    }

    pub(crate) fn runtime(&self) -> RuntimeSpec {
        let major = self.version.split('.').next().unwrap();
        RuntimeSpec::new(self.folder.join(format!("libnvinfer.so.{major}")), &self.version)
    }

    /// Opens the engine, asked for as `adjust` says.
    pub(crate) fn open(&self, adjust: impl FnOnce(&mut SessionSpec<'_>)) -> Result<Box<dyn Session>, BackendError> {
        let model = ModelFile::read(&self.engine()).unwrap();
        let mut spec = self.spec(&model);
        adjust(&mut spec);
        backend(BackendName::Tensorrt).open(&spec)
    }

    pub(crate) fn spec<'a>(&self, model: &'a ModelFile) -> SessionSpec<'a> {
        SessionSpec { precision: Precision::Native, slots: 2, runtime: Some(self.runtime()), ..SessionSpec::new(model) }
    }

    /// Why the engine does not open.
    pub(crate) fn refusal(&self, adjust: impl FnOnce(&mut SessionSpec<'_>)) -> BackendError {
        match self.open(adjust) {
            Ok(_) => panic!("it opened"),
            Err(error) => error,
        }
    }
}

/// Fills a slot's input with `first`, `first + 1`, ...
pub(crate) fn fill(session: &mut dyn Session, slot: usize, first: f32) {
    match session.input(slot, 0) {
        prony_backend::SlotInput::F32(data) => data.iter_mut().zip(0u16..).for_each(|(x, i)| *x = first + f32::from(i)),
        other => panic!("{other:?}"),
    }
}

/// What a slot's first output must be after that.
pub(crate) fn doubled(session: &dyn Session, slot: usize, first: f32) -> bool {
    let TensorData::F32(data) = session.output(slot, 0).data else { return false };
    let value = |i: usize| 2.0 * (first + f32::from(u16::try_from(i % PIXELS).unwrap()));
    !data.is_empty() && data.iter().enumerate().all(|(i, &x)| x == value(i))
}

/// Builds an engine with TensorRT's own stand-in. Free batches go from 1 to 4.
fn build(standin: &Standin, model: &Model, into: &Path) {
    let logger = Logger::new(|_, _| {});
    let library = Library::open(&standin.library()).unwrap();
    let driver = Driver::open(Some(&standin.driver())).unwrap();
    let mut builder = library.builder(&driver, &logger).unwrap();
    let network = builder.network(library.version().major == 11).unwrap();
    let mut parser = ParserLibrary::open(&standin.parser(), &library).unwrap().parser(&network, &logger).unwrap();
    parser.parse_bytes(&model.bytes(), None).unwrap();
    let mut config = builder.config().unwrap();
    config.set_detailed_profiling(true).unwrap();
    if network.inputs().unwrap()[0].dims.contains(&-1) {
        profile(&builder, &mut config);
    }
    std::fs::write(into, builder.build(&network, &config).unwrap().as_bytes()).unwrap();
}

fn profile(builder: &Builder, config: &mut BuilderConfig) {
    let mut profile = builder.profile().unwrap();
    for (selector, batch) in [(Selector::Min, 1), (Selector::Opt, 2), (Selector::Max, 4)] {
        profile.set_shape("images", selector, &[batch, 3, 8, 8]).unwrap();
    }
    config.add_profile(profile).unwrap();
}
