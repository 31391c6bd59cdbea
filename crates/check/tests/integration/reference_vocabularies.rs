//! Vocabularies of published models: the rules must not warn about them.

use std::path::PathBuf;

use gguf::Severity;
use gguf_check::check;

#[test]
fn published_vocabularies_have_no_warning() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name the reference data");
        return;
    };
    /// Codes of facts about the reference files: they have no tensors, and the oldest lack a pre-tokenizer.
    const FACTS: &[&str] = &["tensor-missing", "layer-count", "tokenizer-pre-missing"];
    let mut count = 0;
    for entry in std::fs::read_dir(data.join("vocab")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "gguf") {
            continue;
        }
        let (findings, _) = check(&std::fs::read(&path).unwrap().into());
        let bad: Vec<_> = findings
            .iter()
            .filter(|finding| finding.severity != Severity::Note && !FACTS.contains(&finding.code))
            .collect();
        assert!(bad.is_empty(), "{}: {bad:#?}", path.display());
        count += 1;
    }
    assert_eq!(count, 9);
}
