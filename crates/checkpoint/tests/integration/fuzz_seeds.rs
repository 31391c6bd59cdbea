//! Runs the checks of the checkpoint fuzz targets on their seeds and on past crashes.

#[path = "../../../../fuzz/src/checkpoint.rs"]
mod checkpoint;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_seed_passes_every_check() {
    let replayed = replay::seeds(|name, bytes| {
        assert_eq!(checkpoint::open(bytes) > 0, name.starts_with("weights"));
        assert_eq!(checkpoint::pickle(bytes) > 0, name.starts_with("pickle"));
        assert_eq!(checkpoint::header(bytes) > 0, name.starts_with("header"));
        assert_eq!(checkpoint::index(bytes) > 0, name.starts_with("index"));
    });
    assert!(replayed > 10, "the seeds are missing");
}
