//! The seeds in the tests of the crates: the targets themselves are run by cargo-fuzz.

/// Hands each seed of the fuzz targets, among them what they once found, to a check, with its name.
/// Returns how many there are.
pub fn seeds(mut check: impl FnMut(&str, &[u8])) -> usize {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
    let mut replayed = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The last one that a failed test shows is the one that fails.
        eprintln!("{}", path.display());
        let name = path.file_name().unwrap().to_string_lossy();
        check(&name, &std::fs::read(&path).unwrap());
        replayed += 1;
    }
    replayed
}
