//! Pixtral's vision encoder.

use serde_json::json;

use crate::fixtures::mmproj::{convert_mmproj, with_preprocessor_config};
use crate::fixtures::{Tiny, elements};

#[test]
fn pixtral_encoder_permutes_rope_rows_and_copies_img_break() {
    let config = json!({"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava",
        "text_config": {"hidden_size": 8}, "vision_config": {"model_type": "pixtral", "hidden_size": 8,
            "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 4,
            "patch_size": 2, "hidden_act": "silu"}});
    let tiny = with_preprocessor_config(Tiny::new(config)).tensors(&[
        ("vision_tower.transformer.layers.0.attention.q_proj.weight", &[8, 8]),
        ("language_model.model.embed_tokens.weight", &[4, 8]),
    ]);
    let added = json!({"added_tokens": [{"id": 2, "content": "[IMG_BREAK]"}]});
    tiny.file("tokenizer.json", added.to_string());
    let (bytes, _) = convert_mmproj(&tiny, "f32").unwrap();
    let rows = tiny.values("vision_tower.transformer.layers.0.attention.q_proj.weight");
    let row = |row: usize| rows[row * 8..row * 8 + 8].to_vec();
    let expected: Vec<f32> = [0, 2, 1, 3, 4, 6, 5, 7].into_iter().flat_map(row).collect();
    assert_eq!(elements(&bytes, "v.blk.0.attn_q.weight"), expected);
    let tokens = tiny.values("language_model.model.embed_tokens.weight");
    assert_eq!(elements(&bytes, "v.token_embd.img_break"), tokens[16..24]);
    tiny.file("tokenizer.json", "{}");
    assert_eq!(convert_mmproj(&tiny, "f32").unwrap_err().code(), "vocabulary-other-model");
}
