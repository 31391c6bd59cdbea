//! Conversion of Jina Embeddings v2, for text and for code.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::bert;
use crate::bert::convert::{export_labels, token_types};
use crate::convert::keys::Keys;
use crate::convert::sentence_transformers::module_files;
use crate::convert::tensor_names::{Table, renamed};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind};
use crate::schema::key;

const NAMES: Table = &[
    ("embeddings.word_embeddings", "token_embd"),
    ("embeddings.token_type_embeddings", "token_types"),
    ("embeddings.LayerNorm", "token_embd_norm"),
    ("encoder.layer.{}.attention.self.query", "blk.{}.attn_q"),
    ("encoder.layer.{}.attention.self.key", "blk.{}.attn_k"),
    ("encoder.layer.{}.attention.self.value", "blk.{}.attn_v"),
    ("encoder.layer.{}.attention.self.layer_norm_q", "blk.{}.attn_q_norm"),
    ("encoder.layer.{}.attention.self.layer_norm_k", "blk.{}.attn_k_norm"),
    ("encoder.layer.{}.attention.output.dense", "blk.{}.attn_output"),
    ("encoder.layer.{}.attention.output.LayerNorm", "blk.{}.attn_output_norm"),
    ("encoder.layer.{}.mlp.gated_layers", "blk.{}.ffn_up"),
    ("encoder.layer.{}.mlp.wo", "blk.{}.ffn_down"),
    ("encoder.layer.{}.mlp.layernorm", "blk.{}.layer_output_norm"),
    // Names of the model for code.
    ("encoder.layer.{}.layer_norm_1", "blk.{}.attn_norm_2"),
    ("encoder.layer.{}.mlp.up_gated_layer", "blk.{}.ffn_up"),
    ("encoder.layer.{}.mlp.down_layer", "blk.{}.ffn_down"),
    ("encoder.layer.{}.layer_norm_2", "blk.{}.layer_output_norm"),
];

pub(crate) struct JinaBert;

/// Description of [`JinaBert`].
pub(crate) static JINA_BERT: Description = Description {
    classes: &["JinaBertModel", "JinaBertForMaskedLM"],
    architecture: "jina-bert-v2",
    model_type: "bert",
    vocabulary: VocabularyKind::Encoder,
    pre_tokenizers: &["jina-v2-en"],
    tensor_names: &[NAMES],
    config_fields: &[(key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_eps")],
    ..Description::DECODER
};

impl Converter for JinaBert {
    fn description(&self) -> &'static Description {
        &JINA_BERT
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        bert::convert::encoder_keys(config, keys, 0)
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let name = name.strip_prefix("bert.").unwrap_or(name);
        if bert::convert::is_training_only(name) || name.starts_with("pooler.dense.") {
            return Ok(Some(Mapping::Dropped));
        }
        Ok(renamed(name, &[NAMES]).map(|gguf_name| Mapping::one(gguf_name, [])))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = exported
            .set("type_vocab_size", token_types(model))
            .set("position_embedding_type", "alibi")
            .set("feed_forward_type", "geglu")
            .files(module_files(model));
        Some(export_labels(model, exported))
    }
}
