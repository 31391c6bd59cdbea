//! `gguf generate`, `graph`, `logits` and `bench`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::cli::support::{Dir, fails, json, succeeds};

/// Prompt for greedy completions of the F16 model with F32 accumulation.
const PROMPT: &str = "In the beginning";

fn complete(model: &str, more: &[&str]) -> String {
    let args = ["generate", model, "-p", PROMPT, "-n", "12", "--temp", "0"];
    succeeds(&[&args[..], more].concat())
}

#[test]
fn prompts_are_completed() {
    let dir = Dir::new();
    let model = dir.f16();
    let text = complete(&model, &["--precision", "exact"]);
    assert_eq!(text, complete(&model, &["--precision", "exact", "-t", "1"]), "on one thread");
    let shown = json(&complete(&model, &["--precision", "exact", "--json"]));
    assert_eq!(shown["text"].as_str().unwrap().to_owned() + "\n", text);
    assert_eq!(shown["ids"].as_array().unwrap().len(), 12);
    assert_eq!(shown["finish_reason"], "length");
    let ids = shown["ids"].to_string();
    let words = succeeds(&["detokenize", &model, &ids]);
    assert_eq!(words.trim(), text.trim(), "the ids are those of the text");
    let seeded =
        |seed: &str| succeeds(&["generate", &model, "-p", PROMPT, "-n", "12", "--seed", seed]);
    assert_eq!(seeded("7"), seeded("7"));
    assert_ne!(seeded("7"), seeded("8"));
}

#[test]
fn stop_sequences_end_the_text() {
    let dir = Dir::new();
    let model = dir.f16();
    let text = complete(&model, &[]);
    let stop = &text[3..6];
    let shown = json(&complete(&model, &["--stop", stop, "--json"]));
    assert_eq!(shown["text"], text[..text.find(stop).unwrap()]);
    assert_eq!(shown["finish_reason"], "stop");
}

#[test]
fn a_stored_graph_runs_an_unknown_architecture() {
    let dir = Dir::new();
    let (model, stored) = (dir.f16(), dir.path("stored.gguf"));
    fails(
        &["generate", &model, "-p", "a", "--graph", "stored"],
        1,
        &["has no stored graph", "--store"],
    );
    succeeds(&["graph", &model, "--store", "-o", &stored]);
    succeeds(&["edit", &stored, "--set", "general.architecture=of-next-year"]);
    assert_eq!(complete(&stored, &[]), complete(&model, &[]));
    fails(&["generate", &stored, "-p", "a", "--graph", "built"], 1, &["of-next-year", "--store"]);
    // A modified graph is refused before it runs.
    let text = json(&succeeds(&["graph", &stored, "--json"]))["graph"].to_string();
    let wrong = text.replacen("\"heads\":8", "\"heads\":7", 1);
    assert_ne!(wrong, text);
    let file = dir.path("graph.json");
    std::fs::write(&file, wrong).unwrap();
    succeeds(&["edit", &stored, "--set-file", &format!("gguf_kit.graph={file}")]);
    fails(&["generate", &stored, "-p", "a"], 1, &["operation", "7"]);
}

#[test]
fn graphs_are_printed() {
    let dir = Dir::new();
    let model = dir.f16();
    let shown = succeeds(&["graph", &model, "--tokens", "4"]);
    assert!(shown.contains("blk.3.ffn_down.weight") && shown.contains("tokens x 768"), "{shown}");
    let of = |tokens: &str| json(&succeeds(&["graph", &model, "--json", "--tokens", tokens]));
    let (one, four) = (of("1"), of("4"));
    let operation = |graph: &serde_json::Value| graph["operations"][2].clone();
    assert_eq!(operation(&one)["op"], "matmul");
    assert_eq!(operation(&one)["multiply_adds"], 256 * 256);
    assert_eq!(operation(&four)["multiply_adds"], 4 * 256 * 256);
    assert_eq!(operation(&four)["bytes_read"], 2 * 256 * 256, "once for all tokens");
    assert!(one["machine"].is_null());
    let measured = json(&succeeds(&["graph", &model, "--json", "--measure"]));
    assert!(measured["machine"]["memory_limit_runs_per_second"].as_f64().unwrap() > 1.0);
    assert!(succeeds(&["graph", &model, "--measure"]).contains("runs/s (memory)"));
    assert!(succeeds(&["graph", &model, "--dot"]).starts_with("digraph model {"));
    let picture = dir.path("graph.svg");
    succeeds(&["graph", &model, "--svg", &picture]);
    assert!(std::fs::read_to_string(&picture).unwrap().contains("<svg"));
    fails(&["graph", &model, "--svg", &picture], 2, &["--force"]);
}

