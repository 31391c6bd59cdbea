//! Suggestions for misspelled arguments.

use std::path::Path;

use crate::cli::support::{Dir, fails, gguf, succeeds};

#[test]
fn the_nearest_name_is_suggested() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    fails(&["quantise"], 2, &["'quantize'"]);
    fails(&["inspct", &f16], 2, &["'inspect'"]);
    fails(&["quantize", &f16, "q4km"], 2, &["`q4km` is not a known type", "did you mean Q4_K_M?"]);
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
fn files_and_types_are_not_confused() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    fails(&["quantize", &f16], 2, &["TYPE is missing", "IN [OUT] TYPE [THREADS]"]);
    fails(&["quantize", &f16, &out], 2, &["TYPE is missing"]);
    fails(&["quantize", &f16, &out, &out], 2, &["TYPE is missing"]);
    fails(&["quantize", &f16, "q8_0", &out], 2, &["the output comes before TYPE"]);
    // Regression: a number is also a type; this wrote Q5_0 to a file named q4km.
    fails(&["quantize", &f16, "q4km", "8"], 2, &["did you mean Q4_K_M?", "write `./q4km`"]);
    assert!(!Path::new("q4km").exists() && !Path::new(&out).exists());
    succeeds(&["quantize", &f16, &out, "8"]);
}

#[test]
fn patterns_without_a_match_are_warned_about() {
    let dir = Dir::new();
    let (f16, out, direct) = (dir.f16(), dir.path("out.gguf"), dir.path("direct.gguf"));
    let output_text = |words: &[&str]| {
        let output = gguf(words);
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let types = ["--tensor-type", "fnn_down=q6_k", "--tensor-type", "attn_q=q8_0"];
    let warning = "warning: the pattern `fnn_down` matches no tensor name; did you mean ffn_down?";
    for words in [
        [&["quantize"], &types[..], &[&f16, &out, "q4_0"]].concat(),
        [&["convert", crate::cli::support::MODEL, "-o", &direct, "--outtype", "q4_0"], &types[..]]
            .concat(),
    ] {
        let output_text = output_text(&words);
        assert_eq!(output_text.matches(warning).count(), 1, "{output_text}");
    }
    let foreign =
        output_text(&["quantize", "--tensor-type", "q_proj=q8_0", &f16, &out, "q4_0", "--force"]);
    assert!(foreign.contains("names contain attn_k, attn_norm, attn_output"), "{foreign}");
    assert!(
        !output_text(&["quantize", "--tensor-type", "attn_q=q8_0", &f16, &out, "q4_0", "--force"])
            .contains("warning")
    );
}

/// Regression: outputs of two models in one directory had the same default name.
#[test]
fn default_names_derive_from_the_input() {
    let dir = Dir::new();
    std::fs::rename(dir.f16(), dir.path("a.gguf")).unwrap();
    std::fs::rename(dir.f16(), dir.path("b-f32.gguf")).unwrap();
    std::fs::create_dir(dir.path("to")).unwrap();
    for (input, output) in [
        ("a.gguf", "a-4.2M-Q8_0.gguf"),
        ("b-f32.gguf", "b-4.2M-Q8_0.gguf"),
        ("a-4.2M-Q8_0.gguf", "a-4.2M-Q4_0.gguf"),
    ] {
        let ty = if output.contains("Q8_0") { "q8_0" } else { "q4_0" };
        let words = ["quantize", "--allow-requantize", &dir.path(input), ty];
        succeeds(&words);
        let result = dir.path(output);
        assert!(Path::new(&result).is_file(), "{output}");
        // Default names follow the convention.
        succeeds(&["name", &result]);
        fails(&words, 2, &[output, "exists already", "--force"]);
        succeeds(&[&words[..], &["--force"]].concat());
    }
    let (input, to) = (dir.path("b-f32.gguf"), dir.path("to"));
    succeeds(&["quantize", &input, &to, "q4_0,q8_0"]);
    succeeds(&["quantize", &input, "--out", &format!("q5_0={to}")]);
    for ty in ["Q4_0", "Q8_0", "Q5_0"] {
        assert!(Path::new(&format!("{to}/b-4.2M-{ty}.gguf")).is_file(), "{ty}");
    }
    succeeds(&["quantize", &input, "copy"]);
    assert!(Path::new(&dir.path("b-4.2M-COPY.gguf")).is_file());
}

/// Regression: tensor names had a different search.
#[test]
fn tensor_names_are_suggested() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let values = |name| ["inspect", &f16, "--values", name];
    let requested =
        "there is no tensor `blk.0.atn_q.weight`\n  help: did you mean blk.0.attn_q.weight?";
    fails(&values("blk.0.atn_q.weight"), 2, &[requested]);
    fails(&values("nothing of the kind"), 2, &["help: `--tensors` lists them"]);
}
