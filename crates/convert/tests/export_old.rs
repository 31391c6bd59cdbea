//! There and back, of the first transformers, of state spaces and of small families.

mod there_and_back;

use std::path::PathBuf;

use there_and_back::there_and_back;

#[test]
fn the_zoo_goes_there_and_back() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA") else {
        eprintln!("SKIPPED: set GGUF_TEST_DATA to the folder with the reference data");
        return;
    };
    for name in ["gpt2", "gptj", "gpt_neox", "mpt", "bloom", "falcon", "stablelm"] {
        eprintln!("{name}");
        there_and_back(&PathBuf::from(&data).join("zoo").join(name), u64::MAX);
    }
}
