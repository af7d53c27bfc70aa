//! Inference by name and by binding, the profiler, the inspector, and the order in which things end.

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use prony_nvinfer::{DataType, Error, Family, Flag, OutputAllocator, OutputMemory, Profiler};
use prony_standin::onnx::{Dim, Model, element};

use crate::place::{batches, everywhere, infer};

/// The first of these times two, as the stand-in computes.
fn doubled(images: &[f32], boxes: usize) -> Vec<f32> {
    images.iter().cycle().take(boxes).map(|value| value * 2.0).collect()
}

fn numbers(count: u16) -> Vec<f32> {
    (0..count).map(|i| f32::from(i) * 0.5 - 20.0).collect()
}

#[test]
fn an_inference_computes() {
    everywhere(|place| {
        let engine = place.runtime().deserialize(&place.engine()).unwrap();
        let mut context = engine.context().unwrap();
        let mut images = numbers(192);
        context.infer_shapes().unwrap();
        assert_eq!(context.shape("boxes").unwrap(), [1, 6, 4]);
        assert_eq!(infer(&mut context, &mut images, 24).unwrap(), doubled(&images, 24));
        images[3] = 7.0;
        assert_eq!(infer(&mut context, &mut images, 24).unwrap()[3], 14.0);
        let by_name = place.library.version() >= "8.5".parse().unwrap();
        assert_eq!(context.max_output_bytes("boxes"), by_name.then_some(96));
    });
}

#[test]
fn tensors_of_16_bits_are_told_and_computed() {
    everywhere(|place| {
        let model = Model::new().node("/relu", "Relu", "").input("images", element::F16, &[Dim::Fixed(6)]).output(
            "boxes",
            element::F16,
            &[Dim::Fixed(6)],
        );
        let engine = place.runtime().deserialize(&place.build(&model, |_, _| ()).unwrap()).unwrap();
        assert!(engine.io().unwrap().iter().all(|tensor| tensor.dtype == DataType::F16));
        let mut context = engine.context().unwrap();
        // 1.5, -0.25, the smallest number, half of the smallest normal one, the largest, nothing.
        let mut images: [u16; 6] = [0x3e00, 0xb400, 0x0001, 0x0200, 0x7bff, 0];
        let mut boxes = [9u16; 6];
        // SAFETY: the memory is large enough and outlives the call.
        unsafe {
            context.set_address("images", images.as_mut_ptr().cast()).unwrap();
            context.set_address("boxes", boxes.as_mut_ptr().cast()).unwrap();
            context.enqueue(std::ptr::null_mut()).unwrap();
        }
        assert_eq!(boxes, [0x4200, 0xb800, 0x0002, 0x0400, 0x7c00, 0]);
    });
}

#[test]
fn shapes_that_are_free_are_set_checked_and_missed_by_name() {
    everywhere(|place| {
        let bytes = place.build(&Model::batched(), |builder, config| {
            batches(builder, config, 4);
        });
        let engine = place.runtime().deserialize(&bytes.unwrap()).unwrap();
        let mut context = engine.context().unwrap();
        let error = context.infer_shapes().unwrap_err().to_string();
        assert!(error.contains("input 'images' has no full shape yet"), "{error}");
        let error = infer(&mut context, &mut numbers(192), 24).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        let reason = "TensorRT refused to enqueue an inference: the shape of input images is not set";
        assert_eq!(error.to_string(), reason);
        context.set_input_shape("images", &[3, 3, 8, 8]).unwrap();
        context.infer_shapes().unwrap();
        assert_eq!(context.shape("boxes").unwrap(), [3, 6, 4]);
        let mut images = numbers(3 * 192);
        assert_eq!(infer(&mut context, &mut images, 72).unwrap(), doubled(&images, 72));
        for shape in [&[5, 3, 8, 8][..], &[1, 3, 8, 9], &[1, 3, 8]] {
            let error = context.set_input_shape("images", shape).unwrap_err().to_string();
            assert!(error.contains(&format!("shape {shape:?} of input 'images'")), "{error}");
            assert!(error.contains("is not in the range of profile 0"), "{error}");
        }
        let error = context.set_input_shape("nothing", &[1]).unwrap_err().to_string();
        assert_eq!(error, "tensor 'nothing': the engine has none of this name");
    });
}

