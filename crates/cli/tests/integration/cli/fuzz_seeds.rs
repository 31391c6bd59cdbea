//! Runs the checks of the fuzz targets `tokenizer_json` and `tokenizer_model` on their seeds and past findings.

#[path = "../../../../../fuzz/replay.rs"]
mod seeds;
#[path = "../../../../../fuzz/src/vocabulary.rs"]
mod vocabulary;

#[test]
fn every_seed_passes_the_check() {
    let (mut json, mut model) = (0, 0);
    seeds::seeds(|_, bytes| {
        json += vocabulary::json(bytes);
        model += vocabulary::model(bytes);
    });
    assert!(json > 0 && model > 0, "the seeds are missing");
}
