//! PLaMo, PLaMo 2 and PLaMo 3.

use serde_json::{Value, json};

use crate::fixtures::decoder::{FF, HEAD, HEADS, KV, NamedShape, WIDTH, merged};
use crate::fixtures::recurrent::{recurrent_model, square_weights, tensors_of};
use crate::fixtures::round_trip::{assert_round_trip, assert_round_trip_with_findings};
use crate::fixtures::tokenizer_files::use_sentencepiece;
use crate::fixtures::{Tensors, Tiny, elements};

/// Replaces the tokenizer by one of PLaMo 2 and 3.
fn use_plamo_tokenizer(tiny: &Tiny) {
    std::fs::remove_file(tiny.path().join("tokenizer.json")).unwrap();
    let lines = [
        json!(["<|plamo:unk|>", 0.0, "UNKNOWN", null]),
        json!(["<|plamo:bos|>", 0.0, "CONTROL"]),
        json!(["<0x00>", 0.0, "BYTE"]),
        json!(["w\u{E9}", -1.5, "NORMAL", 3]),
        json!(["<|plamo:op|>", -2.0, "NORMAL"]),
    ];
    let lines = lines.map(|line| format!("{line}\n")).concat();
    tiny.file("tokenizer.jsonl", lines);
    let roles = json!({"bos_token": "<|plamo:bos|>", "unk_token": "<|plamo:unk|>"});
    tiny.file("tokenizer_config.json", roles.to_string());
}

fn plamo_with_mixer(class: &str, fields: Value, mix: &[NamedShape]) -> Tiny {
    let p = "model.layers.layers.{}.";
    let layer = [
        tensors_of(p, &["pre_mixer_norm.weight", "post_mixer_norm.weight"], &[WIDTH]),
        tensors_of(p, &["pre_mlp_norm.weight", "post_mlp_norm.weight"], &[WIDTH]),
        tensors_of(p, &["mlp.gate_up_proj.weight"], &[2 * FF, WIDTH]),
        tensors_of(p, &["mlp.down_proj.weight"], &[WIDTH, FF]),
        mix.to_vec(),
    ];
    let all = merged(
        json!({"num_attention_heads": HEADS, "num_key_value_heads": KV,
        "intermediate_size": FF, "rms_norm_eps": 1e-6, "max_position_embeddings": 256}),
        fields,
    );
    const ENDS: Tensors =
        &[("model.embed_tokens.weight", &[6, WIDTH]), ("model.norm.weight", &[WIDTH])];
    let tiny = recurrent_model(class, all, ENDS, &layer.concat());
    use_plamo_tokenizer(&tiny);
    tiny
}

fn plamo_attention() -> Vec<NamedShape> {
    let p = "model.layers.layers.{}.mixer.";
    [
        tensors_of(p, &["qkv_proj.weight"], &[(HEADS + 2 * KV) * HEAD, WIDTH]),
        tensors_of(p, &["o_proj.weight"], &[WIDTH, HEADS * HEAD]),
    ]
    .concat()
}

#[test]
pub fn plamo2_round_trip() {
    const RATES: usize = 64;
    const SPACES: usize = 6;
    const STATE: usize = 8;
    let inner = SPACES * HEAD;
    let fields = json!({"hidden_size_per_head": HEAD, "mamba_d_state": STATE,
        "mamba_num_heads": SPACES, "mamba_step": 2, "mamba_d_conv": 4});
    let mut tiny = plamo_with_mixer("Plamo2ForCausalLM", fields, &[]);
    let p = "model.layers.layers.{}.mixer.";
    let space = [
        tensors_of(p, &["in_proj.weight"], &[2 * inner, WIDTH]),
        tensors_of(p, &["bcdt_proj.weight"], &[RATES + 2 * STATE, inner]),
        tensors_of(p, &["dt_proj.weight"], &[SPACES, RATES]),
        tensors_of(p, &["out_proj.weight"], &[WIDTH, inner]),
        tensors_of(p, &["A_log", "D", "dt_bias"], &[SPACES]),
        tensors_of(p, &["dt_norm_weight"], &[RATES]),
        tensors_of(p, &["B_norm_weight", "C_norm_weight"], &[STATE]),
        tensors_of(p, &["conv1d.weight"], &[inner, 1, 4]),
    ];
    let heads =
        [tensors_of(p, &["q_weight"], &[HEADS, HEAD]), tensors_of(p, &["k_weight"], &[KV, HEAD])];
    let attention = [plamo_attention(), heads.concat()].concat();
    for (layer, mix) in [("0", space.concat()), ("1", attention)] {
        for (name, shape) in mix {
            tiny = tiny.tensors(&[(&name.replace("{}", layer), &shape)]);
        }
    }
    let exported = assert_round_trip(&tiny);
    assert_eq!(exported.config["mamba_step"], 2);
    assert_eq!(exported.config["num_key_value_heads"], KV);
    // Post-norm weights are stored as the difference from a constant.
    let stored = tiny.values("model.layers.layers.0.post_mixer_norm.weight");
    let norm: Vec<f32> = stored.iter().map(|x| x + 0.2).collect();
    assert_eq!(elements(&exported.gguf, "blk.0.post_attention_norm"), norm);
}

