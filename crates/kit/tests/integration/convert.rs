//! Conversions that are interrupted and gone on with.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use gguf_kit::convert::{ConvertOptions, Kind, OutputOptions, Plan};
use gguf_kit::{Error, Progress};
use gguf_store::{Existing, Overwrite};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");

/// Ends the work after so many bytes.
struct Until(AtomicU64, u64);

impl Progress for Until {
    fn begin(&self, _: &str, _: u64) {}

    fn advance(&self, bytes: u64) -> ControlFlow<()> {
        match self.0.fetch_add(bytes, Ordering::Relaxed) + bytes > self.1 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

fn plan(dir: &Path, outputs: &[&str], like: Option<&str>) -> Plan {
    let wanted = outputs.iter().map(|ty| OutputOptions {
        outtype: Some(ty.parse().unwrap()),
        path: Some(dir.join(format!("{ty}.gguf"))),
    });
    let like = like.map(str::to_owned);
    let options = ConvertOptions {
        outputs: wanted.collect(),
        resume: true,
        like,
        ..ConvertOptions::default()
    };
    Plan::new(MODEL, Kind::Checkpoint, &options, &()).unwrap()
}

fn write(plan: &mut Plan, most: u64, restarts: &AtomicU64) -> Result<Vec<(PathBuf, u64)>, Error> {
    let overwrite = Overwrite::new(Existing::Refuse);
    let count = || {
        restarts.fetch_add(1, Ordering::Relaxed);
    };
    plan.write(&overwrite, &count, &Until(AtomicU64::new(0), most))?;
    plan.files()?.into_iter().map(|(job, path)| Ok((path, job.header()?.data_len()))).collect()
}

#[test]
fn resumed_work_gives_the_bytes_of_one_run() {
    let (whole, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (types, restarts) = (["q8_0", "q4_k_m"], AtomicU64::new(0));
    let files = write(&mut plan(whole.path(), &types, None), u64::MAX, &restarts).unwrap();
    assert_eq!(files.len(), 2);
    let half = files.iter().map(|(_, bytes)| bytes).sum::<u64>() / 2;
    let interrupted = write(&mut plan(dir.path(), &types, None), half, &restarts);
    assert!(matches!(interrupted, Err(Error::Interrupted)));
    let left = || std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left(), 2, "both outputs are unfinished");

    // What is done is kept: half of the source need not be read, and is not.
    let unfinished = |ty: &str| dir.path().join(format!(".{ty}.gguf.unfinished.gguf-kit-part"));
    let before = std::fs::read(unfinished("q8_0")).unwrap();
    write(&mut plan(dir.path(), &types, None), u64::MAX, &restarts).unwrap();
    assert_eq!(restarts.load(Ordering::Relaxed), 0, "the work of before was thrown away");
    assert!(before.windows(8).any(|window| window == b"GGUFWORK"), "there was no journal");
    for ty in types {
        let read = |dir: &tempfile::TempDir| std::fs::read(dir.path().join(format!("{ty}.gguf")));
        assert!(read(&whole).unwrap() == read(&dir).unwrap(), "{ty}");
    }
    assert_eq!(left(), 2);
}

/// Another class can arrange the rows of the same tensors otherwise, below the same header.
#[test]
fn work_with_other_settings_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let restarts = AtomicU64::new(0);
    assert!(write(&mut plan(dir.path(), &["q8_0"], None), 2_000_000, &restarts).is_err());
    let mut other = plan(dir.path(), &["q8_0"], Some("MistralForCausalLM"));
    write(&mut other, u64::MAX, &restarts).unwrap();
    assert_eq!(restarts.load(Ordering::Relaxed), 1);
}
