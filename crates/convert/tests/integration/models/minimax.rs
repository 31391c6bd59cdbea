//! MiniMax-Text-01, M2 and M3.

use serde_json::json;

use crate::fixtures::Tiny;
use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, HEADS, NUMBERED, UNTIED, VOCAB, WIDTH, attention, checkpoint,
    config, expert_ffns, gated_ffn, layer_tensor, layer_weight, pre_norms, qk_norms,
    qk_norms_of_all_heads, with_rms_norm,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn minimax_m2_round_trip_with_partial_rope() {
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 5e6, "rotary_dim": 8,
        "num_local_experts": EXPERTS, "num_experts_per_tok": 2, "intermediate_size": EXPERT_FF,
        "scoring_func": "sigmoid"});
    let mut router = vec![layer_weight("block_sparse_moe.gate", &[EXPERTS, WIDTH])];
    let bias = "model.layers.{}.block_sparse_moe.e_score_correction_bias";
    router.push((bias.into(), vec![EXPERTS]));
    let norms = qk_norms_of_all_heads();
    let experts = expert_ffns("block_sparse_moe", NUMBERED);
    let layer = vec![pre_norms(), attention(), norms, router, experts];
    let config = config("MiniMaxM2ForCausalLM", "minimax_m2", fields);
    let tiny = checkpoint(config, layer, UNTIED);
    assert_eq!(assert_round_trip(&tiny).config["rotary_dim"], 8);
}

#[test]
pub fn minimax_m3_round_trip() {
    let of_indexer = json!({"sparse_num_index_heads": 2, "sparse_index_dim": HEAD,
        "sparse_topk_blocks": 4, "sparse_block_size": 16, "sparse_local_block": 1});
    let fields =
        with_rms_norm(json!({"head_dim": HEAD, "rotary_dim": 8, "num_local_experts": EXPERTS,
        "num_experts_per_tok": 2, "intermediate_size": EXPERT_FF, "dense_intermediate_size": FF,
        "n_shared_experts": 1, "routed_scaling_factor": 2.0, "moe_layer_freq": [1, 1, 1, 1],
        "scoring_func": "sigmoid", "sparse_attention_config": of_indexer}));
    let network = [
        vec![
            layer_weight("block_sparse_moe.gate", &[EXPERTS, WIDTH]),
            layer_tensor("block_sparse_moe.e_score_correction_bias", &[EXPERTS]),
        ],
        expert_ffns("block_sparse_moe", ["w1", "w2", "w3"]),
        gated_ffn("block_sparse_moe.shared_experts", EXPERT_FF),
    ]
    .concat();
    let indexer = vec![
        layer_weight("self_attn.index_q_proj", &[2 * HEAD, WIDTH]),
        layer_weight("self_attn.index_k_proj", &[HEAD, WIDTH]),
        layer_weight("self_attn.index_q_norm", &[HEAD]),
        layer_weight("self_attn.index_k_norm", &[HEAD]),
    ];
    let layer = vec![pre_norms(), attention(), qk_norms(), network, indexer];
    let class = "MiniMaxM3SparseForCausalLM";
    let exported =
        assert_round_trip(&checkpoint(config(class, "minimax_m3", fields), layer, UNTIED)).config;
    assert_eq!(exported["sparse_attention_config"], of_indexer);
    assert_eq!(exported["intermediate_size"], EXPERT_FF);
}

#[test]
pub fn minimax_text_01_round_trip() {
    const BLOCKS: usize = 8;
    let mut fields = json!({"num_hidden_layers": BLOCKS, "head_dim": HEAD, "rms_norm_eps": 1e-5, "rope_theta": 1e7,
        "rotary_dim": HEAD / 2, "attn_type_list": [0, 0, 0, 0, 0, 0, 0, 1], "num_local_experts": EXPERTS,
        "num_experts_per_tok": 2});
    for part in ["full_attention", "linear_attention", "mlp"] {
        fields[format!("layernorm_{part}_alpha")] = json!(3.5);
        fields[format!("layernorm_{part}_beta")] = json!(1.0);
    }
    let mut every = pre_norms();
    every.push(layer_weight("block_sparse_moe.gate", &[EXPERTS, WIDTH]));
    for e in 0..EXPERTS {
        for (part, shape) in [("w1", [FF, WIDTH]), ("w2", [WIDTH, FF]), ("w3", [FF, WIDTH])] {
            every.push(layer_weight(&format!("block_sparse_moe.experts.{e}.{part}"), &shape));
        }
    }
    let inner = HEADS * HEAD;
    let linear = vec![
        layer_weight("self_attn.qkv_proj", &[3 * inner, WIDTH]),
        layer_weight("self_attn.output_gate", &[inner, WIDTH]),
        layer_weight("self_attn.norm", &[inner]),
        layer_weight("self_attn.out_proj", &[WIDTH, inner]),
    ];
    let made = |fields: &serde_json::Value| {
        let config = config("MiniMaxText01ForCausalLM", "minimax_text_01", fields.clone());
        let mut tiny = Tiny::new(config).byte_level(VOCAB).tensors(&[
            ("model.embed_tokens.weight", &[VOCAB, WIDTH]),
            ("model.norm.weight", &[WIDTH]),
            ("lm_head.weight", &[VOCAB, WIDTH]),
        ]);
        for layer in 0..BLOCKS {
            let own = if layer == BLOCKS - 1 { attention() } else { linear.clone() };
            for (name, shape) in every.iter().chain(&own) {
                tiny = tiny.tensors(&[(&name.replace("{}", &layer.to_string()), shape)]);
            }
        }
        tiny
    };
    let exported = assert_round_trip(&made(&fields)).config;
    assert_eq!(exported["layernorm_mlp_alpha"], 3.5);
    fields["layernorm_mlp_beta"] = json!(0.5);
    let error = made(&fields).convert().unwrap_err().to_string();
    assert!(error.contains("`layernorm_mlp_beta` is 0.5"), "{error}");
}
