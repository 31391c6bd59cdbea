//! Conversion of Granite Switch: the LoRA matrices of all adapters are stacked behind those of an
//! adapter of zeros, and the rows of Q and K are permuted for interleaved RoPE in the fused QKV
//! matrix and the adapters.

use gguf::{Array, Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::export::{count, number, whole};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures, filled};
use crate::convert::{Converter, Description, Exported, MappedTensor, Mapping, hparams};
use crate::granite::convert::{GRANITE, Granite, granite_keys};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.self_attn.o_proj.base_layer", "blk.{}.attn_output"),
    ("model.layers.{}.shared_mlp.output_linear.base_layer", "blk.{}.ffn_down"),
];

/// Fused QKV projection.
const FUSED_QKV: &str = "model.layers.{}.self_attn.qkv_proj.base_layer.weight";

/// Gate projection above up projection.
const GATE_AND_UP: &str = "model.layers.{}.shared_mlp.input_linear.base_layer.weight";

/// Module of the fused QKV projection.
const QKV_MODULE: &str = "model.layers.{}.self_attn.qkv_proj";

/// Module of the gate and up projection.
const INPUT_MODULE: &str = "model.layers.{}.shared_mlp.input_linear";

/// Projections with LoRA adapters: module, suffix behind `lora_A` and `lora_B`, GGUF name,
/// projection.
const ADAPTED: [(&str, &str, &str, Projection); 7] = [
    (QKV_MODULE, "_slices.0", "attn_q", Projection::Queries),
    (QKV_MODULE, "_slices.1", "attn_k", Projection::Keys),
    (QKV_MODULE, "_slices.2", "attn_v", Projection::Values),
    ("model.layers.{}.self_attn.o_proj", "", "attn_output", Projection::Output),
    (INPUT_MODULE, "_slices.0", "ffn_gate", Projection::Inner),
    (INPUT_MODULE, "_slices.1", "ffn_up", Projection::Inner),
    ("model.layers.{}.shared_mlp.output_linear", "", "ffn_down", Projection::Down),
];

/// Keys with the values of config.json fields.
const FIELDS: &[(&str, &str)] = &[
    (key::ADAPTERS_COUNT, ADAPTERS),
    (key::ADAPTERS_LORA_RANK, RANK),
    (key::EXPERT_SHARED_FEED_FORWARD_LENGTH, SHARED_LENGTH),
];

/// Lists of token IDs: control tokens, and the tokens whose embeddings replace theirs.
const TOKEN_LISTS: [(&str, &str); 2] = [
    ("adapters.token_ids_activate", "adapter_token_ids"),
    ("adapters.token_ids_substitute", "adapter_substitute_token_ids"),
];

/// Field with the number of adapters.
const ADAPTERS: &str = "num_adapters";

/// Field with the LoRA rank.
const RANK: &str = "max_lora_rank";

/// Meaning of both fields.
const ADAPTER_SIZE: &str = "the number or rank of the built-in adapters";

/// Field with the FFN size.
const SHARED_LENGTH: &str = "shared_intermediate_size";

/// Field with the gain of control tokens.
const GAIN: &str = "control_token_gain";

