//! Conversion of HRM-Text: the layers of stack L, then those of stack H, become one sequence of
//! blocks, and the fused projections are split.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, MappedTensor, Mapping, hparams};
use crate::schema::key;

const NAMES: Table = &[("model.embed_tokens", "token_embd"), ("lm_head", "output")];

/// Name of the fast stack.
const LOW: &str = "L";

/// Name of the slow stack.
const HIGH: &str = "H";

/// Projections that are renamed only.
const PROJECTIONS: [(&str, &str); 2] =
    [("attn.o_proj.weight", "attn_output"), ("mlp.down_proj.weight", "ffn_down")];

/// Fused gate, Q, K and V projections.
const FUSED_ATTENTION: &str = "attn.gqkv_proj.weight";

/// Fused gate and up projections.
const FUSED_FFN: &str = "mlp.gate_up_proj.weight";

/// Initial state of stack L: Hugging Face name, GGUF name.
const INITIAL_STATE: (&str, &str) = ("model.z_L_init", "hrm.z_l_init");

/// Field with the number of layers per stack.
const LAYERS_PER_STACK: &str = "num_layers_per_stack";

pub(crate) struct HrmText;

/// Description of [`HrmText`].
pub(crate) static HRM_TEXT: Description = Description {
    classes: &["HrmTextForCausalLM"],
    architecture: "hrm_text",
    model_type: "hrm_text",
    tensor_names: &[NAMES],
    config_fields: &[
        (key::HRM_H_CYCLES, "H_cycles"),
        (key::HRM_L_CYCLES, "L_cycles"),
        (key::HRM_LAYERS_PER_STACK, LAYERS_PER_STACK),
        (key::HRM_PREFIX_LM, "prefix_lm"),
        (key::EMBEDDING_SCALE, "embedding_scale"),
    ],
    ..Description::DECODER
};

impl Converter for HrmText {
    fn description(&self) -> &'static Description {
        &HRM_TEXT
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let layers = layers_per_stack(config)?;
        let number = |field: &str| config.require_u32(&[field], "the number of cycles of a stack");
        let (high, low) = (number("H_cycles")?, number("L_cycles")?);
        let mut config_with_layers = config.clone();
        config_with_layers.default("num_hidden_layers", layers);
        keys.stated(&config_with_layers)?;
        keys.set(
            key::BLOCK_COUNT,
            layers.saturating_mul(high).saturating_mul(low.saturating_add(1)),
        );
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        let scale = config.require_f32(&["embedding_scale"], "the multiplier of the embedding")?;
        keys.set(key::EMBEDDING_SCALE, scale);
        keys.set(key::HRM_LAYERS_PER_STACK, layers);
        keys.set(key::HRM_H_CYCLES, high);
        keys.set(key::HRM_L_CYCLES, low);
        keys.set(key::HRM_PREFIX_LM, config.bool("prefix_lm")?.unwrap_or(false));
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if name == INITIAL_STATE.0 {
            return Ok(Some(Mapping::one(INITIAL_STATE.1, [])));
        }
        let layers = layers_per_stack(config)?;
        for (stack, first) in [(LOW, 0), (HIGH, layers)] {
            let prefix = format!("model.{stack}_module.layers.");
            let Some((layer, part)) =
                name.strip_prefix(&*prefix).and_then(|rest| rest.split_once('.'))
            else {
                continue;
            };
            let Ok(layer) = layer.parse::<u32>() else { continue };
            if layer >= layers {
                return Ok(None);
            }
            return map_in_block(config, first + layer, part);
        }
        Ok(None)
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        let projections = [FUSED_ATTENTION, FUSED_FFN, PROJECTIONS[0].0, PROJECTIONS[1].0];
        let names = |stack: &str| {
            projections.map(|name| format!("model.{stack}_module.layers.{{}}.{name}"))
        };
        let names = [names(LOW), names(HIGH)].concat();
        Some(exported.patterns(names.iter().map(String::as_str)).patterns([INITIAL_STATE.0]))
    }
}

/// Returns the number of layers per stack.
fn layers_per_stack(config: &Config) -> Result<u32, Error> {
    match config.u32(&[LAYERS_PER_STACK])?.filter(|&layers| layers > 0) {
        Some(layers) => hparams::possible(config, "layers", layers),
        None => hparams::block_count(config),
    }
}

/// Maps a tensor of a layer, named without stack and layer, to tensors of a block.
fn map_in_block(config: &Config, block: u32, part: &str) -> Result<Option<Mapping>, Error> {
    let split = |names: &[&str], len: u32| {
        let slice = |(at, name): (usize, &&str)| MappedTensor {
            name: format!("blk.{block}.{name}.weight"),
            steps: vec![Step::Pick {
                groups: 1,
                start: at as u64 * u64::from(len),
                len: len.into(),
            }],
            slot: None,
        };
        Mapping::Tensors(names.iter().enumerate().map(slice).collect())
    };
    if part == FUSED_ATTENTION {
        let len = hparams::head_dim(config)?.saturating_mul(hparams::head_count(config)?);
        return Ok(Some(split(&["attn_gate", "attn_q", "attn_k", "attn_v"], len)));
    }
    if part == FUSED_FFN {
        return Ok(Some(split(&["ffn_gate", "ffn_up"], hparams::feed_forward(config)?)));
    }
    let projection = PROJECTIONS.iter().find(|(hf_name, _)| *hf_name == part);
    Ok(projection.map(|(_, gguf_name)| Mapping::one(format!("blk.{block}.{gguf_name}.weight"), [])))
}
