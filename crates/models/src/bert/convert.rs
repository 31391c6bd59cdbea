//! Conversion of BERT, RoBERTa, XLM-RoBERTa and CamemBERT: encoders for embeddings, and sequence
//! classifiers. The rows of RoBERTa's position embedding before the first position are dropped;
//! training heads are dropped.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::{Map, Value};

use crate::convert::keys::Keys;
use crate::convert::sentence_transformers::{module_files, pooling_key};
use crate::convert::tensor_names::{Name, Table, foreign};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, hparams};
use crate::schema::key;

const NAMES: Table = &[
    ("embeddings.word_embeddings", "token_embd"),
    ("embeddings.position_embeddings", "position_embd"),
    ("embeddings.token_type_embeddings", "token_types"),
    ("embeddings.LayerNorm", "token_embd_norm"),
    ("encoder.layer.{}.attention.self.query", "blk.{}.attn_q"),
    ("encoder.layer.{}.attention.self.key", "blk.{}.attn_k"),
    ("encoder.layer.{}.attention.self.value", "blk.{}.attn_v"),
    ("encoder.layer.{}.attention.output.dense", "blk.{}.attn_output"),
    ("encoder.layer.{}.attention.output.LayerNorm", "blk.{}.attn_output_norm"),
    ("encoder.layer.{}.intermediate.dense", "blk.{}.ffn_up"),
    ("encoder.layer.{}.output.dense", "blk.{}.ffn_down"),
    ("encoder.layer.{}.output.LayerNorm", "blk.{}.layer_output_norm"),
];

/// Classification head: a dense layer with tanh, then the projection to the labels.
const CLASSIFIER: Table = &[
    ("pooler.dense", "cls"),
    ("classifier", "cls.output"),
    ("classifier.dense", "cls"),
    ("classifier.out_proj", "cls.output"),
];

/// Prefixes of tensors that only training uses.
const TRAINING: [&str; 4] =
    ["embeddings.position_ids", "cls.predictions", "cls.seq_relationship", "lm_head."];

/// Returns whether only training uses a tensor.
pub(crate) fn is_training_only(name: &str) -> bool {
    TRAINING.iter().any(|start| name.starts_with(start))
}

pub(crate) struct Bert;

/// Description of [`Bert`].
pub(crate) static BERT: Description = Description {
    classes: &[
        "BertModel",
        "BertForMaskedLM",
        "BertForPreTraining",
        "BertForNextSentencePrediction",
        "BertForSequenceClassification",
    ],
    architecture: "bert",
    model_type: "bert",
    vocabulary: VocabularyKind::Encoder,
    pre_tokenizers: &["roberta-bpe"],
    tensor_names: &[],
    ..Description::DECODER
};

impl Converter for Bert {
    fn description(&self) -> &'static Description {
        &BERT
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        encoder_keys(config, keys, 0)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        map_encoder_tensor(config, name, 0)
    }

    fn export(&self, model: &Model, _: Exported) -> Option<Exported> {
        export(model, false)
    }
}

pub(crate) struct Roberta;

/// Description of [`Roberta`].
pub(crate) static ROBERTA: Description = Description {
    classes: &[
        "RobertaModel",
        "RobertaForMaskedLM",
        "RobertaForSequenceClassification",
        "XLMRobertaModel",
        "XLMRobertaForMaskedLM",
        "XLMRobertaForSequenceClassification",
        "CamembertModel",
        "CamembertForMaskedLM",
        "CamembertForSequenceClassification",
    ],
    architecture: "bert",
    model_type: "roberta",
    vocabulary: VocabularyKind::Encoder,
    pre_tokenizers: &["roberta-bpe"],
    tensor_names: &[],
    ..Description::DECODER
};

impl Converter for Roberta {
    fn description(&self) -> &'static Description {
        &ROBERTA
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        encoder_keys(config, keys, first_position_row(config)?)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        map_encoder_tensor(config, name, first_position_row(config)?)
    }

    fn export(&self, model: &Model, _: Exported) -> Option<Exported> {
        export(model, true)
    }
}

