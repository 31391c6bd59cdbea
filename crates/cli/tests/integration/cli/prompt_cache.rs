//! Prompt caches of `gguf generate`.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::cli::support::{Dir, fails, json, other_weights, succeeds};

const SYSTEM: &str =
    "In the beginning God created the heaven and the earth. And the earth was without form";

/// Returns the completion of a prompt as JSON.
fn complete(model: &str, prompt: &str, more: &[&str]) -> Value {
    let args = ["generate", model, "--raw", "-p", prompt, "-n", "12", "--temp", "0", "--json"];
    json(&succeeds(&[&args[..], more].concat()))
}

fn cached(found: &Value) -> u64 {
    found["cached_prompt_tokens"].as_u64().unwrap()
}

#[test]
fn cached_prompts_give_the_same_text() {
    let dir = Dir::new();
    let (model, q4) = (dir.f16(), dir.path("q4.gguf"));
    succeeds(&["quantize", &model, &q4, "Q4_K_M"]);
    for model in [&model, &q4] {
        for (number, more) in
            [&[][..], &["--cache-type", "q8_0"], &["--cache-type", "f32", "--precision", "exact"]]
                .into_iter()
                .enumerate()
        {
            let cache = dir.path(&format!("{number}.gguf"));
            let cached_run = |prompt: &str| {
                complete(model, prompt, &[more, &["--prompt-cache", &cache]].concat())
            };
            let mut expected_reuse = 0;
            for prompt in [
                SYSTEM.to_owned(),
                SYSTEM.to_owned(),
                format!("{SYSTEM}, and void; and darkness"),
                format!("{SYSTEM} of the deep"),
            ] {
                let (plain, found) = (complete(model, &prompt, more), cached_run(&prompt));
                assert_eq!(found["ids"], plain["ids"], "{prompt} {more:?}");
                assert_eq!(cached(&plain), 0);
                let tokens = found["prompt_tokens"].as_u64().unwrap();
                let reused = cached(&found);
                assert!(reused >= expected_reuse && reused < tokens, "{reused} of {tokens}");
                expected_reuse = expected_reuse.max(tokens - 4).min(tokens / 2);
            }
            let same = cached_run(&format!("{SYSTEM} of the deep"));
            assert_eq!(cached(&same), same["prompt_tokens"].as_u64().unwrap() - 1);
            // At most the BOS token.
            assert!(cached(&cached_run("Another text")) <= 1);
            fs::remove_file(cache).unwrap();
        }
    }
}

#[test]
fn answers_are_cached_on_request_only() {
    let dir = Dir::new();
    let (model, cache) = (dir.f16(), dir.path("cache.gguf"));
    let run = |prompt: &str, more: &[&str]| {
        complete(&model, prompt, &[more, &["--prompt-cache", &cache]].concat())
    };
    run(SYSTEM, &["--prompt-cache-ro"]);
    assert!(!fs::exists(&cache).unwrap(), "it is not written");
    let first = run(SYSTEM, &["--prompt-cache-all"]);
    let text = first["text"].as_str().unwrap();
    let second = run(&format!("{SYSTEM}{text} and"), &["--prompt-cache-ro"]);
    assert!(cached(&second) > first["prompt_tokens"].as_u64().unwrap() + 6, "{second}");
    let before = fs::read(&cache).unwrap();
    run("Another text", &["--prompt-cache-ro"]);
    assert!(fs::read(&cache).unwrap() == before, "it is not written");
    // Only the prompt, without an answer.
    let none =
        succeeds(&["generate", &model, "-p", SYSTEM, "-n", "0", "--prompt-cache", &cache, "--raw"]);
    assert_eq!(none.trim(), "");
    assert!(succeeds(&["check", &cache]).contains("no errors"));
}

