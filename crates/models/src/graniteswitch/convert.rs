//! Granite with adapters built in, of which tokens of the text switch one on.

use gguf::{Array, Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::export::{count, number, whole};
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures, filled};
use crate::convert::{Converter, Description, Exported, MappedTensor, Mapping, hparams};
use crate::granite::convert::{GRANITE, Granite, granite_keys};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.self_attn.o_proj.base_layer", "blk.{}.attn_output"),
    ("model.layers.{}.shared_mlp.output_linear.base_layer", "blk.{}.ffn_down"),
];

/// Queries, keys and values in one matrix.
const FUSED: &str = "model.layers.{}.self_attn.qkv_proj.base_layer.weight";

/// Gates above what they gate.
const GATES: &str = "model.layers.{}.shared_mlp.input_linear.base_layer.weight";

const QUERIES: &str = "model.layers.{}.self_attn.qkv_proj";

const INPUT: &str = "model.layers.{}.shared_mlp.input_linear";

/// A matrix that adapters add to: the name of their two matrices without `A` or `B`, what stands behind that,
/// and the name of ours.
const ADAPTED: [(&str, &str, &str, Part); 7] = [
    (QUERIES, "_slices.0", "attn_q", Part::Queries),
    (QUERIES, "_slices.1", "attn_k", Part::Keys),
    (QUERIES, "_slices.2", "attn_v", Part::Values),
    ("model.layers.{}.self_attn.o_proj", "", "attn_output", Part::Output),
    (INPUT, "_slices.0", "ffn_gate", Part::Inner),
    (INPUT, "_slices.1", "ffn_up", Part::Inner),
    ("model.layers.{}.shared_mlp.output_linear", "", "ffn_down", Part::Down),
];

/// Fields that keys hold as they are.
const FIELDS: &[(&str, &str)] = &[
    (key::ADAPTERS_COUNT, ADAPTERS),
    (key::ADAPTERS_LORA_RANK, RANK),
    (key::EXPERT_SHARED_FEED_FORWARD_LENGTH, SHARED),
];

/// Lists of tokens: those that switch adapters on, and those that stand in for them.
const LISTS: [(&str, &str); 2] = [
    ("adapters.token_ids_activate", "adapter_token_ids"),
    ("adapters.token_ids_substitute", "adapter_substitute_token_ids"),
];

const ADAPTERS: &str = "num_adapters";

const RANK: &str = "max_lora_rank";

const OF_ADAPTERS: &str = "the size of built-in adapters";

const SHARED: &str = "shared_intermediate_size";

const GAIN: &str = "control_token_gain";

const LAYERS: &str = "num_hidden_layers";

pub(crate) struct GraniteSwitch;

/// Description of [`GraniteSwitch`].
pub(crate) static GRANITE_SWITCH: Description = Description {
    classes: &["GraniteSwitchForCausalLM"],
    architecture: "graniteswitch",
    model_type: "granite_switch",
    tensor_names: &[NAMES, LLAMA_LIKE],
    ..GRANITE
};

impl Converter for GraniteSwitch {
    fn description(&self) -> &'static Description {
        &GRANITE_SWITCH
    }

    fn base(&self) -> &'static dyn Converter {
        &Granite
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        // Experts are none: what is always asked is the network.
        if let Some(experts) = config.u32(&["num_local_experts"])?.filter(|&experts| experts > 0) {
            return Err(hparams::not_computed(config, "num_local_experts", experts));
        }
        config.set("intermediate_size", config.require_u32(&[SHARED], "the feed-forward width")?);
        Granite.complete_config(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let mut layers = config.clone();
        // The last is the switch, which has no weights.
        layers.set(LAYERS, hparams::block_count(config)?.saturating_sub(1));
        granite_keys(&layers, keys)?;
        keys.set(key::EXPERT_USED_COUNT, 0u32);
        for (key, field) in [("adapters.count", ADAPTERS), ("adapters.lora_rank", RANK)] {
            keys.set(key, config.require_u32(&[field], OF_ADAPTERS)?);
        }
        for (key, field) in LISTS {
            let tokens = config
                .u32s(field)?
                .ok_or_else(|| config.missing(field, "a token of each adapter"))?;
            let tokens: Vec<i32> = tokens.into_iter().map(|token| token as i32).collect();
            keys.set(key, Array::from(&tokens[..]));
        }
        keys.set(key::ADAPTERS_ROUTER_GAIN, config.f32(&[GAIN])?.unwrap_or(15.0));
        Ok(())
    }

    // Programs make these of the lists of tokens.
    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        let last = name.rsplit('.').next().unwrap_or_default();
        name.starts_with("model.switch.")
            || name.starts_with("switch.")
            || matches!(last, "adapter_token_ids" | "control_to_substitute_lut")
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if name == "lm_head.weight" && config.bool("tie_word_embeddings")? != Some(false) {
            return Ok(Some(Mapping::Dropped));
        }
        let sizes = Sizes::of(config)?;
        if let Some(&[block]) = captures(FUSED, name).as_deref() {
            return Ok(Some(Mapping::one(format!("blk.{block}.attn_qkv.weight"), sizes.turned())));
        }
        if let Some(&[block]) = captures(GATES, name).as_deref() {
            let half = |part: &str, start| MappedTensor {
                name: format!("blk.{block}.ffn_{part}.weight"),
                steps: vec![Step::Pick { groups: 1, start, len: sizes.inner }],
                slot: None,
            };
            return Ok(Some(Mapping::Made(vec![half("gate", 0), half("up", sizes.inner)])));
        }
        for (stem, slice, ours, part) in ADAPTED {
            for (letter, end) in [("A", "a"), ("B", "b")] {
                if let Some(numbers) = captures(&format!("{stem}.lora_{letter}{slice}"), name) {
                    let ours = filled(&format!("blk.{{}}.{ours}.lora_{end}"), &numbers);
                    return Ok(Some(Mapping::one(ours, sizes.adapter(part, letter == "A"))));
                }
            }
        }
        Ok(None)
    }

    fn modify_tensor(&self, _: &Config, _: &str) -> Result<Vec<Step>, Error> {
        Ok(Vec::new())
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let adapters: Vec<String> = ADAPTED
            .iter()
            .flat_map(|(stem, slice, ..)| {
                ["A", "B"].map(|letter| format!("{stem}.lora_{letter}{slice}"))
            })
            .collect();
        let mut exported = exported
            .patterns([FUSED, GATES])
            .patterns(adapters.iter().map(String::as_str))
            .fields(FIELDS)
            .without(&[key::BLOCK_COUNT, key::EXPERT_USED_COUNT])
            .set(LAYERS, count(model, key::BLOCK_COUNT)?.checked_add(1)?)
            .set(GAIN, whole(number(model, key::ADAPTERS_ROUTER_GAIN).unwrap_or(15.0)));
        exported.patterns.retain(|name| !name.contains(".mlp."));
        for (key, field) in LISTS {
            let tokens = model.metadata().array(&format!("graniteswitch.{key}"))?;
            let tokens: Vec<u64> = tokens.iter().filter_map(|token| token.to_u64()).collect();
            exported = exported.set(field, tokens);
        }
        Some(exported)
    }
}

