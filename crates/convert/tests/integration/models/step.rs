//! Step 3.5.

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, HEADS, KV, LAYERS, UNTIED, VOCAB, WIDTH, alternating_layers,
    attention_of, checkpoint, config, gated_ffn, layer_tensor, layer_weight, pre_norms, qk_norms,
    with_rms_norm,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn step3_5_round_trip() {
    let kinds = ["full_attention", "sliding_attention", "full_attention", "sliding_attention"];
    let fields = with_rms_norm(json!({"num_hidden_layers": LAYERS - 1, "num_attention_groups": KV,
        "head_dim": HEAD, "layer_types": kinds, "partial_rotary_factors": [0.5, 1.0, 0.5, 1.0],
        "num_key_value_heads": null, "sliding_window": 16, "rope_theta": [5e6, 1e4],
        "attention_other_setting": {"num_attention_heads": 6, "num_attention_groups": 1},
        "moe_num_experts": EXPERTS, "moe_top_k": 2, "moe_intermediate_size": EXPERT_FF,
        "share_expert_dim": EXPERT_FF, "moe_router_scaling_factor": 3.0, "norm_expert_weight": true,
        "moe_layers_enum": "1,2", "swiglu_limits": [0.0, 7.0, 7.0], "num_nextn_predict_layers": 1}));
    let experts = [
        vec![
            layer_weight("moe.gate", &[EXPERTS, WIDTH]),
            layer_tensor("moe.router_bias", &[EXPERTS]),
            layer_weight("moe.gate_proj", &[EXPERTS, EXPERT_FF, WIDTH]),
            layer_weight("moe.up_proj", &[EXPERTS, EXPERT_FF, WIDTH]),
            layer_weight("moe.down_proj", &[EXPERTS, WIDTH, EXPERT_FF]),
        ],
        gated_ffn("share_expert", EXPERT_FF),
    ]
    .concat();
    let usual =
        [attention_of(HEADS, KV, HEAD), vec![layer_weight("self_attn.g_proj", &[HEADS, WIDTH])]]
            .concat();
    let windowed =
        [attention_of(6, 1, HEAD), vec![layer_weight("self_attn.g_proj", &[6, WIDTH])]].concat();
    let every = [pre_norms(), qk_norms()].concat();
    let class = "Step3p5ForCausalLM";
    let mut tiny = checkpoint(config(class, "step3p5", fields), vec![every], UNTIED);
    tiny = alternating_layers(tiny, [&usual, &windowed]);
    for (layer, network) in [gated_ffn("mlp", FF), experts.clone(), experts, gated_ffn("mlp", FF)]
        .into_iter()
        .enumerate()
    {
        for (name, shape) in network {
            tiny = tiny.tensors(&[(&name.replace("{}", &layer.to_string()), &shape)]);
        }
    }
    for (name, shape) in [
        ("eh_proj", &[WIDTH, 2 * WIDTH][..]),
        ("enorm", &[WIDTH]),
        ("hnorm", &[WIDTH]),
        ("transformer.shared_head.norm", &[WIDTH]),
        ("transformer.shared_head.output", &[VOCAB, WIDTH]),
    ] {
        tiny = tiny.tensors(&[(&format!("model.layers.3.{name}.weight"), shape)]);
    }
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["num_hidden_layers"], LAYERS - 1);
    assert_eq!(exported["attention_other_setting"]["num_attention_heads"], 6);
    assert_eq!(exported["rope_theta"], json!([5e6, 1e4]));
}