#[test]
fn logits_of_text_and_ids_are_equal() {
    let dir = Dir::new();
    let model = dir.f16();
    let ids = succeeds(&["tokenize", &model, "-p", PROMPT, "--ids"]);
    let [by_text, by_ids] = ["text.npy", "ids.npy"].map(|name| dir.path(name));
    succeeds(&["logits", &model, "-p", PROMPT, "-o", &by_text]);
    succeeds(&["logits", &model, "--ids", &ids, "-o", &by_ids]);
    let bytes = std::fs::read(&by_text).unwrap();
    assert!(bytes == std::fs::read(&by_ids).unwrap());
    let count = ids.split(',').count();
    assert!(bytes.len() > count * 2048 * 4 && bytes.starts_with(b"\x93NUMPY"));
}

#[test]
fn instruction_sets_are_bit_exact() {
    let dir = Dir::new();
    let (model, small) = (dir.f16(), dir.path("small.gguf"));
    succeeds(&["quantize", &model, &small, "Q4_K_M"]);
    let logits = |set: &[&str], name: &str| {
        let out = dir.path(name);
        let ids = ["logits", &small, "--ids", "1 2 3 4 5 6 7", "--precision", "fast", "-o", &out];
        succeeds(&[&ids, set].concat());
        std::fs::read(out).unwrap()
    };
    assert!(logits(&[], "best.npy") == logits(&["--instructions", "scalar"], "scalar.npy"));
    let of_others = if cfg!(target_arch = "aarch64") { "avx2" } else { "neon" };
    let requested = ["generate", &small, "-p", "a", "--instructions", of_others];
    fails(&requested, 2, &[&format!("not support {of_others}"), "it supports scalar"]);
    let bench = ["bench", &small, "-p", "0", "-n", "1", "-r", "1", "--instructions", "scalar"];
    assert!(succeeds(&bench).contains("threads (scalar)"));
    // Repacked weights.
    let text = complete(&small, &[]);
    assert_eq!(complete(&small, &["--no-repack"]), text);
    assert_eq!(complete(&small, &["--instructions", "scalar"]), text);
    let bench = ["bench", &small, "-p", "0", "-n", "8", "-r", "1", "--json", "--no-repack"];
    assert_eq!(json(&succeeds(&bench))["repacked_bytes"], 0);
}

