//! Runs the check of the fuzz target `http` on its seeds and on past crashes.

#[path = "../../../../fuzz/src/http.rs"]
mod http;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn every_seed_passes_the_check() {
    let mut replayed = 0;
    replay::seeds(|name, bytes| {
        if name.contains("http") {
            http::answers(bytes);
            replayed += 1;
        }
    });
    assert!(replayed > 1, "the seeds are missing");
}
