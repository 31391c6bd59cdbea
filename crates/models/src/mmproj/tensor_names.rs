//! Tensor names of several encoders: checkpoint names behind a prefix on the left, GGUF names on the right.
//!
//! `{}` matches a number. The suffix (`weight`, `bias` or a clamping bound) is not in the table. A tensor without a
//! suffix has its whole name in the table.

use crate::convert::tensor_names::{Table, captures, filled};

/// Prefixes of an encoder's tensor names, each with its table of names.
pub type PrefixedTables = &'static [(&'static str, Table)];

/// Returns the GGUF name of a checkpoint tensor.
pub fn renamed(name: &str, places: PrefixedTables) -> Option<String> {
    const ENDS: [&str; 6] =
        ["weight", "bias", "input_max", "input_min", "output_max", "output_min"];
    let cut = name.rsplit_once('.').filter(|(_, end)| ENDS.contains(end));
    places.iter().find_map(|(prefix, table)| {
        let whole = name.strip_prefix(prefix)?;
        let found = |name: &str| {
            let found =
                |(foreign, ours): &(&str, &str)| Some(filled(ours, &captures(foreign, name)?));
            table.iter().find_map(found)
        };
        found(whole).or_else(|| {
            let (stem, end) = cut?;
            Some(format!("{}.{end}", found(stem.strip_prefix(prefix)?)?))
        })
    })
}

/// Encoder of CLIP and SigLIP in `transformers`.
pub const CLIP: Table = &[
    ("embeddings.class_embedding", "v.class_embd"),
    ("embeddings.patch_embedding", "v.patch_embd"),
    ("embeddings.position_embedding", "v.position_embd"),
    // Misspelled in checkpoints.
    ("pre_layrnorm", "v.pre_ln"),
    ("post_layernorm", "v.post_ln"),
    ("encoder.layers.{}.layer_norm1", "v.blk.{}.ln1"),
    ("encoder.layers.{}.layer_norm2", "v.blk.{}.ln2"),
    ("encoder.layers.{}.self_attn.q_proj", "v.blk.{}.attn_q"),
    ("encoder.layers.{}.self_attn.k_proj", "v.blk.{}.attn_k"),
    ("encoder.layers.{}.self_attn.v_proj", "v.blk.{}.attn_v"),
    ("encoder.layers.{}.self_attn.out_proj", "v.blk.{}.attn_out"),
    ("encoder.layers.{}.mlp.fc1", "v.blk.{}.ffn_up"),
    ("encoder.layers.{}.mlp.fc2", "v.blk.{}.ffn_down"),
];

/// Two-layer projector.
pub const TWO_LAYERS: Table = &[("linear_{}", "mm.{}")];

/// Vision encoder of Qwen, which other models also use.
pub const QWEN: Table = &[
    ("patch_embed.proj", "v.patch_embd"),
    ("pos_embed", "v.position_embd"),
    ("blocks.{}.norm1", "v.blk.{}.ln1"),
    ("blocks.{}.norm2", "v.blk.{}.ln2"),
    ("blocks.{}.attn.qkv", "v.blk.{}.attn_qkv"),
    ("blocks.{}.attn.q_norm", "v.blk.{}.attn_q_norm"),
    ("blocks.{}.attn.k_norm", "v.blk.{}.attn_k_norm"),
    ("blocks.{}.attn.sinks", "v.blk.{}.attn_sinks"),
    ("blocks.{}.attn.proj", "v.blk.{}.attn_out"),
    ("blocks.{}.mlp.fc1", "v.blk.{}.ffn_up"),
    ("blocks.{}.mlp.fc2", "v.blk.{}.ffn_down"),
    ("blocks.{}.mlp.linear_fc1", "v.blk.{}.ffn_up"),
    ("blocks.{}.mlp.linear_fc2", "v.blk.{}.ffn_down"),
    ("blocks.{}.mlp.gate_proj", "v.blk.{}.ffn_gate"),
    ("blocks.{}.mlp.up_proj", "v.blk.{}.ffn_up"),
    ("blocks.{}.mlp.down_proj", "v.blk.{}.ffn_down"),
    ("blocks.{}.attn.q", "v.blk.{}.attn_q"),
    ("blocks.{}.attn.k", "v.blk.{}.attn_k"),
    ("blocks.{}.attn.v", "v.blk.{}.attn_v"),
    ("merger.ln_q", "v.post_ln"),
    ("merger.norm", "v.post_ln"),
    ("merger.mlp.{}", "mm.{}"),
    // The same layers as Qwen2-VL, with its numbers.
    ("merger.linear_fc1", "mm.0"),
    ("merger.linear_fc2", "mm.2"),
];