/// What an adapter adds to.
#[derive(Clone, Copy)]
enum Part {
    Queries,
    Keys,
    Values,
    Output,
    Inner,
    Down,
}

/// Sizes of the model.
struct Sizes {
    width: u64,
    inner: u64,
    heads: u64,
    heads_kv: u64,
    head_dim: u64,
    rank: u64,
    adapters: u64,
}

impl Sizes {
    fn of(config: &Config) -> Result<Self, Error> {
        let adapters = |field: &str| config.require_u32(&[field], OF_ADAPTERS);
        let head_dim = match config.u32(&["projection_head_dim"])? {
            Some(width) => width,
            None => hparams::head_dim(config)?,
        };
        Ok(Self {
            width: hparams::width(config)?.into(),
            inner: hparams::feed_forward(config)?.into(),
            heads: hparams::possible(config, "heads", hparams::head_count(config)?)?.into(),
            heads_kv: hparams::possible(config, "heads of keys", hparams::head_count_kv(config)?)?
                .into(),
            head_dim: head_dim.into(),
            rank: adapters(RANK)?.into(),
            adapters: adapters(ADAPTERS)?.into(),
        })
    }

    /// Columns and rows of the matrix that adapters add to.
    fn of_part(&self, part: Part) -> [u64; 2] {
        let [queries, keys] = [self.heads, self.heads_kv].map(|heads| heads * self.head_dim);
        match part {
            Part::Queries => [self.width, queries],
            Part::Keys | Part::Values => [self.width, keys],
            Part::Output => [queries, self.width],
            Part::Inner => [self.width, self.inner],
            Part::Down => [self.inner, self.width],
        }
    }

    /// The matrices of all adapters, without the dimension of one that checkpoints have, behind those of an
    /// adapter that adds nothing. `is_first` of both matrices that are multiplied.
    fn adapter(&self, part: Part, is_first: bool) -> Vec<Step> {
        let [columns, rows] = self.of_part(part);
        let [row, rows] = if is_first { [columns, self.rank] } else { [self.rank, rows] };
        let shape = |dims: &[u64]| {
            Shape::new(dims).unwrap_or_else(|| unreachable!("these are no more than four"))
        };
        let from = shape(&[row, rows, 1, self.adapters]);
        let mut steps = vec![Step::Reshape { from, to: shape(&[row, rows, self.adapters]) }];
        match part {
            Part::Queries if !is_first => {
                steps.push(Step::InterleaveHalves { heads: self.heads * self.adapters });
            }
            Part::Keys if !is_first => {
                steps.push(Step::InterleaveHalves { heads: self.heads_kv * self.adapters });
            }
            _ => {}
        }
        steps.push(Step::ZeroFirst);
        steps
    }

    /// Halves of heads of queries and keys interleaved, head by head, as those of values stay.
    fn turned(&self) -> Vec<Step> {
        let inner = self.head_dim / 2;
        let of_head = |head| {
            let start = head * self.head_dim;
            Step::Exchange { groups: 1, start, outer: 2, inner, len: 1 }
        };
        (0..self.heads + self.heads_kv).map(of_head).collect()
    }
}
