//! Conversion of the talker of Qwen3-TTS. The embedding is computed: the text embedding through the
//! two-layer text projection, then the audio code embedding.

use gguf::{Array, Error, Shape, TensorType};
use gguf_checkpoint::config::Config;
use gguf_checkpoint::{Checkpoint, Entry};
use gguf_pipeline::{Stored, Tensor};
use gguf_store::Model;

use crate::convert::assembly::misfit;
use crate::convert::folded::{Activation, Folded, Layer};
use crate::convert::keys::Keys;
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, assembly, hparams,
};
use crate::schema::key;

/// Field with the configuration of the talker.
const TALKER: &str = "talker_config";

const TEXT_EMBEDDING: &str = "talker.model.text_embedding.weight";

const CODE_EMBEDDING: &str = "talker.model.codec_embedding.weight";

/// Layers of the text projection.
const TEXT_PROJECTION: [&str; 2] =
    ["talker.text_projection.linear_fc1", "talker.text_projection.linear_fc2"];

/// Last of the checkpoint tensors that the embedding is computed from; the embedding takes its place.
const LAST_INPUT: &str = "talker.text_projection.linear_fc2.weight";

/// Number of suppressed tokens at the end of the vocabulary; the end-of-speech token among them is not suppressed.
const SUPPRESSED: u32 = 1024;

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

    // The vocabulary has the text tokens, then the audio codes.
    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        let Some((_, talker)) = config.find(&[TALKER]) else {
            return Err(config.missing(TALKER, "the configuration of the talker"));
        };
        for (field, value) in talker.as_object().cloned().unwrap_or_default() {
            config.set(&field, value);
        }
        let codes = config.require_u32(&["vocab_size"], "the number of audio codes")?;
        let all = text_tokens(config)?.checked_add(codes);
        let all = all.ok_or_else(|| config.wrong("vocab_size", &codes.into(), "fewer codes"))?;
        config.set("vocab_size", all);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        let (text, all) = (text_tokens(config)?, all_tokens(config)?);
        let end = config.require_u32(&["codec_eos_token_id"], "the end-of-speech code")?;
        let end = text.saturating_add(end);
        let suppressed = i64::from(all) - i64::from(SUPPRESSED)..i64::from(all);
        let suppressed: Vec<i32> =
            suppressed.filter(|id| *id != i64::from(end)).map(|id| id as i32).collect();
        keys.set_unprefixed(key::TOKENIZER_GGML_SUPPRESS_TOKENS, Array::from(&suppressed[..]));
        keys.set_unprefixed(key::TOKENIZER_GGML_EOS_TOKEN_ID, end);
        keys.set_unprefixed(key::TOKENIZER_GGML_ADD_EOS_TOKEN, false);
        Ok(())
    }

    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        !name.starts_with("talker.")
            || name.starts_with("talker.code_predictor.")
            || [TEXT_EMBEDDING, CODE_EMBEDDING].contains(&name)
            || TEXT_PROJECTION.iter().any(|layer| name.starts_with(layer))
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
        if name != LAST_INPUT {
            return Ok(None);
        }
        let fault = |what: String| misfit(&checkpoint.path(), what);
        let entry = |name: &str| -> Result<&Entry, Error> {
            let found = checkpoint.entries.iter().find(|entry| entry.name == name);
            found.ok_or_else(|| {
                fault(format!(
                    "has no tensor `{name}`, which the embedding of {} is computed from",
                    QWEN3_TTS.classes[0]
                ))
            })
        };
        let layer = |name: &str| -> Result<Layer, Error> {
            let rows = assembly::elements(checkpoint, entry(&format!("{name}.weight"))?)?;
            let bias = assembly::elements(checkpoint, entry(&format!("{name}.bias"))?)?;
            Layer::new(&rows, bias).ok_or_else(|| {
                fault(format!("has a bias and a matrix of `{name}` that do not fit each other"))
            })
        };
        let activation = match config.find(&["hidden_act"]).and_then(|(_, name)| name.as_str()) {
            Some("silu") => Activation::Silu,
            Some("gelu") => Activation::Gelu,
            Some("relu") => Activation::Relu,
            other => {
                return Err(hparams::not_computed(
                    config,
                    "hidden_act",
                    other.unwrap_or("missing"),
                ));
            }
        };
        let [first, second] = TEXT_PROJECTION;
        let layers = [layer(first)?, layer(second)?];
        let embedding = assembly::unmodified(checkpoint, entry(TEXT_EMBEDDING)?)?;
        let others = assembly::unmodified(checkpoint, entry(CODE_EMBEDDING)?)?;
        let widths = [layers[0].inputs(), layers[0].outputs(), layers[1].outputs()]
            .map(|width| width as u64);
        let stored = [embedding.shape.row_len(), layers[1].inputs() as u64, others.shape.row_len()];
        if widths != stored || embedding.shape.len() != 2 || others.shape.len() != 2 {
            return Err(fault(format!(
                "has embeddings and projections that do not fit each other: `{TEXT_EMBEDDING}`, `{CODE_EMBEDDING}`, `{first}`, `{second}`"
            )));
        }
        let shape = Shape::new(&[widths[2], embedding.rows() + others.rows()])
            .unwrap_or_else(|| unreachable!("two dimensions are no more than four"));
        let source = Folded { embedding, layers, activation, others }.source();
        let at = Stored { source, offset: 0 };
        Ok(Some(Tensor::stored("token_embd.weight", shape, TensorType::F32, at)))
    }

    fn export_refusal(&self) -> Option<&'static str> {
        Some("the text projection is folded into the embedding")
    }

    fn export(&self, _: &Model, _: Exported) -> Option<Exported> {
        None
    }
}

fn text_tokens(config: &Config) -> Result<u32, Error> {
    config.require_u32(&["text_vocab_size"], "the number of text tokens")
}

fn all_tokens(config: &Config) -> Result<u32, Error> {
    config.require_u32(&["vocab_size"], "the number of tokens")
}
