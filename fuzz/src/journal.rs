//! What must hold for any bytes taken as a journal that lies beside a model.

use std::fs;

use gguf::ModelFiles;
use gguf::edit::recover;

/// The bytes before the first of these are the model, those after it the journal.
const CUT: &[u8] = b"GGUFJRNL";

/// Opening a model and finishing its edit touch nothing but the two, whatever the journal says, and
/// keep the length of the model.
pub fn beside(bytes: &[u8]) {
    let at = bytes.windows(CUT.len()).position(|window| window == CUT).unwrap_or(bytes.len() / 2);
    let (model, journal) = bytes.split_at(at);
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("m.gguf"), model).unwrap();
    fs::write(path(".m.gguf.journal"), journal).unwrap();
    fs::write(path("other"), "other").unwrap();
    let opened = ModelFiles::open(&path("m.gguf"));
    drop(opened.map(|files| files.model().map(|model| model.tensors().len()).ok()));
    let _ = recover(&path("m.gguf"));
    assert_eq!(fs::read(path("other")).unwrap(), b"other");
    assert_eq!(fs::metadata(path("m.gguf")).unwrap().len(), model.len() as u64);
    for entry in fs::read_dir(dir.path()).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(["m.gguf", ".m.gguf.journal", "other"].iter().any(|n| name == *n), "{name:?}");
    }
}