#[test]
fn special_token_missing_from_the_vocabulary_fails() {
    let tiny = plamo_with_mixer("Plamo3ForCausalLM", json!({"head_dim": HEAD}), &plamo_attention());
    tiny.file("tokenizer_config.json", r#"{"bos_token": "<|other|>"}"#);
    let error = tiny.convert().unwrap_err().to_string();
    assert!(error.contains("names the bos token \"<|other|>\""), "{error}");
}

#[test]
pub fn plamo3_round_trip() {
    let p = "model.layers.layers.{}.mixer.";
    let norms = tensors_of(p, &["q_norm.weight", "k_norm.weight"], &[HEAD]);
    let mix = [plamo_attention(), norms].concat();
    let fields = json!({"head_dim": HEAD, "window_size": 32, "sliding_window_pattern": 8,
        "rope_theta": 1e6, "rope_local_theta": 1e4, "rope_scaling_factor": 4.0,
        "initial_context_length": 64});
    let exported = assert_round_trip(&plamo_with_mixer("Plamo3ForCausalLM", fields, &mix)).config;
    assert_eq!(
        (&exported["window_size"], &exported["sliding_window_pattern"]),
        (&json!(32), &json!(8))
    );
    assert_eq!(exported["rope_scaling_factor"], 4.0);
}

#[test]
pub fn plamo_round_trip() {
    let p = "model.layers.layers.{}.";
    let layer = [
        tensors_of(p, &["norm.weight"], &[WIDTH]),
        square_weights(p, &["self_attn.q_proj", "self_attn.o_proj"]),
        tensors_of(p, &["self_attn.k_proj.weight", "self_attn.v_proj.weight"], &[2 * 8, WIDTH]),
        tensors_of(p, &["mlp.gate_proj.weight", "mlp.up_proj.weight"], &[FF, WIDTH]),
        tensors_of(p, &["mlp.down_proj.weight"], &[WIDTH, FF]),
    ];
    let fields = json!({"num_attention_heads": 8, "num_key_value_heads": 8, "n_shared_head": 4,
        "intermediate_size": FF, "rms_norm_eps": 1e-6});
    const ENDS: Tensors = &[
        ("model.embed_tokens.weight", &[6, WIDTH]),
        ("model.norm.weight", &[WIDTH]),
        ("lm_head.weight", &[6, WIDTH]),
    ];
    let tiny = recurrent_model("PlamoForCausalLM", fields, ENDS, &layer.concat());
    use_sentencepiece(&tiny);
    let gguf = assert_round_trip_with_findings(&tiny).gguf;
    // Eight query heads of eight rows. Heads i and i + 2 share a key head.
    let stored = tiny.values("model.layers.layers.0.self_attn.q_proj.weight");
    let head = |i: usize| &stored[i * 8 * WIDTH..][..8 * WIDTH];
    let sorted = [0, 2, 4, 6, 1, 3, 5, 7].map(head).concat();
    assert_eq!(elements(&gguf, "blk.0.attn_q.weight"), sorted);
    let stored = tiny.values("model.layers.layers.0.self_attn.o_proj.weight");
    let output = elements(&gguf, "blk.0.attn_output.weight");
    assert_eq!(output[8..16], stored[16..24]);
}
