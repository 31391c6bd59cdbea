//! Runs the check of the fuzz target `decode` on its seeds and on earlier findings.

#[path = "../../../../fuzz/src/blocks.rs"]
mod blocks;

#[test]
fn every_seed_passes() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
    for entry in std::fs::read_dir(seeds).unwrap() {
        let path = entry.unwrap().path();
        eprintln!("{}", path.display());
        blocks::decode(&std::fs::read(path).unwrap());
    }
}
