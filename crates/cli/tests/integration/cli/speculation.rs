//! Text generation with drafted tokens.

use std::fs;

use serde_json::Value;

use crate::cli::support::{Dir, fails, gguf, json, other_weights, succeeds};
use crate::draft_models::{dflash, eagle3};

const PROMPT: &str =
    "And God said, Let there be light: and there was light. And God said, Let there be ";

/// Returns the token ids of a completion, the numbers of drafted and of accepted tokens, and the messages.
fn completion(model: &str, words: &[&str]) -> (Value, u64, u64, String) {
    let command = ["generate", model, "--raw", "--json", "--ignore-eos"];
    let output = gguf(&[&command[..], words].concat());
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{messages}");
    let found = json(&String::from_utf8(output.stdout).unwrap());
    let count = |name: &str| found[name].as_u64().unwrap();
    (found["ids"].clone(), count("drafted_tokens"), count("accepted_tokens"), messages)
}

/// Tokens are equal, sampled or not, in both precisions, up to the end of the context and to the maximum number, with
/// good drafts and bad ones.
#[test]
fn drafts_do_not_change_the_text() {
    let dir = Dir::new();
    let (f16, q4, bad) = (dir.f16(), dir.path("q4.gguf"), other_weights(&dir));
    succeeds(&["quantize", &f16, &q4, "Q4_K_M"]);
    let prompt = PROMPT.repeat(3);
    let mut all_accepted = [0, 0, 0];
    for model in [&f16, &q4] {
        for words in [
            &["--temp", "0", "-n", "120"][..],
            &["--temp", "0", "-n", "120", "--precision", "exact"],
            &["--temp", "0.8", "--seed", "7", "-n", "100", "--repeat-penalty", "1.1"],
            &["--temp", "0", "-n", "-1", "-c", "160"],
            &["--temp", "0", "-n", "100", "--cache-type", "q8_0"],
        ] {
            let words = [&["-p", &prompt], words].concat();
            let (plain, none, ..) = completion(model, &[&words[..], &["--no-lookup"]].concat());
            assert_eq!(none, 0);
            let drafts = [
                &[][..],
                &["--no-lookup", "--draft", &q4],
                &["-md", &f16, "--draft-max", "5"],
                &["--draft", &bad],
            ];
            for (number, flags) in drafts.into_iter().enumerate() {
                let (ids, drafted, accepted, messages) =
                    completion(model, &[&words[..], flags].concat());
                assert_eq!(ids, plain, "{words:?} {flags:?}");
                assert!(accepted <= drafted && messages.is_empty(), "{messages}");
                if let Some(all) = all_accepted.get_mut(number) {
                    *all += accepted;
                }
            }
        }
    }
    assert!(all_accepted.iter().all(|accepted| *accepted > 0), "{all_accepted:?}");
}

#[test]
fn drafts_from_hidden_states_do_not_change_the_text() {
    let dir = Dir::new();
    let (f16, draft) = (dir.f16(), dir.path("draft.gguf"));
    eagle3(&f16, &draft, 256, &[]);
    assert_equal_text(&f16, &draft);
    // Drafts of high confidence.
    let scale = ("logit_scale", 16f32.into());
    dflash(&f16, &draft, None, &[("attention.sliding_window", 16u32.into()), scale]);
    assert_equal_text(&f16, &draft);
    dflash(&f16, &draft, Some(8), &[]);
    assert_equal_text(&f16, &draft);
}

/// Checks that a draft model drafts tokens, and that the text remains that of the model.
fn assert_equal_text(f16: &str, draft: &str) {
    let prompt = PROMPT.repeat(3);
    let mut all_drafted = 0;
    for words in [
        &["--temp", "0", "-n", "120"][..],
        &["--temp", "0", "-n", "120", "--precision", "exact"],
        &["--temp", "0.8", "--seed", "7", "-n", "100", "--no-repack"],
    ] {
        let words = [&["-p", &prompt], words].concat();
        let (plain, ..) = completion(f16, &[&words[..], &["--draft-max", "0"]].concat());
        let flags = ["--no-lookup", "--draft", draft];
        let (ids, drafted, _, messages) = completion(f16, &[&words[..], &flags].concat());
        assert_eq!(ids, plain, "{words:?}");
        assert!(messages.is_empty(), "{messages}");
        all_drafted += drafted;
    }
    assert!(all_drafted > 0);
}

