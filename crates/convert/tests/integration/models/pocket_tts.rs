//! Pocket TTS.

use gguf::Gguf;
use serde_json::json;

use crate::fixtures::decoder::VOCAB;
use crate::fixtures::round_trip::assert_no_export;
use crate::fixtures::tokenizer_files::{bytes, number, piece};
use crate::fixtures::{Tiny, elements};

#[test]
pub fn flow_lm_converts_without_export() {
    const EMBED: usize = 64;
    const LATENT: usize = 4;
    let made = |voice: bool| {
        let mut tiny = Tiny::new(json!({})).tensors(&[
            ("flow_lm.bos_emb", &[LATENT]),
            ("flow_lm.conditioner.embed.weight", &[VOCAB + 1, EMBED]),
            ("flow_lm.input_linear.weight", &[EMBED, LATENT]),
            ("flow_lm.out_norm.weight", &[EMBED]),
            ("flow_lm.out_norm.bias", &[EMBED]),
            ("flow_lm.transformer.layers.0.norm1.weight", &[EMBED]),
            ("flow_lm.transformer.layers.0.norm1.bias", &[EMBED]),
            ("flow_lm.transformer.layers.0.norm2.weight", &[EMBED]),
            ("flow_lm.transformer.layers.0.norm2.bias", &[EMBED]),
            ("flow_lm.transformer.layers.0.self_attn.in_proj.weight", &[3 * EMBED, EMBED]),
            ("flow_lm.transformer.layers.0.self_attn.out_proj.weight", &[EMBED, EMBED]),
            ("flow_lm.transformer.layers.0.linear1.weight", &[96, EMBED]),
            ("flow_lm.transformer.layers.0.linear2.weight", &[EMBED, 96]),
            ("mimi.encoder_transformer.transformer.layers.0.norm1.weight", &[EMBED]),
            ("mimi.encoder_transformer.transformer.layers.0.linear1.weight", &[96, EMBED]),
        ]);
        if voice {
            tiny = tiny.tensors(&[("flow_lm.bos_before_voice", &[1, 1, EMBED])]);
        }
        std::fs::remove_file(tiny.path().join("config.json")).unwrap();
        let pieces = [("<unk>", 0.0, 2), ("a", -1.0, 1), ("b", -2.0, 1), ("c", -3.0, 1)];
        let pieces = pieces.map(|(text, score, kind)| piece(text, score, kind)).concat();
        // A Unigram model without a dummy prefix.
        tiny.file(
            "tokenizer.model",
            [pieces, bytes(2, &number(3, 1)), bytes(3, &number(3, 0))].concat(),
        );
        tiny
    };
    let mut tiny = made(true);
    let file = tiny.convert().unwrap();
    assert_no_export(&file, "pockettts");
    let (findings, _) = gguf_check::check(&file);
    let error = findings.iter().find(|one| one.severity == gguf::Severity::Error);
    assert!(error.is_none(), "{}", error.unwrap());
    let embedding = elements(&file, "token_embd.weight");
    let stored = tiny.values("flow_lm.conditioner.embed.weight");
    let voice = tiny.values("flow_lm.bos_before_voice");
    let [input, begin] =
        ["input_linear.weight", "bos_emb"].map(|x| tiny.values(&format!("flow_lm.{x}")));
    let begins = input.chunks(LATENT).map(|row| row.iter().zip(&begin).map(|(x, y)| x * y).sum());
    assert_eq!(embedding, [stored, voice, begins.collect()].concat());
    let fused = tiny.values("flow_lm.transformer.layers.0.self_attn.in_proj.weight");
    assert_eq!(elements(&file, "blk.0.attn_k.weight"), fused[EMBED * EMBED..2 * EMBED * EMBED]);
    let texts = |file: &gguf::Bytes| {
        let model = Gguf::read(file).unwrap();
        let tokens = model.metadata().array("tokenizer.ggml.tokens").unwrap();
        let text = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
        tokens.strings().unwrap().map(text).collect::<Vec<_>>()
    };
    assert_eq!(texts(&file)[VOCAB..], ["<|pad|>", "<|bos_before_voice|>", "<|audio_bos|>"]);
    assert_eq!(texts(&made(false).convert().unwrap())[VOCAB..], ["<|pad|>", "<|audio_bos|>"]);
    tiny.tensors.retain(|(name, _)| name != "flow_lm.input_linear.weight");
    let error = tiny.convert().unwrap_err().to_string();
    assert!(
        error.contains("`flow_lm.input_linear.weight`") && error.contains("PocketTTSModel"),
        "{error}"
    );
    // Tensors that its conversion skips do not make it a candidate for `--like`.
    tiny.file("config.json", json!({"architectures": ["Unheard"]}).to_string());
    let error = tiny.convert().unwrap_err();
    assert_eq!(error.code(), "class-unknown");
    assert!(!error.to_string().contains("--like"), "{error}");
    let other = tiny.tensors(&[("abc.weight", &[2, 2])]);
    let error = other.convert().unwrap_err().to_string();
    assert!(!error.contains("--like"), "{error}");
    other.file("config.json", json!({"architectures": ["PocketTTSModel"]}).to_string());
    let error = other.convert().unwrap_err().to_string();
    assert!(error.contains("has no field `has_voice`"), "{error}");
}
