//! Conversion of Whisper.
//!
//! llama.cpp does not support it as GGUF. Keys are those of the GGUF specification; tensors are
//! named as in t5. Convolutions keep their three dimensions.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, Mapping};
use crate::schema::key;

/// Names without the prefix `model.`.
const NAMES: Table = &[
    ("encoder.conv1", "enc.conv1"),
    ("encoder.conv2", "enc.conv2"),
    ("encoder.embed_positions", "enc.position_embd"),
    ("encoder.layer_norm", "enc.output_norm"),
    ("encoder.layers.{}.self_attn_layer_norm", "enc.blk.{}.attn_norm"),
    ("encoder.layers.{}.self_attn.q_proj", "enc.blk.{}.attn_q"),
    ("encoder.layers.{}.self_attn.k_proj", "enc.blk.{}.attn_k"),
    ("encoder.layers.{}.self_attn.v_proj", "enc.blk.{}.attn_v"),
    ("encoder.layers.{}.self_attn.out_proj", "enc.blk.{}.attn_o"),
    ("encoder.layers.{}.final_layer_norm", "enc.blk.{}.ffn_norm"),
    ("encoder.layers.{}.fc1", "enc.blk.{}.ffn_up"),
    ("encoder.layers.{}.fc2", "enc.blk.{}.ffn_down"),
    ("decoder.embed_tokens", "token_embd"),
    ("decoder.embed_positions", "dec.position_embd"),
    ("decoder.layer_norm", "dec.output_norm"),
    ("decoder.layers.{}.self_attn_layer_norm", "dec.blk.{}.attn_norm"),
    ("decoder.layers.{}.self_attn.q_proj", "dec.blk.{}.attn_q"),
    ("decoder.layers.{}.self_attn.k_proj", "dec.blk.{}.attn_k"),
    ("decoder.layers.{}.self_attn.v_proj", "dec.blk.{}.attn_v"),
    ("decoder.layers.{}.self_attn.out_proj", "dec.blk.{}.attn_o"),
    ("decoder.layers.{}.encoder_attn_layer_norm", "dec.blk.{}.cross_attn_norm"),
    ("decoder.layers.{}.encoder_attn.q_proj", "dec.blk.{}.cross_attn_q"),
    ("decoder.layers.{}.encoder_attn.k_proj", "dec.blk.{}.cross_attn_k"),
    ("decoder.layers.{}.encoder_attn.v_proj", "dec.blk.{}.cross_attn_v"),
    ("decoder.layers.{}.encoder_attn.out_proj", "dec.blk.{}.cross_attn_o"),
    ("decoder.layers.{}.final_layer_norm", "dec.blk.{}.ffn_norm"),
    ("decoder.layers.{}.fc1", "dec.blk.{}.ffn_up"),
    ("decoder.layers.{}.fc2", "dec.blk.{}.ffn_down"),
];

/// Hyper-parameters of the encoder: metadata key, field of config.json, meaning.
const ENCODER: [(&str, &str, &str); 6] = [
    ("encoder.context_length", "max_source_positions", "the context length of the encoder"),
    ("encoder.embedding_length", "d_model", "the embedding length"),
    ("encoder.feed_forward_length", "encoder_ffn_dim", "the FFN size of the encoder"),
    ("encoder.block_count", "encoder_layers", "the number of layers of the encoder"),
    ("encoder.mels_count", "num_mel_bins", "the number of mel bins"),
    (
        "encoder.attention.head_count",
        "encoder_attention_heads",
        "the number of heads of the encoder",
    ),
];

/// Hyper-parameters of the decoder: metadata key, field of config.json, meaning.
const DECODER: [(&str, &str, &str); 5] = [
    ("decoder.context_length", "max_target_positions", "the context length of the decoder"),
    ("decoder.embedding_length", "d_model", "the embedding length"),
    ("decoder.feed_forward_length", "decoder_ffn_dim", "the FFN size of the decoder"),
    ("decoder.block_count", "decoder_layers", "the number of layers of the decoder"),
    (
        "decoder.attention.head_count",
        "decoder_attention_heads",
        "the number of heads of the decoder",
    ),
];

pub(crate) struct Whisper;

/// Description of [`Whisper`].
pub(crate) static WHISPER: Description = Description {
    classes: &["WhisperForConditionalGeneration"],
    architecture: "whisper",
    model_type: "whisper",
    pre_tokenizers: &["gpt-2"],
    tensor_prefix: "model.",
    tensor_names: &[NAMES],
    ..Description::DECODER
};

impl Converter for Whisper {
    fn description(&self) -> &'static Description {
        &WHISPER
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        for (key, field, meaning) in ENCODER.iter().chain(&DECODER) {
            keys.set(key, config.require_u32(&[field], meaning)?);
        }
        keys.file_type();
        Ok(())
    }

    fn map_tensor(&self, _config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        // The output matrix is always tied to the embedding.
        Ok((name == "proj_out.weight").then_some(Mapping::Dropped))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let metadata = model.metadata();
        let fields: Vec<_> =
            ENCODER.iter().chain(&DECODER).map(|(key, field, _)| (*key, *field)).collect();
        let bins = metadata.u64("whisper.encoder.mels_count")?;
        let positions = metadata.u64("whisper.encoder.context_length")?;
        let mut exported = exported
            .fields(&fields)
            .files([("preprocessor_config.json", preprocessor_config(bins, positions))]);
        let tokens = metadata.array(key::TOKENIZER_GGML_TOKENS)?;
        let id = |token: &str| tokens.strings()?.position(|text| text == token.as_bytes());
        let (space, start) = (id("\u{120}"), id("<|startoftranscript|>"));
        if let Some(start) = start {
            exported = exported.set("decoder_start_token_id", start);
        }
        if let (Some(space), Some(end)) = (space, metadata.u64(key::TOKENIZER_GGML_EOS_TOKEN_ID)) {
            // The first token is neither a space nor the end of text.
            exported = exported.set("begin_suppress_tokens", json!([space, end]));
        }
        Some(exported)
    }
}

/// Returns `preprocessor_config.json`: parameters of the log-mel spectrogram, of which only the number of mel
/// bins differs between models.
fn preprocessor_config(bins: u64, positions: u64) -> Value {
    // The second convolution has stride 2.
    let frames = positions.saturating_mul(2);
    let samples = frames.saturating_mul(HOP_LENGTH);
    json!({
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "WhisperProcessor",
        "feature_size": bins,
        "sampling_rate": SAMPLE_RATE,
        "hop_length": HOP_LENGTH,
        "n_fft": 400,
        "chunk_length": samples / SAMPLE_RATE,
        "n_samples": samples,
        "nb_max_frames": frames,
        "padding_side": "right",
        "padding_value": 0.0,
        "return_attention_mask": false,
    })
}

/// Sample rate in Hz.
const SAMPLE_RATE: u64 = 16000;

/// Samples between two frames of the spectrogram.
const HOP_LENGTH: u64 = 160;
