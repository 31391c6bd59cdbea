//! The memory that a model is said to take, beside what running it takes.

use std::path::Path;
use std::sync::Arc;

use allocation_counter::measure;
use gguf_graph::OutputKind;
use gguf_kit::convert::{self, Kind, Plan};
use gguf_kit::memory::{DeviceMemory, Devices, MemoryEstimate, MemoryOptions, estimate};
use gguf_kit::open;
use gguf_kit::run::{self, load};
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Precision};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Tokens of a batch.
const BATCH: u64 = 128;

fn model(dir: &Path) -> String {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");
    let plan =
        Plan::new(source, Kind::Checkpoint, &convert::ConvertOptions::default(), &()).unwrap();
    let path = dir.join("m.gguf");
    plan.outputs[0].job.write(&path, &gguf_store::Overwrite::default(), &()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn said(word: &str, context: u64, cache_type: CacheType, devices: Devices) -> MemoryEstimate {
    let options = MemoryOptions { context: Some(context), cache_type, batch: BATCH, devices };
    estimate(open(word).unwrap().model(), &options).unwrap()
}

/// Bytes that stay, and bytes at most at a time, of a context that is filled by one thread, this one.
fn taken(one: &ThreadPool, word: &str, context: u64, cache_type: CacheType) -> (u64, u64) {
    let options =
        run::ExecutorOptions { precision: Precision::Exact, ..run::ExecutorOptions::default() };
    let executor = load(word, &options).unwrap().executor;
    let fill = || {
        let tokens = context as usize;
        let options =
            ContextOptions { tokens, cache_type, batch: BATCH as usize, ..Default::default() };
        let mut context = Context::new(Arc::clone(&executor), options).unwrap();
        for first in (0..tokens).step_by(BATCH as usize) {
            let ids: Vec<u32> = (first..first + BATCH as usize).map(|i| 3 + i as u32).collect();
            context.run(&Batch::last_output(&ids, 0), OutputKind::Logits, &()).unwrap();
        }
        context
    };
    let mut context = None;
    // What threads keep is there already the second time.
    one.install(|| drop(fill()));
    let counted = measure(|| one.install(|| context = Some(fill())));
    (counted.bytes_current as u64, counted.bytes_max)
}

#[test]
fn caches_and_values_take_what_was_said() {
    let dir = tempfile::tempdir().unwrap();
    let word = model(dir.path());
    let one = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
    for cache_type in CacheType::ALL {
        for context in [256, 512] {
            let report = said(&word, context, cache_type, Devices::default());
            let (stays, most) = taken(&one, &word, context, cache_type);
            let shown = format!("{cache_type:?} {context}: {stays} and {most} beside {report:?}");
            // Full caches, and memory of values for the next run: no more than a run needs, to the
            // byte but for lists and names.
            let kept = report.cache + report.compute_buffer;
            assert!((report.cache..kept + 20_000).contains(&stays), "{shown}");
            let values = most - report.cache;
            // Values live in memory of values before them, which may have been larger.
            assert!(
                (report.compute_buffer..report.compute_buffer * 2).contains(&values),
                "{shown}"
            );
        }
    }
}

#[test]
fn figures_are_those_of_llama_cpp() {
    let dir = tempfile::tempdir().unwrap();
    let word = model(dir.path());
    let caches = |context, ty| said(&word, context, ty, Devices::default()).cache;
    // What `llama-perplexity -v` prints of this model: docs/inspect.md.
    assert_eq!(caches(512, CacheType::F16), 1 << 20);
    assert_eq!(caches(2048, CacheType::F16), 4 << 20);
    assert_eq!(caches(512, CacheType::Q8_0), (1 << 20) * 34 / 64);
    let report = said(&word, 512, CacheType::F16, Devices::default());
    assert_eq!(
        (report.cache_per_token, report.total()),
        (2048, report.weights + report.cache + report.compute_buffer)
    );
}

#[test]
fn devices_have_layers_as_llama_cpp_divides_them() {
    let dir = tempfile::tempdir().unwrap();
    let word = model(dir.path());
    let layers = |devices| {
        let report = said(&word, 512, CacheType::F16, devices);
        let of = |device: &DeviceMemory| (device.layers, device.has_output);
        let devices: Vec<_> = report.devices.iter().map(of).collect();
        let weights: u64 = report.devices.iter().map(|device| device.weights).sum();
        let caches: u64 = report.devices.iter().map(|device| device.cache).sum();
        assert_eq!((weights + report.host, caches), (report.weights, report.cache));
        devices
    };
    assert_eq!(layers(Devices::Equal(1)), [((0, 4), true)]);
    assert_eq!(layers(Devices::Equal(2)), [((0, 3), false), ((3, 4), true)]);
    assert_eq!(layers(Devices::Layers(vec![1, 3])), [((0, 1), false), ((1, 4), true)]);
    let five = [((0, 1), false), ((1, 2), false), ((2, 3), false), ((3, 4), false), ((4, 4), true)];
    assert_eq!(layers(Devices::Equal(5)), five);
    let options =
        MemoryOptions { devices: Devices::Layers(vec![1, 2]), batch: 1, ..Default::default() };
    let refused = estimate(open(&word).unwrap().model(), &options).unwrap_err().to_string();
    assert!(refused.contains("the model has 4 layers, not 3"), "{refused}");
}
