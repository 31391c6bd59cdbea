//! Conversion of Nomic BERT, dense models only.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::bert::convert::{embedding_keys, token_types};
use crate::convert::keys::Keys;
use crate::convert::rope::Rope;
use crate::convert::sentence_transformers::module_files;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, VocabularyKind, hparams};
use crate::schema::key;

const NAMES: Table = &[
    ("embeddings.word_embeddings", "token_embd"),
    ("embeddings.token_type_embeddings", "token_types"),
    ("emb_ln", "token_embd_norm"),
    ("encoder.layers.{}.attn.Wqkv", "blk.{}.attn_qkv"),
    ("encoder.layers.{}.attn.out_proj", "blk.{}.attn_output"),
    ("encoder.layers.{}.norm1", "blk.{}.attn_output_norm"),
    ("encoder.layers.{}.mlp.fc11", "blk.{}.ffn_up"),
    ("encoder.layers.{}.mlp.fc12", "blk.{}.ffn_gate"),
    ("encoder.layers.{}.mlp.fc2", "blk.{}.ffn_down"),
    ("encoder.layers.{}.norm2", "blk.{}.layer_output_norm"),
];

/// Default of the context length of training. `n_positions` of config.json is the context length with RoPE
/// scaling.
const TRAINING_CONTEXT: u32 = 2048;

pub(crate) struct NomicBert;

/// Description of [`NomicBert`].
pub(crate) static NOMIC_BERT: Description = Description {
    classes: &["NomicBertModel"],
    architecture: "nomic-bert",
    model_type: "nomic_bert",
    vocabulary: VocabularyKind::Encoder,
    tensor_names: &[NAMES],
    config_fields: &[
        (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_eps"),
        (key::CONTEXT_LENGTH, "max_position_embeddings"),
        (key::CONTEXT_LENGTH, "max_trained_positions"),
    ],
    required_flags: &[
        ("causal", false),
        ("prenorm", false),
        ("rotary_emb_interleaved", false),
        ("qkv_proj_bias", false),
        ("mlp_fc1_bias", false),
        ("mlp_fc2_bias", false),
    ],
    ..Description::DECODER
};

impl Converter for NomicBert {
    fn description(&self) -> &'static Description {
        &NOMIC_BERT
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        if config.u32(&["moe_every_n_layers"])?.is_some_and(|layers| layers > 0) {
            let what = "`moe_every_n_layers` is above 0: the model has MoE layers";
            let help = "only dense models of this class can be converted";
            return Err(Error::input("config-unsupported", config.path(), what, help));
        }
        let positions = hparams::context_length(config)?;
        let trained = config.u32(&["max_trained_positions"])?.unwrap_or(TRAINING_CONTEXT);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::CONTEXT_LENGTH, positions.min(trained));
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        let base = match Rope::of(config)?.base {
            Some(base) => base,
            None => config.require_f32(&["rope_theta", "rotary_emb_base"], "the base frequency")?,
        };
        keys.set(key::ROPE_FREQ_BASE, base);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
        keys.file_type();
        embedding_keys(keys, config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(exported.set("type_vocab_size", token_types(model)).files(module_files(model)))
    }
}