#[test]
fn a_second_profile_has_shapes_and_addresses_of_its_own() {
    everywhere(|place| {
        let bytes = place.build(&Model::batched(), |builder, config| {
            assert_eq!([batches(builder, config, 2), batches(builder, config, 9)], [0, 1]);
        });
        let engine = place.runtime().deserialize(&bytes.unwrap()).unwrap();
        assert_eq!((engine.profile_count(), engine.io().unwrap().len()), (2, 2));
        let mut context = engine.context().unwrap();
        context.set_input_shape("images", &[8, 3, 8, 8]).unwrap_err();
        // SAFETY: the stand-in knows no streams.
        unsafe { context.set_profile(1, std::ptr::null_mut()) }.unwrap();
        context.set_input_shape("images", &[8, 3, 8, 8]).unwrap();
        let mut images = numbers(8 * 192);
        assert_eq!(infer(&mut context, &mut images, 8 * 24).unwrap(), doubled(&images, 8 * 24));
        // SAFETY: as above.
        let error = unsafe { context.set_profile(2, std::ptr::null_mut()) }.unwrap_err().to_string();
        assert_eq!(error, "TensorRT refused profile 2: there is no optimization profile 2");
    });
}

#[test]
fn an_address_that_is_missing_is_named() {
    everywhere(|place| {
        let engine = place.runtime().deserialize(&place.engine()).unwrap();
        let mut context = engine.context().unwrap();
        // SAFETY: nothing is computed without addresses.
        let error = unsafe { context.enqueue(std::ptr::null_mut()) }.unwrap_err().to_string();
        assert!(error.ends_with("the address of input images is not set"), "{error}");
    });
}

/// Memory for outputs that is kept, and the shapes that were told.
#[derive(Default)]
struct Outputs {
    memory: Mutex<Vec<f32>>,
    shapes: Mutex<Vec<(String, Vec<i64>)>>,
}

impl OutputMemory for Outputs {
    fn reallocate(&self, _tensor: &str, _current: *mut c_void, bytes: u64, _alignment: u64) -> *mut c_void {
        let mut memory = self.memory.lock().unwrap();
        *memory = vec![0.0; usize::try_from(bytes).unwrap() / 4];
        memory.as_mut_ptr().cast()
    }

    fn shape(&self, tensor: &str, dims: &[i64]) {
        self.shapes.lock().unwrap().push((tensor.to_owned(), dims.to_vec()));
    }
}

#[test]
fn an_output_whose_size_the_data_decide_gets_its_memory_then() {
    everywhere(|place| {
        let model = Model::new().node("/where", "NonZero", "").input("images", element::F32, &[Dim::Fixed(6)]).output(
            "boxes",
            element::F32,
            &[Dim::Free("found")],
        );
        let bytes = place.build(&model, |_, _| ()).unwrap();
        let engine = place.runtime().deserialize(&bytes).unwrap();
        let mut context = engine.context().unwrap();
        let outputs = Arc::new(Outputs::default());
        let allocator = OutputAllocator::new(Arc::clone(&outputs) as Arc<dyn OutputMemory>);
        let set = context.set_output_allocator("boxes", &allocator);
        if place.library.version() < "8.5".parse().unwrap() {
            assert!(matches!(set, Err(Error::TooOld { .. })), "{set:?}");
            return;
        }
        set.unwrap();
        drop(allocator);
        assert_eq!((context.shape("boxes").unwrap(), context.max_output_bytes("boxes")), (vec![-1], Some(24)));
        let mut images = [3.0f32, -1.0, 2.0, 0.0, 4.0, -2.0];
        // SAFETY: the memory outlives the call.
        unsafe {
            context.set_address("images", images.as_mut_ptr().cast()).unwrap();
            context.enqueue(std::ptr::null_mut()).unwrap();
        }
        assert_eq!(*outputs.shapes.lock().unwrap(), [("boxes".to_owned(), vec![3])]);
        assert_eq!(*outputs.memory.lock().unwrap(), [6.0, -2.0, 4.0]);
    });
}

