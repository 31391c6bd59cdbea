//! Qwen3-TTS.

use gguf::Gguf;
use serde_json::{Value, json};

use crate::fixtures::decoder::VOCAB;
use crate::fixtures::mmproj::{convert_mmproj, nest_checkpoint};
use crate::fixtures::round_trip::assert_no_export;
use crate::fixtures::{Tiny, assert_valid, elements};

#[test]
pub fn talker_embeds_projected_text_and_codec_tokens() {
    const CODES: usize = 3072;
    const INSIDE: usize = 6;
    let talker = json!({"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6, "rope_theta": 1e6, "hidden_act": "silu", "vocab_size": CODES,
        "text_vocab_size": VOCAB, "codec_bos_id": 2149, "codec_eos_token_id": 2150, "pad_token_id": null,
        "codec_language_id": {"english": 2050},
        "rope_scaling": {"mrope_section": [1, 1, 0], "rope_type": "default"}});
    let made = |talker: &Value| {
        let config = json!({"architectures": ["Qwen3TTSForConditionalGeneration"],
            "model_type": "qwen3_tts", "talker_config": talker});
        Tiny::new(config).byte_level(VOCAB).tensors(&[
            ("talker.codec_head.weight", &[CODES, 8]),
            ("talker.model.codec_embedding.weight", &[CODES, 8]),
            ("talker.model.norm.weight", &[8]),
            ("talker.model.text_embedding.weight", &[VOCAB, INSIDE]),
            ("talker.text_projection.linear_fc1.weight", &[INSIDE, INSIDE]),
            ("talker.text_projection.linear_fc1.bias", &[INSIDE]),
            ("talker.text_projection.linear_fc2.weight", &[8, INSIDE]),
            ("talker.text_projection.linear_fc2.bias", &[8]),
            ("talker.code_predictor.model.norm.weight", &[8]),
            ("talker.model.layers.0.input_layernorm.weight", &[8]),
            ("talker.model.layers.0.post_attention_layernorm.weight", &[8]),
            ("talker.model.layers.0.self_attn.q_proj.weight", &[8, 8]),
            ("talker.model.layers.0.self_attn.k_proj.weight", &[4, 8]),
            ("talker.model.layers.0.self_attn.v_proj.weight", &[4, 8]),
            ("talker.model.layers.0.self_attn.o_proj.weight", &[8, 8]),
            ("talker.model.layers.0.self_attn.q_norm.weight", &[4]),
            ("talker.model.layers.0.self_attn.k_norm.weight", &[4]),
            ("talker.model.layers.0.mlp.gate_proj.weight", &[12, 8]),
            ("talker.model.layers.0.mlp.up_proj.weight", &[12, 8]),
            ("talker.model.layers.0.mlp.down_proj.weight", &[8, 12]),
        ])
    };
    let mut tiny = made(&talker);
    let file = tiny.convert().unwrap();
    assert_valid(&file);
    assert_no_export(&file, "qwen3tts");
    let embedding = elements(&file, "token_embd.weight");
    assert_eq!(embedding[VOCAB * 8..], tiny.values("talker.model.codec_embedding.weight"));
    let values = |name: &str| tiny.values(&format!("talker.{name}"));
    let [first, second] = [1, 2].map(|i| {
        let name = format!("text_projection.linear_fc{i}");
        (values(&format!("{name}.weight")), values(&format!("{name}.bias")))
    });
    // F64 keeps the expected values more accurate than an F32 sum of six products.
    let layer = |x: &[f64], (rows, bias): &(Vec<f32>, Vec<f32>)| -> Vec<f64> {
        let dot = |row: &[f32]| row.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum::<f64>();
        rows.chunks(x.len()).zip(bias).map(|(row, bias)| dot(row) + f64::from(*bias)).collect()
    };
    let texts = values("model.text_embedding.weight");
    for (row, found) in texts.chunks(INSIDE).zip(embedding.chunks(8)) {
        let row: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
        let hidden: Vec<f64> = layer(&row, &first).iter().map(|x| x / (1.0 + (-x).exp())).collect();
        for (expected, found) in layer(&hidden, &second).iter().zip(found) {
            let off = (expected - f64::from(*found)).abs();
            assert!(off <= expected.abs() * 1e-6, "{found} instead of {expected}");
        }
    }
    let model = Gguf::read(&file).unwrap();
    let tokens = model.metadata().array("tokenizer.ggml.tokens").unwrap();
    let tokens: Vec<&[u8]> = tokens.strings().unwrap().collect();
    assert_eq!(tokens.len(), VOCAB + CODES);
    for (code, name) in [
        (0, "<|codec_0|>"),
        (2149, "<|codec_bos|>"),
        (2150, "<|codec_eos_token|>"),
        (2050, "<|codec_language_english|>"),
    ] {
        assert_eq!(tokens[VOCAB + code], name.as_bytes());
    }
    let never = model.metadata().array("tokenizer.ggml.suppress_tokens").unwrap();
    assert_eq!(never.len(), 1023, "the last 1024 but for the one that ends speech");
    let end = model.metadata().u64("tokenizer.ggml.eos_token_id");
    assert_eq!(end, Some(VOCAB as u64 + 2150));

    let changed = |field: &str, value: Value| {
        let mut talker = talker.clone();
        talker[field] = value;
        made(&talker).convert().unwrap_err().to_string()
    };
    let error = changed("hidden_act", json!("tanh"));
    assert!(error.contains("`hidden_act` is tanh"), "{error}");
    let error = changed("codec_bos_id", json!(CODES));
    assert!(
        error.contains("field `codec_bos_id` is 3072; expected a number below 3072"),
        "{error}"
    );
    tiny.tensors.retain(|(name, _)| !name.ends_with("linear_fc1.bias"));
    let error = tiny.convert().unwrap_err().to_string();
    assert!(error.contains("`talker.text_projection.linear_fc1.bias`"), "{error}");
    assert!(error.contains("Qwen3TTSForConditionalGeneration"), "{error}");
}

#[test]
fn missing_speech_tokenizer_tensors_are_named() {
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
        nest_checkpoint(&tiny, "speech_tokenizer", &inside);
        convert_mmproj(&tiny, "f32").unwrap_err().to_string()
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
