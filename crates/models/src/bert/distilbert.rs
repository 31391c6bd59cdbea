//! Conversion of DistilBERT: BERT under other tensor names and without token types.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::bert;
use crate::bert::convert::is_classifier;
use crate::convert::keys::Keys;
use crate::convert::sentence_transformers::module_files;
use crate::convert::tensor_names::{Table, foreign, renamed};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind};
use crate::schema::key;

const NAMES: Table = &[
    ("embeddings.word_embeddings", "token_embd"),
    ("embeddings.position_embeddings", "position_embd"),
    ("embeddings.LayerNorm", "token_embd_norm"),
    ("transformer.layer.{}.attention.q_lin", "blk.{}.attn_q"),
    ("transformer.layer.{}.attention.k_lin", "blk.{}.attn_k"),
    ("transformer.layer.{}.attention.v_lin", "blk.{}.attn_v"),
    ("transformer.layer.{}.attention.out_lin", "blk.{}.attn_output"),
    ("transformer.layer.{}.sa_layer_norm", "blk.{}.attn_output_norm"),
    ("transformer.layer.{}.ffn.lin1", "blk.{}.ffn_up"),
    ("transformer.layer.{}.ffn.lin2", "blk.{}.ffn_down"),
    ("transformer.layer.{}.output_layer_norm", "blk.{}.layer_output_norm"),
];

const CLASSIFIER: Table = &[("pre_classifier", "cls"), ("classifier", "cls.output")];

const PREFIX: &str = "distilbert.";

/// Epsilon of the layer norms, which is a constant of the class.
const EPSILON: f32 = 1e-12;

pub(crate) struct Distilbert;

/// Description of [`Distilbert`].
pub(crate) static DISTILBERT: Description = Description {
    classes: &["DistilBertModel", "DistilBertForMaskedLM", "DistilBertForSequenceClassification"],
    architecture: "bert",
    model_type: "distilbert",
    vocabulary: VocabularyKind::Encoder,
    tensor_names: &[],
    required_flags: &[("sinusoidal_pos_embds", false)],
    ..Description::DECODER
};

impl Converter for Distilbert {
    fn description(&self) -> &'static Description {
        &DISTILBERT
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, EPSILON);
        let mut config = config.clone();
        config.set("layer_norm_eps", f64::from(EPSILON));
        bert::convert::encoder_keys(&config, keys, 0)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        if name.starts_with("vocab_") {
            return Ok(Some(Mapping::Dropped));
        }
        let tables: &[Table] = if is_classifier(config)? { &[NAMES, CLASSIFIER] } else { &[NAMES] };
        Ok(renamed(name, tables).map(|gguf_name| Mapping::one(gguf_name, [])))
    }

    fn export(&self, model: &Model, _: Exported) -> Option<Exported> {
        let (metadata, index) = (model.metadata(), model.index());
        // The other classes of this architecture have token types.
        let has_token_types = index.contains_key("token_types.weight") || index.is_empty();
        if has_token_types || metadata.str(key::TOKENIZER_GGML_MODEL) != Some("bert") {
            return None;
        }
        let is_classifier = index.contains_key("cls.output.weight");
        let (class, prefix) = match is_classifier {
            true => ("DistilBertForSequenceClassification", PREFIX),
            false => ("DistilBertModel", ""),
        };
        let heads = foreign(CLASSIFIER).filter(|_| is_classifier);
        let names: Vec<String> =
            foreign(NAMES).map(|name| format!("{prefix}{name}")).chain(heads).collect();
        let exported = Exported::new(class, "distilbert", &[])
            .patterns(names.iter().map(String::as_str))
            .fields(&[
                ("block_count", "n_layers"),
                ("embedding_length", "dim"),
                ("feed_forward_length", "hidden_dim"),
                ("attention.head_count", "n_heads"),
            ])
            .files(module_files(model));
        Some(bert::convert::export_labels(model, exported))
    }
}
