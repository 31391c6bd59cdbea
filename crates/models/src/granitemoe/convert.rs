//! Conversion of Granite MoE: gate and up projections, fused in checkpoints, are split. Without
//! routed experts the shared expert becomes the dense FFN.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::moe::halves;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures};
use crate::convert::{
    Converter, Description, Exported, ExtraTensors, Mapping, VocabularyKind, export, hparams, rope,
    steps,
};
use crate::granite::convert::{MULTIPLIERS, PRE_TOKENIZERS, complete_config, granite_keys};

/// Router, and down projections of all experts.
pub(crate) const EXPERT_NAMES: Table = &[
    ("model.layers.{}.block_sparse_moe.router.layer", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.block_sparse_moe.output_linear", "blk.{}.ffn_down_exps"),
];

/// Gate and up projections of all experts.
const EXPERTS: &str = "model.layers.{}.block_sparse_moe.input_linear.weight";

/// Gate and up projections of the shared expert.
const SHARED: &str = "model.layers.{}.shared_mlp.input_linear.weight";

/// Down projection of the shared expert.
const SHARED_DOWN: &str = "model.layers.{}.shared_mlp.output_linear.weight";

pub(crate) struct GraniteMoe;

/// Description of [`GraniteMoe`].
pub(crate) static GRANITE_MOE: Description = Description {
    classes: &[GRANITE_MOE_CLASS, GRANITE_MOE_SHARED_CLASS],
    architecture: "granitemoe",
    model_type: "granitemoe",
    vocabulary: VocabularyKind::Llama,
    pre_tokenizers: PRE_TOKENIZERS,
    tensor_names: &[EXPERT_NAMES, LLAMA_LIKE],
    config_fields: &MULTIPLIERS,
    ..Description::DECODER
};

impl Converter for GraniteMoe {
    fn description(&self) -> &'static Description {
        &GRANITE_MOE
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("num_local_experts", 8);
        config.default("num_experts_per_tok", 2);
        // Without routed experts the shared expert is the dense FFN.
        if !has_experts(config)? {
            let length = config.require_u32(&["shared_intermediate_size"], SHARED_LENGTH)?;
            config.set("intermediate_size", length);
            config.set("num_experts_per_tok", 0);
        }
        complete_config(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        granite_keys(config, keys)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if let Some(&[block]) = captures(EXPERTS, name).as_deref() {
            let names = ["gate", "up"].map(|part| format!("blk.{block}.ffn_{part}_exps"));
            let count = hparams::expert_count(config)?;
            return Ok(Some(halves(names, count, hparams::feed_forward(config)?)));
        }
        let suffix = if has_experts(config)? { "_shexp" } else { "" };
        if let Some(&[block]) = captures(SHARED, name).as_deref() {
            let names = ["gate", "up"].map(|part| format!("blk.{block}.ffn_{part}{suffix}"));
            let length = config.require_u32(&["shared_intermediate_size"], SHARED_LENGTH)?;
            return Ok(Some(halves(names, 1, length)));
        }
        if let Some(&[block]) = captures(SHARED_DOWN, name).as_deref() {
            return Ok(Some(Mapping::one(format!("blk.{block}.ffn_down{suffix}.weight"), [])));
        }
        Ok(None)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let count = |key| export::count(model, key).filter(|&count| count != 0);
        let shared = "expert_shared_feed_forward_length";
        let has_shared = count(shared).is_some();
        let (class, model_type) = match has_shared {
            true => (GRANITE_MOE_SHARED_CLASS, "granitemoeshared"),
            false => (GRANITE_MOE_CLASS, "granitemoe"),
        };
        let mut exported = exported
            .class(class, model_type)
            .patterns(count("expert_count").is_some().then_some(EXPERTS))
            .patterns(has_shared.then_some([SHARED, SHARED_DOWN]).into_iter().flatten())
            .fields(&[("expert_count", "num_local_experts"), (shared, "shared_intermediate_size")]);
        // The names of a dense FFN are not those of this class.
        exported.patterns.retain(|name| !name.contains(".mlp."));
        Some(exported)
    }
}

/// Meaning of `shared_intermediate_size`.
const SHARED_LENGTH: &str = "the FFN size of the shared expert";

/// Class without a shared expert.
const GRANITE_MOE_CLASS: &str = "GraniteMoeForCausalLM";

/// Class with a shared expert.
const GRANITE_MOE_SHARED_CLASS: &str = "GraniteMoeSharedForCausalLM";

/// Returns whether the model has routed experts.
fn has_experts(config: &Config) -> Result<bool, Error> {
    Ok(config.u32(&["num_local_experts"])?.is_some_and(|count| count > 0))
}
