//! Qwen 3 TTS: the talker, a text model that answers in codes of sound.

use gguf::{Array, Error, Shape, TensorType};
use gguf_checkpoint::config::Config;
use gguf_checkpoint::{Checkpoint, Entry};
use gguf_pipeline::{Stored, Tensor};
use gguf_store::Model;

use crate::convert::assembly::CONFIG_OF_ANOTHER;
use crate::convert::folded::{Activation, Folded, Layer};
use crate::convert::hparams::Keys;
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, assembly, hparams,
};

/// The configuration of the talker.
const TALKER: &str = "talker_config";

const TEXT: &str = "talker.model.text_embedding.weight";

const CODES: &str = "talker.model.codec_embedding.weight";

const LAYERS: [&str; 2] =
    ["talker.text_projection.linear_fc1", "talker.text_projection.linear_fc2"];

/// The last of the tensors of which the embedding is made, in whose place it stands.
const LAST: &str = "talker.text_projection.linear_fc2.weight";

/// As many tokens at the end of the vocabulary are never drawn, but for the one that ends speech.
const NEVER_DRAWN: u32 = 1024;

pub(crate) struct Qwen3Tts;

/// Description of [`Qwen3Tts`].
pub(crate) static QWEN3_TTS: Description = Description {
    classes: &["Qwen3TTSForConditionalGeneration"],
    architecture: "qwen3tts",
    model_type: "qwen3_tts",
    vocabulary: VocabularyKind::TextThenCodes,
    pre_tokenizers: &["qwen2"],
    tensor_prefix: "talker.",
    ..Description::DECODER
};

impl Converter for Qwen3Tts {
    fn description(&self) -> &'static Description {
        &QWEN3_TTS
    }

    // Texts first, then codes.
    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        let Some((_, talker)) = config.find(&[TALKER]) else {
            return Err(config.missing(TALKER, "the configuration of the talker"));
        };
        for (field, value) in talker.as_object().cloned().unwrap_or_default() {
            config.set(&field, value);
        }
        let codes = config.require_u32(&["vocab_size"], "the number of codes")?;
        let all = text_tokens(config)?.checked_add(codes);
        let all = all.ok_or_else(|| config.wrong("vocab_size", &codes.into(), "fewer codes"))?;
        config.set("vocab_size", all);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        let (text, all) = (text_tokens(config)?, all_tokens(config)?);
        let end = config.require_u32(&["codec_eos_token_id"], "the code that ends speech")?;
        let end = text.saturating_add(end);
        let never = i64::from(all) - i64::from(NEVER_DRAWN)..i64::from(all);
        let never: Vec<i32> =
            never.filter(|id| *id != i64::from(end)).map(|id| id as i32).collect();
        keys.before_vocabulary("tokenizer.ggml.suppress_tokens", Array::from(&never[..]));
        keys.before_vocabulary("tokenizer.ggml.eos_token_id", end);
        keys.before_vocabulary("tokenizer.ggml.add_eos_token", false);
        Ok(())
    }

    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        !name.starts_with("talker.")
            || name.starts_with("talker.code_predictor.")
            || [TEXT, CODES].contains(&name)
            || LAYERS.iter().any(|layer| name.starts_with(layer))
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        Ok((name == "codec_head.weight").then(|| Mapping::one("output.weight", Vec::new())))
    }

    fn combine_tensor(
        &self,
        config: &Config,
        checkpoint: &Checkpoint,
        name: &str,
    ) -> Result<Option<Tensor>, Error> {
        whole(config, checkpoint, name)
    }

    fn export_refusal(&self) -> Option<&'static str> {
        Some("the layers behind the embedding of texts are part of it")
    }

    fn export(&self, _: &Model, _: Exported) -> Option<Exported> {
        None
    }
}

fn text_tokens(config: &Config) -> Result<u32, Error> {
    config.require_u32(&["text_vocab_size"], "the number of tokens of texts")
}

fn all_tokens(config: &Config) -> Result<u32, Error> {
    config.require_u32(&["vocab_size"], "the number of tokens")
}

/// The embedding: that of texts with what stands behind it computed for every token, then that of codes.
fn whole(config: &Config, checkpoint: &Checkpoint, name: &str) -> Result<Option<Tensor>, Error> {
    if name != LAST {
        return Ok(None);
    }
    let fault = |what: String| {
        let path = checkpoint.files.first().map(|file| file.path.clone()).unwrap_or_default();
        Error::input("checkpoint-misfit", &path, what, CONFIG_OF_ANOTHER)
    };
    let entry = |name: &str| -> Result<&Entry, Error> {
        let found = checkpoint.entries.iter().find(|entry| entry.name == name);
        found.ok_or_else(|| {
            fault(format!(
                "has no tensor `{name}`, of which the embedding of {} is made",
                QWEN3_TTS.classes[0]
            ))
        })
    };
    let layer = |name: &str| -> Result<Layer, Error> {
        let rows = assembly::elements(checkpoint, entry(&format!("{name}.weight"))?)?;
        let bias = assembly::elements(checkpoint, entry(&format!("{name}.bias"))?)?;
        Layer::new(&rows, bias)
            .ok_or_else(|| fault(format!("`{name}` has another bias than matrix")))
    };
    let activation = match config.find(&["hidden_act"]).and_then(|(_, name)| name.as_str()) {
        Some("silu") => Activation::Silu,
        Some("gelu") => Activation::Gelu,
        Some("relu") => Activation::Relu,
        other => {
            return Err(hparams::not_computed(config, "hidden_act", other.unwrap_or("missing")));
        }
    };
    let [first, second] = LAYERS;
    let layers = [layer(first)?, layer(second)?];
    let embedding = assembly::unmodified(checkpoint, entry(TEXT)?)?;
    let others = assembly::unmodified(checkpoint, entry(CODES)?)?;
    let widths =
        [layers[0].inputs(), layers[0].outputs(), layers[1].outputs()].map(|width| width as u64);
    let stored = [embedding.shape.row_len(), layers[1].inputs() as u64, others.shape.row_len()];
    if widths != stored || embedding.shape.len() != 2 || others.shape.len() != 2 {
        return Err(fault(format!(
            "has embeddings and layers that do not fit: `{TEXT}`, `{CODES}`, `{first}`, `{second}`"
        )));
    }
    let shape = Shape::new(&[widths[2], embedding.rows() + others.rows()])
        .unwrap_or_else(|| unreachable!("two dimensions are no more than four"));
    let source = Folded { embedding, layers, activation, others }.source();
    let at = Stored { source, offset: 0 };
    Ok(Some(Tensor::stored("token_embd.weight", shape, TensorType::F32, at)))
}
