//! Conversion of MiniMax-M3: as M2, with an indexer, leading dense layers and norm weights that are
//! stored minus 1.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::json;

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, steps};
use crate::llama::convert::{ROUTER_NAMES, mixtral_expert_patterns};
use crate::minimax_m2;
use crate::minimax_m2::convert::{MINIMAX_M2, MinimaxM2, ROUTER_BIAS};
use crate::schema::key;

/// Tensor names of shared experts and indexer.
const M3_NAMES: Table = &[
    ("model.layers.{}.block_sparse_moe.shared_experts.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.block_sparse_moe.shared_experts.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.block_sparse_moe.shared_experts.down_proj", "blk.{}.ffn_down_shexp"),
    ("model.layers.{}.self_attn.index_q_proj", "blk.{}.indexer.q_proj"),
    ("model.layers.{}.self_attn.index_k_proj", "blk.{}.indexer.k_proj"),
    ("model.layers.{}.self_attn.index_q_norm", "blk.{}.indexer.q_norm"),
    ("model.layers.{}.self_attn.index_k_norm", "blk.{}.indexer.k_norm"),
];

/// Keys of the indexer, and their fields in its configuration.
const INDEXER: [(&str, &str); 5] = [
    ("attention.indexer.head_count", "sparse_num_index_heads"),
    ("attention.indexer.key_length", "sparse_index_dim"),
    ("attention.indexer.top_k", "sparse_topk_blocks"),
    ("attention.indexer.block_size", "sparse_block_size"),
    ("attention.indexer.local_blocks", "sparse_local_block"),
];

/// Field with the configuration of the indexer.
const INDEXER_CONFIG: &str = "sparse_attention_config";

/// Field with a flag per layer, 1 for MoE.
const MOE_LAYERS: &str = "moe_layer_freq";

/// Field with the FFN size of dense layers.
const DENSE_LENGTH: &str = "dense_intermediate_size";

pub(crate) struct MinimaxM3;

/// Description of [`MinimaxM3`].
pub(crate) static MINIMAX_M3: Description = Description {
    classes: &["MiniMaxM3SparseForCausalLM", "MiniMaxM3SparseForConditionalGeneration"],
    architecture: "minimax-m3",
    model_type: "minimax_m3",
    tensor_names: &[M3_NAMES, ROUTER_NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::EXPERT_COUNT, "num_local_experts"),
        (key::ROPE_DIMENSION_COUNT, "rotary_dim"),
        (key::FEED_FORWARD_LENGTH, DENSE_LENGTH),
        (key::EXPERT_FEED_FORWARD_LENGTH, "intermediate_size"),
        (key::EXPERT_SHARED_COUNT, "n_shared_experts"),
        (key::EXPERT_WEIGHTS_SCALE, "routed_scaling_factor"),
    ],
    ..MINIMAX_M2
};

impl Converter for MinimaxM3 {
    fn description(&self) -> &'static Description {
        &MINIMAX_M3
    }

    fn base(&self) -> &'static dyn Converter {
        &MinimaxM2
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        minimax_m2::convert::keys(config, keys)?;
        keys.set_u32(key::FEED_FORWARD_LENGTH, config.u32(&[DENSE_LENGTH])?);
        let expert_length =
            config.require_u32(&["intermediate_size"], "the FFN size of an expert")?;
        keys.set(key::EXPERT_FEED_FORWARD_LENGTH, expert_length);
        keys.set_u32(key::EXPERT_SHARED_COUNT, config.u32(&["n_shared_experts"])?);
        keys.set_f32(key::EXPERT_WEIGHTS_SCALE, config.f32(&["routed_scaling_factor"])?);
        keys.set(key::EXPERT_WEIGHTS_NORM, true);
        let indexer = config.part(INDEXER_CONFIG);
        for (key, field) in INDEXER {
            keys.set(key, indexer.require_u32(&[field], "a size of the indexer")?);
        }
        let layers = config.find(&[MOE_LAYERS]).and_then(|(_, layers)| layers.as_array());
        let dense =
            layers.into_iter().flatten().take_while(|flag| flag.as_u64() == Some(0)).count();
        keys.set(key::LEADING_DENSE_BLOCK_COUNT, dense as u32);
        Ok(())
    }

    fn keeps_f32(&self, _: &Config, name: &str) -> bool {
        name.contains(".indexer.")
    }

    fn modify_tensor(&self, _: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::norm_plus_one(name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let blocks = count(model, key::BLOCK_COUNT)?.min(1 << 16);
        let dense = count(model, key::LEADING_DENSE_BLOCK_COUNT).unwrap_or(0);
        let mut indexer = json!({});
        for (key, field) in INDEXER {
            indexer[field] = count(model, key).into();
        }
        let has_experts: Vec<u32> = (0..blocks).map(|layer| u32::from(layer >= dense)).collect();
        let exported = exported
            .patterns(mixtral_expert_patterns())
            .patterns([ROUTER_BIAS])
            .set(INDEXER_CONFIG, indexer)
            .set(MOE_LAYERS, has_experts);
        Some(match count(model, key::EXPERT_GATING_FUNC) {
            Some(2) => exported.set("scoring_func", "sigmoid"),
            _ => exported,
        })
    }
}
