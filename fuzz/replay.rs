//! Runs the seeds in the tests of the crates; cargo-fuzz runs the targets themselves.

/// Passes each seed of the fuzz targets, including inputs of fixed bugs, to a check, with its name.
/// Returns the number of seeds.
pub fn seeds(mut check: impl FnMut(&str, &[u8])) -> usize {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
    let mut replayed = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The last name that a failed test prints is that of the failing seed.
        eprintln!("{}", path.display());
        let name = path.file_name().unwrap().to_string_lossy();
        check(&name, &std::fs::read(&path).unwrap());
        replayed += 1;
    }
    replayed
}
