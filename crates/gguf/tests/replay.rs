//! The checks of the fuzz targets, on the seeds they start from and on what they once found.

#[path = "../../../fuzz/src/container.rs"]
mod container;
#[path = "../../../fuzz/src/journal.rs"]
mod journal;

#[test]
fn every_seed_passes_every_check() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
    let mut replayed = 0;
    for entry in std::fs::read_dir(seeds).unwrap() {
        let path = entry.unwrap().path();
        eprintln!("{}", path.display());
        let bytes = std::fs::read(path).unwrap();
        container::parse(&bytes);
        container::round_trip(&bytes);
        container::chunked(&bytes);
        container::edit(&bytes);
        journal::beside(&bytes);
        replayed += 1;
    }
    assert!(replayed > 10, "the seeds are missing");
}
