//! `gguf verify`.

use crate::cli::support::{Dir, MODEL, fails, json, succeeds};

#[test]
fn files_are_verified_against_their_source() {
    let dir = Dir::new();
    let (f16, direct, two_steps) = (dir.f16(), dir.path("direct.gguf"), dir.path("two.gguf"));
    succeeds(&["convert", MODEL, "-o", &direct, "--outtype", "q4_k_m", "--provenance"]);
    assert!(succeeds(&["verify", &direct, "--source", MODEL]).contains("match the source"));
    succeeds(&["quantize", &f16, &two_steps, "Q4_K_M"]);
    succeeds(&["verify", &two_steps, "--source", &f16]);
    let report = json(&succeeds(&["verify", &two_steps, "--source", MODEL, "--json"]));
    assert_eq!(report["same"], report["tensors"].as_array().unwrap().len());

    let other = dir.path("other.gguf");
    succeeds(&["quantize", "--allow-requantize", &direct, &other, "Q2_K"]);
    let only = ["verify", &other, "--source", MODEL, "--tensor", "ffn_down", "--json"];
    fails(&only, 1, &[]);
    let norm = ["verify", &other, "--source", MODEL, "--tensor", "attn_norm"];
    succeeds(&norm);
    fails(&["verify", &other, "--source", MODEL, "--tensor", "nothing"], 2, &["--tensor"]);
}

#[test]
fn a_missing_importance_matrix_is_named() {
    let dir = Dir::new();
    let (f16, out, imatrix) = (dir.f16(), dir.path("q.gguf"), crate::cli::quantize::imatrix(&dir));
    succeeds(&["quantize", "--imatrix", &imatrix, &f16, &out, "q4_k_m"]);
    let parts = ["was quantized with an importance matrix, ", "give it with --imatrix"];
    fails(&["verify", &out, "--source", &f16], 1, &parts);
    succeeds(&["verify", &out, "--source", &f16, "--imatrix", &imatrix]);
}

#[test]
fn provenance_records_every_relevant_flag() {
    let dir = Dir::new();
    let result = dir.path("made.gguf");
    let imatrix = crate::cli::quantize::imatrix(&dir);
    let flags = [
        ["--outtype", "Q4_K_M"],
        ["--model-name", "it's mine"],
        ["--imatrix", &imatrix],
        ["--reserve", "4096"],
        ["--tensor-type", "ffn_(up|down)=Q6_K"],
        ["--include-weights", "attn"],
        ["--override-kv", "mine.number=int:-7"],
        ["--override-kv", "mine.share=float:0.1"],
        ["--override-kv", "mine.flag=bool:true"],
        ["--override-kv", "mine.text=str:a b"],
    ];
    let convert = ["convert", MODEL, "--provenance", "-o", &result];
    succeeds(&[&convert[..], flags.as_flattened()].concat());
    let shown = json(&succeeds(&["inspect", &result, "--json"]));
    // A shell would drop the backslashes of Windows.
    let imatrix = if cfg!(windows) { format!("'{imatrix}'") } else { imatrix.clone() };
    let settings = [
        r"--outtype Q4_K_M --model-name 'it'\''s mine'",
        &format!("--imatrix {imatrix} --reserve 4096"),
        "--tensor-type 'ffn_(up|down)=Q6_K' --include-weights attn",
        "--override-kv mine.number=int:-7 --override-kv mine.share=float:0.1",
        "--override-kv mine.flag=bool:true --override-kv 'mine.text=str:a b'",
    ];
    let settings = settings.join(" ");
    assert_eq!(shown["metadata"]["gguf_kit.provenance.settings"]["value"], settings);
}