/// Writes the keys of an encoder like BERT, whose position embedding has `position_offset` rows
/// before the first position.
pub(crate) fn encoder_keys(
    config: &Config,
    keys: &mut Keys,
    position_offset: u32,
) -> Result<(), Error> {
    let positions = hparams::context_length(config)?;
    let context = positions.saturating_sub(position_offset);
    keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
    keys.set(key::CONTEXT_LENGTH, context);
    keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
    keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
    keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
    keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
    keys.file_type();
    embedding_keys(keys, config)?;
    let labels = labels(config);
    if !labels.is_empty() {
        keys.set(key::CLASSIFIER_OUTPUT_LABELS, Array::from_strings(&labels));
    }
    Ok(())
}

fn map_encoder_tensor(
    config: &Config,
    name: &str,
    position_offset: u32,
) -> Result<Option<Mapping>, Error> {
    let name = ["bert.", "roberta."].iter().find_map(|p| name.strip_prefix(p)).unwrap_or(name);
    if is_training_only(name) {
        return Ok(Some(Mapping::Dropped));
    }
    // Old uploads have TensorFlow's names of layer norm parameters.
    let renamed = match name.rsplit_once('.') {
        Some((stem, "gamma")) => Some(format!("{stem}.weight")),
        Some((stem, "beta")) => Some(format!("{stem}.bias")),
        _ => None,
    };
    let Some(parsed) = Name::parse(renamed.as_deref().unwrap_or(name)) else {
        return Ok(Some(Mapping::Unknown));
    };
    if is_classifier(config)? {
        if let Some(mapped) = parsed.mapped(CLASSIFIER) {
            return Ok(Some(Mapping::one(mapped, [])));
        }
    } else if name.starts_with("pooler.dense.") {
        return Ok(Some(Mapping::Dropped));
    }
    let Some(mapped) = parsed.mapped(NAMES) else { return Ok(Some(Mapping::Unknown)) };
    let step = (position_offset > 0 && mapped == "position_embd.weight").then(|| {
        let positions = hparams::context_length(config)?;
        let len = positions.saturating_sub(position_offset).into();
        Ok::<Step, Error>(Step::Pick { groups: 1, start: position_offset.into(), len })
    });
    Ok(Some(Mapping::one(mapped, Vec::from_iter(step.transpose()?))))
}

fn export(model: &Model, is_roberta: bool) -> Option<Exported> {
    let (metadata, index) = (model.metadata(), model.index());
    // All these classes compute the same graph, and positions are stored alike. The vocabulary
    // decides the class.
    let vocabulary = metadata.str(key::TOKENIZER_GGML_MODEL).unwrap_or("bert");
    // DistilBERT has no token type embedding.
    if !is_roberta && !index.is_empty() && !index.contains_key("token_types.weight") {
        return None;
    }
    let (prefix, model_type, classes) = match (is_roberta, vocabulary) {
        (false, "bert") => ("bert.", "bert", ["BertModel", "BertForSequenceClassification"]),
        (true, "gpt2") => {
            ("roberta.", "roberta", ["RobertaModel", "RobertaForSequenceClassification"])
        }
        (true, _) if vocabulary != "bert" => {
            ("roberta.", "xlm-roberta", ["XLMRobertaModel", "XLMRobertaForSequenceClassification"])
        }
        _ => return None,
    };
    let head = ["cls", "cls.output"];
    let is_classifier = head.iter().all(|name| index.contains_key(&*format!("{name}.weight")));
    let (class, prefix) = if is_classifier { (classes[1], prefix) } else { (classes[0], "") };
    let mut names: Vec<_> = foreign(NAMES).map(|name| format!("{prefix}{name}")).collect();
    if is_classifier {
        let layers = match is_roberta {
            false => ["bert.pooler.dense", "classifier"],
            true => ["classifier.dense", "classifier.out_proj"],
        };
        let both = |layer| ["weight", "bias"].map(|suffix| format!("{layer}.{suffix}"));
        names.extend(layers.into_iter().flat_map(both));
    }
    let mut exported = Exported::new(class, model_type, &[])
        .patterns(names.iter().map(String::as_str))
        .fields(&[("attention.layer_norm_epsilon", "layer_norm_eps")])
        .set("type_vocab_size", token_types(model))
        .files(module_files(model));
    if is_roberta {
        let padding = metadata.u64(key::TOKENIZER_GGML_PADDING_TOKEN_ID);
        let position_offset = padding.unwrap_or(1).checked_add(1)?;
        let positions = metadata.u64("bert.context_length")?.checked_add(position_offset)?;
        exported =
            exported.without(&[key::CONTEXT_LENGTH]).set("max_position_embeddings", positions);
        if let Some(padding) = padding {
            exported = exported.set("pad_token_id", padding);
        }
    }
    Some(export_labels(model, exported))
}

