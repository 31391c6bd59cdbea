//! Qwen4-Exp: hyper-connections, n-gram embedding and an indexer.

use gguf::Gguf;
use serde_json::{Value, json};

use crate::fixtures::decoder::*;
use crate::fixtures::round_trip::{assert_gguf_round_trip, assert_round_trip};
use crate::fixtures::{Tiny, elements};

const USED: usize = 2;
const STREAMS: usize = 2;
const STREAM_WIDTH: usize = STREAMS * WIDTH;
const HC_RANK: usize = 24;
const KEYS: usize = 2;
const VALUES: usize = 4;
const DIM: usize = 8;
const SHARED: usize = 40;
const SIZES: [i64; 4] = [11, 13, 17, 19];
const ROW: usize = WIDTH / SIZES.len();
const EMBEDDING: &str = "model.layers.0.ple.ple_embedding";

fn hyper_connection(stem: &str) -> Vec<(String, Vec<usize>)> {
    vec![
        (format!("{stem}.hc_norm.weight"), vec![STREAM_WIDTH]),
        (format!("{stem}.input_mix_weight_down.weight"), vec![HC_RANK, STREAM_WIDTH]),
        (format!("{stem}.input_mix_weight_up.weight"), vec![STREAM_WIDTH, HC_RANK]),
    ]
}

fn layer(number: usize) -> Vec<(String, Vec<usize>)> {
    let (keys, values) = (KEYS * DIM, VALUES * DIM);
    let mut all: Vec<(&str, Vec<usize>)> = vec![
        ("attn_hyper_connection.block_inject_weight.weight", vec![STREAMS, STREAM_WIDTH]),
        ("mlp_hyper_connection.block_inject_weight.weight", vec![STREAMS, STREAM_WIDTH]),
        ("mlp.gate.weight", vec![EXPERTS, WIDTH]),
        ("mlp.shared_expert_gate.weight", vec![1, WIDTH]),
    ];
    all.extend(match number % 2 {
        0 => vec![
            ("linear_attn.in_proj_qkv.weight", vec![2 * keys + values, WIDTH]),
            ("linear_attn.in_proj_z.weight", vec![values, WIDTH]),
            ("linear_attn.in_proj_a.weight", vec![VALUES, WIDTH]),
            ("linear_attn.in_proj_b.weight", vec![VALUES, WIDTH]),
            ("linear_attn.conv1d.weight", vec![2 * keys + values, 1, 4]),
            ("linear_attn.A_log", vec![VALUES]),
            ("linear_attn.dt_bias", vec![VALUES]),
            ("linear_attn.norm.weight", vec![DIM]),
            ("linear_attn.out_proj.weight", vec![WIDTH, values]),
        ],
        _ => vec![
            ("self_attn.q_proj.weight", vec![2 * HEADS * HEAD, WIDTH]),
            ("self_attn.k_proj.weight", vec![KV * HEAD, WIDTH]),
            ("self_attn.v_proj.weight", vec![KV * HEAD, WIDTH]),
            ("self_attn.o_proj.weight", vec![WIDTH, HEADS * HEAD]),
            ("self_attn.q_norm.weight", vec![HEAD]),
            ("self_attn.k_norm.weight", vec![HEAD]),
            ("self_attn.indexer.index_qk_proj.weight", vec![3 * HEAD, WIDTH]),
            ("self_attn.indexer.q_layernorm.weight", vec![HEAD]),
            ("self_attn.indexer.k_layernorm.weight", vec![HEAD]),
        ],
    });
    if number == 0 {
        all.push(("ple.key_proj.weight", vec![STREAM_WIDTH, WIDTH]));
        all.push(("ple.value_proj.weight", vec![WIDTH, WIDTH]));
        all.push(("ple.conv1d.weight", vec![STREAM_WIDTH, 1, 4]));
        for norm in ["ple.norm_key.weight", "ple.norm_query.weight", "ple.norm_conv.weight"] {
            all.push((norm, vec![STREAM_WIDTH]));
        }
    }
    let begin = format!("model.layers.{number}");
    let mut named: Vec<_> =
        all.into_iter().map(|(name, shape)| (format!("{begin}.{name}"), shape)).collect();
    for part in ["attn", "mlp"] {
        named.extend(hyper_connection(&format!("{begin}.{part}_hyper_connection")));
    }
    let experts = (0..EXPERTS).map(|e| (format!("mlp.experts.{e}"), EXPERT_FF));
    for (stem, width) in experts.chain([("mlp.shared_expert".to_owned(), SHARED)]) {
        let of_layer = gated_ffn(&stem, width).into_iter();
        named
            .extend(of_layer.map(|(name, shape)| (name.replace("{}", &number.to_string()), shape)));
    }
    named
}

