//! The check of the fuzz target `http`, on the seeds it starts from and on what it once found.

#[path = "../../../fuzz/src/http.rs"]
mod http;
#[path = "../../../fuzz/replay.rs"]
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