/// Sets the fields `id2label` and `label2id`.
pub(crate) fn export_labels(model: &Model, exported: Exported) -> Exported {
    let metadata = model.metadata();
    let architecture = metadata.architecture().unwrap_or_default();
    let labels = metadata.array(&format!("{architecture}.classifier.output_labels"));
    let Some(labels) = labels.and_then(Array::strings) else { return exported };
    let labels: Vec<_> = labels.map(|name| String::from_utf8_lossy(name)).collect();
    let ids = labels.iter().enumerate();
    let by_id: Map<String, Value> =
        ids.clone().map(|(id, name)| (id.to_string(), name.as_ref().into())).collect();
    let by_name: Map<String, Value> = ids.map(|(id, name)| (name.to_string(), id.into())).collect();
    exported.set("id2label", by_id).set("label2id", by_name)
}

/// Returns the row of RoBERTa's position embedding for the first token: the row after the
/// padding token's id.
fn first_position_row(config: &Config) -> Result<u32, Error> {
    Ok(config.u32(&["pad_token_id"])?.unwrap_or(1).saturating_add(1))
}

/// Returns whether the class is a sequence classifier.
pub(crate) fn is_classifier(config: &Config) -> Result<bool, Error> {
    Ok(config.class()?.ends_with("ForSequenceClassification"))
}

/// Writes the keys of embedding models: bidirectional attention and the pooling type.
pub(crate) fn embedding_keys(keys: &mut Keys, config: &Config) -> Result<(), Error> {
    keys.set(key::ATTENTION_CAUSAL, false);
    pooling_key(keys, config)
}

/// Returns the number of token types (segments).
pub(crate) fn token_types(model: &Model) -> u64 {
    let index = model.index();
    let rows =
        index.get("token_types.weight").map(|tensor| tensor.info.shape.iter().skip(1).product());
    rows.or(model.metadata().u64(key::TOKENIZER_GGML_TOKEN_TYPE_COUNT)).unwrap_or(1)
}

/// Returns the label names in the order of their ids.
///
/// `transformers` writes two default labels for any model: they count only for classifiers.
pub(crate) fn labels(config: &Config) -> Vec<String> {
    let is_classifier = is_classifier(config).unwrap_or(false);
    let map = config.find(&["id2label"]).and_then(|(_, map)| map.as_object());
    let mut labels: Vec<(u64, String)> = map
        .into_iter()
        .flatten()
        .filter_map(|(id, name)| Some((id.parse().ok()?, name.as_str()?.to_owned())))
        .collect();
    labels.sort();
    if labels.is_empty() && is_classifier {
        labels = vec![(0, "LABEL_0".to_owned()), (1, "LABEL_1".to_owned())];
    }
    let is_default = labels.len() == 2 && labels[0].1 == "LABEL_0";
    if is_default && !is_classifier {
        return Vec::new();
    }
    labels.into_iter().map(|(_, name)| name).collect()
}
