//! Hunyuan dense, MoE, V3 and V4.

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, HEADS, LAYERS, MLA_FIELDS, PROJECTIONS, TIED, UNTIED, V_HEAD,
    WIDTH, attention, checkpoint, config, expert_ffns, gated_ffn, indexer, layer_tensor,
    layer_weight, llama_layer, mla, moe_fields, moe_parts, pre_norms, qk_norms, qk_norms_named,
    with_rms_norm,
};
use crate::fixtures::round_trip::{assert_config_round_trip, assert_round_trip};

#[test]
pub fn hunyuan_moe_round_trip_with_expert_counts_per_layer() {
    let mut network = vec![layer_weight("mlp.gate.wg", &[EXPERTS, WIDTH])];
    network.extend(gated_ffn("mlp.shared_mlp", FF));
    for expert in 0..EXPERTS {
        network.extend(gated_ffn(&format!("mlp.experts.{expert}"), FF));
    }
    let heads = ["query_layernorm", "key_layernorm"]
        .map(|name| layer_weight(&format!("self_attn.{name}"), &[HEAD]))
        .to_vec();
    let layer = vec![pre_norms(), attention(), heads, network];
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "num_experts": EXPERTS,
        "moe_topk": vec![2; LAYERS], "num_shared_expert": vec![1; LAYERS],
        "moe_intermediate_size": vec![FF; LAYERS], "tie_word_embeddings": true,
        "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}});
    let fields = config("HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", fields);
    let tiny = checkpoint(fields.clone(), layer.clone(), TIED);
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["moe_topk"], fields["moe_topk"]);
    assert_eq!(exported["rope_scaling"]["alpha"], 1000.0);
    let mut uneven = fields;
    uneven["moe_topk"][1] = json!(3);
    let error = checkpoint(uneven, layer, TIED).convert().unwrap_err().to_string();
    assert!(error.contains("`moe_topk` is [2, 3, 2, 2]"), "{error}");
}

#[test]
pub fn hy_v4_round_trip() {
    const STREAMS: usize = 2;
    let mut fields = moe_fields(
        json!({"num_nextn_predict_layers": 0, "n_group": null, "topk_group": null,
        "hc_mult": STREAMS, "hc_eps": 1e-6, "hc_magnitude": 2.0, "swiglu_limit": 7.0, "index_n_heads": 2,
        "index_head_dim": HEAD, "index_topk": 8, "indexer_types": vec!["full"; LAYERS]}),
    );
    for (field, value) in MLA_FIELDS.iter().filter(|(field, _)| !field.starts_with("num_")) {
        fields[*field] = json!(value);
    }
    let mut hyper_connections = vec![layer_weight("self_attn.gate_proj", &[HEADS * V_HEAD, WIDTH])];
    hyper_connections.push(layer_tensor("self_attn.learnable_sink_param", &[HEADS]));
    for part in ["attn", "mlp"] {
        let name = |end: &str| format!("hc_{part}_layer.hc_pre.hc_{end}");
        hyper_connections.push(layer_tensor(&name("fn"), &[2 * STREAMS, STREAMS * WIDTH]));
        hyper_connections.push(layer_tensor(&name("base"), &[2 * STREAMS]));
        hyper_connections.push(layer_tensor(&name("scale"), &[2]));
    }
    let layer = vec![pre_norms(), mla(), indexer(), moe_parts().concat(), hyper_connections];
    let tiny = checkpoint(config("HYV4ForCausalLM", "hy_v4", fields), layer, UNTIED).tensors(&[
        ("model.hc_head.hc_head_fn", &[STREAMS, STREAMS * WIDTH]),
        ("model.hc_head.hc_head_base", &[STREAMS]),
        ("model.hc_head.hc_head_scale", &[1]),
    ]);
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["hc_magnitude"], 2.0);
    assert_eq!(exported["swiglu_limit"], 7.0);
    assert_eq!(exported["architectures"], json!(["HYV4ForCausalLM"]));
}

#[test]
pub fn hy_v3_round_trip() {
    let network = [
        vec![
            layer_weight("mlp.router.gate", &[EXPERTS, WIDTH]),
            layer_tensor("mlp.expert_bias", &[EXPERTS]),
        ],
        expert_ffns("mlp", PROJECTIONS),
        gated_ffn("mlp.shared_mlp", EXPERT_FF),
    ];
    let layer = vec![pre_norms(), attention(), qk_norms(), network.concat()];
    let fields =
        with_rms_norm(json!({"head_dim": HEAD, "num_experts": EXPERTS, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FF, "num_shared_experts": 1, "router_scaling_factor": 2.5,
        "route_norm": true}));
    assert_round_trip(&checkpoint(config("HYV3ForCausalLM", "hy_v3", fields), layer, UNTIED));
}

#[test]
pub fn hunyuan_dense_round_trip_with_dynamic_rope_scaling() {
    let norms = qk_norms_named("query_layernorm", "key_layernorm");
    let layer = [llama_layer(), vec![norms]].concat();
    let plain = json!({"head_dim": HEAD, "rms_norm_eps": 1e-5, "rope_theta": 1e4});
    let mut stretched = plain.clone();
    stretched["rope_scaling"] = json!({"type": "dynamic", "alpha": 1000.0, "factor": 1.0});
    stretched["max_position_embeddings"] = json!(262144);
    let class = "HunYuanDenseV1ForCausalLM";
    assert_config_round_trip(config(class, "hunyuan_v1_dense", plain), layer.clone(), TIED);
    let tiny = checkpoint(config(class, "hunyuan_v1_dense", stretched), layer, TIED);
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["rope_scaling"]["alpha"], 1000.0);
    assert_eq!(exported["rope_theta"], 10000.0);
}
