//! Evaluations that are interrupted.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gguf_kit::eval::{
    Against, ChunkOptions, Collection, CompareOptions, ImatrixOptions, PartWriter, RunOptions,
    Task, divergence, imatrix, perplexity,
};
use gguf_kit::quantize::Part;
use gguf_kit::run::ExecutorOptions;
use gguf_kit::{Error, Progress};
use gguf_store::Existing;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Ends the reading after so many tokens. The conversion before it counts nothing.
struct After {
    reading: AtomicBool,
    read: AtomicU64,
    most: u64,
}

impl Progress for After {
    fn begin(&self, what: &str, _: u64) {
        self.reading.store(what == "reading", Ordering::Relaxed);
    }

    fn advance(&self, tokens: u64) -> ControlFlow<()> {
        let reading = self.reading.load(Ordering::Relaxed);
        match reading && self.read.fetch_add(tokens, Ordering::Relaxed) + tokens > self.most {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Runs something again and again, each time for three windows, until it is done; how often it was
/// interrupted.
fn again<T>(
    path: &Path,
    run: impl Fn(&mut PartWriter, &dyn Progress) -> Result<T, Error>,
) -> (T, usize) {
    for times in 0..20 {
        let inputs: [&Path; 0] = [];
        let mut keeper =
            PartWriter::new(Part::WHOLE, path, Existing::Refuse, inputs, true).unwrap();
        let progress =
            After { reading: AtomicBool::new(false), read: AtomicU64::new(0), most: 3 * 32 };
        match run(&mut keeper, &progress) {
            Ok(found) => return (found, times),
            Err(error) => assert_eq!(error.code(), "interrupted", "{error}"),
        }
    }
    panic!("never done");
}

#[test]
fn what_is_interrupted_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let model = format!("{REPOSITORY}/testdata/Tiny-KJV-Llama-4M");
    let task = Task {
        text: std::fs::read_to_string(format!("{REPOSITORY}/LICENSE-APACHE")).unwrap(),
        special: false,
        cut: ChunkOptions { len: 32, count: Some(9), stride: None },
        run: RunOptions::default(),
    };
    let options = ExecutorOptions::default();

    let run = |keeper: &mut PartWriter, progress: &dyn Progress| {
        perplexity(&model, &options, &task, None, keeper, &mut |_| {}, progress)
    };
    let whole = run(&mut PartWriter::default(), &()).unwrap();
    let (found, times) = again(&dir.path().join("perplexity"), run);
    assert_eq!((found, found.chunks, times), (whole, 9, 2));

    // Both read the window: each time one is done.
    let models = [model.clone()];
    let compare = CompareOptions {
        against: Against::Model(&model),
        models: &models,
        options: &options,
        task: &task,
        worst: 4,
        save: None,
    };
    let run = |keeper: &mut PartWriter, progress: &dyn Progress| {
        divergence(&compare, keeper, &mut |_| {}, progress)
    };
    let whole = run(&mut PartWriter::default(), &()).unwrap();
    let (found, times) = again(&dir.path().join("divergence"), run);
    assert_eq!((&found.models, &found.tokens), (&whole.models, &whole.tokens));
    assert_eq!((found.models[0].model.chunks, times), (9, 8));

    let collect = ImatrixOptions { collection: Collection::default(), skip: 2, resumed: None };
    let run = |keeper: &mut PartWriter, progress: &dyn Progress| {
        imatrix(&model, &options, &task, &collect, keeper, &mut |_, _, _| Ok(()), progress)
    };
    let whole = run(&mut PartWriter::default(), &()).unwrap();
    let (found, times) = again(&dir.path().join("imatrix"), run);
    assert_eq!((found.chunk_count, times), (7, 2));
    assert_eq!(found, whole);
}
