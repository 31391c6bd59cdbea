//! Tensor names of checkpoints that have more than the weights of a text model.

use std::borrow::Cow;

/// Returns the name without the prefixes of the text model in multimodal checkpoints.
pub fn text_name(name: &str) -> Cow<'_, str> {
    const PREFIXES: [&str; 4] = ["thinker.", "language_model.", "text_model.", "llm."];
    let mut name = Cow::Borrowed(name);
    for prefix in PREFIXES {
        if name.contains(prefix) {
            name = name.replacen(prefix, "", 1).into();
        }
    }
    name
}

/// Returns whether a tensor is a buffer of old checkpoints that runtimes compute: RoPE frequencies and masks.
pub fn is_buffer(name: &str) -> bool {
    const ENDS: [&str; 8] = [
        ".rotary_emb.inv_freq",
        ".rotary_emb.cos_cached",
        ".rotary_emb.sin_cached",
        ".rotary_pos_emb.inv_freq",
        ".attention.bias",
        ".attention.masked_bias",
        ".attn.bias",
        ".attn.masked_bias",
    ];
    ENDS.iter().any(|end| name.ends_with(end))
}

/// Returns whether a tensor belongs to a vision or audio encoder of a multimodal checkpoint.
pub fn is_other_modality(name: &str) -> bool {
    const STARTS: [&str; 13] = [
        "model.aligner.",
        "model.generation_",
        "model.vqmodel.",
        "vit.",
        "vpm.",
        "siglip",
        "conformer.",
        "merger.",
        "model.merger.",
        "mlp_AR.",
        "resampler.",
        "sound_encoder.",
        "speech_embeddings.",
    ];
    const PARTS: [&str; 15] = [
        "visual.",
        "vision.",
        "vision_",
        "audio.",
        "audio_",
        "talker.",
        "token2wav.",
        "projector.",
        "qwen2_model.",
        "sam_model.",
        "image_newline",
        "view_seperator", // misspelled in checkpoints
        "patch_embed",
        "patch_merger.",
        "model.connector.",
    ];
    STARTS.iter().any(|start| name.starts_with(start))
        || PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_models_are_found_inside_others() {
        for name in [
            "model.layers.0.mlp.up_proj.weight",
            "language_model.model.layers.0.mlp.up_proj.weight",
            "model.language_model.layers.0.mlp.up_proj.weight",
            "model.text_model.layers.0.mlp.up_proj.weight",
        ] {
            assert_eq!(text_name(name), "model.layers.0.mlp.up_proj.weight");
            assert!(!is_other_modality(name) && !is_buffer(name));
        }
        assert!(is_other_modality("model.vision_tower.encoder.layers.0.mlp.fc1.weight"));
        assert!(is_buffer("model.layers.3.self_attn.rotary_emb.inv_freq"));
    }
}
