//! Conversion of ModernBERT. Checkpoints of the classes with a head prefix their tensors with
//! `model.`. The sliding-window pattern is written only if it differs from llama.cpp's default.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::bert;
use crate::bert::convert::is_classifier;
use crate::convert::export::{count, has};
use crate::convert::keys::Keys;
use crate::convert::sentence_transformers::{
    classifier_pooling, classifier_pooling_key, module_files,
};
use crate::convert::tensor_names::{Table, foreign, renamed};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, hparams};
use crate::schema::key;

const NAMES: Table = &[
    ("embeddings.tok_embeddings", "token_embd"),
    ("embeddings.norm", "token_embd_norm"),
    ("final_norm", "output_norm"),
    ("layers.{}.attn_norm", "blk.{}.attn_norm"),
    ("layers.{}.attn.Wqkv", "blk.{}.attn_qkv"),
    ("layers.{}.attn.Wo", "blk.{}.attn_output"),
    ("layers.{}.mlp_norm", "blk.{}.ffn_norm"),
    ("layers.{}.mlp.Wi", "blk.{}.ffn_up"),
    ("layers.{}.mlp.Wo", "blk.{}.ffn_down"),
];

const CLASSIFIER: Table =
    &[("head.dense", "cls"), ("head.norm", "cls.norm"), ("classifier", "cls.output")];

const PREFIX: &str = "model.";

const PERIOD: &str = "global_attn_every_n_layers";

const PATTERN: &str = "attention.sliding_window_pattern";

const BODY_CLASS: &str = "ModernBertModel";

const CLASSIFIER_CLASS: &str = "ModernBertForSequenceClassification";

pub(crate) struct ModernBert;

/// Description of [`ModernBert`].
pub(crate) static MODERN_BERT: Description = Description {
    classes: &[BODY_CLASS, "ModernBertForMaskedLM", CLASSIFIER_CLASS],
    architecture: "modern-bert",
    model_type: "modernbert",
    vocabulary: VocabularyKind::ModernBert,
    pre_tokenizers: &["modern-bert"],
    tensor_names: &[],
    config_fields: &[
        (key::ATTENTION_LAYER_NORM_RMS_EPSILON, "norm_eps"),
        (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_eps"),
        (key::ATTENTION_SLIDING_WINDOW, "local_attention"),
        (key::ROPE_FREQ_BASE, "global_rope_theta"),
        (key::ROPE_FREQ_BASE_SWA, "local_rope_theta"),
        (key::HIDDEN_ACTIVATION, "hidden_activation"),
    ],
    required_flags: &[("norm_bias", false), ("attention_bias", false), ("mlp_bias", false)],
    ..Description::DECODER
};

impl Converter for ModernBert {
    fn description(&self) -> &'static Description {
        &MODERN_BERT
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("norm_eps", 1e-5);
        config.default("local_attention", 128);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        bert::convert::embedding_keys(keys, config)?;
        classifier_pooling_key(keys, config);
        let labels = bert::convert::labels(config);
        if !labels.is_empty() {
            keys.set(key::CLASSIFIER_OUTPUT_LABELS, Array::from_strings(&labels));
        }
        keys.set_u32(key::ATTENTION_SLIDING_WINDOW, config.u32(&["local_attention"])?);
        match config.u32(&[PERIOD])? {
            Some(period) => keys.set(PATTERN, period),
            None => sliding_window_pattern(config, keys)?,
        }
        keys.rope_scaling_or_none();
        keys.vocab_size(config)?;
        if let Some((_, function)) = config.find(&["hidden_activation"]) {
            keys.set(key::HIDDEN_ACTIVATION, function.as_str().unwrap_or("gelu").to_owned());
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        if is_classifier(config)? {
            if let Some(gguf_name) = renamed(name, &[CLASSIFIER]) {
                return Ok(Some(Mapping::one(gguf_name, [])));
            }
        } else if name.starts_with("head.") || name.starts_with("decoder.") {
            return Ok(Some(Mapping::Dropped));
        }
        Ok(renamed(name, &[NAMES]).map(|gguf_name| Mapping::one(gguf_name, [])))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let is_classifier = has(model, "cls.output.weight");
        let (class, prefix) =
            if is_classifier { (CLASSIFIER_CLASS, PREFIX) } else { (BODY_CLASS, "") };
        let head_names = foreign(CLASSIFIER).filter(|_| is_classifier);
        let names: Vec<String> =
            foreign(NAMES).map(|name| format!("{prefix}{name}")).chain(head_names).collect();
        let blocks = count(model, key::BLOCK_COUNT)?.min(1 << 16);
        let flags = model.metadata().array(&format!("modern-bert.{PATTERN}"));
        let period = count(model, PATTERN);
        let has_window = |layer: u64| match flags {
            Some(flags) => flags.iter().nth(layer as usize).and_then(|flag| flag.to_bool()),
            None => Some(!layer.is_multiple_of(period.unwrap_or(3).max(1))),
        };
        let kind = |layer| match has_window(layer) {
            Some(true) => "sliding_attention",
            _ => "full_attention",
        };
        let exported = exported
            .class(class, "modernbert")
            .patterns(names.iter().map(String::as_str))
            .set_some(PERIOD, period)
            .set_some("classifier_pooling", classifier_pooling(model))
            .set("layer_types", (0..blocks).map(kind).collect::<Vec<_>>())
            .files(module_files(model));
        Some(bert::convert::export_labels(model, exported))
    }
}

/// Writes the sliding-window pattern if it is not the default of runtimes: all layers but the first of
/// each three.
fn sliding_window_pattern(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let kinds = config.find(&["layer_types"]).and_then(|(_, kinds)| kinds.as_array());
    let Some(kinds) = kinds else { return Ok(()) };
    let has_window: Vec<bool> = kinds.iter().map(|kind| kind == "sliding_attention").collect();
    let default = (0..hparams::block_count(config)?).map(|layer| layer % 3 != 0);
    if !has_window.iter().copied().eq(default) {
        keys.set(PATTERN, Array::from(&has_window[..]));
    }
    Ok(())
}
