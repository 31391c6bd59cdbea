//! Several outputs in one pass, and interrupted jobs.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use gguf::{ByteOrder, Metadata, Shape, TensorType};
use gguf_pipeline::{Content, Interruption, Item, Job, Tensor, write_all};
use gguf_quantize::recipe::Target;
use gguf_store::{Existing, Model, Overwrite};
use tempfile::TempDir;

/// Creates a directory with a model `in.gguf` of several chunks.
fn model() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", "llama");
    metadata.set("llama.block_count", 4u32);
    let items = (0..4).map(|layer| {
        let values = (0..512 * 1024u32).map(|i| ((i * 37 + layer) % 251) as f32 - 125.0).collect();
        let tensor = Tensor {
            name: format!("blk.{layer}.ffn_up.weight"),
            shape: Shape::new(&[512, 1024]).unwrap(),
            stored_type: TensorType::F32,
            content: Content::Values(values),
        };
        Item::new(tensor, TensorType::F16)
    });
    let job =
        Job { metadata, items: items.collect(), check_finite: true, order: ByteOrder::Little };
    job.write(&dir.path().join("in.gguf"), &Overwrite::new(Existing::Replace), &()).unwrap();
    dir
}

/// Quantizes `in.gguf` to one file per target, and cancels after `bytes`.
fn quantize_all(
    dir: &Path,
    outputs: &[(&str, &str)],
    interruption: Interruption,
    bytes: u64,
) -> (Result<(), gguf::Error>, u64) {
    let model = Model::open(&dir.join("in.gguf")).unwrap();
    let jobs: Vec<(Job, PathBuf)> = outputs
        .iter()
        .map(|(name, target)| {
            let target: Target = target.parse().unwrap();
            let plan =
                gguf_quantize::plan(&model, target, &gguf_quantize::QuantizeOptions::default())
                    .unwrap();
            (plan.job, dir.join(name))
        })
        .collect();
    let jobs: Vec<(&Job, &Path)> = jobs.iter().map(|(job, path)| (job, &**path)).collect();
    let written = AtomicU64::new(0);
    let result = write_all(&jobs, interruption, &Overwrite::new(Existing::Replace), &|n: u64| {
        if written.fetch_add(n, Ordering::Relaxed) + n > bytes {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    (result, written.into_inner())
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn outputs_of_one_pass_equal_single_outputs() {
    let dir = model();
    let path = |name: &str| dir.path().join(name);
    let targets = ["Q8_0", "Q4_K_M", "COPY"];
    for target in targets {
        let alone = format!("{target}.gguf");
        let outputs = [(alone.as_str(), target)];
        quantize_all(dir.path(), &outputs, Interruption::Restart, u64::MAX).0.unwrap();
    }
    let together: Vec<_> = targets.iter().map(|&target| (target, target)).collect();
    quantize_all(dir.path(), &together, Interruption::Restart, u64::MAX).0.unwrap();
    for target in targets {
        let alone = std::fs::read(path(&format!("{target}.gguf"))).unwrap();
        assert_eq!(std::fs::read(path(target)).unwrap(), alone, "{target}");
    }
}

#[test]
fn interrupted_job_resumes() {
    let dir = model();
    let outputs = [("out.gguf", "Q8_0"), ("second.gguf", "Q4_0")];
    let whole = quantize_all(dir.path(), &outputs, Interruption::Restart, u64::MAX);
    whole.0.unwrap();
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    let expected = (read("out.gguf"), read("second.gguf"));
    for name in ["out.gguf", "second.gguf"] {
        std::fs::write(dir.path().join(name), b"old").unwrap();
    }
    let journal = |input, resume| Interruption::Journal { input, resume, on_restart: &|| () };

    // Half of the job, then the rest.
    let (result, _) = quantize_all(dir.path(), &outputs, journal("a", true), whole.1 / 2);
    assert!(matches!(result, Err(gguf::Error::Interrupted)));
    assert_eq!((read("out.gguf"), read("second.gguf")), (b"old".to_vec(), b"old".to_vec()));
    assert!(names(dir.path()).contains(&".out.gguf.unfinished.gguf-kit-part".to_owned()));
    // Completed chunks are not written again: garbage in the first rows persists in the result.
    let unfinished = dir.path().join(".out.gguf.unfinished.gguf-kit-part");
    let mut bytes = std::fs::read(&unfinished).unwrap();
    let data_start = bytes.len() - bytes.len() / 2;
    bytes[data_start / 2] ^= 0x10;
    std::fs::write(&unfinished, &bytes).unwrap();
    quantize_all(dir.path(), &outputs, journal("a", true), u64::MAX).0.unwrap();
    assert_ne!(read("out.gguf"), expected.0);

    // Other inputs start over, and so does a job that must not resume.
    for second in [journal("b", true), journal("a", false)] {
        let _ = quantize_all(dir.path(), &outputs, journal("a", true), whole.1 / 2);
        quantize_all(dir.path(), &outputs, second, u64::MAX).0.unwrap();
        assert_eq!((read("out.gguf"), read("second.gguf")), expected);
    }
    // Many small steps.
    for _ in 0..20 {
        let (result, _) = quantize_all(dir.path(), &outputs, journal("c", true), whole.1 / 2);
        if result.is_ok() {
            break;
        }
    }
    quantize_all(dir.path(), &outputs, journal("c", true), u64::MAX).0.unwrap();
    assert_eq!((read("out.gguf"), read("second.gguf")), expected);
    assert_eq!(names(dir.path()), ["in.gguf", "out.gguf", "second.gguf"]);
}

/// Two jobs with several outputs share one of them: the first must not mistake the other job's data
/// for its own.
#[test]
fn different_job_on_second_output_is_detected() {
    let dir = model();
    let both_outputs = [("out.gguf", "Q4_0"), ("second.gguf", "Q4_0")];
    let whole = quantize_all(dir.path(), &both_outputs, Interruption::Restart, u64::MAX);
    whole.0.unwrap();
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    let expected = read("second.gguf");
    let restarts = AtomicU64::new(0);
    let count = || {
        restarts.fetch_add(1, Ordering::Relaxed);
    };
    let journal = Interruption::Journal { input: "a", resume: true, on_restart: &count };
    let _ = quantize_all(dir.path(), &both_outputs, journal, whole.1 / 2);
    let _ = quantize_all(dir.path(), &both_outputs, journal, whole.1 / 2);
    assert_eq!(restarts.load(Ordering::Relaxed), 0);
    let _ = quantize_all(dir.path(), &[("second.gguf", "Q8_0")], journal, whole.1 / 2);
    assert_eq!(restarts.load(Ordering::Relaxed), 1);
    quantize_all(dir.path(), &both_outputs, journal, u64::MAX).0.unwrap();
    assert_eq!(restarts.load(Ordering::Relaxed), 2);
    assert!(read("second.gguf") == expected);
}
