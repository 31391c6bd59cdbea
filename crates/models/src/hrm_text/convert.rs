//! HRM: two stacks of layers, run through in cycles; norms have no weights.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, MappedTensor, Mapping, hparams};
use crate::schema::key;

const NAMES: Table = &[("model.embed_tokens", "token_embd"), ("lm_head", "output")];

const SHORT: &str = "L";

const LONG: &str = "H";

const PARTS: [(&str, &str); 2] =
    [("attn.o_proj.weight", "attn_output"), ("mlp.down_proj.weight", "ffn_down")];

const FUSED_ATTENTION: &str = "attn.gqkv_proj.weight";

const FUSED_NETWORK: &str = "mlp.gate_up_proj.weight";

const START: (&str, &str) = ("model.z_L_init", "hrm.z_l_init");

const OF_STACK: &str = "num_layers_per_stack";

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
        (key::HRM_LAYERS_PER_STACK, OF_STACK),
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
        let layers = of_stack(config)?;
        let number = |field: &str| config.require_u32(&[field], "how often a stack is run through");
        let (long, short) = (number("H_cycles")?, number("L_cycles")?);
        let mut stated = config.clone();
        stated.default("num_hidden_layers", layers);
        keys.stated(&stated)?;
        keys.set(
            key::BLOCK_COUNT,
            layers.saturating_mul(long).saturating_mul(short.saturating_add(1)),
        );
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        let scale = config.require_f32(&["embedding_scale"], "by how much embeddings scale")?;
        keys.set(key::EMBEDDING_SCALE, scale);
        keys.set(key::HRM_LAYERS_PER_STACK, layers);
        keys.set(key::HRM_H_CYCLES, long);
        keys.set(key::HRM_L_CYCLES, short);
        keys.set(key::HRM_PREFIX_LM, config.bool("prefix_lm")?.unwrap_or(false));
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if name == START.0 {
            return Ok(Some(Mapping::one(START.1, [])));
        }
        let layers = of_stack(config)?;
        for (stack, first) in [(SHORT, 0), (LONG, layers)] {
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
            return of_layer(config, first + layer, part);
        }
        Ok(None)
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        let parts = [FUSED_ATTENTION, FUSED_NETWORK, PARTS[0].0, PARTS[1].0];
        let of_stack =
            |stack: &str| parts.map(|part| format!("model.{stack}_module.layers.{{}}.{part}"));
        let names = [of_stack(SHORT), of_stack(LONG)].concat();
        Some(exported.patterns(names.iter().map(String::as_str)).patterns([START.0]))
    }
}

/// Layers of one stack.
fn of_stack(config: &Config) -> Result<u32, Error> {
    match config.u32(&[OF_STACK])?.filter(|&layers| layers > 0) {
        Some(layers) => hparams::possible(config, "layers", layers),
        None => hparams::block_count(config),
    }
}

/// What becomes of a part of a layer.
fn of_layer(config: &Config, block: u32, part: &str) -> Result<Option<Mapping>, Error> {
    let slices = |names: &[&str], len: u32| {
        let of_name = |(at, name): (usize, &&str)| MappedTensor {
            name: format!("blk.{block}.{name}.weight"),
            steps: vec![Step::Pick {
                groups: 1,
                start: at as u64 * u64::from(len),
                len: len.into(),
            }],
            slot: None,
        };
        Mapping::Made(names.iter().enumerate().map(of_name).collect())
    };
    if part == FUSED_ATTENTION {
        let len = hparams::head_dim(config)?.saturating_mul(hparams::head_count(config)?);
        return Ok(Some(slices(&["attn_gate", "attn_q", "attn_k", "attn_v"], len)));
    }
    if part == FUSED_NETWORK {
        return Ok(Some(slices(&["ffn_gate", "ffn_up"], hparams::feed_forward(config)?)));
    }
    let gguf_name = PARTS.iter().find(|(hf_name, _)| *hf_name == part);
    Ok(gguf_name.map(|(_, gguf_name)| Mapping::one(format!("blk.{block}.{gguf_name}.weight"), [])))
}
