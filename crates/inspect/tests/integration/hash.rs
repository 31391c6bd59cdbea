//! Digests are those that llama.cpp's tool prints, split or not.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use gguf_inspect::{Algorithm, Entry, HashOptions, Manifest, Match, Outcome, Tally, hash};
use gguf_store::Model;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/split")
}

fn entries(path: &Path, label: &str, options: &HashOptions) -> Vec<Entry> {
    let files = Model::open(path).unwrap();
    let mut entries = Vec::new();
    hash(&files, label, options, &(), &mut |entry| {
        entries.push(entry);
        ControlFlow::Continue(())
    })
    .unwrap();
    entries
}

fn all(per_tensor: bool) -> HashOptions {
    HashOptions { algorithms: Algorithm::ALL.to_vec(), per_tensor }
}

#[test]
fn lines_are_those_of_the_official_tool() {
    let expected = fs::read_to_string(testdata().join("model.manifest")).unwrap();
    let lines = |entries: Vec<Entry>| {
        entries.iter().map(|entry| entry.to_string() + "\n").collect::<String>()
    };
    for file in ["model.gguf", "two-00002-of-00003.gguf", "keys-first-*.gguf"] {
        let path = testdata().join(file);
        assert_eq!(lines(entries(&path, "model.gguf", &all(true))), expected, "{file}");
    }
    let whole = lines(entries(&testdata().join("model.gguf"), "model.gguf", &all(false)));
    assert_eq!(whole.lines().count(), 4);
    assert!(expected.ends_with(&whole));
}

#[test]
fn a_manifest_finds_the_tensor_that_changed() {
    let text = fs::read_to_string(testdata().join("model.manifest")).unwrap();
    let Ok(manifest) = text.parse::<Manifest>();
    assert_eq!(manifest.strongest(), Some(Algorithm::Sha256));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.gguf");
    let mut bytes = fs::read(testdata().join("model.gguf")).unwrap();
    let check = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let mut tally = Tally::default();
        let mut wrong = Vec::new();
        for entry in entries(&path, path.to_str().unwrap(), &all(true)) {
            let found = manifest.check(&entry);
            tally.add(found);
            if found == Match::Mismatch {
                wrong.push(entry.name.rsplit(['/', '\\']).next().unwrap().to_owned());
            }
        }
        wrong.dedup();
        (tally.outcome(), wrong)
    };
    assert_eq!(check(&bytes), (Outcome::Success, vec![]));
    // The last byte of the last tensor: 68 bytes are padded to 96.
    let at = bytes.len() - 29;
    bytes[at] ^= 1;
    let wrong = vec!["model.gguf:q.weight".to_owned(), "model.gguf".to_owned()];
    assert_eq!(check(&bytes), (Outcome::Failure, wrong));
}

#[test]
fn a_sink_can_stop() {
    let files = Model::open(&testdata().join("model.gguf")).unwrap();
    let mut seen = 0;
    hash(&files, "m", &HashOptions::default(), &(), &mut |_| {
        seen += 1;
        ControlFlow::Break(())
    })
    .unwrap();
    assert_eq!(seen, 1);
}
