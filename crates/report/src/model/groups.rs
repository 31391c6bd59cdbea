//! Sizes of the tensors by function.

use std::collections::BTreeMap;

use gguf::units::bytes;
use gguf_store::Model;
use serde::Serialize;

/// Groups by parts of tensor names; the first that matches applies.
const GROUPS: &[(&str, &[&str])] = &[
    ("norms", &["norm"]),
    ("experts", &["_exps", "_shexp", "ffn_gate_inp"]),
    ("token embedding", &["embd", "token_types"]),
    ("output", &["output.", "cls"]),
    ("attention", &["attn", "cross"]),
    ("feed-forward", &["ffn", "mlp"]),
    ("state space", &["ssm", "time_mix", "channel_mix", "shortconv"]),
    ("convolution", &["conv"]),
];

/// Share of a group of tensors in a model.
#[derive(Serialize)]
pub struct GroupShare {
    /// Name of the group.
    pub name: &'static str,
    /// Number of tensors.
    pub tensors: u64,
    /// Size, formatted.
    pub size: String,
    /// Share of all tensor data in percent.
    pub percent: String,
}

/// Returns the groups of a model, the largest first.
pub fn groups(model: &Model) -> Vec<GroupShare> {
    let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for tensor in model.tensors() {
        let (tensors, size) = sums.entry(group_of(&tensor.info.name)).or_default();
        *tensors += 1;
        *size = size.saturating_add(tensor.info.byte_len().unwrap_or(0));
    }
    let all = sums.values().fold(0u64, |sum, (_, size)| sum.saturating_add(*size));
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (_, size))| std::cmp::Reverse(*size));
    let share = |(name, (tensors, size)): (&'static str, (u64, u64))| GroupShare {
        name,
        tensors,
        size: bytes(size),
        percent: format!("{:.1}", size as f64 * 100.0 / all.max(1) as f64),
    };
    sums.into_iter().map(share).collect()
}

fn group_of(name: &str) -> &'static str {
    // The output of attention is no output of the model.
    let kind = name.rsplit_once("blk.").map_or(name, |(_, rest)| rest);
    let found = GROUPS.iter().find(|(group, parts)| {
        parts.iter().any(|part| match *group {
            "output" => kind.starts_with(part),
            _ => kind.contains(part),
        })
    });
    found.map_or("other", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_tensor_names() {
        for (name, group) in [
            ("blk.3.attn_output.weight", "attention"),
            ("output.weight", "output"),
            ("output_norm.weight", "norms"),
            ("blk.0.ffn_up_exps.weight", "experts"),
            ("blk.0.ffn_gate_inp.weight", "experts"),
            ("token_embd.weight", "token embedding"),
            ("blk.10.ssm_in.weight", "state space"),
            ("rope_freqs.weight", "other"),
        ] {
            assert_eq!(group_of(name), group, "{name}");
        }
    }
}
