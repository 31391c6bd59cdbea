//! Mixture of experts: one tensor per expert, or stacked tensors.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Step, Tensor};

use crate::convert::tensor_names::{Table, captures};
use crate::convert::{ExpertSlot, MappedTensor, Mapping, hparams};
use crate::schema::key;

/// Router and shared expert, with DeepSeek's names.
pub const BESIDE_SHARED: Table = &[
    ("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.shared_experts.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.mlp.shared_experts.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.mlp.shared_experts.down_proj", "blk.{}.ffn_down_shexp"),
];

/// Bias of the router's scores, which only affects the selection of experts.
pub const ROUTER_BIAS: &str = "model.layers.{}.mlp.gate.e_score_correction_bias";

/// Field of the FFN size of a routed expert.
pub const WIDTH: &[&str] = &["moe_intermediate_size"];

/// Keys and their fields in configurations of DeepSeek and similar models.
pub const ROUTED_FIELDS: &[(&str, &str)] = &[
    (key::EXPERT_COUNT, "n_routed_experts"),
    (key::EXPERT_SHARED_COUNT, "n_shared_experts"),
    (key::EXPERT_GROUP_COUNT, "n_group"),
    (key::EXPERT_GROUP_USED_COUNT, "topk_group"),
    (key::EXPERT_WEIGHTS_SCALE, "routed_scaling_factor"),
    (key::LEADING_DENSE_BLOCK_COUNT, "first_k_dense_replace"),
];

/// Matrices of an expert with the usual names: checkpoint name of one, GGUF name of the stack.
const ONE_BY_ONE: [(&str, &str); 3] = [
    ("model.layers.{}.mlp.experts.{}.gate_proj.weight", "ffn_gate_exps"),
    ("model.layers.{}.mlp.experts.{}.down_proj.weight", "ffn_down_exps"),
    ("model.layers.{}.mlp.experts.{}.up_proj.weight", "ffn_up_exps"),
];

/// Returns the checkpoint names of one expert's matrices.
pub fn one_by_one() -> [&'static str; 3] {
    ONE_BY_ONE.map(|(name, _)| name)
}

/// Maps a matrix of one expert to its slot in the stacked tensor. `patterns` are pairs of checkpoint name, with layer
/// and expert, and GGUF name of the stack; `count` returns the number of experts.
pub fn one_of(
    names: &[(&str, &str)],
    name: &str,
    count: impl FnOnce() -> Result<u32, Error>,
) -> Result<Option<Mapping>, Error> {
    for (foreign, ours) in names {
        if let Some(&[block, index]) = captures(foreign, name).as_deref() {
            let slot = ExpertSlot { index, count: count()? };
            return Ok(Some(Mapping::slot(format!("blk.{block}.{ours}.weight"), slot)));
        }
    }
    Ok(None)
}

/// Maps the router's bias, whose checkpoint name is `foreign`.
pub fn router_bias(foreign: &str, name: &str) -> Option<Mapping> {
    match captures(foreign, name).as_deref() {
        Some(&[block]) => Some(Mapping::one(format!("blk.{block}.exp_probs_b.bias"), [])),
        _ => None,
    }
}

/// Maps a matrix of one expert, or a stacked tensor of all experts as newer versions of `transformers` write
/// it; `None` for other tensors. `width` returns the FFN size of an expert.
pub fn mapping(
    config: &Config,
    name: &str,
    width: impl FnOnce() -> Result<u32, Error>,
) -> Result<Option<Mapping>, Error> {
    if let Some(one) = one_of(&ONE_BY_ONE, name, || hparams::expert_count(config))? {
        return Ok(Some(one));
    }
    let stem = name.strip_suffix(".weight").unwrap_or(name);
    if let Some(&[block]) = captures("model.layers.{}.mlp.experts.down_proj", stem).as_deref() {
        return Ok(Some(Mapping::one(format!("blk.{block}.ffn_down_exps.weight"), [])));
    }
    if let Some(&[block]) = captures("model.layers.{}.mlp.experts.gate_up_proj", stem).as_deref() {
        let names = [format!("blk.{block}.ffn_gate_exps"), format!("blk.{block}.ffn_up_exps")];
        return Ok(Some(halves(names, hparams::expert_count(config)?, width()?)));
    }
    Ok(None)
}

