//! Runs the checks of the fuzz targets on their seeds and on past crashes.

#[path = "../../../../fuzz/src/container.rs"]
mod container;
#[path = "../../../../fuzz/src/journal.rs"]
mod journal;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_seed_passes_every_check() {
    let replayed = replay::seeds(|_, bytes| {
        container::parse(bytes);
        container::round_trip(bytes);
        container::chunked(bytes);
        container::edit(bytes);
        journal::beside(bytes);
    });
    assert!(replayed > 10, "the seeds are missing");
}
