//! Tensor names of several models: checkpoint names on the left, GGUF names on the right.
//!
//! `{}` matches the layer index. The suffix (`weight` or `bias`) is not in the table.

use std::borrow::Cow;

/// Pairs of checkpoint name and GGUF name.
pub type Table = &'static [(&'static str, &'static str)];

/// Names of Llama and most other decoders.
pub const LLAMA_LIKE: Table = &[
    ("model.embed_tokens", "token_embd"),
    ("model.norm", "output_norm"),
    ("lm_head", "output"),
    ("model.layers.{}.input_layernorm", "blk.{}.attn_norm"),
    ("model.layers.{}.self_attn.q_proj", "blk.{}.attn_q"),
    ("model.layers.{}.self_attn.k_proj", "blk.{}.attn_k"),
    ("model.layers.{}.self_attn.v_proj", "blk.{}.attn_v"),
    ("model.layers.{}.self_attn.o_proj", "blk.{}.attn_output"),
    ("model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm"),
    ("model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm"),
    ("model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"),
    ("model.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate"),
    ("model.layers.{}.mlp.up_proj", "blk.{}.ffn_up"),
    ("model.layers.{}.mlp.down_proj", "blk.{}.ffn_down"),
];

/// Returns the name with the prefix `model.`, which checkpoints of a class without a head lack.
pub fn with_model(name: &str) -> Cow<'_, str> {
    const BARE: [&str; 4] = ["layers.", "embed_tokens.", "embedding_norm.", "norm."];
    match BARE.iter().any(|start| name.starts_with(start)) {
        true => format!("model.{name}").into(),
        false => name.into(),
    }
}

/// Returns the GGUF name of a checkpoint tensor, from the first table that has it.
pub fn renamed(name: &str, tables: &[Table]) -> Option<String> {
    let name = Name::parse(name)?;
    tables.iter().find_map(|table| name.mapped(table))
}

/// Returns the layer index in a usual tensor name.
pub fn block_of(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("model.layers.")?;
    rest[..rest.find('.')?].parse().ok()
}

/// Returns the checkpoint names in a table, with both suffixes.
pub fn foreign(table: Table) -> impl Iterator<Item = String> {
    table.iter().flat_map(|(name, _)| [format!("{name}.weight"), format!("{name}.bias")])
}

/// Checkpoint tensor name, split at its last dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// Everything but the last segment.
    stem: &'a str,
    /// The last segment: `weight` or `bias`.
    suffix: &'a str,
}

impl<'a> Name<'a> {
    /// Splits a name at its last dot.
    pub fn parse(name: &'a str) -> Option<Self> {
        let (stem, suffix) = name.rsplit_once('.')?;
        matches!(suffix, "weight" | "bias").then_some(Self { stem, suffix })
    }

    /// Returns the GGUF name, if the table has one.
    pub fn mapped(self, table: Table) -> Option<String> {
        table.iter().find_map(|(foreign, ours)| {
            let numbers = captures(foreign, self.stem)?;
            Some(format!("{}.{}", filled(ours, &numbers), self.suffix))
        })
    }
}

/// Returns the numbers that `{}` matches, if `text` matches `pattern`.
pub fn captures(pattern: &str, text: &str) -> Option<Vec<u32>> {
    let mut pieces = pattern.split("{}");
    let mut rest = text.strip_prefix(pieces.next()?)?;
    let mut numbers = Vec::new();
    for piece in pieces {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        numbers.push(rest[..digits].parse().ok()?);
        rest = rest[digits..].strip_prefix(piece)?;
    }
    rest.is_empty().then_some(numbers)
}

/// Returns `pattern` with these numbers in place of `{}`.
pub fn filled(pattern: &str, numbers: &[u32]) -> String {
    numbers
        .iter()
        .fold(pattern.to_owned(), |name, number| name.replacen("{}", &number.to_string(), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(name: &str) -> Option<String> {
        Name::parse(name)?.mapped(LLAMA_LIKE)
    }

    #[test]
    fn names_map_with_their_block() {
        let bias = mapped("model.layers.17.self_attn.q_proj.bias");
        assert_eq!(bias.as_deref(), Some("blk.17.attn_q.bias"));
        assert_eq!(mapped("lm_head.weight").as_deref(), Some("output.weight"));
        assert_eq!(mapped("model.layers.x.self_attn.q_proj.weight"), None);
        assert_eq!(mapped("model.layers.1.self_attn.rotary_emb.inv_freq"), None);
        assert_eq!(captures("a.{}.b.{}", "a.3.b.21"), Some(vec![3, 21]));
        assert_eq!(captures("a.{}.b", "a.3.bc"), None);
    }
}
