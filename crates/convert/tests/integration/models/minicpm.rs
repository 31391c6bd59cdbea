//! MiniCPM, MiniCPM3 and PLM.

use serde_json::{Value, json};

use crate::fixtures::decoder::{
    FF, HEADS, LORA_RANK, QK_NOPE, QK_ROPE, TIED, WIDTH, checkpoint, config, ffn, gated_ffn,
    layer_weight, mla, pre_norms, with_rms_norm,
};
use crate::fixtures::round_trip::{assert_round_trip, assert_round_trip_with_findings};
use crate::fixtures::tokenizer_files::use_sentencepiece;
use crate::fixtures::{Tensors, two_layer_model, width8};

#[test]
pub fn minicpm3_and_plm_round_trip() {
    let value = WIDTH / HEADS;
    let mut own = mla();
    own[5] = layer_weight("self_attn.kv_b_proj", &[HEADS * (QK_NOPE + value), LORA_RANK]);
    own[6] = layer_weight("self_attn.o_proj", &[WIDTH, HEADS * value]);
    let widths = json!({"q_lora_rank": LORA_RANK, "kv_lora_rank": LORA_RANK, "qk_nope_head_dim": QK_NOPE,
        "qk_rope_head_dim": QK_ROPE, "num_key_value_heads": HEADS, "v_head_dim": value});
    let fields = with_rms_norm(widths.clone());
    let layer = vec![pre_norms(), own.clone(), gated_ffn("mlp", FF)];
    let tiny = checkpoint(config("MiniCPM3ForCausalLM", "minicpm3", fields), layer, TIED);
    use_sentencepiece(&tiny);
    assert_round_trip_with_findings(&tiny);
    let whole = layer_weight("self_attn.q_proj", &[HEADS * (QK_NOPE + QK_ROPE), WIDTH]);
    let own = [vec![whole], own[3..].to_vec()].concat();
    let network = ffn();
    let mut fields = with_rms_norm(widths);
    fields.as_object_mut().unwrap().remove("q_lora_rank");
    let layer = vec![pre_norms(), own, network];
    assert_round_trip(&checkpoint(config("PLMForCausalLM", "plm", fields), layer, TIED));
}

#[test]
pub fn minicpm_round_trip() {
    const SENTENCEPIECE: &[u8] =
        include_bytes!("../../../../../testdata/Tiny-KJV-Llama-4M/tokenizer.model");
    let ends: Tensors = &[("model.embed_tokens.weight", &[2048, 8]), ("model.norm.weight", &[8])];
    let layer = [width8::NORMS, width8::ATTENTION, width8::GATED_FFN].concat();
    let longrope = json!({
        "rope_type": "longrope", "long_factor": [4.7], "short_factor": [1.1],
        "original_max_position_embeddings": 64,
    });
    for scaling in [Value::Null, longrope] {
        let config = width8::config(json!({
            "scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 3, "rms_norm_eps": 1e-5,
            "vocab_size": 2048, "rope_scaling": scaling,
        }));
        let minicpm = two_layer_model("MiniCPMForCausalLM", config, ends, &layer);
        std::fs::remove_file(minicpm.path().join("tokenizer.json")).unwrap();
        minicpm.file("tokenizer.model", SENTENCEPIECE);
        assert_round_trip(&minicpm);
    }
}
