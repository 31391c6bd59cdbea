//! Export of quantized models.

use std::path::Path;

use gguf::TensorType;
use gguf_convert::export::{self, safetensors};
use gguf_store::Model;
use serde_json::json;

use crate::fixtures::round_trip::{convert, decoded, export, keep_going, overwrite};
use crate::fixtures::tokenizer_files::with_sentencepiece;
use crate::fixtures::{Tiny, width16};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");

/// Builds InternLM2 with rows of a whole super-block, and four layers, some of which K-quants store in a larger type.
fn internlm2() -> Tiny {
    let fields = json!({"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 4});
    let tiny = Tiny::new(width16::config("InternLM2ForCausalLM", fields))
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
    with_sentencepiece(tiny)
}

/// Builds gpt-oss, whose experts are transposed and have interleaved gate and up rows.
fn gpt_oss() -> Tiny {
    let fields = json!({
        "hidden_size": 64, "intermediate_size": 32, "head_dim": 16, "num_local_experts": 2,
        "num_experts_per_tok": 1, "num_hidden_layers": 1, "rope_theta": 150000.0,
    });
    Tiny::new(width16::config("GptOssForCausalLM", fields)).byte_level(6).tensors(&[
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
fn fused_tensors_with_parts_of_different_types_are_decoded() {
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
        assert_eq!(export(&first, &exported), [] as [String; 0]);
        convert(&exported, &second, Some("f32".parse().unwrap()));
        let (before, after) = (decoded(&first), decoded(&second));
        let types_before: Vec<_> = before
            .iter()
            .filter(|(tensor, ty, _)| tensor.starts_with(name) && ty.is_quantized())
            .map(|(_, ty, _)| ty.name())
            .collect();
        assert!(types.iter().all(|ty| types_before.iter().any(|t| t == ty)), "{types_before:?}");
        assert_eq!(after.len(), before.len());
        for (after, before) in after.iter().zip(&before) {
            assert!(after.0 == before.0 && after.2 == before.2, "{mix} {}", before.0);
        }
    }
}

#[test]
fn missing_part_of_a_fused_tensor_fails() {
    let mut bytes = internlm2().convert().unwrap().to_vec();
    let (name, other) = (b"blk.1.attn_k.weight", b"blk.1.attn_?.weight");
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at..at + name.len()].copy_from_slice(other);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("first.gguf");
    std::fs::write(&path, &bytes).unwrap();
    let files = Model::open(&path).unwrap();
    let plan = export::plan(&files, export::ExportOptions::default());
    let message = plan.err().unwrap().to_string();
    assert!(message.contains("`blk.1.attn_") && message.contains("--keep-names"), "{message}");
}

#[test]
fn quantized_models_export_to_safetensors_decoded_or_raw() {
    let dir = tempfile::tempdir().unwrap();
    let (gguf, out) = (dir.path().join("q.gguf"), dir.path().join("out.safetensors"));
    convert(Path::new(MODEL), &gguf, Some("q8_0".parse().unwrap()));
    let model = Model::open(&gguf).unwrap();
    let tensors =
        export::gguf_tensors(&model, export::ExportOptions { dtype: Some(TensorType::F32) });
    safetensors::write(&out, &tensors, false, &overwrite(), &keep_going).unwrap();
    let bytes = std::fs::read(&out).unwrap();
    let read = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
    for tensor in model.tensors() {
        let mut stored = vec![0; tensor.info.byte_len().unwrap() as usize];
        tensor.read_at(&mut stored, 0).unwrap();
        let mut values = vec![0.0f32; tensor.info.shape.elements().unwrap() as usize];
        gguf_quant::decode_row(tensor.info.tensor_type, &stored, &mut values).unwrap();
        let expected: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        assert!(read.tensor(&tensor.info.name).unwrap().data() == expected);
    }
    safetensors::write(&out, &tensors, true, &overwrite(), &keep_going).unwrap();
    let bytes = std::fs::read(&out).unwrap();
    let read = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let raw = read.tensor("blk.0.attn_q.weight").unwrap();
    // 256 columns are 8 blocks of 34 bytes.
    assert_eq!((raw.dtype(), raw.shape()), (::safetensors::Dtype::U8, &[256, 272][..]));
}
