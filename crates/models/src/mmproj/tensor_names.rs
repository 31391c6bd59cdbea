//! Tensor names that encoders share: foreign ones on the left, behind the prefix of a place, ours on the
//! right.
//!
//! `{}` stands for a number. What follows, `weight`, `bias` or a bound of values, is not in the table: it
//! stays as it is. A tensor without that has its whole name on the left.

use crate::convert::tensor_names::{Table, captures, filled};

/// Where the tensors of an encoder stand, and what they are called there.
pub type Places = &'static [(&'static str, Table)];

/// Our name for a foreign one.
pub fn renamed(name: &str, places: Places) -> Option<String> {
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

/// The encoder of CLIP and SigLIP as `transformers` has it.
pub const CLIP: Table = &[
    ("embeddings.class_embedding", "v.class_embd"),
    ("embeddings.patch_embedding", "v.patch_embd"),
    ("embeddings.position_embedding", "v.position_embd"),
    // Spelled so in checkpoints.
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

/// A projector of two layers.
pub const TWO_LAYERS: Table = &[("linear_{}", "mm.{}")];

/// The vision tower of Qwen, which others took over.
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
    // As many as Qwen 2 has, and counted as there.
    ("merger.linear_fc1", "mm.0"),
    ("merger.linear_fc2", "mm.2"),
];

/// The encoder of Whisper.
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

/// What GLM has besides [`QWEN`], or otherwise.
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

/// Qwen's encoder of sound: Whisper's layers, behind other convolutions.
pub const QWEN_SOUND: Table = &[
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

/// Projectors of sound.
pub const SOUND_PROJECTOR: Table = &[
    ("linear_{}", "mm.a.mlp.{}"),
    ("linear", "mm.a.fc"),
    ("ln_pre", "mm.a.norm_pre"),
    ("ln_mid", "mm.a.norm_mid"),
];

/// The number of the layer, and what follows the last dot, of a name that fits the pattern.
pub fn layer_of<'n>(name: &'n str, pattern: &str) -> Option<(u32, &'n str)> {
    let (stem, end) = name.rsplit_once('.')?;
    Some((*captures(pattern, stem)?.first()?, end))
}

/// The numbers in a name, what follows its last dot, and what the table has for it.
pub fn captured(name: &str, table: Table) -> Option<(Vec<u32>, &str, &'static str)> {
    let (stem, end) = name.rsplit_once('.')?;
    table.iter().find_map(|(pattern, ours)| Some((captures(pattern, stem)?, end, *ours)))
}

/// What the table has for a name: as a whole, or before its last dot.
pub fn captured_whole(name: &str, table: Table) -> Option<String> {
    let find = |name: &str| table.iter().find(|(foreign, _)| *foreign == name);
    let whole = find(name).map(|(_, ours)| (*ours).to_owned());
    whole.or_else(|| {
        let (stem, end) = name.rsplit_once('.')?;
        Some(format!("{}.{end}", find(stem)?.1))
    })
}
