//! Encoders whose checkpoints fail to convert.

use serde_json::json;

use crate::fixtures::Tiny;
use crate::fixtures::mmproj::{
    convert_mmproj, qwen2_vl_encoder, vision_config, with_preprocessor_config,
};

#[test]
fn invalid_encoder_checkpoints_fail() {
    let failed = |tiny: &Tiny| convert_mmproj(tiny, "f32").unwrap_err();
    let bare = json!({"architectures": ["Gemma3ForConditionalGeneration"], "hidden_size": 8});
    let error = failed(&Tiny::new(bare).tensors(&[("vision_tower.x.weight", &[2, 2])]));
    assert_eq!(error.code(), "config-field-missing", "{error}");
    let llama = json!({"architectures": ["LlamaForCausalLM"], "hidden_size": 8});
    let error = failed(&Tiny::new(llama).tensors(&[("lm_head.weight", &[2, 2])]));
    assert_eq!(error.code(), "class-unknown", "{error}");
    let error = failed(
        &qwen2_vl_encoder(vision_config()).tensors(&[("visual.blocks.0.extra.weight", &[2, 2])]),
    );
    assert_eq!(error.code(), "checkpoint-tensor-unexpected", "{error}");
    assert!(error.to_string().contains("visual.blocks.0.extra.weight"), "{error}");
    let without = json!({"depth": 1, "embed_dim": 4, "hidden_size": 8, "patch_size": 2});
    let error = failed(&qwen2_vl_encoder(without));
    assert!(error.to_string().contains("num_attention_heads"), "{error}");
    let config = json!({"architectures": ["Qwen3VLForConditionalGeneration"],
        "text_config": {"hidden_size": 8}, "vision_config": {"depth": 2, "hidden_size": 4,
            "intermediate_size": 8, "num_heads": 2, "patch_size": 2, "deepstack_visual_indexes": [5]}});
    let tiny = with_preprocessor_config(Tiny::new(config))
        .tensors(&[("model.visual.blocks.0.norm1.weight", &[4])]);
    let error = failed(&tiny);
    assert!(error.to_string().contains("deepstack_visual_indexes"), "{error}");
}

#[test]
fn class_without_encoder_suggests_the_nearest() {
    let of = |class: &str| {
        let error =
            convert_mmproj(&Tiny::new(json!({"architectures": [class]})), "f32").unwrap_err();
        let finding = error.finding().unwrap();
        format!("{}; {}", finding.message, finding.help)
    };
    let told = of("Qwen3VLForConditionalGenerations");
    assert!(told.contains("`Qwen3VLForConditionalGenerations` is known"), "{told}");
    assert!(
        told.contains("the nearest classes with an encoder are Qwen3VLForConditionalGeneration"),
        "{told}"
    );
    let told = of("LlamaForCausalLM");
    assert!(told.contains("--print-supported-models") && told.len() < 400, "{told}");
}