#[test]
fn invalid_requests_are_refused() {
    let dir = Dir::new();
    let (model, out) = (dir.f16(), dir.path("out.npy"));
    fails(&["logits", &model, "--ids", "2048", "-o", &out], 2, &["id 2048", "0 to 2047"]);
    fails(&["logits", &model, "--ids", "x", "-o", &out], 2, &["not a token id"]);
    fails(&["logits", &model, "--ids", "", "-o", &out], 2, &["no token"]);
    fails(
        &["generate", &model, "-p", "a", "-c", "1000000000000"],
        2,
        &[
            "caches and states of 1 sequences of 1000000000000 tokens need 2048.0 TB; ",
            "\n  help: make the context shorter",
            "--memory-limit SIZE",
        ],
    );
    fails(&["generate", &model, "-p", PROMPT, "-c", "2"], 2, &["exceeds the context of 2 tokens"]);
    fails(&["generate", &model, "--chat"], 1, &["has no chat template", "--chat-template chatml"]);
    let adapter = ["generate", &model, "-p", "a", "--lora", &model];
    fails(&adapter, 1, &["is not a LoRA adapter"]);
    let cut = dir.path("cut.gguf");
    succeeds(&["edit", &model, "--drop", "blk.1.ffn_up", "-o", &cut]);
    fails(
        &["generate", &cut, "-p", "a"],
        1,
        &["blk.1.ffn_up.weight", "the graph requires this tensor"],
    );
    let missing = dir.path("features.npy");
    fails(
        &["logits", &model, "--ids", "1", "--features", &missing, "-o", &out],
        3,
        &["features.npy"],
    );
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn bench_reports_speeds_and_limits() {
    let dir = Dir::new();
    let model = dir.f16();
    let shown = json(&succeeds(&["bench", &model, "-p", "8", "-n", "4", "-r", "2", "--json"]));
    for (name, mean) in
        [("prompt", "prompt_tokens_per_second"), ("generation", "generation_tokens_per_second")]
    {
        let speeds = shown[name]["tokens_per_second"].as_array().unwrap();
        let speeds: Vec<f64> = speeds.iter().map(|speed| speed.as_f64().unwrap()).collect();
        assert_eq!(speeds.len(), 2);
        assert!(speeds.iter().all(|speed| *speed > 0.0));
        assert!((shown[mean].as_f64().unwrap() - (speeds[0] + speeds[1]) / 2.0).abs() < 1e-6);
        assert!(shown[name]["memory_limit_tokens_per_second"].as_f64().unwrap() > 0.0);
        assert!(shown[name]["float_limit_tokens_per_second"].as_f64().unwrap() > 0.0);
    }
    let weights = shown["model_bytes"].as_u64().unwrap();
    let file = std::fs::metadata(&model).unwrap().len();
    assert!(weights < file && weights > file * 9 / 10);
    // Memory of the run, without the 256 MB of the bandwidth measurement.
    if let Some(peak) = shown["peak_memory_bytes"].as_u64() {
        assert!(peak > weights && peak < 128_000_000, "{peak}");
    }
    let alone = json(&succeeds(&["bench", &model, "-p", "0", "-n", "2", "-r", "1", "--json"]));
    assert!(alone["prompt"].is_null() && alone["prompt_tokens_per_second"].is_null());
    let text = succeeds(&["bench", &model, "-p", "8", "-n", "0", "-r", "1"]);
    assert!(text.contains("prompt:") && !text.contains("generation:"), "{text}");
    fails(&["bench", &model, "-r", "0"], 2, &["--repetitions"]);
}

/// A text that completes the prompt begins with a space where a word does.
#[test]
fn a_completion_continues_the_prompt() {
    let dir = Dir::new();
    let model = dir.f16();
    let prompt = "In the beginning";
    let words = ["generate", &model, "--raw", "-p", prompt, "-n", "8", "--temp", "0", "--json"];
    let shown = json(&succeeds(&words));
    let text = shown["text"].as_str().unwrap();
    assert!(text.starts_with(' '), "{text:?}");
    let ids =
        |text: &str| json(&succeeds(&["tokenize", &model, "-p", text, "--json"]))["tokens"].clone();
    let whole = ids(&format!("{prompt}{text}"));
    let whole: Vec<_> = whole.as_array().unwrap().iter().map(|token| token["id"].clone()).collect();
    assert!(whole.ends_with(shown["ids"].as_array().unwrap()), "{whole:?}, {}", shown["ids"]);
}

#[test]
fn chat() {
    let dir = Dir::new();
    let (model, chat) = (dir.f16(), dir.path("chat.gguf"));
    let template = dir.path("chat.jinja");
    let text = "{% for m in messages %}{{ m.content }} {% endfor %}";
    std::fs::write(&template, text).unwrap();
    succeeds(&["edit", &model, "--chat-template-file", &template, "-o", &chat]);
    let mut talk = Command::new(env!("CARGO_BIN_EXE_gguf"))
        .args(["generate", &chat, "--chat", "-n", "6", "--temp", "0", "--precision", "exact"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    talk.stdin.take().unwrap().write_all(b"In the beginning\n\nAnd God\n").unwrap();
    let output = talk.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output_text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<&str> = output_text.lines().collect();
    assert_eq!(answers.len(), 2, "{output_text}");
    // The second answer depends on the whole conversation.
    let prompt = format!("In the beginning {} And God ", answers[0]);
    let whole = ["generate", &chat, "--raw", "-p", &prompt, "-n", "6", "--temp", "0"];
    let whole = succeeds(&[&whole[..], &["--precision", "exact"]].concat());
    assert_eq!(whole.trim_end(), answers[1].trim_end());
}
