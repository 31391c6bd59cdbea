//! Values that `gguf edit` refuses without `--force`, and those that it warns about.

use std::fs;

use crate::cli::support::{Dir, fails, gguf, succeeds};

#[test]
fn misspelled_keys_and_invalid_values_are_refused() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    let before = fs::read(&f16).unwrap();
    for (edit, message) in [
        ("general.nam=foo", "did you mean `general.name`?"),
        ("llama.blok_count=4", "did you mean `llama.block_count`?"),
        ("general.foo=1", "`general.foo` is not a standard key"),
        ("llama.rope.scaling.type=foo", "expected one of none, linear, yarn, longrope"),
        ("llama.rope.scaling.factor=0", "expected a factor above 0"),
        ("tokenizer.ggml.scores:f32[]=[0.5]", "has 1 elements"),
        ("llama.block_count=3", "claims 3 layers"),
        ("tokenizer.ggml.eos_token_id=99999", "token 99999 is not in the vocabulary"),
        ("llama.context_length:str=long", "llama.context_length"),
    ] {
        for target in [&[][..], &["-o", &out], &["--dry-run"]] {
            let words = [&["edit", &f16, "--set", edit][..], target].concat();
            fails(&words, 2, &[message, "--force"]);
        }
        assert!(fs::read(&f16).unwrap() == before, "{edit}");
        succeeds(&["edit", &f16, "-o", &out, "--force", "--set", edit]);
        fs::remove_file(&out).unwrap();
    }
}

#[test]
fn removing_a_key_that_the_model_needs_is_refused() {
    let dir = Dir::new();
    let f16 = dir.f16();
    fails(&["edit", &f16, "--remove", "llama.block_count"], 2, &["llama.block_count", "--force"]);
    succeeds(&["edit", &f16, "--remove", "llama.block_count", "--force"]);
}

#[test]
fn doubtful_values_are_warned_about() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    let output = gguf(&["edit", &f16, "-o", &out, "--special-token-by-id", "eos=300"]);
    let shown = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && shown.contains("is ordinary text"), "{shown}");
    // Keys of the user's own, and present keys of any name.
    succeeds(&["edit", &f16, "--set", "mine.nam=1"]);
    succeeds(&["edit", &f16, "--force", "--set", "general.nam=1"]);
    let again = gguf(&["edit", &f16, "--set", "general.nam=2"]);
    assert!(again.status.success() && !String::from_utf8_lossy(&again.stderr).contains("warning"));
}
