//! Runs the checks of the fuzz targets on their seed inputs and on past findings.

#[path = "../../../../fuzz/src/legacy.rs"]
mod legacy;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_seed_passes_every_check() {
    let replayed = replay::seeds(|name, bytes| {
        assert_eq!(legacy::open(bytes), name.starts_with("legacy"));
    });
    assert!(replayed > 10, "the seeds are missing");
}
