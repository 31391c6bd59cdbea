//! Mistral's own checkpoint format: `params.json`, `tekken.json` and its tensor names.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use gguf::{Bytes, Gguf};
use gguf_models::pre_tokenizer::TEKKEN;
use serde_json::{Value, json};

use crate::fixtures::mmproj::convert_mmproj;
use crate::fixtures::{Tiny, assert_valid, elements, metadata_value};

/// Tokens of several bytes, each with at most two merges.
const MERGED_TOKENS: [&str; 6] = ["ab", "bc", "abc", " a", "cd", "abcd"];

fn tekken() -> Value {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let all: Vec<Vec<u8>> =
        bytes.chain(MERGED_TOKENS.map(|text| text.as_bytes().to_vec())).collect();
    let entry = |(rank, bytes): (usize, &Vec<u8>)| json!({ "rank": rank, "token_bytes": BASE64.encode(bytes), "token_str": null });
    let special = ["<unk>", "<s>", "</s>", "<pad>"].iter().enumerate();
    let special = special
        .map(|(rank, text)| json!({ "rank": rank, "token_str": text, "is_control": true }))
        .collect::<Vec<_>>();
    json!({
        "config": {
            "pattern": TEKKEN, "num_vocab_tokens": all.len(), "version": "v7",
            // The vocabulary has no room for the last entry, and one special token has no text.
            "default_vocab_size": all.len() - 1 + 5, "default_num_special_tokens": 5,
        },
        "vocab": all.iter().enumerate().map(entry).collect::<Vec<_>>(),
        "special_tokens": special,
    })
}

/// Number of tokens: bytes, merged tokens without the last, special tokens.
const TOKENS: usize = 256 + 5 + 5;

fn params() -> Value {
    json!({
        "dim": 8, "n_layers": 1, "head_dim": 4, "hidden_dim": 12, "n_heads": 2, "n_kv_heads": 1,
        "rope_theta": 1e6, "norm_eps": 1e-5, "vocab_size": TOKENS, "max_position_embeddings": 64,
    })
}

fn native_checkpoint(params: &Value, tekken: &Value) -> Tiny {
    let tiny = Tiny::new(json!({}));
    std::fs::remove_file(tiny.path().join("config.json")).unwrap();
    tiny.file("params.json", params.to_string());
    tiny.file("tekken.json", tekken.to_string());
    tiny.tensors(&[
        ("tok_embeddings.weight", &[TOKENS, 8]),
        ("norm.weight", &[8]),
        ("output.weight", &[TOKENS, 8]),
        ("vision_encoder.patch_conv.weight", &[2, 3, 2, 2]),
    ])
    .layers(
        1,
        &[
            ("layers.{}.attention_norm.weight", &[8]),
            ("layers.{}.attention.wq.weight", &[8, 8]),
            ("layers.{}.attention.wk.weight", &[4, 8]),
            ("layers.{}.attention.wv.weight", &[4, 8]),
            ("layers.{}.attention.wo.weight", &[8, 8]),
            ("layers.{}.ffn_norm.weight", &[8]),
            ("layers.{}.feed_forward.w1.weight", &[12, 8]),
            ("layers.{}.feed_forward.w2.weight", &[8, 12]),
            ("layers.{}.feed_forward.w3.weight", &[12, 8]),
        ],
    )
}

fn string_array(bytes: &Bytes, key: &str) -> Vec<String> {
    let model = Gguf::read(bytes).unwrap();
    let texts = model.metadata().array(key).unwrap().strings().unwrap();
    texts.map(|text| String::from_utf8(text.to_owned()).unwrap()).collect()
}

