//! Fused tensors, of parts that are quantized in different ways; and what cannot be put together.

use gguf_convert::export;
use gguf_store::Model;
use serde_json::json;

use crate::fused::{config, sentence_pieces};
use crate::there_and_back::{convert, decoded, export};
use crate::tiny::Tiny;

/// InternLM2 in rows of a whole block, and four layers, of which mixes quantize some finer.
fn internlm2() -> Tiny {
    let fields = json!({"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 4});
    let tiny = Tiny::new(config("InternLM2ForCausalLM", fields))
        .tensors(&[
            ("model.tok_embeddings.weight", &[6, 256]),
            ("model.norm.weight", &[256]),
            ("output.weight", &[6, 256]),
        ])
        .layers(
            4,
            &[
                ("model.layers.{}.attention_norm.weight", &[256]),
                ("model.layers.{}.attention.wqkv.weight", &[512, 256]),
                ("model.layers.{}.attention.wo.weight", &[256, 256]),
                ("model.layers.{}.ffn_norm.weight", &[256]),
                ("model.layers.{}.feed_forward.w1.weight", &[256, 256]),
                ("model.layers.{}.feed_forward.w2.weight", &[256, 256]),
                ("model.layers.{}.feed_forward.w3.weight", &[256, 256]),
            ],
        );
    sentence_pieces(tiny)
}

/// gpt-oss, whose experts are transposed and have their rows in turn.
fn gpt_oss() -> Tiny {
    let fields = json!({
        "hidden_size": 64, "intermediate_size": 32, "head_dim": 16, "num_local_experts": 2,
        "num_experts_per_tok": 1, "num_hidden_layers": 1, "rope_theta": 150000.0,
    });
    Tiny::new(config("GptOssForCausalLM", fields)).byte_level(6).tensors(&[
        ("model.embed_tokens.weight", &[6, 64]),
        ("model.norm.weight", &[64]),
        ("lm_head.weight", &[6, 64]),
        ("model.layers.0.input_layernorm.weight", &[64]),
        ("model.layers.0.post_attention_layernorm.weight", &[64]),
        ("model.layers.0.self_attn.q_proj.weight", &[64, 64]),
        ("model.layers.0.self_attn.q_proj.bias", &[64]),
        ("model.layers.0.self_attn.k_proj.weight", &[32, 64]),
        ("model.layers.0.self_attn.k_proj.bias", &[32]),
        ("model.layers.0.self_attn.v_proj.weight", &[32, 64]),
        ("model.layers.0.self_attn.v_proj.bias", &[32]),
        ("model.layers.0.self_attn.o_proj.weight", &[64, 64]),
        ("model.layers.0.self_attn.o_proj.bias", &[64]),
        ("model.layers.0.self_attn.sinks", &[4]),
        ("model.layers.0.mlp.router.weight", &[2, 64]),
        ("model.layers.0.mlp.router.bias", &[2]),
        ("model.layers.0.mlp.experts.gate_up_proj", &[2, 64, 64]),
        ("model.layers.0.mlp.experts.gate_up_proj_bias", &[2, 64]),
        ("model.layers.0.mlp.experts.down_proj", &[2, 32, 64]),
        ("model.layers.0.mlp.experts.down_proj_bias", &[2, 64]),
    ])
}

#[test]
fn parts_of_different_types_are_decoded() {
    for (tiny, mix, name, types) in [
        (internlm2(), "q4_k_m", "blk.3.attn_", ["Q4_K", "Q6_K"]),
        (internlm2(), "q8_0", "blk.0.attn_", ["Q8_0", "Q8_0"]),
        (gpt_oss(), "mxfp4_moe", "blk.0.ffn_", ["MXFP4", "MXFP4"]),
        (gpt_oss(), "q8_0", "blk.0.ffn_", ["Q8_0", "Q8_0"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first.gguf"), dir.path().join("second.gguf"));
        tiny.write_weights();
        convert(tiny.path(), &first, Some(mix.parse().unwrap()));
        let exported = dir.path().join("exported");
        assert_eq!(export(&first, &exported, u64::MAX), [] as [String; 0]);
        convert(&exported, &second, Some("f32".parse().unwrap()));
        let (there, back) = (decoded(&first), decoded(&second));
        let types_there: Vec<_> = there
            .iter()
            .filter(|(tensor, ty, _)| tensor.starts_with(name) && ty.is_quantized())
            .map(|(_, ty, _)| ty.name())
            .collect();
        assert!(types.iter().all(|ty| types_there.iter().any(|t| t == ty)), "{types_there:?}");
        assert_eq!(back.len(), there.len());
        for (back, there) in back.iter().zip(&there) {
            assert!(back.0 == there.0 && back.2 == there.2, "{mix} {}", there.0);
        }
    }
}

/// A model that lacks a part of a fused tensor is not exported as if it had zeros there.
#[test]
fn a_part_that_is_missing_is_missed() {
    let mut bytes = internlm2().convert().unwrap().to_vec();
    let (name, other) = (b"blk.1.attn_k.weight", b"blk.1.attn_?.weight");
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at..at + name.len()].copy_from_slice(other);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("first.gguf");
    std::fs::write(&path, &bytes).unwrap();
    let files = Model::open(&path).unwrap();
    let plan = export::plan(&files, export::Options::default());
    let message = plan.err().unwrap().to_string();
    assert!(message.contains("`blk.1.attn_") && message.contains("--keep-names"), "{message}");
}
