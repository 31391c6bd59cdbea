//! Conversion of LLaDA: a Llama with its own tensor names, bidirectional attention and diffusion
//! keys.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::sentence_transformers::{module_files, pooling_key};
use crate::convert::tensor_names::Table;
use crate::convert::{
    Converter, Description, Exported, VocabularyKind, export, hparams, rope, steps,
};
use crate::schema::key;

const NAMES: Table = &[
    ("model.transformer.wte", "token_embd"),
    ("model.transformer.ln_f", "output_norm"),
    ("model.transformer.ff_out", "output"),
    ("model.transformer.blocks.{}.attn_norm", "blk.{}.attn_norm"),
    ("model.transformer.blocks.{}.q_proj", "blk.{}.attn_q"),
    ("model.transformer.blocks.{}.k_proj", "blk.{}.attn_k"),
    ("model.transformer.blocks.{}.v_proj", "blk.{}.attn_v"),
    ("model.transformer.blocks.{}.attn_out", "blk.{}.attn_output"),
    ("model.transformer.blocks.{}.ff_norm", "blk.{}.ffn_norm"),
    ("model.transformer.blocks.{}.ff_proj", "blk.{}.ffn_gate"),
    ("model.transformer.blocks.{}.up_proj", "blk.{}.ffn_up"),
    ("model.transformer.blocks.{}.ff_out", "blk.{}.ffn_down"),
];

/// Fields with the embedding size.
const EMBEDDING_LENGTH: &[&str] = &["hidden_size", "d_model"];

pub(crate) struct Llada;

/// Description of [`Llada`].
pub(crate) static LLADA: Description = Description {
    classes: &["LLaDAModelLM"],
    architecture: "llada",
    model_type: "llada",
    vocabulary: VocabularyKind::BpeWithBos,
    pre_tokenizers: &["llada", "llama-bpe"],
    tensor_names: &[NAMES],
    config_fields: &[
        (key::BLOCK_COUNT, "n_layers"),
        (key::CONTEXT_LENGTH, "max_sequence_length"),
        (key::EMBEDDING_LENGTH, "d_model"),
        (key::FEED_FORWARD_LENGTH, "mlp_hidden_size"),
        (key::ATTENTION_HEAD_COUNT, "n_heads"),
        (key::ATTENTION_HEAD_COUNT_KV, "n_kv_heads"),
    ],
    ..Description::DECODER
};

impl Converter for Llada {
    fn description(&self) -> &'static Description {
        &LLADA
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let context =
            config.require_u32(&["max_sequence_length"], "the context length in tokens")?;
        let heads = hparams::head_count(config)?;
        let embedding_length = config.require_u32(EMBEDDING_LENGTH, "the embedding size")?;
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::CONTEXT_LENGTH, context);
        keys.set(key::ATTENTION_HEAD_COUNT, heads);
        keys.set_u32(
            key::ATTENTION_HEAD_COUNT_KV,
            config.u32(&["num_key_value_heads", "n_kv_heads"])?,
        );
        keys.rope_unless_default(config)?;
        keys.set_f32(key::ROPE_FREQ_BASE, rope::Rope::of(config)?.base);
        keys.set_f32(key::ATTENTION_LAYER_NORM_RMS_EPSILON, config.f32(&["rms_norm_eps"])?);
        keys.file_type();
        pooling_key(keys, config)?;
        keys.vocab_size(config)?;
        let head_dim = hparams::stated_head_dim(config)?.unwrap_or(embedding_length / heads.max(1));
        keys.set(key::ROPE_DIMENSION_COUNT, head_dim);
        keys.set(key::EMBEDDING_LENGTH, embedding_length);
        let feed_forward_length = config.require_u32(&["mlp_hidden_size"], "the FFN size")?;
        keys.set(key::FEED_FORWARD_LENGTH, feed_forward_length);
        keys.set(key::ATTENTION_CAUSAL, false);
        keys.set_unprefixed(key::DIFFUSION_SHIFT_LOGITS, false);
        Ok(())
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let is_tied = !export::has(model, "output.weight");
        Some(exported.set("weight_tying", is_tied).files(module_files(model)))
    }
}
