//! Conversion of T5, FLAN-T5, mT5 and UMT5. The embedding, which checkpoints store up to three
//! times, becomes one tensor.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, hparams};
use crate::schema::key;

pub(crate) const ENCODER: Table = &[
    ("encoder.final_layer_norm", "enc.output_norm"),
    ("encoder.block.{}.layer.0.layer_norm", "enc.blk.{}.attn_norm"),
    ("encoder.block.{}.layer.0.SelfAttention.q", "enc.blk.{}.attn_q"),
    ("encoder.block.{}.layer.0.SelfAttention.k", "enc.blk.{}.attn_k"),
    ("encoder.block.{}.layer.0.SelfAttention.v", "enc.blk.{}.attn_v"),
    ("encoder.block.{}.layer.0.SelfAttention.o", "enc.blk.{}.attn_o"),
    ("encoder.block.{}.layer.0.SelfAttention.relative_attention_bias", "enc.blk.{}.attn_rel_b"),
    ("encoder.block.{}.layer.1.layer_norm", "enc.blk.{}.ffn_norm"),
    ("encoder.block.{}.layer.1.DenseReluDense.wi", "enc.blk.{}.ffn_up"),
    ("encoder.block.{}.layer.1.DenseReluDense.wi_0", "enc.blk.{}.ffn_gate"),
    ("encoder.block.{}.layer.1.DenseReluDense.wi_1", "enc.blk.{}.ffn_up"),
    ("encoder.block.{}.layer.1.DenseReluDense.wo", "enc.blk.{}.ffn_down"),
    ("lm_head", "output"),
];

const DECODER: Table = &[
    ("decoder.final_layer_norm", "dec.output_norm"),
    ("decoder.block.{}.layer.0.layer_norm", "dec.blk.{}.attn_norm"),
    ("decoder.block.{}.layer.0.SelfAttention.q", "dec.blk.{}.attn_q"),
    ("decoder.block.{}.layer.0.SelfAttention.k", "dec.blk.{}.attn_k"),
    ("decoder.block.{}.layer.0.SelfAttention.v", "dec.blk.{}.attn_v"),
    ("decoder.block.{}.layer.0.SelfAttention.o", "dec.blk.{}.attn_o"),
    ("decoder.block.{}.layer.0.SelfAttention.relative_attention_bias", "dec.blk.{}.attn_rel_b"),
    ("decoder.block.{}.layer.1.layer_norm", "dec.blk.{}.cross_attn_norm"),
    ("decoder.block.{}.layer.1.EncDecAttention.q", "dec.blk.{}.cross_attn_q"),
    ("decoder.block.{}.layer.1.EncDecAttention.k", "dec.blk.{}.cross_attn_k"),
    ("decoder.block.{}.layer.1.EncDecAttention.v", "dec.blk.{}.cross_attn_v"),
    ("decoder.block.{}.layer.1.EncDecAttention.o", "dec.blk.{}.cross_attn_o"),
    (
        "decoder.block.{}.layer.1.EncDecAttention.relative_attention_bias",
        "dec.blk.{}.cross_attn_rel_b",
    ),
    ("decoder.block.{}.layer.2.layer_norm", "dec.blk.{}.ffn_norm"),
    ("decoder.block.{}.layer.2.DenseReluDense.wi", "dec.blk.{}.ffn_up"),
    ("decoder.block.{}.layer.2.DenseReluDense.wi_0", "dec.blk.{}.ffn_gate"),
    ("decoder.block.{}.layer.2.DenseReluDense.wi_1", "dec.blk.{}.ffn_up"),
    ("decoder.block.{}.layer.2.DenseReluDense.wo", "dec.blk.{}.ffn_down"),
];

