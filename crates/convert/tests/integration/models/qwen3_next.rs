//! Qwen3-Next and Qwen3.5.

use serde_json::{Value, json};

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, HEADS, LAYERS, NamedShape, UNTIED, WIDTH, alternating_layers,
    alternating_types, attention, checkpoint, config, gated_ffn, layer_tensor, layer_weight,
    merged, pre_norms, with_mtp_layer,
};
use crate::fixtures::round_trip::assert_round_trip;

// Linear attention: key heads, value heads, width of a head.
const KEYS: usize = 2;

const VALUES: usize = 4;

const DIM: usize = 8;

fn gated_attention() -> Vec<NamedShape> {
    let mut all = attention();
    all[0] = layer_weight("self_attn.q_proj", &[2 * HEADS * HEAD, WIDTH]);
    all.push(layer_weight("self_attn.q_norm", &[HEAD]));
    all.push(layer_weight("self_attn.k_norm", &[HEAD]));
    all
}

fn linear_attention(fused: bool) -> Vec<NamedShape> {
    let (keys, values) = (KEYS * DIM, VALUES * DIM);
    let mut all = vec![
        layer_tensor("linear_attn.A_log", &[VALUES]),
        layer_tensor("linear_attn.dt_bias", &[VALUES]),
        layer_weight("linear_attn.conv1d", &[2 * keys + values, 1, 4]),
        layer_weight("linear_attn.norm", &[DIM]),
        layer_weight("linear_attn.out_proj", &[WIDTH, values]),
    ];
    if fused {
        all.push(layer_weight("linear_attn.in_proj_qkvz", &[2 * keys + 2 * values, WIDTH]));
        all.push(layer_weight("linear_attn.in_proj_ba", &[2 * VALUES, WIDTH]));
    } else {
        all.push(layer_weight("linear_attn.in_proj_qkv", &[2 * keys + values, WIDTH]));
        all.push(layer_weight("linear_attn.in_proj_z", &[values, WIDTH]));
        all.push(layer_weight("linear_attn.in_proj_a", &[VALUES, WIDTH]));
        all.push(layer_weight("linear_attn.in_proj_b", &[VALUES, WIDTH]));
    }
    all
}

fn shared_expert() -> Vec<NamedShape> {
    let mut all = vec![layer_weight("mlp.gate", &[EXPERTS, WIDTH])];
    for e in 0..EXPERTS {
        all.extend(gated_ffn(&format!("mlp.experts.{e}"), EXPERT_FF));
    }
    all.push(layer_weight("mlp.shared_expert_gate", &[1, WIDTH]));
    all.extend(gated_ffn("mlp.shared_expert", EXPERT_FF));
    all
}

fn assert_qwen_round_trip(
    class: &str,
    kind: &str,
    fused: bool,
    network: Vec<NamedShape>,
    fields: Value,
) {
    let kinds = alternating_types(["linear_attention", "full_attention"]);
    let all = merged(
        json!({"rms_norm_eps": 1e-6, "rope_theta": 1e7, "head_dim": HEAD,
        "partial_rotary_factor": 0.25, "layer_types": kinds, "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": DIM, "linear_value_head_dim": DIM, "linear_num_key_heads": KEYS,
        "linear_num_value_heads": VALUES}),
        fields,
    );
    let every = [pre_norms(), network].concat();
    let mut tiny = checkpoint(config(class, kind, all), vec![every.clone()], UNTIED);
    tiny = alternating_layers(tiny, [&linear_attention(fused), &gated_attention()]);
    let tiny = with_mtp_layer(tiny, &[every, gated_attention()].concat());
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["layer_types"], json!(kinds));
    assert_eq!(exported["num_hidden_layers"], LAYERS);
    assert_eq!(exported["linear_value_head_dim"], DIM);
}

#[test]
pub fn qwen3_next_and_qwen3_5_round_trip() {
    let experts = json!({"num_experts": EXPERTS, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FF, "shared_expert_intermediate_size": EXPERT_FF});
    assert_qwen_round_trip(
        "Qwen3NextForCausalLM",
        "qwen3_next",
        true,
        shared_expert(),
        experts.clone(),
    );
    assert_qwen_round_trip(
        "Qwen3_5ForCausalLM",
        "qwen3_5_text",
        false,
        gated_ffn("mlp", FF),
        json!({}),
    );
    assert_qwen_round_trip(
        "Qwen3_5MoeForCausalLM",
        "qwen3_5_moe_text",
        false,
        shared_expert(),
        experts,
    );
}
