//! The check of the fuzz target `http`, on the seeds it starts from and on what it once found.

#[path = "../../../fuzz/src/http.rs"]
mod http;

#[test]
fn every_seed_passes_the_check() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
    let mut replayed = 0;
    for entry in std::fs::read_dir(seeds).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().contains("http") {
            eprintln!("{}", path.display());
            http::answers(&std::fs::read(&path).unwrap());
            replayed += 1;
        }
    }
    assert!(replayed > 1, "the seeds are missing");
}