/// Field with the number of layers.
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
        // There are no routed experts: the shared expert is the dense FFN.
        if let Some(experts) = config.u32(&["num_local_experts"])?.filter(|&experts| experts > 0) {
            return Err(hparams::not_computed(config, "num_local_experts", experts));
        }
        config.set("intermediate_size", config.require_u32(&[SHARED_LENGTH], "the FFN size")?);
        Granite.complete_config(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let mut without_switch = config.clone();
        // The last layer is the switch, which has no weights.
        without_switch.set(LAYERS, hparams::block_count(config)?.saturating_sub(1));
        granite_keys(&without_switch, keys)?;
        keys.set(key::EXPERT_USED_COUNT, 0u32);
        for (key, field) in [("adapters.count", ADAPTERS), ("adapters.lora_rank", RANK)] {
            keys.set(key, config.require_u32(&[field], ADAPTER_SIZE)?);
        }
        for (key, field) in TOKEN_LISTS {
            let tokens = config
                .u32s(field)?
                .ok_or_else(|| config.missing(field, "a token ID per adapter"))?;
            let tokens: Vec<i32> = tokens.into_iter().map(|token| token as i32).collect();
            keys.set(key, Array::from(&tokens[..]));
        }
        keys.set(key::ADAPTERS_ROUTER_GAIN, config.f32(&[GAIN])?.unwrap_or(15.0));
        Ok(())
    }

    // The runtime computes the switch from the lists of token IDs.
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
        if let Some(&[block]) = captures(FUSED_QKV, name).as_deref() {
            return Ok(Some(Mapping::one(
                format!("blk.{block}.attn_qkv.weight"),
                sizes.qkv_permutation(),
            )));
        }
        if let Some(&[block]) = captures(GATE_AND_UP, name).as_deref() {
            let tensor = |part: &str, start| MappedTensor {
                name: format!("blk.{block}.ffn_{part}.weight"),
                steps: vec![Step::Pick { groups: 1, start, len: sizes.inner }],
                slot: None,
            };
            return Ok(Some(Mapping::Tensors(vec![tensor("gate", 0), tensor("up", sizes.inner)])));
        }
        for (module, suffix, gguf_name, projection) in ADAPTED {
            for (hf_lora, gguf_lora) in [("A", "a"), ("B", "b")] {
                if let Some(numbers) = captures(&format!("{module}.lora_{hf_lora}{suffix}"), name) {
                    let gguf_name =
                        filled(&format!("blk.{{}}.{gguf_name}.lora_{gguf_lora}"), &numbers);
                    let steps = sizes.lora_steps(projection, hf_lora == "A");
                    return Ok(Some(Mapping::one(gguf_name, steps)));
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
            .flat_map(|(module, suffix, ..)| {
                ["A", "B"].map(|lora| format!("{module}.lora_{lora}{suffix}"))
            })
            .collect();
        let mut exported = exported
            .patterns([FUSED_QKV, GATE_AND_UP])
            .patterns(adapters.iter().map(String::as_str))
            .fields(FIELDS)
            .without(&[key::BLOCK_COUNT, key::EXPERT_USED_COUNT])
            .set(LAYERS, count(model, key::BLOCK_COUNT)?.checked_add(1)?)
            .set(GAIN, whole(number(model, key::ADAPTERS_ROUTER_GAIN).unwrap_or(15.0)));
        exported.patterns.retain(|name| !name.contains(".mlp."));
        for (key, field) in TOKEN_LISTS {
            let tokens = model.metadata().array(&format!("graniteswitch.{key}"))?;
            let tokens: Vec<u64> = tokens.iter().filter_map(|token| token.to_u64()).collect();
            exported = exported.set(field, tokens);
        }
        Some(exported)
    }
}

/// A projection with LoRA adapters.
#[derive(Clone, Copy)]
enum Projection {
    Queries,
    Keys,
    Values,
    Output,
    Inner,
    Down,
}

/// Sizes of the model and its adapters.
struct Sizes {
    embedding: u64,
    inner: u64,
    heads: u64,
    heads_kv: u64,
    head_dim: u64,
    rank: u64,
    adapters: u64,
}

impl Sizes {
    fn of(config: &Config) -> Result<Self, Error> {
        let adapters = |field: &str| config.require_u32(&[field], ADAPTER_SIZE);
        let head_dim = match config.u32(&["projection_head_dim"])? {
            Some(head_dim) => head_dim,
            None => hparams::head_dim(config)?,
        };
        Ok(Self {
            embedding: hparams::width(config)?.into(),
            inner: hparams::feed_forward(config)?.into(),
            heads: hparams::possible(config, "heads", hparams::head_count(config)?)?.into(),
            heads_kv: hparams::possible(config, "KV heads", hparams::head_count_kv(config)?)?
                .into(),
            head_dim: head_dim.into(),
            rank: adapters(RANK)?.into(),
            adapters: adapters(ADAPTERS)?.into(),
        })
    }

    /// Returns the numbers of columns and rows of a projection.
    fn shape(&self, projection: Projection) -> [u64; 2] {
        let [queries, keys] = [self.heads, self.heads_kv].map(|heads| heads * self.head_dim);
        match projection {
            Projection::Queries => [self.embedding, queries],
            Projection::Keys | Projection::Values => [self.embedding, keys],
            Projection::Output => [queries, self.embedding],
            Projection::Inner => [self.embedding, self.inner],
            Projection::Down => [self.inner, self.embedding],
        }
    }

    /// Returns the steps for LoRA matrix A or B of all adapters: the checkpoint's dimension of size
    /// 1 is dropped, an adapter of zeros is put first, and the B matrices of Q and K are permuted
    /// as their rows are.
    fn lora_steps(&self, projection: Projection, is_a: bool) -> Vec<Step> {
        let [columns, rows] = self.shape(projection);
        let [row, rows] = if is_a { [columns, self.rank] } else { [self.rank, rows] };
        let shape = |dims: &[u64]| {
            Shape::new(dims).unwrap_or_else(|| unreachable!("at most four dimensions"))
        };
        let from = shape(&[row, rows, 1, self.adapters]);
        let mut steps = vec![Step::Reshape { from, to: shape(&[row, rows, self.adapters]) }];
        match projection {
            Projection::Queries if !is_a => {
                steps.push(Step::InterleaveHalves { heads: self.heads * self.adapters });
            }
            Projection::Keys if !is_a => {
                steps.push(Step::InterleaveHalves { heads: self.heads_kv * self.adapters });
            }
            _ => {}
        }
        steps.push(Step::ZeroFirst);
        steps
    }

    /// Returns the permutation of the fused QKV matrix: the two halves of each query and key head
    /// are interleaved, values stay.
    fn qkv_permutation(&self) -> Vec<Step> {
        let inner = self.head_dim / 2;
        let interleave = |head| {
            let start = head * self.head_dim;
            Step::Exchange { groups: 1, start, outer: 2, inner, len: 1 }
        };
        (0..self.heads + self.heads_kv).map(interleave).collect()
    }
}