#[test]
fn attention_rows_keep_their_order() {
    let tiny = native_checkpoint(&params(), &tekken());
    let gguf = tiny.convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(metadata_value(&gguf, "general.architecture"), "llama");
    assert_eq!(metadata_value(&gguf, "llama.rope.dimension_count"), 4);
    assert_eq!(metadata_value(&gguf, "llama.vocab_size"), TOKENS);
    for (ours, theirs) in [
        ("attn_q", "attention.wq"),
        ("attn_k", "attention.wk"),
        ("attn_output", "attention.wo"),
        ("ffn_gate", "feed_forward.w1"),
        ("ffn_down", "feed_forward.w2"),
    ] {
        let expected = tiny.values(&format!("layers.0.{theirs}.weight"));
        assert_eq!(elements(&gguf, &format!("blk.0.{ours}.weight")), expected, "{ours}");
    }
    assert_eq!(elements(&gguf, "token_embd.weight"), tiny.values("tok_embeddings.weight"));
}

#[test]
fn tekken_special_tokens_come_first() {
    let gguf = native_checkpoint(&params(), &tekken()).convert().unwrap();
    let tokens = string_array(&gguf, "tokenizer.ggml.tokens");
    assert_eq!(tokens.len(), TOKENS);
    assert_eq!(tokens[..6], ["<unk>", "<s>", "</s>", "<pad>", "<SPECIAL_4>", "\u{100}"]);
    assert_eq!(tokens[261..], ["ab", "bc", "abc", "\u{120}a", "cd"]);
    let merges = string_array(&gguf, "tokenizer.ggml.merges");
    // A token with two merges has both, the one with the lower ranks first.
    assert_eq!(merges, ["a b", "b c", "a bc", "ab c", "\u{120} a", "c d"]);
    assert_eq!(metadata_value(&gguf, "tokenizer.ggml.pre"), "tekken");
    assert_eq!(metadata_value(&gguf, "tokenizer.ggml.unknown_token_id"), 0);
    assert_eq!(metadata_value(&gguf, "tokenizer.ggml.padding_token_id"), 3);
    assert_eq!(metadata_value(&gguf, "tokenizer.chat_template"), "mistral-v7-tekken");
}

#[test]
fn yarn_and_attention_temperature_become_keys() {
    let mut params = params();
    params["llama_4_scaling"] = json!({ "beta": 0.5, "original_max_position_embeddings": 16 });
    params["yarn"] = json!({ "original_max_position_embeddings": 16, "factor": 4, "beta": 32,
        "alpha": 1, "apply_scale": false });
    let gguf = native_checkpoint(&params, &tekken()).convert().unwrap();
    assert_valid(&gguf);
    let expected = [
        ("rope.scaling.type", json!("yarn")),
        ("rope.scaling.factor", json!(4.0)),
        ("rope.scaling.original_context_length", json!(16)),
        ("rope.scaling.yarn_beta_fast", json!(32.0)),
        ("rope.scaling.yarn_beta_slow", json!(1.0)),
        ("rope.scaling.yarn_log_multiplier", json!(1.0)),
        ("attention.temperature_scale", json!(0.5)),
    ];
    for (name, value) in expected {
        assert_eq!(metadata_value(&gguf, &format!("mistral3.{name}")), value, "{name}");
    }
}

