//! dots.llm1 and Dots 3 Note.

use serde_json::{Value, json};

use crate::fixtures::decoder::{
    EXPERTS, HEAD, HEADS, LORA_RANK, QK_NOPE, QK_ROPE, UNTIED, V_HEAD, WIDTH, alternating_layers,
    alternating_types, attention, checkpoint, config, gqa_moe_fields, indexer, layer_weight,
    merged, mla_moe_fields, mla_projections, moe_layer, moe_parts, pre_norms, qk_norms,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn dots1_round_trip() {
    let fields = gqa_moe_fields(json!({"scoring_func": "noaux_tc"}));
    let layer = [vec![pre_norms(), attention(), qk_norms()], moe_parts()].concat();
    let tiny = checkpoint(config("Dots1ForCausalLM", "dots1", fields), layer, UNTIED);
    assert_eq!(assert_round_trip(&tiny).config["scoring_func"], "sigmoid");
}

#[test]
pub fn dots3_note_round_trip() {
    const SWA_HEADS: usize = 2;
    const SWA_RANK: usize = 16;
    let kinds = alternating_types(["sliding_attention", "full_attention"]);
    let own = json!({"swa_num_attention_heads": SWA_HEADS, "swa_kv_lora_rank": SWA_RANK, "swa_qk_nope_head_dim": 16,
        "swa_qk_rope_head_dim": QK_ROPE, "swa_v_head_dim": 28, "swa_head_dim": 24, "swa_q_lora_rank": LORA_RANK,
        "swa_rope_theta": 1e4, "sliding_window_size": 32, "layer_types": kinds, "n_routed_experts": EXPERTS,
        "n_shared_experts": 1, "scoring_func": "sigmoid", "index_n_heads": 2, "index_head_dim": HEAD, "index_topk": 8});
    let mut every = moe_layer("e_score_correction_bias");
    every.push(layer_weight("self_attn.k_rope_only_layernorm", &[QK_ROPE]));
    let mut windowed = mla_projections("self_attn", SWA_HEADS, SWA_RANK, [16, QK_ROPE, 28]);
    windowed.push(layer_weight("self_attn.o_proj", &[WIDTH, SWA_HEADS * 28]));
    windowed.push(layer_weight("self_attn.linear_gate", &[SWA_HEADS, WIDTH]));
    let mut full = mla_projections("self_attn", HEADS, LORA_RANK, [QK_NOPE, QK_ROPE, V_HEAD]);
    full.push(layer_weight("self_attn.o_proj", &[WIDTH, HEADS * V_HEAD]));
    full.push(layer_weight("self_attn.linear_gate", &[HEADS, WIDTH]));
    full.extend(indexer());
    let made = |own: &Value| {
        let config =
            config("Dots3NoteTextForCausalLM", "dots3_note_text", mla_moe_fields(own.clone()));
        alternating_layers(checkpoint(config, vec![every.clone()], UNTIED), [&windowed, &full])
    };
    let exported = assert_round_trip(&made(&own)).config;
    assert_eq!(exported["swa_num_attention_heads"], SWA_HEADS);
    assert_eq!(exported["num_attention_heads"], HEADS);
    assert_eq!(exported["swa_qk_nope_head_dim"], 16);
    let error = made(&merged(own, json!({"use_dsa": false}))).convert().unwrap_err().to_string();
    assert!(error.contains("`use_dsa` is false"), "{error}");
}
