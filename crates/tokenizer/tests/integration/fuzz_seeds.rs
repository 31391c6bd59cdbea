//! Runs the check of the fuzz target `template` on its seeds and on past crashes.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
#[path = "../../../../fuzz/src/template.rs"]
mod template;

#[test]
fn every_seed_passes_the_check() {
    let mut templates = 0;
    replay::seeds(|_, bytes| templates += usize::from(template::render(bytes)));
    assert!(templates > 0, "the seeds are missing");
}
