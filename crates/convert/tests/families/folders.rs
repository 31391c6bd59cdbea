//! Encoders of which weights are in a folder beside those of the model.

use gguf::Gguf;
use serde_json::{Value, json};

use crate::sidecars::{prepared, sidecar};
use crate::tiny::{Tiny, elements};

/// Puts a checkpoint into a folder of another.
fn put(tiny: &Tiny, folder: &str, inside: &Tiny) {
    inside.write_weights();
    let place = tiny.path().join(folder);
    std::fs::create_dir_all(&place).unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(inside.path().join(name), place.join(name)).unwrap();
    }
}

fn mimo() -> Tiny {
    let vision = json!({"hidden_size": 8, "intermediate_size": 8, "depth": 1, "num_heads": 2,
        "patch_size": 2, "spatial_merge_size": 2, "visual_token_window_size": 16,
        "vit_window_attn_types": [-1]});
    let config = json!({"architectures": ["MiMoV2ForCausalLM"], "hidden_size": 8, "vision_config": vision,
        "audio_config": {"audio_channels": 2, "input_local_layers": 1, "group_size": 4}});
    let stated = json!({"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "min_pixels": 4,
        "max_pixels": 64});
    let tiny = prepared(Tiny::new(config)).tensors(&[
        ("visual.blocks.0.attn.sinks", &[2]),
        ("speech_embeddings.0.weight", &[5, 8]),
        ("speech_embeddings.1.weight", &[5, 8]),
    ]);
    tiny.file("preprocessor_config.json", stated.to_string());
    tiny
}

/// Two codebooks, of which the second is smaller.
fn hearing(second: &str) -> Tiny {
    let config = json!({"d_model": 4, "encoder_ffn_dim": 8, "encoder_attention_heads": 2, "encoder_layers": 3,
        "n_mels": 16, "hybrid_attention": true, "swa_per_block": 2, "encoder_attn_window_size": [128, 0]});
    let book = |i: &str| format!("encoder.quantizer.vq.layers.{i}._codebook.embed");
    Tiny::new(config).tensors(&[
        ("decoder.conv.weight", &[2, 2]),
        ("encoder.conv1.bias", &[4]),
        (&book("0"), &[3, 4]),
        (&book(second), &[2, 4]),
    ])
}

#[test]
fn codebooks_of_a_folder_become_one() {
    let tiny = mimo();
    let error = sidecar(&tiny, "f32").unwrap_err();
    assert_eq!(error.code(), "checkpoint-weights-missing", "{error}");
    assert!(error.to_string().contains("`audio_tokenizer`"), "{error}");
    let inside = hearing("1");
    put(&tiny, "audio_tokenizer", &inside);
    let (bytes, _) = sidecar(&tiny, "f32").unwrap();
    let [large, small] =
        [0, 1].map(|i| inside.values(&format!("encoder.quantizer.vq.layers.{i}._codebook.embed")));
    assert_eq!(elements(&bytes, "a.rvq.codebook.weight"), [large, small, vec![0.0; 4]].concat());
    let both = [0, 1].map(|i| tiny.values(&format!("speech_embeddings.{i}.weight"))).concat();
    assert_eq!(elements(&bytes, "mm.a.code_embd.weight"), both);
    let model = Gguf::read(&bytes).unwrap();
    let names: Vec<_> = model.tensors().iter().map(|tensor| &*tensor.name).collect();
    let expected =
        ["a.conv1d.1.bias", "a.rvq.codebook.weight", "mm.a.code_embd.weight", "v.blk.0.attn_sinks"];
    assert_eq!(names, expected, "the folder first");
    let list = |key: &str| -> Vec<i64> {
        model.metadata().array(key).unwrap().iter().map(|x| x.to_i64().unwrap()).collect()
    };
    assert_eq!(list("clip.audio.rvq.codebook_size"), [3, 2]);
    assert_eq!(list("clip.audio.wa_pattern_mode"), [0, -1, 0]);
    let (findings, _) = gguf_check::check(&bytes);
    let bad = findings.iter().find(|finding| finding.severity != gguf::Severity::Info);
    assert!(bad.is_none(), "{}", bad.unwrap());

    put(&tiny, "audio_tokenizer", &hearing("2"));
    let error = sidecar(&tiny, "f32").unwrap_err().to_string();
    assert!(error.contains("has no codebook 1"), "{error}");
}

#[test]
fn tensors_that_a_folder_lacks_are_named() {
    let predictor = json!({"hidden_size": 4, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-6});
    let config = json!({"architectures": ["Qwen3TTSForConditionalGeneration"],
        "speaker_encoder_config": {"enc_dim": 8},
        "talker_config": {"hidden_size": 8, "code_predictor_config": predictor}});
    let tiny = Tiny::new(config).tensors(&[("speaker_encoder.fc.weight", &[8, 4, 1])]);
    let failed = |decoder: Value| {
        let inside = Tiny::new(json!({"decoder_config": decoder}));
        let inside =
            inside.tensors(&[("decoder.quantizer.rvq_first.input_proj.weight", &[4, 4, 1])]);
        put(&tiny, "speech_tokenizer", &inside);
        sidecar(&tiny, "f32").unwrap_err().to_string()
    };
    let decoder =
        json!({"num_hidden_layers": 1, "upsampling_ratios": [2], "upsample_rates": [8, 5, 4, 3]});
    let error = failed(decoder.clone());
    let name = "speech_tokenizer/decoder.quantizer.rvq_first.output_proj.weight";
    assert!(error.contains(name) && error.contains("Qwen3TTSForConditionalGeneration"), "{error}");
    let mut other = decoder.clone();
    other["upsample_rates"] = json!([8, 5]);
    let error = failed(other);
    assert!(error.contains("`upsample_rates` is [8,5]"), "{error}");
    let mut without = decoder;
    without.as_object_mut().unwrap().remove("upsampling_ratios");
    let error = failed(without);
    assert!(error.contains("has no field `upsampling_ratios`"), "{error}");
}