/// Builds a checkpoint whose n-gram embedding is split into parts of these numbers of rows.
fn qwen4_exp(fields: Value, parts: &[usize]) -> Tiny {
    let kinds = alternating_types(["linear_attention", "full_attention"]);
    let own = json!({"rms_norm_eps": 1e-6, "head_dim": HEAD, "layer_types": kinds, "num_experts": EXPERTS,
        "num_experts_per_tok": USED, "moe_intermediate_size": EXPERT_FF,
        "shared_expert_intermediate_size": SHARED, "linear_num_key_heads": KEYS, "linear_num_value_heads": VALUES,
        "linear_key_head_dim": DIM, "linear_value_head_dim": DIM, "linear_conv_kernel_dim": 4,
        "output_gate_type": "sigmoid", "hc_count": STREAMS, "hc_lowrank": HC_RANK, "indexer_n_heads": 2,
        "indexer_head_dim": HEAD, "indexer_budget": 8, "indexer_compress_ratio": 4, "ple_layer_ids": [1],
        "ngram_size": 3, "heads_per_ngram": 2, "ple_conv_kernel_size": 4, "split_ngram_parts": parts.len(),
        "eos_token_id": [2, 3], "image_token_id": 4,
        "rope_parameters": {"rope_theta": 1e7, "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1]}});
    let config = config("Qwen4ExpForCausalLM", "qwen4_exp_text", merged(own, fields));
    let mut tiny = checkpoint(config, vec![], &["lm_head"]);
    for number in 0..LAYERS {
        tiny.tensors.extend(layer(number));
    }
    tiny.tensors.extend(hyper_connection("model.hyper_connection_mixer"));
    for (i, rows) in parts.iter().enumerate() {
        let name = format!("{EMBEDDING}.ngram_embedding.shard_{i}.weight");
        tiny.tensors.push((name, vec![*rows, ROW]));
    }
    let offsets = [0, 11, 24, 41];
    tiny.integer_vector(&format!("{EMBEDDING}.layer_multipliers"), &[23_456_789_012_345, 5, 3])
        .integer_vector(&format!("{EMBEDDING}.ngram_heads_vocab_sizes"), &SIZES)
        .integer_vector(&format!("{EMBEDDING}.ngram_heads_offsets"), &offsets)
}

#[test]
pub fn hyper_connections_and_ngram_embedding_round_trip() {
    let tiny = qwen4_exp(json!({}), &[64]);
    let exported = assert_round_trip(&tiny);
    assert_eq!(exported.config["ple_layer_ids"], json!([1]));
    assert_eq!(exported.config["hc_lowrank"], HC_RANK);
    assert_eq!(exported.config["indexer_compress_ratio"], 4);
    assert_eq!(exported.config["layer_types"][1], "full_attention");
    let model = Gguf::read(&exported.gguf).unwrap();
    let list = |key: &str| {
        let array = model.metadata().array(&format!("qwen4exp.{key}")).unwrap();
        array.iter().map(|number| number.to_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(list("ple.layer_multipliers"), [23_456_789_012_345, 5, 3]);
    assert_eq!(list("attention.compress_ratios"), [0, 4, 0, 4]);
    assert_eq!(list("ple.layers"), [0]);
    // The first end-of-text token ends n-grams.
    assert_eq!(model.metadata().u64("qwen4exp.ple.eos_token_id"), Some(2));
    let stored = tiny.values("model.layers.1.self_attn.indexer.index_qk_proj.weight");
    let (queries, keys) = stored.split_at(2 * HEAD * WIDTH);
    assert_eq!(elements(&exported.gguf, "blk.1.indexer.q_proj.weight"), queries);
    assert_eq!(elements(&exported.gguf, "blk.1.indexer.k_proj.weight"), keys);
    let gammas: Vec<f32> =
        tiny.values("model.layers.0.ple.norm_key.weight").iter().map(|x| x + 1.0).collect();
    assert_eq!(elements(&exported.gguf, "blk.0.ple_norm_key.weight"), gammas);
}

#[test]
fn ngram_embedding_parts_are_concatenated() {
    let tiny = qwen4_exp(json!({}), &[24, 24, 16]);
    let parts =
        [0, 1, 2].map(|i| tiny.values(&format!("{EMBEDDING}.ngram_embedding.shard_{i}.weight")));
    let gguf = tiny.convert().unwrap();
    assert_eq!(elements(&gguf, "per_layer_token_embd.weight"), parts.concat());
    assert_gguf_round_trip(tiny.path());
}

#[test]
fn unsupported_configurations_fail() {
    for (fields, expected) in [
        (json!({"output_gate_type": null}), "`output_gate_type` is \"silu\""),
        (json!({"ple_layer_ids": [1, 3]}), "`ple_layer_ids` is [1,3]"),
        (json!({"ple_layer_ids": [2]}), "`ple_layer_ids` is 2"),
        (json!({"ple_layer_ids": [0]}), "`ple_layer_ids` is [0]"),
        (json!({"ple_embed_dim": 32}), "`ple_embed_dim` is 32"),
        (json!({"hc_count": 1}), "`hc_count` is 1"),
        (json!({"indexer_budget": null}), "has no field `indexer_budget`"),
        (json!({"layer_types": ["full_attention"]}), "field `layer_types`"),
        (json!({"heads_per_ngram": 3}), "it has 4 numbers; expected 6"),
        (json!({"split_ngram_parts": 2}), "has 1 of the 2 parts of `per_layer_token_embd.weight`"),
        (json!({"eos_token_id": null}), "has no field `eos_token_id`"),
        (json!({"norm_topk_prob": false}), "`norm_topk_prob` is false"),
    ] {
        let error = conversion_error(&qwen4_exp(fields, &[64]));
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let mut without = qwen4_exp(json!({}), &[64]);
    without.integers.remove(0);
    let error = conversion_error(&without);
    assert!(error.contains("ple_embedding.layer_multipliers"), "{error}");
}

fn conversion_error(tiny: &Tiny) -> String {
    tiny.convert().unwrap_err().to_string()
}
