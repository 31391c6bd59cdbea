//! Qwen2-VL, Qwen3-VL, Qwen3-ASR and Qwen3-Omni.

use gguf::Gguf;
use serde_json::{Value, json};

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, HEAD, TIED, UNTIED, WIDTH, attention, checkpoint, config, layer_tensor,
    layer_weight, llama_layer, pre_norms, qk_norms, with_rms_norm,
};
use crate::fixtures::elements;
use crate::fixtures::mmproj::{convert_mmproj, qwen2_vl_encoder, vision_config};
use crate::fixtures::round_trip::{assert_round_trip, assert_round_trip_with_findings};

#[test]
pub fn qwen3_vl_and_qwen3_vl_moe_round_trip() {
    let scaling = json!({"type": "default", "mrope_section": [4, 2, 2]});
    let mut fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
        "rope_scaling": scaling, "vision_config": {"deepstack_visual_indexes": [0, 1]}});
    let dense = [llama_layer(), vec![qk_norms()]].concat();
    let config_of = |class, kind, fields: &Value| config(class, kind, fields.clone());
    let tiny =
        checkpoint(config_of("Qwen3VLForConditionalGeneration", "qwen3_vl", &fields), dense, TIED);
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["rope_scaling"], scaling);
    assert_eq!(exported["vision_config"], fields["vision_config"]);
    for (field, value) in
        [("num_experts", EXPERTS), ("num_experts_per_tok", 2), ("moe_intermediate_size", EXPERT_FF)]
    {
        fields[field] = json!(value);
    }
    let stacked = vec![
        layer_weight("mlp.gate", &[EXPERTS, WIDTH]),
        ("model.layers.{}.mlp.experts.gate_up_proj".into(), vec![EXPERTS, WIDTH, 2 * EXPERT_FF]),
        ("model.layers.{}.mlp.experts.down_proj".into(), vec![EXPERTS, EXPERT_FF, WIDTH]),
    ];
    let layer = vec![pre_norms(), attention(), qk_norms(), stacked];
    let config = config_of("Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", &fields);
    assert_round_trip_with_findings(&checkpoint(config, layer, TIED));
}

#[test]
pub fn qwen2_vl_round_trip_with_mrope_sections() {
    let scaling = json!({"type": "default", "mrope_section": [4, 2, 2]});
    let fields = with_rms_norm(json!({"rope_scaling": scaling}));
    let class = "Qwen2VLForConditionalGeneration";
    let tiny = checkpoint(config(class, "qwen2_vl", fields), llama_layer(), UNTIED);
    assert_eq!(assert_round_trip(&tiny).config["rope_scaling"], scaling);
}

#[test]
pub fn qwen3_asr_and_omni_export_as_qwen3_vl() {
    let scaling = json!({"type": "default", "mrope_section": [2, 3, 3]});
    let speech = with_rms_norm(json!({"head_dim": HEAD, "rope_scaling": scaling}));
    let layer = [llama_layer(), vec![qk_norms()]].concat();
    let speech = config("Qwen3ASRForConditionalGeneration", "qwen3_asr", speech);
    let speech = checkpoint(speech, layer, TIED).with_bos_and_eos();
    let exported = assert_round_trip(&speech).config;
    assert_eq!(exported["architectures"], json!(["Qwen3VLForConditionalGeneration"]));
    // The export stacks and transposes the experts.
    let fields =
        with_rms_norm(json!({"head_dim": HEAD, "num_experts": EXPERTS, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FF, "rope_scaling": scaling}));
    let experts = vec![
        layer_weight("mlp.gate", &[EXPERTS, WIDTH]),
        layer_tensor("mlp.experts.gate_up_proj", &[EXPERTS, WIDTH, 2 * EXPERT_FF]),
        layer_tensor("mlp.experts.down_proj", &[EXPERTS, EXPERT_FF, WIDTH]),
    ];
    let omni = config("Qwen3OmniMoeForConditionalGeneration", "qwen3_omni_moe", fields);
    let layer = vec![pre_norms(), attention(), qk_norms(), experts];
    let exported = assert_round_trip(&checkpoint(omni, layer, UNTIED)).config;
    assert_eq!(exported["architectures"], json!(["Qwen3VLMoeForConditionalGeneration"]));
}

