//! The check of the fuzz target `template`, on the seeds it starts from and on what it once found.

#[path = "../../../fuzz/src/template.rs"]
mod template;

#[test]
fn every_seed_passes_the_check() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
    let mut templates = 0;
    for entry in std::fs::read_dir(seeds).unwrap() {
        let path = entry.unwrap().path();
        eprintln!("{}", path.display());
        templates += usize::from(template::render(&std::fs::read(&path).unwrap()));
    }
    assert!(templates > 0, "the seeds are missing");
}
