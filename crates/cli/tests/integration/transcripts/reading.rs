//! Transcripts of commands that read files.

use super::session::Session;

#[test]
fn inspect() {
    let mut session = Session::new();
    session
        .run("inspect q4.gguf")
        .run("inspect q4.gguf --keys general.*")
        .run("inspect q4.gguf --keys rope")
        .run("inspect q4.gguf --keys nothing")
        .run("inspect --tensors blk.0.attn* q4.gguf")
        .run("inspect q4.gguf --values blk.0.attn_q.weight:0..2")
        .run("inspect q4.gguf --values blk.0.attn_norm.weight")
        .run("inspect q4.gguf --values blk.0.attn_q")
        .run("inspect q4.gguf --memory")
        .run("inspect q4.gguf --memory --context 256 --kv-type q8_0 --batch 64 --devices 2")
        .run("inspect m.gguf missing.gguf q4.gguf --memory")
        .run("inspect --json --keys general.type --tensors output_norm --memory q4.gguf")
        .run("inspect")
        .assert_matches("inspect");
}

/// Byte order and shards do not change the output of `--diffable`.
#[test]
fn diffable_output_depends_on_content_only() {
    let mut session = Session::new();
    session
        .run("convert-endian m.gguf big -o big.gguf")
        .run("split m.gguf part --split-max-tensors 20");
    let mut shown =
        |name: &str, form: &str| session.output(&format!("inspect {name} --all --diffable {form}"));
    for form in ["", "--arrays", "--json"] {
        let text = shown("m.gguf", form);
        assert!(text.contains("blk.3.ffn_up.weight") && !text.contains("m.gguf"), "{text}");
        assert_eq!(text, shown("big.gguf", form));
        assert_eq!(text, shown("part-00002-of-00002.gguf", form));
        assert_ne!(text, shown("q4.gguf", form));
    }
}

#[test]
fn inspect_all() {
    Session::new().run("inspect q4.gguf --all --diffable").assert_matches("inspect_all");
}

#[test]
fn inspect_card() {
    Session::new().run("inspect q4.gguf --markdown").assert_matches("inspect_card");
}

#[test]
fn inspect_other_weights() {
    let mut session = Session::new();
    session
        .run("export m.gguf --to safetensors w.safetensors")
        .run("inspect w.safetensors")
        .run("export m.gguf checkpoint")
        .run("inspect checkpoint")
        .run("inspect w.safetensors checkpoint --json")
        .assert_matches("inspect_other_weights");
}

#[test]
fn check() {
    let mut session = Session::new();
    let bytes = std::fs::read(session.path("m.gguf")).unwrap();
    std::fs::write(session.path("cut.gguf"), &bytes[..2_000_000]).unwrap();
    std::fs::write(session.path("Qwen2.5-4M-Q8_0.gguf"), bytes).unwrap();
    session
        .run("check m.gguf")
        .run("check m.gguf -v")
        .run("check m.gguf cut.gguf Qwen2.5-4M-Q8_0.gguf missing.gguf")
        .run("edit m.gguf -o odd.gguf --set tokenizer.ggml.eos_token_id=9999 --set llama.rope.freq_base=-1 --set general.alignment=7")
        .run("edit m.gguf -o odd.gguf --force --set tokenizer.ggml.eos_token_id=9999 --set my.key=1 --remove llama.block_count")
        .run("check odd.gguf")
        .run("check odd.gguf -v")
        .run("check q4.gguf --explain truncated")
        .run("check --explain truncated")
        .assert_matches("check");
}

#[test]
fn compare() {
    let mut session = Session::new();
    session
        .run("diff m.gguf q4.gguf")
        .run("diff m.gguf m.gguf")
        .run("edit m.gguf -o other.gguf --set general.name=Other --drop output_norm --remove general.tags")
        .run("diff m.gguf other.gguf")
        .run("hash --no-layer m.gguf q4.gguf")
        .run("hash --no-layer m.gguf missing.gguf")
        .run("verify q4.gguf --source m.gguf")
        .assert_matches("compare");
}

#[test]
fn names() {
    let mut session = Session::new();
    session
        .run("name Mixtral-8x7B-v0.1-KQ2.gguf Qwen2.5-7B-Instruct-Q4_K_M.gguf")
        .run("name -v Qwen2.5-7B-Instruct-Q4_K_M.gguf")
        .run("name m.gguf")
        .run("name m.gguf --canonical")
        .assert_matches("names");
}

#[test]
fn failures() {
    let mut session = Session::new();
    let files: [(&str, &[u8]); 5] = [
        ("page.gguf", b"<!DOCTYPE html>\n<html>404</html>\n"),
        ("error.gguf", b"{\"error\":\"Invalid credentials in Authorization header\"}"),
        ("pointer.gguf", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n"),
        ("text.gguf", b"Entry not found"),
        ("empty.gguf", b""),
    ];
    for (name, bytes) in files {
        std::fs::write(session.path(name), bytes).unwrap();
        session.run(&format!("inspect {name}"));
    }
    std::fs::create_dir(session.path("directory")).unwrap();
    session
        .run("check page.gguf")
        .run("quantize page.gguf out.gguf Q8_0")
        .run("inspect missing.gguf")
        .run("inspect missing-00001-of-00002.gguf")
        .run("inspect directory")
        .run("inspect m.gguf/x")
        .run("inspect -")
        .run("quantize m.gguf no/such/out.gguf Q8_0")
        .run("quantize m.gguf q4.gguf Q8_0")
        .run("quantize m.gguf - Q8_0")
        .run("convert missing")
        .assert_matches("failures");
}