/// Maps a matrix of an expert, or the router's bias, whose checkpoint name is `bias`.
pub fn routed(config: &Config, name: &str, bias: &str) -> Result<Option<Mapping>, Error> {
    match router_bias(bias, name) {
        Some(bias) => Ok(Some(bias)),
        None => mapping(config, name, || width(config)),
    }
}

/// Returns the FFN size of a routed expert.
pub fn width(config: &Config) -> Result<u32, Error> {
    config.require_u32(WIDTH, "the FFN size of a routed expert")
}

/// Splits a stacked tensor whose `count` matrices each have `width` gate rows, then `width` up rows.
pub fn halves([gate, up]: [String; 2], count: u32, width: u32) -> Mapping {
    let (groups, len) = (count.into(), width.into());
    let half = |stem: String, start| MappedTensor {
        name: stem + ".weight",
        steps: vec![Step::Pick { groups, start, len }],
        slot: None,
    };
    Mapping::Tensors(vec![half(gate, 0), half(up, len)])
}

/// All experts of a layer in two tensors with rows and columns exchanged: the matrices of the way down, and gates beside
/// what they gate. The patterns of both names, and where the width of an expert stands.
pub fn turned(
    config: &Config,
    name: &str,
    [down, gate_and_up]: [&str; 2],
    width: &[&str],
) -> Result<Option<Mapping>, Error> {
    if let Some(&[block]) = captures(down, name).as_deref() {
        let name = format!("blk.{block}.ffn_down_exps.weight");
        return Ok(Some(Mapping::one(name, [Step::Transpose])));
    }
    let found = captures(gate_and_up, name);
    let Some(&[block]) = found.as_deref() else { return Ok(None) };
    let names = ["gate", "up"].map(|part| format!("blk.{block}.ffn_{part}_exps"));
    let width = config.require_u32(width, "the FFN size of an expert")?;
    let mapping = halves(names, hparams::expert_count(config)?, width);
    let Mapping::Tensors(made) = mapping else { return Ok(Some(mapping)) };
    let turned = made
        .into_iter()
        .map(|made| MappedTensor { steps: [vec![Step::Transpose], made.steps].concat(), ..made });
    Ok(Some(Mapping::Tensors(turned.collect())))
}

/// Sorts the stacked matrices of experts from down, gate, up to gate, up, down.
pub fn gates_first(tensors: &mut [Tensor]) {
    const ORDER: [&str; 3] = ["ffn_down_exps.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight"];
    for start in 0..tensors.len().saturating_sub(2) {
        let three = &mut tensors[start..start + 3];
        if three.iter().zip(ORDER).all(|(tensor, end)| tensor.name.ends_with(end)) {
            three.rotate_left(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fused_gates_come_apart() {
        let config = Config::of(json!({"num_experts": 8}));
        let fused = mapping(&config, "model.layers.2.mlp.experts.gate_up_proj", || Ok(64))
            .unwrap()
            .unwrap();
        let Mapping::Tensors(made) = fused else { panic!("two tensors") };
        let names: Vec<_> = made.iter().map(|made| &*made.name).collect();
        assert_eq!(names, ["blk.2.ffn_gate_exps.weight", "blk.2.ffn_up_exps.weight"]);
        assert_eq!(made[1].steps, [Step::Pick { groups: 8, start: 64, len: 64 }]);
        assert_eq!(mapping(&config, "model.layers.2.mlp.gate.weight", || Ok(64)).unwrap(), None);
    }
}
