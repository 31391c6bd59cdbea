//! Dream and RND1 diffusion language models.

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, HEAD, PROJECTIONS, UNTIED, WIDTH, attention, checkpoint, config,
    expert_ffns, layer_weight, llama_layer, pre_norms, qk_norms,
};
use crate::fixtures::round_trip::assert_round_trip_with_findings;

#[test]
pub fn dream_and_rnd1_round_trip_with_mask_token() {
    let fields = json!({"rms_norm_eps": 1e-6, "rope_theta": 1e6, "mask_token_id": 5});
    let dream = checkpoint(config("DreamModel", "Dream", fields.clone()), llama_layer(), UNTIED);
    // `gguf check` objects because the mask token of the tiny vocabulary is an ordinary token.
    assert_eq!(assert_round_trip_with_findings(&dream).config["mask_token_id"], 5);
    let mut fields = fields;
    fields.as_object_mut().unwrap().extend(
        json!({"head_dim": HEAD, "num_experts": EXPERTS, "num_experts_per_tok": 2,
            "moe_intermediate_size": EXPERT_FF})
        .as_object()
        .unwrap()
        .clone(),
    );
    let router = vec![layer_weight("mlp.gate", &[EXPERTS, WIDTH])];
    let layer = vec![pre_norms(), attention(), qk_norms(), router, expert_ffns("mlp", PROJECTIONS)];
    let rnd = checkpoint(config("RND1", "rnd1", fields), layer, UNTIED);
    assert_eq!(assert_round_trip_with_findings(&rnd).config["mask_token_id"], 5);
}
