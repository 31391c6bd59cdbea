//! Text generation with drafted tokens.

use std::fs;

use gguf::{Header, RawHeader, TensorInfo, TensorType, write_header};
use serde_json::Value;

use crate::cli::support::{Dir, fails, gguf, json, other_weights, succeeds};

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

/// Writes an EAGLE 3 model with random weights for a target model, whose draft vocabulary is every other token.
/// `target_width` is the number of hidden states per layer that it reads.
fn eagle3(target: &str, path: &str, target_width: u64, changes: &[(&str, gguf::Value)]) {
    let target = gguf_store::Model::open(target.as_ref()).unwrap();
    let of_target = |key: &str| target.metadata().u64(&format!("llama.{key}")).unwrap();
    let [n, ff] = ["embedding_length", "feed_forward_length"].map(of_target);
    let [heads, heads_kv] = ["attention.head_count", "attention.head_count_kv"].map(of_target);
    let tokens = target.index()["token_embd.weight"].info.shape[1];
    let mut raw = RawHeader::default();
    raw.metadata.set("general.architecture", "eagle3");
    for (key, value) in target.metadata().iter().filter(|(key, _)| key.starts_with("tokenizer.")) {
        raw.metadata.set(key, value.clone());
    }
    let kv = n / heads * heads_kv;
    for (key, number) in [
        ("context_length", 64),
        ("block_count", 1),
        ("embedding_length", n),
        ("feed_forward_length", ff),
        ("attention.head_count", heads),
        ("attention.head_count_kv", heads_kv),
        ("target_hidden_size", target_width),
        ("vocab_size", tokens),
    ] {
        raw.metadata.set(format!("eagle3.{key}"), number as u32);
    }
    raw.metadata.set("eagle3.attention.layer_norm_rms_epsilon", 1e-5f32);
    raw.metadata.set("eagle3.target_layers", gguf::Array::from(&[0u32, 1, 2][..]));
    for (key, value) in changes {
        raw.metadata.set(format!("eagle3.{key}"), value.clone());
    }
    let mut add = |name: &str, shape: &[u64], tensor_type| {
        let shape = gguf::Shape::new(shape).unwrap();
        let name = name.to_owned();
        raw.tensors.push(TensorInfo { name, shape, tensor_type, offset: 0, opaque_len: None });
    };
    for (name, shape) in [
        ("fc.weight", &[3 * target_width, n][..]),
        ("output_norm.weight", &[n]),
        ("output.weight", &[n, tokens / 2]),
        ("blk.0.attn_norm.weight", &[n]),
        ("blk.0.attn_norm_2.weight", &[n]),
        ("blk.0.ffn_norm.weight", &[n]),
        ("blk.0.attn_q.weight", &[2 * n, n]),
        ("blk.0.attn_k.weight", &[2 * n, kv]),
        ("blk.0.attn_v.weight", &[2 * n, kv]),
        ("blk.0.attn_output.weight", &[n, n]),
        ("blk.0.ffn_gate.weight", &[n, ff]),
        ("blk.0.ffn_up.weight", &[n, ff]),
        ("blk.0.ffn_down.weight", &[ff, n]),
    ] {
        add(name, shape, TensorType::F32);
    }
    add("d2t", &[tokens / 2], TensorType::I64);
    raw.lay_out().unwrap();
    let header = Header::new(raw).unwrap();
    let mut bytes = write_header(&header).unwrap();
    let start = bytes.len();
    for tensor in header.tensors() {
        bytes.resize(start + tensor.offset as usize, 0);
        for i in 0..tensor.shape.elements().unwrap() {
            match tensor.tensor_type {
                TensorType::I64 => bytes.extend((2 * i as i64).to_le_bytes()),
                _ if tensor.name.ends_with("norm.weight") => bytes.extend(1f32.to_le_bytes()),
                _ => bytes.extend(((i * 7919 % 101) as f32 / 1000.0 - 0.05).to_le_bytes()),
            }
        }
    }
    bytes.resize(header.file_len(start).unwrap() as usize, 0);
    fs::write(path, bytes).unwrap();
}

#[test]
fn eagle_drafts_do_not_change_the_text() {
    let dir = Dir::new();
    let (f16, draft) = (dir.f16(), dir.path("eagle.gguf"));
    eagle3(&f16, &draft, 256, &[]);
    let prompt = PROMPT.repeat(3);
    let mut all_drafted = 0;
    for words in [
        &["--temp", "0", "-n", "120", "--no-lookup"][..],
        &["--temp", "0", "-n", "120", "--precision", "exact"],
        &["--temp", "0.8", "--seed", "7", "-n", "100", "--no-repack"],
    ] {
        let words = [&["-p", &prompt], words].concat();
        let (plain, ..) = completion(&f16, &[&words[..], &["--draft-max", "0"]].concat());
        let flags = ["--draft", &draft];
        let (ids, drafted, _, messages) = completion(&f16, &[&words[..], &flags].concat());
        assert_eq!(ids, plain, "{words:?}");
        assert!(messages.is_empty(), "{messages}");
        all_drafted += drafted;
    }
    assert!(all_drafted > 0);
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
    fails(&["generate", &draft, "-p", "a", "--raw"], 1, &["token_embd.weight"]);
}

#[test]
fn drafts_with_nan_are_dropped() {
    let dir = Dir::new();
    let (f16, bad) = (dir.f16(), dir.path("bad.gguf"));
    let mut bytes = fs::read(&f16).unwrap();
    let model = gguf_store::Model::open(f16.as_ref()).unwrap();
    let at = model.index()["blk.0.ffn_down.weight"].offset as usize;
    // A NaN in F16.
    bytes[at..at + 2].copy_from_slice(&[0, 0x7e]);
    fs::write(&bad, bytes).unwrap();
    // A draft model as large as its target is not asked at first.
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
