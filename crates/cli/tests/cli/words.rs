//! Words that are nearly right.

use std::path::Path;

use crate::support::{Dir, fails, gguf, succeeds};

#[test]
fn the_nearest_word_is_asked_for() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    fails(&["quantise"], 2, &["'quantize'"]);
    fails(&["inspct", &f16], 2, &["'inspect'"]);
    fails(&["quantize", &f16, "q4km"], 2, &["`q4km` names no mix", "did you mean Q4_K_M?"]);
    fails(&["quantize", &f16, &out, "iq2xss"], 2, &["did you mean IQ2_XXS"]);
    fails(&["convert", "x", "--outtype", "q4_k_l"], 2, &["Q4_K_S or Q4_K_M?"]);
    fails(
        &["quantize", &f16, &out, "q8_0", "--output-tensor-type", "q6k"],
        2,
        &["did you mean Q6_K?"],
    );
    fails(&["quantize", &f16, "--out", &format!("q80x={out}")], 2, &["did you mean Q8_0?"]);
    assert!(!Path::new(&out).exists());
}

#[test]
fn a_file_is_never_taken_for_a_type_nor_a_type_for_a_file() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    fails(&["quantize", &f16], 2, &["TYPE is missing", "IN [OUT] TYPE [THREADS]"]);
    fails(&["quantize", &f16, &out], 2, &["TYPE is missing"]);
    fails(&["quantize", &f16, &out, &out], 2, &["TYPE is missing"]);
    fails(&["quantize", &f16, "q8_0", &out], 2, &["the output comes before TYPE"]);
    // A number is a type, too: this was written as Q5_0 to a file named q4km.
    fails(&["quantize", &f16, "q4km", "8"], 2, &["did you mean Q4_K_M?", "write `./q4km`"]);
    assert!(!Path::new("q4km").exists() && !Path::new(&out).exists());
    succeeds(&["quantize", &f16, &out, "8"]);
}

#[test]
fn patterns_without_a_tensor_are_warned_of() {
    let dir = Dir::new();
    let (f16, out, direct) = (dir.f16(), dir.path("out.gguf"), dir.path("direct.gguf"));
    let said = |words: &[&str]| {
        let output = gguf(words);
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let types = ["--tensor-type", "fnn_down=q6_k", "--tensor-type", "attn_q=q8_0"];
    let warning =
        "warning: the pattern `fnn_down` is found in no tensor name; did you mean ffn_down?";
    for words in [
        [&["quantize"], &types[..], &[&f16, &out, "q4_0"]].concat(),
        [&["convert", crate::support::MODEL, "-o", &direct, "--outtype", "q4_0"], &types[..]]
            .concat(),
    ] {
        let said = said(&words);
        assert_eq!(said.matches(warning).count(), 1, "{said}");
    }
    let foreign =
        said(&["quantize", "--tensor-type", "q_proj=q8_0", &f16, &out, "q4_0", "--force"]);
    assert!(foreign.contains("parts of names are attn_k, attn_norm, attn_output"), "{foreign}");
    assert!(
        !said(&["quantize", "--tensor-type", "attn_q=q8_0", &f16, &out, "q4_0", "--force"])
            .contains("warning")
    );
}
