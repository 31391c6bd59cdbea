//! Conversion of Pocket TTS. The checkpoint has no config.json: [`configuration`] infers it from
//! tensor shapes. The token embedding gets the vector in front of a voice (if any) and the
//! projected start-of-audio vector as additional rows.

use std::collections::BTreeSet;
use std::path::Path;

use gguf::{Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_checkpoint::{Checkpoint, Entry};
use gguf_pipeline::{Step, Tensor};
use gguf_store::Model;
use serde_json::json;

use crate::convert::assembly::misfit;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, assembly, hparams,
};

pub(crate) const EMBEDDING: &str = "flow_lm.conditioner.embed.weight";

const START_OF_AUDIO: &str = "flow_lm.bos_emb";

const VOICE: &str = "flow_lm.bos_before_voice";

const INPUT_PROJECTION: &str = "flow_lm.input_linear.weight";

/// Head dimension of all models.
const HEAD_DIM: u64 = 64;

const CLASS: &str = "PocketTTSModel";

/// Field that states whether the model has a vector in front of a voice.
const HAS_VOICE: &str = "has_voice";

const NAMES: Table = &[
    ("out_norm", "output_norm"),
    ("transformer.layers.{}.norm1", "blk.{}.attn_norm"),
    ("transformer.layers.{}.norm2", "blk.{}.ffn_norm"),
    ("transformer.layers.{}.self_attn.out_proj", "blk.{}.attn_output"),
    ("transformer.layers.{}.linear1", "blk.{}.ffn_up"),
    ("transformer.layers.{}.linear2", "blk.{}.ffn_down"),
];

pub(crate) struct PocketTts;

/// Description of [`PocketTts`].
pub(crate) static POCKET_TTS: Description = Description {
    classes: &[CLASS],
    architecture: "pockettts",
    model_type: "pockettts",
    vocabulary: VocabularyKind::TextThenVectors { voice: false },
    tensor_prefix: "flow_lm.",
    tensor_names: &[NAMES],
    ..Description::DECODER
};

impl Converter for PocketTts {
    fn description(&self) -> &'static Description {
        &POCKET_TTS
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        match config.bool(HAS_VOICE)? {
            Some(_) => Ok(()),
            None => Err(config.missing(
                HAS_VOICE,
                "Pocket TTS checkpoints have no config.json; it is inferred from tensor shapes",
            )),
        }
    }

    fn variant(&self, config: &Config) -> Option<&'static dyn Converter> {
        matches!(config.bool(HAS_VOICE), Ok(Some(true))).then_some(&WithVoice)
    }

    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        let text_model_prefixes = ["flow_lm.transformer.", "flow_lm.out_norm.", EMBEDDING];
        !text_model_prefixes.iter().any(|start| name.starts_with(start))
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let pattern = "transformer.layers.{}.self_attn.in_proj.weight";
        let Some(layer) = captures(pattern, name) else { return Ok(None) };
        let len = u64::from(hparams::width(config)?);
        let parts =
            ["q", "k", "v"].into_iter().zip(0..).map(|(part, at)| crate::convert::MappedTensor {
                name: format!("blk.{}.attn_{part}.weight", layer[0]),
                steps: vec![Step::Pick { groups: 1, start: at * len, len }],
                slot: None,
            });
        Ok(Some(Mapping::Tensors(parts.collect())))
    }

    // Appends vectors that the runtime looks up like tokens to the embedding: the vector in front of a voice, if any,
    // and the start-of-audio vector times the input projection.
    fn combine_tensor(
        &self,
        _: &Config,
        checkpoint: &Checkpoint,
        name: &str,
    ) -> Result<Option<Tensor>, Error> {
        if name != EMBEDDING {
            return Ok(None);
        }
        let find = |name: &str| checkpoint.entries.iter().find(|entry| entry.name == name);
        let fault = |what: String| misfit(&checkpoint.path(), what);
        let elements = |entry: Option<&Entry>, name: &str| match entry {
            Some(entry) => assembly::elements(checkpoint, entry),
            None => Err(fault(format!(
                "has no tensor `{name}`, which is part of the embedding of {CLASS}"
            ))),
        };
        let width = match find(EMBEDDING).map(|entry| &entry.shape[..]) {
            Some([_, width]) if *width > 0 => *width as usize,
            _ => return Err(fault(format!("has a tensor `{EMBEDDING}` that is not a matrix"))),
        };
        let mut rows = elements(find(EMBEDDING), EMBEDDING)?;
        if find(VOICE).is_some() {
            rows.extend(elements(find(VOICE), VOICE)?);
        }
        let (start, projection) = (
            elements(find(START_OF_AUDIO), START_OF_AUDIO)?,
            elements(find(INPUT_PROJECTION), INPUT_PROJECTION)?,
        );
        if start.is_empty() || projection.len() != start.len() * width {
            return Err(fault(format!(
                "has tensors `{START_OF_AUDIO}` and `{INPUT_PROJECTION}` of shapes that do not fit each other"
            )));
        }
        let dot = |row: &[f32]| row.iter().zip(&start).map(|(x, y)| x * y).sum::<f32>();
        rows.extend(projection.chunks_exact(start.len()).map(dot));
        let shape = Shape::new(&[width as u64, (rows.len() / width) as u64])
            .unwrap_or_else(|| unreachable!("two dimensions are no more than four"));
        Ok(Some(Tensor { shape, ..assembly::computed("token_embd.weight".to_owned(), rows) }))
    }

    fn export_refusal(&self) -> Option<&'static str> {
        Some("the start-of-audio vector is folded into the embedding")
    }

    fn export(&self, _: &Model, _: Exported) -> Option<Exported> {
        None
    }
}