/// Fields of config.json for metadata keys.
pub(crate) const FIELDS: &[(&str, &str)] = &[
    (key::CONTEXT_LENGTH, "n_positions"),
    (key::EMBEDDING_LENGTH, "d_model"),
    (key::FEED_FORWARD_LENGTH, "d_ff"),
    (key::BLOCK_COUNT, "num_layers"),
    (key::T5_DECODER_BLOCK_COUNT, "num_decoder_layers"),
    (key::ATTENTION_HEAD_COUNT, "num_heads"),
    (key::ATTENTION_KEY_LENGTH, "d_kv"),
    (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_epsilon"),
    (key::ATTENTION_RELATIVE_BUCKETS_COUNT, "relative_attention_num_buckets"),
    (key::DECODER_START_TOKEN_ID, "decoder_start_token_id"),
];

/// Names of the token embedding, of which a checkpoint has one or more.
const EMBEDDINGS: [&str; 3] =
    ["shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"];

/// Default of the context length. Relative positions have no limit, but runtimes expect the key.
const DEFAULT_CONTEXT: u32 = 512;

pub(crate) struct T5;

/// Description of [`T5`].
pub(crate) static T5_DESCRIPTION: Description = Description {
    classes: &[
        "T5ForConditionalGeneration",
        "T5WithLMHeadModel",
        "MT5ForConditionalGeneration",
        "UMT5ForConditionalGeneration",
        "UMT5Model",
        "T5Model",
        "MT5Model",
    ],
    architecture: "t5",
    model_type: "t5",
    vocabulary: VocabularyKind::T5,
    tensor_names: &[ENCODER, DECODER],
    config_fields: FIELDS,
    ..Description::DECODER
};

impl Converter for T5 {
    fn description(&self) -> &'static Description {
        &T5_DESCRIPTION
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        t5_keys(config, keys, true)
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        Ok(EMBEDDINGS.contains(&name).then_some(Mapping::Shared("token_embd.weight")))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export_t5(model, exported, true)
    }
}

/// Writes the keys of an encoder, with a decoder or alone.
pub(crate) fn t5_keys(config: &Config, keys: &mut Keys, has_decoder: bool) -> Result<(), Error> {
    let head_dim = config.require_u32(&["d_kv"], "the head dimension")?;
    let epsilon = hparams::layer_norm_epsilon(config)?;
    let buckets = config.u32(&["relative_attention_num_buckets"])?.unwrap_or(32);
    keys.set(key::CONTEXT_LENGTH, config.u32(&["n_positions"])?.unwrap_or(DEFAULT_CONTEXT));
    keys.set(key::EMBEDDING_LENGTH, config.require_u32(&["d_model"], "the embedding length")?);
    keys.set(key::FEED_FORWARD_LENGTH, config.require_u32(&["d_ff"], "the FFN width")?);
    let blocks = hparams::block_count(config)?;
    keys.set(key::BLOCK_COUNT, blocks);
    if has_decoder {
        let decoder = config.u32(&["num_decoder_layers"])?.unwrap_or(blocks);
        keys.set(key::T5_DECODER_BLOCK_COUNT, decoder);
    }
    keys.set(
        key::ATTENTION_HEAD_COUNT,
        config.require_u32(&["num_heads", "num_attention_heads"], "the number of heads")?,
    );
    keys.set(key::ATTENTION_KEY_LENGTH, head_dim);
    keys.set(key::ATTENTION_VALUE_LENGTH, head_dim);
    keys.set(key::ATTENTION_LAYER_NORM_EPSILON, epsilon);
    keys.set(key::ATTENTION_RELATIVE_BUCKETS_COUNT, buckets);
    keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, epsilon);
    if has_decoder {
        let start = config.u32(&["decoder_start_token_id"])?;
        // The default is the padding token, as in all T5 models.
        let start = start.or(config.u32(&["pad_token_id"])?).unwrap_or(0);
        keys.set(key::DECODER_START_TOKEN_ID, start);
    }
    keys.file_type();
    Ok(())
}

/// Completes the description of an export of an encoder, with a decoder or alone.
pub(crate) fn export_t5(model: &Model, exported: Exported, has_decoder: bool) -> Option<Exported> {
    let index = model.index();
    // Every layer of UMT5 has its own relative position bias.
    let own_bias = index.contains_key("enc.blk.1.attn_rel_b.weight");
    let exported = match (has_decoder, own_bias) {
        (true, true) => exported.class("UMT5ForConditionalGeneration", "umt5"),
        (false, true) => exported.class("UMT5EncoderModel", "umt5"),
        (_, false) => exported,
    };
    let is_gated = index.contains_key("enc.blk.0.ffn_gate.weight");
    let mut exported = exported
        .patterns(EMBEDDINGS)
        .without(&[key::ATTENTION_LAYER_NORM_RMS_EPSILON])
        .set("is_encoder_decoder", has_decoder)
        .set("feed_forward_proj", if is_gated { "gated-gelu" } else { "relu" });
    // `wi` and `wi_1` map to the same tensor; only models with gate have `wi_1`.
    let other = if is_gated { ".DenseReluDense.wi." } else { ".DenseReluDense.wi_1." };
    exported.patterns.retain(|pattern| !pattern.contains(other));
    Some(exported)
}
