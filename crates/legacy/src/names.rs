//! Tensor names of each model family, and their GGUF names.
//!
//! `{}` stands for the layer number. The suffixes `weight` and `bias` (`g`, `w` and `b` in GPT-2
//! files) are not part of the tables, except for tensors that have no suffix.

use gguf_convert::names::{captures, filled};

use super::header::ModelFamily;

/// Legacy name to GGUF name.
type Table = &'static [(&'static str, &'static str)];

const LLAMA: Table = &[
    ("tok_embeddings", "token_embd"),
    ("norm", "output_norm"),
    ("output", "output"),
    ("layers.{}.attention_norm", "blk.{}.attn_norm"),
    ("layers.{}.attention.wq", "blk.{}.attn_q"),
    ("layers.{}.attention.wk", "blk.{}.attn_k"),
    ("layers.{}.attention.wv", "blk.{}.attn_v"),
    ("layers.{}.attention.wo", "blk.{}.attn_output"),
    ("layers.{}.ffn_norm", "blk.{}.ffn_norm"),
    ("layers.{}.feed_forward.w1", "blk.{}.ffn_gate"),
    ("layers.{}.feed_forward.w2", "blk.{}.ffn_down"),
    ("layers.{}.feed_forward.w3", "blk.{}.ffn_up"),
];

const GPT2: Table = &[
    ("model/wte", "token_embd.weight"),
    ("model/wpe", "position_embd.weight"),
    ("model/ln_f", "output_norm"),
    ("model/lm_head", "output.weight"),
    ("model/h{}/ln_1", "blk.{}.attn_norm"),
    ("model/h{}/attn/c_attn", "blk.{}.attn_qkv"),
    ("model/h{}/attn/c_proj", "blk.{}.attn_output"),
    ("model/h{}/ln_2", "blk.{}.ffn_norm"),
    ("model/h{}/mlp/c_fc", "blk.{}.ffn_up"),
    ("model/h{}/mlp/c_proj", "blk.{}.ffn_down"),
];

const GPTJ: Table = &[
    ("transformer.wte", "token_embd"),
    ("transformer.ln_f", "output_norm"),
    ("lm_head", "output"),
    ("transformer.h.{}.ln_1", "blk.{}.attn_norm"),
    ("transformer.h.{}.attn.q_proj", "blk.{}.attn_q"),
    ("transformer.h.{}.attn.k_proj", "blk.{}.attn_k"),
    ("transformer.h.{}.attn.v_proj", "blk.{}.attn_v"),
    ("transformer.h.{}.attn.out_proj", "blk.{}.attn_output"),
    ("transformer.h.{}.mlp.fc_in", "blk.{}.ffn_up"),
    ("transformer.h.{}.mlp.fc_out", "blk.{}.ffn_down"),
];

const GPT_NEOX: Table = &[
    ("gpt_neox.embed_in", "token_embd"),
    ("gpt_neox.final_layer_norm", "output_norm"),
    ("embed_out", "output"),
    ("gpt_neox.layers.{}.input_layernorm", "blk.{}.attn_norm"),
    ("gpt_neox.layers.{}.attention.query_key_value", "blk.{}.attn_qkv"),
    ("gpt_neox.layers.{}.attention.dense", "blk.{}.attn_output"),
    ("gpt_neox.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"),
    ("gpt_neox.layers.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"),
    ("gpt_neox.layers.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"),
];

const MPT: Table = &[
    ("transformer.wte", "token_embd"),
    ("transformer.norm_f", "output_norm"),
    ("transformer.blocks.{}.norm_1", "blk.{}.attn_norm"),
    ("transformer.blocks.{}.attn.Wqkv", "blk.{}.attn_qkv"),
    ("transformer.blocks.{}.attn.out_proj", "blk.{}.attn_output"),
    ("transformer.blocks.{}.norm_2", "blk.{}.ffn_norm"),
    ("transformer.blocks.{}.ffn.up_proj", "blk.{}.ffn_up"),
    ("transformer.blocks.{}.ffn.down_proj", "blk.{}.ffn_down"),
    // Names of the first Replit upload.
    ("transformer.blocks.{}.ln_1", "blk.{}.attn_norm"),
    ("transformer.blocks.{}.ln_2", "blk.{}.ffn_norm"),
    ("transformer.blocks.{}.mlp.mlp_up", "blk.{}.ffn_up"),
    ("transformer.blocks.{}.mlp.mlp_down", "blk.{}.ffn_down"),
    ("transformer.ln_f", "output_norm"),
];

const BLOOM: Table = &[
    ("tok_embeddings", "token_embd"),
    ("norm", "token_embd_norm"),
    ("output_norm", "output_norm"),
    ("output", "output"),
    ("layers.{}.attention_norm", "blk.{}.attn_norm"),
    ("layers.{}.attention.query_key_value", "blk.{}.attn_qkv"),
    ("layers.{}.attention.wo", "blk.{}.attn_output"),
    ("layers.{}.ffn_norm", "blk.{}.ffn_norm"),
    ("layers.{}.feed_forward.w1", "blk.{}.ffn_up"),
    ("layers.{}.feed_forward.w2", "blk.{}.ffn_down"),
];

const FALCON: Table = &[
    ("transformer.word_embeddings", "token_embd"),
    ("transformer.ln_f", "output_norm"),
    ("lm_head", "output"),
    ("transformer.h.{}.input_layernorm", "blk.{}.attn_norm"),
    ("transformer.h.{}.ln_mlp", "blk.{}.attn_norm"),
    ("transformer.h.{}.ln_attn", "blk.{}.attn_norm_2"),
    ("transformer.h.{}.self_attention.query_key_value", "blk.{}.attn_qkv"),
    ("transformer.h.{}.self_attention.dense", "blk.{}.attn_output"),
    ("transformer.h.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"),
    ("transformer.h.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"),
];