/// Converter of models with a vector in front of the voice.
pub(crate) struct WithVoice;

/// Description of [`WithVoice`].
pub(crate) static WITH_VOICE: Description =
    Description { vocabulary: VocabularyKind::TextThenVectors { voice: true }, ..POCKET_TTS };

impl Converter for WithVoice {
    fn description(&self) -> &'static Description {
        &WITH_VOICE
    }

    fn base(&self) -> &'static dyn Converter {
        &PocketTts
    }
}

/// Infers the configuration of a Pocket TTS checkpoint without config.json in `dir`; `None` for other checkpoints.
pub(crate) fn configuration(dir: &Path, checkpoint: &Checkpoint) -> Result<Option<Config>, Error> {
    let has = |name: &str| checkpoint.entries.iter().any(|entry| entry.name == name);
    if Config::file_in(dir).is_some() || !has(START_OF_AUDIO) {
        return Ok(None);
    }
    let shape = |name: &str| {
        let found = checkpoint.entries.iter().find(|entry| entry.name == name);
        let shape = found.map(|entry| &entry.shape[..]).filter(|shape| !shape.contains(&0));
        shape.filter(|shape| !shape.is_empty()).ok_or_else(|| {
            let what = format!(
                "has no tensor `{name}`, whose shape the configuration of {CLASS} is inferred from"
            );
            misfit(&checkpoint.path(), what)
        })
    };
    let layers = |pattern: &str| {
        let names = checkpoint.entries.iter().map(|entry| &*entry.name);
        names.filter_map(|name| captures(pattern, name)).collect::<BTreeSet<_>>().len()
    };
    let embedding = shape(EMBEDDING)?;
    let (rows, width) = (embedding[0], embedding.last().copied().unwrap_or(1));
    let encoder_width = shape("mimi.encoder_transformer.transformer.layers.0.norm1.weight")?[0];
    let ffn_width =
        |stem: &str| Ok::<_, Error>(shape(&format!("{stem}.layers.0.linear1.weight"))?[0]);
    let root = json!({
        "architectures": [CLASS],
        "model_type": "pockettts",
        "num_hidden_layers": layers("flow_lm.transformer.layers.{}.norm1.weight"),
        "hidden_size": width,
        "intermediate_size": ffn_width("flow_lm.transformer")?,
        // Context length of the KV cache; the model has no limit.
        "max_position_embeddings": 4096,
        "num_attention_heads": width / HEAD_DIM,
        "vocab_size": rows + if has(VOICE) { 2 } else { 1 },
        "rope_theta": 10000.0,
        "layer_norm_eps": 1e-5,
        HAS_VOICE: has(VOICE),
        "audio_config": {
            "num_hidden_layers": layers("mimi.encoder_transformer.transformer.layers.{}.norm1.weight"),
            "hidden_size": encoder_width,
            "intermediate_size": ffn_width("mimi.encoder_transformer.transformer")?,
            "num_attention_heads": encoder_width / HEAD_DIM,
        },
    });
    let path = dir.join(checkpoint.path().file_name().unwrap_or_default());
    Ok(Some(Config::from_weights(path, root)))
}
