//! The checks of the fuzz targets `tokenizer_json` and `tokenizer_model`, on the seeds they start
//! from and on what they once found.

#[path = "../../../../fuzz/src/vocabulary.rs"]
mod vocabulary;

#[test]
fn every_seed_passes_the_check() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
    let (mut json, mut model) = (0, 0);
    for entry in std::fs::read_dir(seeds).unwrap() {
        let path = entry.unwrap().path();
        eprintln!("{}", path.display());
        let bytes = std::fs::read(&path).unwrap();
        json += vocabulary::json(&bytes);
        model += vocabulary::model(&bytes);
    }
    assert!(json > 0 && model > 0, "the seeds are missing");
}