#[test]
fn qwen2_vl_encoder_splits_frames_and_fused_qkv() {
    let tiny = qwen2_vl_encoder(vision_config());
    let (bytes, name) = convert_mmproj(&tiny, "f32").unwrap();
    // The middle of the name comes from the temporary directory.
    assert!(name.starts_with("mmproj-Tiny-") && name.ends_with("-F32.gguf"), "{name}");
    let model = Gguf::read(&bytes).unwrap();
    let keys: Vec<_> =
        model.metadata().iter().map(|(key, value)| format!("{key}={value}")).collect();
    let expected = [
        "general.architecture=\"clip\"",
        "general.type=\"mmproj\"",
        "general.name=\"Tiny\"",
        "general.size_label=\"0.42K\"",
        "general.file_type=0",
        "clip.has_vision_encoder=true",
        "clip.vision.projection_dim=8",
        "clip.vision.image_size=560",
        "clip.vision.patch_size=2",
        "clip.vision.embedding_length=4",
        "clip.vision.feed_forward_length=8",
        "clip.vision.block_count=1",
        "clip.vision.attention.head_count=2",
        "clip.vision.image_mean=[0.5, 0.5, 0.5]",
        "clip.vision.image_std=[0.25, 0.25, 0.25]",
        "clip.projector_type=\"qwen2vl_merger\"",
        "clip.vision.attention.layer_norm_epsilon=0.000001",
        "general.quantization_version=2",
    ];
    // Keys that come from the directory's name.
    let of_directory = |key: &&str| {
        ["general.basename", "general.finetune", "general.version"]
            .iter()
            .any(|start| key.starts_with(start))
    };
    let keys: Vec<_> = keys.iter().map(|key| &**key).filter(|key| !of_directory(key)).collect();
    assert_eq!(keys, expected);
    // Each channel has 4 pixels of frame 0, then 4 of frame 1.
    let both = tiny.values("visual.patch_embed.proj.weight");
    let frame = |which: usize| {
        let images = both.chunks_exact(8);
        images.flat_map(|two| two[which * 4..which * 4 + 4].to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(elements(&bytes, "v.patch_embd.weight"), frame(0));
    assert_eq!(elements(&bytes, "v.patch_embd.weight.1"), frame(1));
    let fused = tiny.values("visual.blocks.0.attn.qkv.weight");
    assert_eq!(elements(&bytes, "v.blk.0.attn_k.weight"), fused[16..32]);
    let fused = tiny.values("visual.blocks.0.attn.qkv.bias");
    assert_eq!(elements(&bytes, "v.blk.0.attn_v.bias"), fused[8..]);
    assert_eq!(model.tensors().len(), 10, "none of the text model");
    let (findings, _) = gguf_check::check(&bytes);
    let bad = findings.iter().find(|finding| finding.severity == gguf::Severity::Error);
    assert!(bad.is_none(), "{bad:?}");
}

#[test]
fn encoder_tensor_types_are_supported_by_runtimes() {
    let types = |outtype: &str| {
        let (bytes, _) = convert_mmproj(&qwen2_vl_encoder(vision_config()), outtype).unwrap();
        let model = Gguf::read(&bytes).unwrap();
        let of = |name: &str| {
            let tensor = model.tensors().iter().find(|tensor| &*tensor.name == name).unwrap();
            tensor.tensor_type.name()
        };
        ["v.patch_embd.weight", "v.patch_embd.weight.1", "v.blk.0.attn_q.weight", "mm.0.weight"]
            .map(of)
    };
    assert_eq!(types("f16"), ["F16"; 4]);
    assert_eq!(types("bf16"), ["F32", "F32", "BF16", "BF16"]);
    // Rows of 4 and 16 elements do not divide into blocks of 32.
    assert_eq!(types("q8_0"), ["F32", "F32", "F16", "F16"]);
    let error = convert_mmproj(&qwen2_vl_encoder(vision_config()), "q4_k_m").unwrap_err();
    assert!(error.to_string().contains("is not a type of encoders"), "{error}");
}
