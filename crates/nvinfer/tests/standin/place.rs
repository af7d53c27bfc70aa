//! What every test needs: a stand-in with its library open, a driver and a logger that remembers.
#![expect(clippy::disallowed_macros, reason = "tests")]

use std::sync::{Arc, Mutex};

use prony_nvinfer::{
    Builder, BuilderConfig, Context, Driver, Error, Family, Library, Logger, Network, ParserLibrary, Runtime, Selector,
    Severity,
};
use prony_standin::onnx::Model;
use prony_standin::{Standin, VERSIONS};

pub(crate) struct Place {
    pub(crate) standin: Standin,
    pub(crate) library: Library,
    pub(crate) driver: Driver,
    pub(crate) logger: Logger,
    pub(crate) heard: Arc<Mutex<Vec<(Severity, String)>>>,
}

impl Place {
    /// None where there is no compiler, which was said.
    pub(crate) fn new(version: &str) -> Option<Place> {
        let standin = Standin::new(version)?;
        let library = Library::open(&standin.library()).unwrap();
        let driver = Driver::open(Some(&standin.driver())).unwrap();
        let heard: Arc<Mutex<Vec<(Severity, String)>>> = Arc::default();
        let into = Arc::clone(&heard);
        let logger = Logger::new(move |severity, line| into.lock().unwrap().push((severity, line.to_owned())));
        Some(Place { standin, library, driver, logger, heard })
    }

    pub(crate) fn family(&self) -> Family {
        self.library.family()
    }

    pub(crate) fn builder(&self) -> Builder {
        self.library.builder(&self.driver, &self.logger).unwrap()
    }

    pub(crate) fn runtime(&self) -> Runtime {
        self.library.runtime(&self.driver, &self.logger).unwrap()
    }

    /// A network with that model in it, of the kind that the family has.
    pub(crate) fn network(&self, builder: &Builder, model: &Model) -> Result<Network, Error> {
        let network = builder.network(self.family() == Family::V11)?;
        let mut parser = ParserLibrary::open(&self.standin.parser(), &self.library)?.parser(&network, &self.logger)?;
        parser.parse_bytes(&model.bytes(), None)?;
        Ok(network)
    }

    /// An engine of a model, built as `configure` says.
    pub(crate) fn build(
        &self,
        model: &Model,
        configure: impl FnOnce(&Builder, &mut BuilderConfig),
    ) -> Result<Vec<u8>, Error> {
        let mut builder = self.builder();
        let network = self.network(&builder, model)?;
        let mut config = builder.config()?;
        configure(&builder, &mut config);
        Ok(builder.build(&network, &config)?.as_bytes().to_vec())
    }

    /// The plain engine of a detector.
    pub(crate) fn engine(&self) -> Vec<u8> {
        self.build(&Model::detector(), |_, _| ()).unwrap()
    }

    /// Whether a line with this text was logged.
    pub(crate) fn said(&self, text: &str) -> bool {
        self.heard.lock().unwrap().iter().any(|(_, line)| line.contains(text))
    }
}

/// Runs a test in every version, after which the stand-in has nothing to complain of.
pub(crate) fn everywhere(test: impl Fn(&Place)) {
    for version in VERSIONS {
        let Some(place) = Place::new(version) else { return };
        println!("TensorRT {version}");
        test(&place);
        assert_eq!(place.standin.complaints(), [""; 0], "{version}: {:#?}", place.standin.journal());
    }
}

/// Adds the profile of `images` with a batch from one to `most`.
pub(crate) fn batches(builder: &Builder, config: &mut BuilderConfig, most: i64) -> i32 {
    let mut profile = builder.profile().unwrap();
    for (selector, batch) in [(Selector::Min, 1), (Selector::Opt, 2.min(most)), (Selector::Max, most)] {
        profile.set_shape("images", selector, &[batch, 3, 8, 8]).unwrap();
    }
    assert!(profile.is_valid());
    config.add_profile(profile).unwrap()
}

/// Runs one inference from `images` to `boxes` and returns what came out.
pub(crate) fn infer(context: &mut Context, images: &mut [f32], boxes: usize) -> Result<Vec<f32>, Error> {
    let mut out = vec![0.0; boxes];
    // SAFETY: the memory is large enough and outlives the call; the stand-in's device is the host.
    unsafe {
        context.set_address("images", images.as_mut_ptr().cast())?;
        context.set_address("boxes", out.as_mut_ptr().cast())?;
        context.enqueue(std::ptr::null_mut())?;
    }
    Ok(out)
}
