//! ERNIE 4.5.

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, HEAD, TIED, UNTIED, attention, checkpoint, config, llama_layer, moe_parts,
    pre_norms, with_rms_norm,
};
use crate::fixtures::round_trip::assert_round_trip_with_findings;
use crate::fixtures::tokenizer_files::use_sentencepiece;

#[test]
pub fn ernie4_5_moe_round_trip() {
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-5, "rope_theta": 5e5,
        "moe_num_experts": EXPERTS, "moe_k": 2, "moe_num_shared_experts": 1,
        "moe_intermediate_size": EXPERT_FF, "moe_layer_interval": 1, "moe_layer_start_index": 0});
    let mut network = moe_parts();
    network[0][1] =
        ("model.layers.{}.mlp.moe_statics.e_score_correction_bias".into(), vec![1, EXPERTS]);
    let layer = [vec![pre_norms(), attention()], network].concat();
    let config = config("Ernie4_5_MoeForCausalLM", "ernie4_5_moe", fields);
    let tiny = checkpoint(config, layer, TIED);
    use_sentencepiece(&tiny);
    assert_eq!(assert_round_trip_with_findings(&tiny).config["moe_k"], 2);
}

#[test]
pub fn ernie4_5_round_trip() {
    let fields = with_rms_norm(json!({"head_dim": HEAD}));
    let tiny = checkpoint(config("Ernie4_5ForCausalLM", "ernie4_5", fields), llama_layer(), UNTIED);
    use_sentencepiece(&tiny);
    assert_round_trip_with_findings(&tiny);
}