const WHISPER: Table = &[
    ("encoder.positional_embedding", "enc.position_embd.weight"),
    ("encoder.conv1", "enc.conv1"),
    ("encoder.conv2", "enc.conv2"),
    ("encoder.ln_post", "enc.output_norm"),
    ("encoder.blocks.{}.attn_ln", "enc.blk.{}.attn_norm"),
    ("encoder.blocks.{}.attn.query", "enc.blk.{}.attn_q"),
    ("encoder.blocks.{}.attn.key", "enc.blk.{}.attn_k"),
    ("encoder.blocks.{}.attn.value", "enc.blk.{}.attn_v"),
    ("encoder.blocks.{}.attn.out", "enc.blk.{}.attn_o"),
    ("encoder.blocks.{}.mlp_ln", "enc.blk.{}.ffn_norm"),
    ("encoder.blocks.{}.mlp.0", "enc.blk.{}.ffn_up"),
    ("encoder.blocks.{}.mlp.2", "enc.blk.{}.ffn_down"),
    ("decoder.positional_embedding", "dec.position_embd.weight"),
    ("decoder.token_embedding", "token_embd"),
    ("decoder.ln", "dec.output_norm"),
    ("decoder.blocks.{}.attn_ln", "dec.blk.{}.attn_norm"),
    ("decoder.blocks.{}.attn.query", "dec.blk.{}.attn_q"),
    ("decoder.blocks.{}.attn.key", "dec.blk.{}.attn_k"),
    ("decoder.blocks.{}.attn.value", "dec.blk.{}.attn_v"),
    ("decoder.blocks.{}.attn.out", "dec.blk.{}.attn_o"),
    ("decoder.blocks.{}.cross_attn_ln", "dec.blk.{}.cross_attn_norm"),
    ("decoder.blocks.{}.cross_attn.query", "dec.blk.{}.cross_attn_q"),
    ("decoder.blocks.{}.cross_attn.key", "dec.blk.{}.cross_attn_k"),
    ("decoder.blocks.{}.cross_attn.value", "dec.blk.{}.cross_attn_v"),
    ("decoder.blocks.{}.cross_attn.out", "dec.blk.{}.cross_attn_o"),
    ("decoder.blocks.{}.mlp_ln", "dec.blk.{}.ffn_norm"),
    ("decoder.blocks.{}.mlp.0", "dec.blk.{}.ffn_up"),
    ("decoder.blocks.{}.mlp.2", "dec.blk.{}.ffn_down"),
];

fn table(family: ModelFamily) -> Table {
    match family {
        ModelFamily::Llama => LLAMA,
        ModelFamily::Gpt2 => GPT2,
        ModelFamily::GptJ => GPTJ,
        ModelFamily::GptNeox => GPT_NEOX,
        ModelFamily::Mpt | ModelFamily::Replit => MPT,
        ModelFamily::Bloom => BLOOM,
        ModelFamily::Falcon => FALCON,
        ModelFamily::Whisper => WHISPER,
    }
}

/// The mapping of a tensor name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NameMapping {
    /// The GGUF name.
    Renamed(String),
    /// A buffer that runtimes compute.
    Skipped,
}

/// Suffixes of masks and rotary frequencies.
const BUFFERS: &[&str] = &[".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"];

/// Maps a tensor name; `None` if no model of the family has it.
pub(super) fn map_name(family: ModelFamily, name: &str) -> Option<NameMapping> {
    if name == "rope.freqs" || BUFFERS.iter().any(|end| name.ends_with(end)) {
        return Some(NameMapping::Skipped);
    }
    let lookup = |name: &str| {
        table(family)
            .iter()
            .find_map(|(legacy, gguf)| captures(legacy, name).map(|numbers| filled(gguf, &numbers)))
    };
    let (stem, last) = name.rsplit_once(['.', '/'])?;
    let suffix = match last {
        "weight" | "w" | "g" => "weight",
        "bias" | "b" => "bias",
        _ => return lookup(name).map(NameMapping::Renamed),
    };
    lookup(stem).map(|stem| NameMapping::Renamed(format!("{stem}.{suffix}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensor_names_depend_on_the_family() {
        let renamed = |family, name: &str| match map_name(family, name)? {
            NameMapping::Renamed(name) => Some(name),
            NameMapping::Skipped => None,
        };
        for (family, name, expected) in [
            (ModelFamily::Llama, "layers.11.feed_forward.w3.weight", "blk.11.ffn_up.weight"),
            (ModelFamily::Gpt2, "model/h3/mlp/c_fc/b", "blk.3.ffn_up.bias"),
            (ModelFamily::Gpt2, "model/h3/ln_1/g", "blk.3.attn_norm.weight"),
            (ModelFamily::Gpt2, "model/wte", "token_embd.weight"),
            (ModelFamily::Whisper, "encoder.positional_embedding", "enc.position_embd.weight"),
            (ModelFamily::Whisper, "decoder.blocks.0.mlp.2.weight", "dec.blk.0.ffn_down.weight"),
            (ModelFamily::Bloom, "norm.bias", "token_embd_norm.bias"),
        ] {
            assert_eq!(renamed(family, name).as_deref(), Some(expected), "{name}");
        }
        assert_eq!(renamed(ModelFamily::Bloom, "layers.0.attention.wq.weight"), None);
        let mask = "gpt_neox.layers.0.attention.masked_bias";
        assert_eq!(map_name(ModelFamily::GptNeox, mask), Some(NameMapping::Skipped));
    }
}