#[test]
fn moe_with_mla_converts_to_deepseek2() {
    let mut params = params();
    let compressed = json!({ "q_lora_rank": 6, "kv_lora_rank": 4, "qk_rope_head_dim": 2,
        "qk_nope_head_dim": 3, "v_head_dim": 5, "n_kv_heads": 2, "n_layers": 2 });
    params.as_object_mut().unwrap().extend(compressed.as_object().unwrap().clone());
    params["moe"] = json!({ "first_k_dense_replace": 1, "num_experts": 3, "num_experts_per_tok": 2,
        "expert_hidden_dim": 7, "routed_scale": 1.5, "num_shared_experts": 1,
        "num_expert_groups": 1, "num_expert_groups_per_tok": 1 });
    params["llama_4_scaling"] = json!({ "beta": 0.5, "original_max_position_embeddings": 16 });
    params["yarn"] = json!({ "original_max_position_embeddings": 16, "factor": 4, "beta": 32,
        "alpha": 1, "apply_scale": false });
    let tiny = Tiny::new(json!({}));
    std::fs::remove_file(tiny.path().join("config.json")).unwrap();
    tiny.file("params.json", params.to_string());
    tiny.file("tekken.json", tekken().to_string());
    let tiny = tiny
        .tensors(&[
            ("tok_embeddings.weight", &[TOKENS, 8]),
            ("norm.weight", &[8]),
            ("output.weight", &[TOKENS, 8]),
            ("layers.0.feed_forward.w1.weight", &[12, 8]),
            ("layers.0.feed_forward.w2.weight", &[8, 12]),
            ("layers.0.feed_forward.w3.weight", &[12, 8]),
            ("layers.1.gate.weight", &[3, 8]),
            ("layers.1.shared_experts.w1.weight", &[7, 8]),
            ("layers.1.shared_experts.w2.weight", &[8, 7]),
            ("layers.1.shared_experts.w3.weight", &[7, 8]),
        ])
        .layers(
            2,
            &[
                ("layers.{}.attention_norm.weight", &[8]),
                ("layers.{}.attention.wq_a.weight", &[6, 8]),
                ("layers.{}.attention.q_a_norm.weight", &[6]),
                ("layers.{}.attention.wq_b.weight", &[2 * 5, 6]),
                ("layers.{}.attention.wkv_a_with_mqa.weight", &[6, 8]),
                ("layers.{}.attention.kv_a_norm.weight", &[4]),
                ("layers.{}.attention.wkv_b.weight", &[2 * 8, 4]),
                ("layers.{}.attention.wo.weight", &[8, 2 * 5]),
                ("layers.{}.ffn_norm.weight", &[8]),
            ],
        )
        .layers(
            3,
            &[
                ("layers.1.experts.{}.w1.weight", &[7, 8]),
                ("layers.1.experts.{}.w2.weight", &[8, 7]),
                ("layers.1.experts.{}.w3.weight", &[7, 8]),
            ],
        );
    let gguf = tiny.convert().unwrap();
    assert_valid(&gguf);
    let expected = [
        ("leading_dense_block_count", json!(1)),
        ("expert_count", json!(3)),
        ("expert_used_count", json!(2)),
        ("expert_feed_forward_length", json!(7)),
        ("expert_weights_scale", json!(1.5)),
        ("expert_weights_norm", json!(true)),
        ("expert_gating_func", json!(1)),
        ("attention.key_length", json!(6)),
        ("attention.key_length_mla", json!(5)),
        ("attention.temperature_scale", json!(0.5)),
        ("attention.temperature_length", json!(16)),
    ];
    for (name, value) in expected {
        assert_eq!(metadata_value(&gguf, &format!("deepseek2.{name}")), value, "{name}");
    }
    let experts = (0..3).flat_map(|n| tiny.values(&format!("layers.1.experts.{n}.w2.weight")));
    assert_eq!(elements(&gguf, "blk.1.ffn_down_exps.weight"), experts.collect::<Vec<_>>());
    let unpacked = tiny.values("layers.1.attention.wkv_b.weight");
    // Each head has three rows of keys, then five of values.
    let of_head = |head: usize| unpacked[(head * 8 + 3) * 4..(head + 1) * 8 * 4].to_vec();
    assert_eq!(elements(&gguf, "blk.1.attn_v_b.weight"), [of_head(0), of_head(1)].concat());
}

/// Builds a checkpoint with a vision encoder.
fn pixtral(token: i64) -> Tiny {
    let mut params = params();
    params["vision_encoder"] = json!({ "image_break_token_id": token, "intermediate_size": 6,
        "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 8, "patch_size": 2,
        "hidden_size": 4, "rope_theta": 1e4, "mm_projector_id": "patch_merge",
        "spatial_merge_size": 2 });
    let mut tekken = tekken();
    tekken["special_tokens"][3]["token_str"] = json!("[IMG_BREAK]");
    native_checkpoint(&params, &tekken).tensors(&[
        ("vision_encoder.ln_pre.weight", &[4]),
        ("vision_encoder.transformer.layers.0.attention.wq.weight", &[4, 4]),
        ("vision_encoder.transformer.layers.0.feed_forward.w2.weight", &[4, 6]),
        ("vision_language_adapter.w_in.weight", &[8, 4]),
        ("patch_merger.merging_layer.weight", &[4, 16]),
        ("pre_mm_projector_norm.weight", &[4]),
    ])
}