#[test]
fn the_profiler_hears_every_layer() {
    everywhere(|place| {
        let engine = place.runtime().deserialize(&place.engine()).unwrap();
        let mut context = engine.context().unwrap();
        let profiler = Profiler::new();
        context.set_profiler(&profiler);
        let layers = [("/conv".to_owned(), 0.25), ("/head".to_owned(), 0.5)];
        infer(&mut context, &mut numbers(192), 24).unwrap();
        assert_eq!(profiler.take(), layers);
        context.set_enqueue_emits_profile(false).unwrap();
        infer(&mut context, &mut numbers(192), 24).unwrap();
        assert_eq!(profiler.take(), []);
        context.report_to_profiler().unwrap();
        assert_eq!(profiler.take(), layers);
    });
}

#[test]
fn the_inspector_tells_layers_and_their_types() {
    everywhere(|place| {
        let old = place.family() != Family::V11;
        let inspect = |detailed: bool| {
            let bytes = place.build(&Model::detector(), |_, config| {
                config.set_detailed_profiling(detailed).unwrap();
                if old {
                    config.set_flag(Flag::Fp16, true).unwrap();
                }
            });
            let engine = place.runtime().deserialize(&bytes.unwrap()).unwrap();
            let mut inspector = engine.inspector().unwrap();
            inspector.set_context(&engine.context().unwrap()).unwrap();
            let count = usize::try_from(engine.layer_count()).unwrap();
            drop(engine);
            let engine: serde_json::Value = serde_json::from_str(&inspector.engine_json().unwrap()).unwrap();
            assert_eq!(engine["Layers"].as_array().unwrap().len(), count);
            assert_eq!(engine["Bindings"], serde_json::json!(["images", "boxes"]));
            engine
        };
        // A reformat of the input comes first where layers are not fp32.
        let last = usize::from(old) + 1;
        assert_eq!(inspect(false)["Layers"][last], "/head");
        let layer = &inspect(true)["Layers"][last];
        assert_eq!((&layer["Name"], &layer["LayerType"]), (&"/head".into(), &"Sigmoid".into()));
        let expected = if old { "Row major linear FP16 format" } else { "Row major linear FP32" };
        assert_eq!(layer["Outputs"][0]["Format/Datatype"], expected);
    });
}

/// Where each kind is destroyed for the last time.
fn last(journal: &[String], kind: &str) -> usize {
    journal.iter().rposition(|line| *line == format!("- {kind}")).unwrap_or_else(|| panic!("{kind}: {journal:?}"))
}

#[test]
fn parents_outlive_their_children_whatever_is_dropped_first() {
    everywhere(|place| {
        let mut builder = place.builder();
        let network = place.network(&builder, &Model::batched()).unwrap();
        let mut config = builder.config().unwrap();
        batches(&builder, &mut config, 4);
        let bytes = builder.build(&network, &config).unwrap();
        drop(builder);
        drop(network);
        drop(config);
        let runtime = place.runtime();
        let engine = runtime.deserialize(bytes.as_bytes()).unwrap();
        drop(runtime);
        let mut context = engine.context().unwrap();
        let inspector = engine.inspector().unwrap();
        drop(engine);
        context.set_input_shape("images", &[1, 3, 8, 8]).unwrap();
        let mut images = numbers(192);
        assert_eq!(infer(&mut context, &mut images, 24).unwrap(), doubled(&images, 24));
        assert!(inspector.engine_json().unwrap().contains("/head"));
        drop(context);
        drop(inspector);
        let journal = place.standin.journal();
        for (child, parent) in [
            ("IParser", "INetworkDefinition"),
            ("INetworkDefinition", "IBuilder"),
            ("IBuilderConfig", "IBuilder"),
            ("IExecutionContext", "ICudaEngine"),
            ("IEngineInspector", "ICudaEngine"),
            ("ICudaEngine", "IRuntime"),
        ] {
            assert!(last(&journal, child) < last(&journal, parent), "{child} before {parent}: {journal:#?}");
        }
    });
}

#[test]
fn wrappers_go_to_other_threads() {
    everywhere(|place| {
        let engine = place.runtime().deserialize(&place.engine()).unwrap();
        let mut context = engine.context().unwrap();
        let out = std::thread::spawn(move || infer(&mut context, &mut numbers(192), 24).unwrap()).join().unwrap();
        assert_eq!(out, doubled(&numbers(192), 24));
        drop(engine);
    });
}
