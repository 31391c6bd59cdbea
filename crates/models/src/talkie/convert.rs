//! Conversion of Talkie. The second half of each query and key head is negated, as checkpoints
//! rotate in the other direction; the scale of the logits becomes a key.

use gguf::{Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{Table, captures, filled};
use crate::convert::{Converter, Description, Exported, Mapping, Values, export, hparams};
use crate::schema::key;

const NAMES: Table = &[
    ("model.embed", "token_embd"),
    ("model.blocks.{}.attn.attn_query", "blk.{}.attn_q"),
    ("model.blocks.{}.attn.attn_key", "blk.{}.attn_k"),
    ("model.blocks.{}.attn.attn_value", "blk.{}.attn_v"),
    ("model.blocks.{}.attn.attn_resid", "blk.{}.attn_output"),
    ("model.blocks.{}.mlp.mlp_gate", "blk.{}.ffn_gate"),
    ("model.blocks.{}.mlp.mlp_linear", "blk.{}.ffn_up"),
    ("model.blocks.{}.mlp.mlp_resid", "blk.{}.ffn_down"),
];

/// Parameters whose names may lack `.weight`, and their GGUF names.
const PARAMETERS: [(&str, &str); 5] = [
    ("model.blocks.{}.attn.head_gain.head_g", HEAD_GAIN),
    ("model.blocks.{}.attn_gain.a_g", "blk.{}.attn_output.scale"),
    ("model.blocks.{}.mlp_gain.a_g", "blk.{}.ffn_down.scale"),
    ("model.blocks.{}.embed_skip.a_g", "blk.{}.layer_output_scale.weight"),
    ("lm_head", "output.weight"),
];

const HEAD_GAIN: &str = "blk.{}.attn_q_norm.weight";

/// Tensor with the scale of the logits, and the field that it is read into.
const LOGIT_GAIN: &str = "lm_head_gain.w_g";

/// Epsilon of the RMS norms: the machine epsilon of F32, as in PyTorch.
const EPSILON: f32 = f32::EPSILON;

pub(crate) struct Talkie;

/// Description of [`Talkie`].
pub(crate) static TALKIE: Description = Description {
    classes: &["TalkieForCausalLM"],
    architecture: "talkie",
    model_type: "talkie",
    pre_tokenizers: &["talkie"],
    tensor_names: &[NAMES],
    ..Description::DECODER
};

impl Converter for Talkie {
    fn description(&self) -> &'static Description {
        &TALKIE
    }

    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        let gain = values.require(LOGIT_GAIN, "the scale of the logits")?;
        config.set(LOGIT_GAIN, gain);
        Ok(())
    }

    fn leading_keys(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let gain = config.f32s(LOGIT_GAIN)?.and_then(|gain| gain.first().copied());
        keys.set_f32(key::LOGIT_SCALE, gain);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, EPSILON);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if name == LOGIT_GAIN {
            return Ok(Some(Mapping::Dropped));
        }
        let stem = name.strip_suffix(".weight").unwrap_or(name);
        for (checkpoint_name, gguf_name) in PARAMETERS {
            let Some(numbers) = captures(checkpoint_name, stem) else { continue };
            let steps = match gguf_name {
                HEAD_GAIN => {
                    let heads = u64::from(hparams::head_count(config)?);
                    let shape = |dims: &[u64]| {
                        Shape::new(dims)
                            .unwrap_or_else(|| unreachable!("no more than four dimensions"))
                    };
                    vec![Step::Reshape { from: shape(&[heads]), to: shape(&[1, heads]) }]
                }
                _ => Vec::new(),
            };
            return Ok(Some(Mapping::one(filled(gguf_name, &numbers), steps)));
        }
        Ok(None)
    }

    // Checkpoints apply RoPE with negative angles; negating the second half of each query and key head is equivalent.
    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let heads = match () {
            () if name.ends_with(".attn_q.weight") => hparams::head_count(config)?,
            () if name.ends_with(".attn_k.weight") => hparams::head_count_kv(config)?,
            () => return Ok(Vec::new()),
        };
        let head_dim = config.require_u32(&["head_dim"], "the head dimension")?;
        let half = u64::from(head_dim / 2);
        let function = Function::Times(-1.0);
        let len = u64::from(head_dim) - half;
        Ok(vec![Step::MapRows { groups: heads.into(), start: half, len, function }])
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let gain = export::number(model, key::LOGIT_SCALE)? as f32;
        Some(
            exported
                .patterns(PARAMETERS.map(|(name, _)| name))
                .without(&[key::ATTENTION_LAYER_NORM_RMS_EPSILON])
                .vector(LOGIT_GAIN.to_owned(), vec![gain])
                .unwritten(LOGIT_GAIN, vec![gain].into()),
        )
    }
}