#[test]
fn other_files_are_refused_and_kept() {
    let dir = Dir::new();
    let (model, other) = (dir.f16(), other_weights(&dir));
    let (cache, text) = (dir.path("cache.gguf"), dir.path("notes.txt"));
    complete(&model, SYSTEM, &["--prompt-cache", &cache]);
    let saved = fs::read(&cache).unwrap();
    fs::write(&text, "notes").unwrap();
    let refused = |model: &str, path: &str, more: &[&str], words: &[&str]| {
        let args = ["generate", model, "--raw", "-p", SYSTEM, "-n", "4", "--prompt-cache", path];
        let before = fs::read(path).unwrap();
        fails(&[&args[..], more].concat(), 1, words);
        assert!(fs::read(path).unwrap() == before, "{path} is unchanged");
    };
    refused(&model, &text, &[], &["notes.txt", "prompt cache", "name another file"]);
    refused(&model, &model, &[], &["is not a prompt cache"]);
    refused(&other, &cache, &[], &["another model", "cache.gguf"]);
    refused(&model, &cache, &["--precision", "exact"], &["precision fast, not exact"]);
    refused(&model, &cache, &["--cache-type", "q8_0"], &["cache type f16, not q8_0"]);
    refused(&model, &cache, &["--instructions", "scalar"], &["not scalar"]);
    fs::write(&cache, &saved[..saved.len() - 64]).unwrap();
    refused(&model, &cache, &[], &["cache.gguf"]);
    // The list of tokens has one token less than the states.
    let marker = b"prompt_cache.tokens";
    let at = saved.windows(marker.len()).position(|part| part == marker).unwrap() + marker.len();
    for (place, byte) in [(at + 8, 0xff), (at + 4, 5), (at + 16, 200)] {
        let mut damaged = saved.clone();
        damaged[place] = byte;
        fs::write(&cache, &damaged).unwrap();
        let args = ["generate", &model, "--raw", "-p", SYSTEM, "-n", "4", "--prompt-cache", &cache];
        let output = crate::cli::support::gguf(&args);
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!messages.contains("panicked"), "{messages}");
    }
    let args = ["generate", &model, "-p", "a", "--prompt-cache-all"];
    fails(&args, 2, &["--prompt-cache"]);
}

#[test]
fn chats_begin_from_a_cache() {
    let dir = Dir::new();
    let (f16, model, template) = (dir.f16(), dir.path("chat.gguf"), dir.path("chat.jinja"));
    let (cache, conversation) = (dir.path("cache.gguf"), dir.path("conversation.json"));
    fs::write(&template, "{% for m in messages %}{{ m.content }} {% endfor %}").unwrap();
    succeeds(&["edit", &f16, "--chat-template-file", &template, "-o", &model]);
    let typed = dir.path("typed");
    let chat = |input: &str, more: &[&str]| {
        fs::write(&typed, input).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_gguf"))
            .args(["chat", &model, "-n", "6", "--temp", "0", "-v"])
            .args(more)
            .stdin(fs::File::open(&typed).unwrap())
            .output()
            .unwrap();
        let messages = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{messages}");
        let computed = messages.split("prompt ").filter_map(|part| part.split_once(' '));
        let computed = computed.filter(|(count, rest)| {
            rest.starts_with(if *count == "1" { "token, " } else { "tokens, " })
        });
        let computed: Vec<usize> = computed.filter_map(|(count, _)| count.parse().ok()).collect();
        (String::from_utf8(output.stdout).unwrap(), computed)
    };
    let with_cache = ["--prompt-cache", &cache];
    let first = format!("{SYSTEM}\n");
    let (plain, all) = chat(&first, &[]);
    assert!(all[0] > 20, "{all:?}");
    assert_eq!(chat(&first, &with_cache), (plain.clone(), all));
    assert_eq!(chat(&first, &with_cache), (plain.clone(), vec![1]));

    // The whole conversation, which goes on in another chat.
    chat(&first, &[&with_cache[..], &["--prompt-cache-all"]].concat());
    let messages = serde_json::json!([
        {"role": "user", "content": SYSTEM},
        {"role": "assistant", "content": plain.trim_end_matches('\n')},
    ]);
    fs::write(&conversation, messages.to_string()).unwrap();
    let continued = ["--messages", &conversation];
    let (expected, all) = chat("And God\n", &continued);
    let (found, computed) = chat("And God\n", &[&continued[..], &with_cache].concat());
    assert_eq!(found, expected);
    assert!(computed[0] + 20 < all[0], "{computed:?} of {all:?}");

    // A conversation that ends with a message of the user is answered at once.
    fs::write(&conversation, serde_json::json!([messages[0]]).to_string()).unwrap();
    assert_eq!(chat("", &continued).0, plain);
    fs::write(&cache, "notes").unwrap();
    fails(&[&["chat", &model], &with_cache[..]].concat(), 1, &["is not a prompt cache"]);
}