#[test]
fn vision_encoder_converts_to_mmproj() {
    // The configuration or the tokenizer has the id of the row-break token.
    for (token, id) in [(2, 2), (-1, 3)] {
        let tiny = pixtral(token);
        let (gguf, name) = convert_mmproj(&tiny, "f32").unwrap();
        assert!(name.starts_with("mmproj-"), "{name}");
        assert_eq!(metadata_value(&gguf, "clip.projector_type"), "pixtral");
        assert_eq!(metadata_value(&gguf, "clip.vision.spatial_merge_size"), 2);
        assert_eq!(metadata_value(&gguf, "clip.vision.projection_dim"), 8);
        for (ours, theirs) in [
            ("v.patch_embd", "vision_encoder.patch_conv"),
            ("v.pre_ln", "vision_encoder.ln_pre"),
            ("v.blk.0.attn_q", "vision_encoder.transformer.layers.0.attention.wq"),
            ("v.blk.0.ffn_down", "vision_encoder.transformer.layers.0.feed_forward.w2"),
            ("mm.1", "vision_language_adapter.w_in"),
            ("mm.patch_merger", "patch_merger.merging_layer"),
            ("mm.input_norm", "pre_mm_projector_norm"),
        ] {
            let expected = tiny.values(&format!("{theirs}.weight"));
            assert_eq!(elements(&gguf, &format!("{ours}.weight")), expected, "{ours}");
        }
        let row = &tiny.values("tok_embeddings.weight")[id * 8..(id + 1) * 8];
        assert_eq!(elements(&gguf, "v.token_embd.img_break"), row);
    }
    let blind = native_checkpoint(&params(), &tekken());
    let message = convert_mmproj(&blind, "f32").unwrap_err().to_string();
    assert!(message.contains("params.json") && message.contains("encoder"), "{message}");
}

#[test]
fn invalid_params_and_tekken_are_named() {
    type Change = fn(&mut Value, &mut Value);
    let cases: [(Change, &[&str]); 11] = [
        (|params, _| params["moe"] = json!({}), &["params.json", "`qk_rope_head_dim`"]),
        (|params, _| params["use_scaled_rope"] = json!(true), &["params.json", "use_scaled_rope"]),
        (|params, _| params["yarn"] = json!({ "factor": 2 }), &["params.json", "`yarn`"]),
        (
            |params, _| drop(params.as_object_mut().unwrap().remove("max_position_embeddings")),
            &["params.json", "`max_position_embeddings`"],
        ),
        (|_, tekken| tekken["vocab"][7]["rank"] = json!(8), &["tekken.json", "vocab[7]"]),
        (|_, tekken| tekken["vocab"][7]["token_bytes"] = json!("?"), &["vocab[7]", "base64"]),
        (|_, tekken| tekken["vocab"][7]["token_bytes"] = json!("AA=="), &["a duplicate token"]),
        (|_, tekken| tekken["vocab"][258]["token_bytes"] = json!("AAEC"), &["vocab[258]", "merge"]),
        (|_, tekken| tekken["config"]["default_vocab_size"] = json!(900), &["has 900 tokens"]),
        (|_, tekken| tekken["special_tokens"][1]["token_str"] = json!("x"), &["token `<s>`"]),
        (|_, tekken| tekken["config"]["pattern"] = json!("\\w+"), &["tekken.json", "--pre"]),
    ];
    for (change, parts) in cases {
        let (mut params, mut tekken) = (params(), tekken());
        change(&mut params, &mut tekken);
        let message = native_checkpoint(&params, &tekken).convert().unwrap_err().to_string();
        for part in parts {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
}
