//! Conversion of NeoBERT. The FFN has two thirds of the width that config.json states.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::bert;
use crate::bert::convert::is_classifier;
use crate::convert::export::{count, has};
use crate::convert::keys::Keys;
use crate::convert::sentence_transformers::pooling_key;
use crate::convert::tensor_names::{Table, foreign, renamed};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, hparams, rope};
use crate::schema::key;

const NAMES: Table = &[
    ("encoder", "token_embd"),
    ("layer_norm", "enc.output_norm"),
    ("transformer_encoder.{}.attention_norm", "blk.{}.attn_norm"),
    ("transformer_encoder.{}.qkv", "blk.{}.attn_qkv"),
    ("transformer_encoder.{}.wo", "blk.{}.attn_output"),
    ("transformer_encoder.{}.ffn_norm", "blk.{}.ffn_norm"),
    ("transformer_encoder.{}.ffn.w12", "blk.{}.ffn_up"),
    ("transformer_encoder.{}.ffn.w3", "blk.{}.ffn_down"),
];

const CLASSIFIER: Table = &[("dense", "cls"), ("classifier", "cls.output")];

const PREFIX: &str = "model.";

const BODY_CLASS: &str = "NeoBERT";

const CLASSIFIER_CLASS: &str = "NeoBERTForSequenceClassification";

/// Value of `pooling_type` for the embedding of the first token.
const CLS_POOLING: u32 = 2;

pub(crate) struct NeoBert;

/// Description of [`NeoBert`].
pub(crate) static NEO_BERT: Description = Description {
    classes: &[BODY_CLASS, "NeoBERTLMHead", CLASSIFIER_CLASS],
    architecture: "neo-bert",
    model_type: "neobert",
    vocabulary: VocabularyKind::Encoder,
    tensor_names: &[],
    config_fields: &[
        (key::ATTENTION_LAYER_NORM_RMS_EPSILON, "norm_eps"),
        (key::CONTEXT_LENGTH, "max_length"),
    ],
    ..Description::DECODER
};

impl Converter for NeoBert {
    fn description(&self) -> &'static Description {
        &NEO_BERT
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let ffn_width = config.require_u32(&["intermediate_size"], "the FFN width")?;
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, (u64::from(ffn_width) * 2 / 3) as u32);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        let epsilon = config.f32(&["norm_eps"])?.unwrap_or(1e-6);
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, epsilon);
        keys.file_type();
        keys.set(key::ATTENTION_CAUSAL, false);
        pooling_key(keys, config)?;
        let labels = bert::convert::labels(config);
        if !labels.is_empty() {
            keys.set(key::CLASSIFIER_OUTPUT_LABELS, Array::from_strings(&labels));
        }
        keys.set(key::ROPE_FREQ_BASE, rope::DEFAULT_BASE);
        keys.set(key::ROPE_SCALING_TYPE, "none");
        keys.set(key::POOLING_TYPE, CLS_POOLING);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        if name.starts_with("decoder.") {
            return Ok(Some(Mapping::Dropped));
        }
        let tables: &[Table] = if is_classifier(config)? { &[CLASSIFIER, NAMES] } else { &[NAMES] };
        Ok(renamed(name, tables).map(|gguf_name| Mapping::one(gguf_name, [])))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let is_classifier = has(model, "cls.output.weight");
        let (class, prefix) =
            if is_classifier { (CLASSIFIER_CLASS, PREFIX) } else { (BODY_CLASS, "") };
        let head_names = foreign(CLASSIFIER).filter(|_| is_classifier);
        let names: Vec<String> =
            foreign(NAMES).map(|name| format!("{prefix}{name}")).chain(head_names).collect();
        // The FFN has two thirds of `intermediate_size`, rounded down.
        let ffn_width = (count(model, key::FEED_FORWARD_LENGTH)? * 3).div_ceil(2);
        let exported = exported
            .class(class, "neobert")
            .patterns(names.iter().map(String::as_str))
            .without(&[key::FEED_FORWARD_LENGTH, key::ROPE_FREQ_BASE])
            .set("intermediate_size", ffn_width)
            .set("type_vocab_size", bert::convert::token_types(model));
        Some(bert::convert::export_labels(model, exported))
    }
}