#[test]
fn dflash_drafts_of_another_model_are_refused() {
    let dir = Dir::new();
    let (f16, draft) = (dir.f16(), dir.path("dflash.gguf"));
    let refused = |changes: &[(&str, gguf::Value)], parts: &[&str]| {
        dflash(&f16, &draft, None, changes);
        fails(&["generate", &f16, "-p", "a", "-n", "2", "--draft", &draft], 2, parts);
    };
    refused(&[("target_layers", 3u32.into())], &["does not name the layers of its target model"]);
    let layers = gguf::Array::from(&[0u32, 99][..]);
    refused(&[("target_layers", layers.into())], &["dflash.gguf", "the draft reads layer 99"]);
    refused(&[("block_size", 1u32.into())], &["no block size from 2 to 1024"]);
    refused(&[("block_size", u32::MAX.into())], &["no block size from 2 to 1024"]);
    // It cannot run without its target model.
    dflash(&f16, &draft, None, &[]);
    let parts = ["token_embd.weight", "uses that of its target model", "--draft DRAFT"];
    fails(&["generate", &draft, "-p", "a", "--raw"], 1, &parts);
}

#[test]
fn eagle_drafts_of_another_model_are_refused() {
    let dir = Dir::new();
    let (f16, draft) = (dir.f16(), dir.path("eagle.gguf"));
    let refused = |parts: &[&str]| {
        fails(&["generate", &f16, "-p", "a", "-n", "2", "--draft", &draft], 2, parts);
    };
    eagle3(&f16, &draft, 64, &[]);
    refused(&["eagle.gguf", "reads 192 hidden states", "not 768", "the draft of this target"]);
    let layers = gguf::Array::from(&[0u32, 1, 99][..]);
    eagle3(&f16, &draft, 256, &[("target_layers", layers.into())]);
    refused(&["eagle.gguf", "the draft reads layer 99"]);
    eagle3(&f16, &draft, 256, &[("target_layers", 3u32.into())]);
    refused(&["eagle.gguf", "does not name the layers of its target model"]);
    // It cannot run without its target model.
    eagle3(&f16, &draft, 256, &[]);
    let parts = ["token_embd.weight", "uses that of its target model", "--draft DRAFT"];
    fails(&["generate", &draft, "-p", "a", "--raw"], 1, &parts);
}

#[test]
fn drafts_with_nan_are_dropped() {
    let dir = Dir::new();
    let (f16, bad) = (dir.f16(), dir.path("bad.gguf"));
    eagle3(&f16, &bad, 256, &[]);
    let mut bytes = fs::read(&bad).unwrap();
    let model = gguf_store::Model::open(bad.as_ref()).unwrap();
    let at = model.index()["blk.0.ffn_down.weight"].offset as usize;
    bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    drop(model);
    fs::write(&bad, bytes).unwrap();
    let words = ["-p", PROMPT, "--temp", "0", "-n", "80", "--no-lookup"];
    let (plain, ..) = completion(&f16, &words);
    let (ids, drafted, _, messages) = completion(&f16, &[&words[..], &["--draft", &bad]].concat());
    assert_eq!((ids, drafted), (plain, 0));
    assert!(messages.contains("the draft model is not used any more"), "{messages}");
    assert!(messages.contains("contain NaN"), "{messages}");
}

#[test]
fn unsuitable_drafts_are_refused() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let edited = |name: &str, change: &str| {
        let path = dir.path(name);
        succeeds(&["edit", &f16, "-o", &path, "--set", change]);
        path
    };
    let refused = |draft: &str, code: i32, parts: &[&str]| {
        fails(&["generate", &f16, "-p", "a", "-n", "2", "--draft", draft], code, parts);
    };
    refused("none.gguf", 3, &["cannot open none.gguf"]);
    let other = edited("bos.gguf", "tokenizer.ggml.bos_token_id=7");
    refused(
        &other,
        2,
        &["bos.gguf differs: the BOS token is 7, not", "same family", "omit --draft"],
    );
    let short = edited("short.gguf", "llama.context_length=32");
    let long = ["generate", &f16, "-p", "a", "-c", "64", "--draft", &short];
    fails(&long, 2, &["trained with a context of 32 tokens", "has 64", "--ctx-size to 32"]);
    // The context is not longer than that of the draft model unless it is asked for.
    succeeds(&["generate", &f16, "-p", "a", "-n", "2", "--draft", &short]);
}

#[test]
fn numbers_after_draft_are_lengths() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let words = ["-p", PROMPT, "--temp", "0", "-n", "60", "--draft", "0", "-md", &f16];
    assert_eq!(completion(&f16, &words).1, 0);
}
