//! The check of the fuzz target `checkpoint`, on the seeds it starts from and on what it once
//! found.

#[path = "../../../fuzz/src/checkpoint.rs"]
mod checkpoint;

#[test]
fn every_seed_passes_the_check() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
    let mut replayed = 0;
    for entry in std::fs::read_dir(seeds).unwrap() {
        let path = entry.unwrap().path();
        eprintln!("{}", path.display());
        let tensors = checkpoint::open(&std::fs::read(&path).unwrap());
        let whole = path.file_name().unwrap().to_string_lossy().starts_with("weights");
        assert_eq!(whole, tensors > 0);
        replayed += 1;
    }
    assert!(replayed > 10, "the seeds are missing");
}
