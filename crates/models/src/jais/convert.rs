//! Conversion of Jais: muP multipliers are folded into embedding and LM head, `Conv1D` matrices are
//! transposed, and the maximum ALiBi bias is derived from the slopes.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, Mapping, Values, export, hparams};
use crate::gpt2;
use crate::schema::key;

/// Gate projection of the FFN, beside the tensors of GPT-2.
const GATE_NAMES: Table = &[("h.{}.mlp.c_fc2", "blk.{}.ffn_gate")];

/// ALiBi slopes.
const SLOPES: &str = "relative_pe.slopes";

/// Field for the maximum ALiBi bias, set by [`Jais::infer_from_values`].
const MAX_BIAS: &str = "max_alibi_bias";

pub(crate) struct Jais;

/// Description of [`Jais`].
pub(crate) static JAIS: Description = Description {
    classes: &["JAISLMHeadModel"],
    architecture: "jais",
    model_type: "jais",
    pre_tokenizers: &["jais"],
    tensor_prefix: "transformer.",
    tensor_names: &[GATE_NAMES, gpt2::convert::NAMES],
    config_fields: &gpt2::convert::FIELDS,
    ..Description::DECODER
};

impl Converter for Jais {
    fn description(&self) -> &'static Description {
        &JAIS
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        require(config, "activation_function", "swiglu")?;
        require(config, "position_embedding_type", "alibi")
    }

    // The slope of the first head is 2^(-bias/n), where n is the largest power of two up to the
    // number of heads.
    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        let heads = hparams::head_count(config)?;
        let slopes = match values.find(&format!("transformer.{SLOPES}"))? {
            None => values.find(SLOPES)?,
            slopes => slopes,
        };
        if let Some(first) = slopes.and_then(|slopes| slopes.first().copied()) {
            let power_of_two = f64::from(1u32 << heads.ilog2());
            let bias = -(f64::from(first).log2() * power_of_two).round_ties_even();
            config.set(MAX_BIAS, bias);
        }
        Ok(())
    }

    fn leading_keys(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.set(
            key::ATTENTION_MAX_ALIBI_BIAS,
            config.f32(&[MAX_BIAS])?.unwrap_or(DEFAULT_MAX_BIAS),
        );
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
        keys.file_type();
        Ok(())
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        Ok(name.ends_with(SLOPES).then_some(Mapping::Dropped))
    }

    // The muP multipliers are folded into embedding and LM head; `Conv1D` matrices are inputs x
    // outputs.
    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let number = |field: &str| config.f64(&[field]);
        let scale = match name {
            "token_embd.weight" => {
                let scale = match number("mup_embeddings_scale")? {
                    None => number("embeddings_scale")?,
                    scale => scale,
                };
                scale.ok_or_else(|| {
                    config.missing("embeddings_scale", "the multiplier of the embedding")
                })?
            }
            "output.weight" => match number("mup_output_alpha")? {
                Some(alpha) => {
                    alpha
                        * config
                            .require_f64(&["mup_width_scale"], "the multiplier of the logits")?
                }
                None => config.require_f64(&["width_scale"], "the multiplier of the logits")?,
            },
            name => {
                const CONV1D: [&str; 5] =
                    ["attn_qkv", "attn_output", "ffn_up", "ffn_gate", "ffn_down"];
                let is_conv1d =
                    CONV1D.iter().any(|part| name.ends_with(&format!(".{part}.weight")));
                return Ok(Vec::from_iter(is_conv1d.then_some(Step::Transpose)));
            }
        };
        Ok(vec![Step::Map(Function::Times(scale as f32))])
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let exported = exported
            .set("activation_function", "swiglu")
            .set("position_embedding_type", "alibi")
            .set("embeddings_scale", 1.0)
            .set("width_scale", 1.0);
        let bias = export::number(model, key::ATTENTION_MAX_ALIBI_BIAS)?;
        Some(exported.unwritten(MAX_BIAS, bias.into()))
    }
}

/// Maximum ALiBi bias of a checkpoint without slopes.
const DEFAULT_MAX_BIAS: f32 = 8.0;

/// Fails unless a field has the only value that the runtimes compute.
fn require(config: &Config, field: &str, value: &str) -> Result<(), Error> {
    match config.find(&[field]) {
        None => Err(config.missing(field, &format!("`{value}`, the only supported value"))),
        Some((_, found)) if found == value => Ok(()),
        Some((_, found)) => Err(hparams::not_computed(config, field, found)),
    }
}