/// Encoder of Whisper.
pub const WHISPER: Table = &[
    ("embed_positions", "a.position_embd"),
    ("conv{}", "a.conv1d.{}"),
    ("layer_norm", "a.post_ln"),
    ("layers.{}.self_attn_layer_norm", "a.blk.{}.ln1"),
    ("layers.{}.final_layer_norm", "a.blk.{}.ln2"),
    ("layers.{}.self_attn.q_proj", "a.blk.{}.attn_q"),
    ("layers.{}.self_attn.k_proj", "a.blk.{}.attn_k"),
    ("layers.{}.self_attn.v_proj", "a.blk.{}.attn_v"),
    ("layers.{}.self_attn.out_proj", "a.blk.{}.attn_out"),
    ("layers.{}.fc1", "a.blk.{}.ffn_up"),
    ("layers.{}.fc2", "a.blk.{}.ffn_down"),
];

/// Tensors of GLM that [`QWEN`] lacks or names differently.
pub const GLM: Table = &[
    ("embeddings.position_embedding", "v.position_embd"),
    ("post_conv_layernorm", "v.norm_embd"),
    ("post_layernorm", "v.post_ln"),
    ("downsample", "mm.patch_merger"),
    ("merger.proj", "mm.model.fc"),
    ("merger.post_projection_norm", "mm.post_norm"),
    ("merger.gate_proj", "mm.gate"),
    ("merger.up_proj", "mm.up"),
    ("merger.down_proj", "mm.down"),
];

/// Audio encoder of Qwen: Whisper's layers behind other convolutions.
pub const QWEN_AUDIO: Table = &[
    ("conv{}", "a.conv1d.{}"),
    ("conv2d{}", "a.conv2d.{}"),
    ("conv_out", "a.conv_out"),
    ("ln_post", "a.post_ln"),
    ("proj", "mm.a.fc"),
    ("proj{}", "mm.a.mlp.{}"),
    ("layers.{}.self_attn_layer_norm", "a.blk.{}.ln1"),
    ("layers.{}.final_layer_norm", "a.blk.{}.ln2"),
    ("layers.{}.self_attn.q_proj", "a.blk.{}.attn_q"),
    ("layers.{}.self_attn.k_proj", "a.blk.{}.attn_k"),
    ("layers.{}.self_attn.v_proj", "a.blk.{}.attn_v"),
    ("layers.{}.self_attn.out_proj", "a.blk.{}.attn_out"),
    ("layers.{}.fc1", "a.blk.{}.ffn_up"),
    ("layers.{}.fc2", "a.blk.{}.ffn_down"),
];

/// Audio projectors.
pub const AUDIO_PROJECTOR: Table = &[
    ("linear_{}", "mm.a.mlp.{}"),
    ("linear", "mm.a.fc"),
    ("ln_pre", "mm.a.norm_pre"),
    ("ln_mid", "mm.a.norm_mid"),
];

/// Returns the layer index and the suffix of a name that matches the pattern.
pub fn layer_of<'n>(name: &'n str, pattern: &str) -> Option<(u32, &'n str)> {
    let (stem, end) = name.rsplit_once('.')?;
    Some((*captures(pattern, stem)?.first()?, end))
}

/// Returns the numbers in a name, its suffix, and its entry in the table.
pub fn captured(name: &str, table: Table) -> Option<(Vec<u32>, &str, &'static str)> {
    let (stem, end) = name.rsplit_once('.')?;
    table.iter().find_map(|(pattern, ours)| Some((captures(pattern, stem)?, end, *ours)))
}

/// Returns the GGUF name from the table, for the whole name or the name before its suffix.
pub fn captured_whole(name: &str, table: Table) -> Option<String> {
    let find = |name: &str| table.iter().find(|(foreign, _)| *foreign == name);
    let whole = find(name).map(|(_, ours)| (*ours).to_owned());
    whole.or_else(|| {
        let (stem, end) = name.rsplit_once('.')?;
        Some(format!("{}.{end}", find(stem)?.1))
    })
}
