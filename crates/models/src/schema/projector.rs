//! Tensor names in files of the architecture `clip`, for all encoders and projectors together.
//!
//! Which tensors a file has, and their shapes, depend on the projector type; the tables list only names.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Tensor names with their prefixes; `{}` stands for a number.
pub struct Names {
    /// Prefixes.
    pub prefixes: &'static [&'static str],
    /// Names after the prefix.
    pub names: &'static [&'static str],
}

/// Suffixes of names: none, a parameter of the layer, or a clamp limit of its input or output.
pub static SUFFIXES: &[&str] = &[
    "",
    ".weight",
    ".weight.{}",
    ".bias",
    ".input_max",
    ".input_min",
    ".output_max",
    ".output_min",
    ".alpha",
    ".beta",
];

/// All tensor names.
#[rustfmt::skip]
pub static NAMES: &[Names] = &[
    Names {
        prefixes: &["v.", "a.", "t."],
        names: &[
            "class_embd", "token_embd", "patch_embd", "patch_norm.{}", "position_embd", "position_embd_norm",
            "norm_embd", "pre_ln", "post_ln",
        ],
    },
    Names {
        prefixes: &["v.blk.{}.", "a.blk.{}.", "t.blk.{}.", "a.gen.code.blk.{}.", "a.gen.wav.tfm.blk.{}."],
        names: &[
            "ln1", "ln2", "ls1", "ls2", "attn_q", "attn_k", "attn_v", "attn_qkv", "attn_q_norm", "attn_k_norm",
            "attn_out", "attn_out_norm", "attn_pre_norm", "attn_post_norm", "attn_sinks", "attn_rel_pos_emb",
            "attn_k_rel", "linear_pos", "pos_bias_u", "pos_bias_v", "per_dim_scale", "per_dim_k_scale",
            "ffn_norm", "ffn_norm_1", "ffn_post_norm", "ffn_post_norm_1", "ffn_up", "ffn_up_1", "ffn_gate",
            "ffn_gate_1", "ffn_down", "ffn_down_1", "ffn_scale", "ffn_scale_1", "ffn_gate_inp", "ffn_up_exps",
            "ffn_gate_exps", "ffn_down_exps", "exp_probs_b", "layer_pre_norm", "out_scale", "norm_conv",
            "conv_dw", "conv_pw1", "conv_pw2", "conv_norm", "conv_norm_mean", "conv_norm_var", "res2.{}",
            "se_conv1", "se_conv2",
        ],
    },
    // MobileNet vision encoder of Gemma 3n.
    Names {
        prefixes: &["v."],
        names: &[
            "conv_stem.conv", "conv_stem.bn", "msfa.norm", "msfa.ffn.pw_exp.conv", "msfa.ffn.pw_exp.bn",
            "msfa.ffn.pw_proj.conv", "msfa.ffn.pw_proj.bn",
        ],
    },
    Names {
        prefixes: &["v.blk.{}.{}."],
        names: &[
            "conv_exp", "conv_pwl", "bn1", "bn2", "dw_start.conv", "dw_start.bn", "dw_mid.conv", "dw_mid.bn",
            "pw_exp.conv", "pw_exp.bn", "pw_proj.conv", "pw_proj.bn", "layer_scale.gamma", "norm",
            "attn.query.proj", "attn.key.proj", "attn.key.down_conv", "attn.key.norm", "attn.value.proj",
            "attn.value.down_conv", "attn.value.norm", "attn.output.proj",
        ],
    },
    // Other vision encoders, and special tokens around images.
    Names {
        prefixes: &["v."],
        names: &[
            "backbone_ln", "patch_ln", "vision_pos_embed", "stage.{}.down.ln", "stage.{}.down.conv",
            "stage.{}.blk.{}.dw", "stage.{}.blk.{}.ln", "stage.{}.blk.{}.pw1", "stage.{}.blk.{}.pw2",
            "stage.{}.blk.{}.grn", "sam.pos_embd", "sam.patch_embd", "sam.neck.{}", "sam.net_2", "sam.net_3",
            "sam.blk.{}.pre_ln", "sam.blk.{}.post_ln", "sam.blk.{}.attn.pos_h", "sam.blk.{}.attn.pos_w",
            "sam.blk.{}.attn.qkv", "sam.blk.{}.attn.out", "sam.blk.{}.mlp.lin1", "sam.blk.{}.mlp.lin2",
            "resample_query_768", "resample_query_1024", "vit_merger.ln1", "vit_merger.attn_q",
            "vit_merger.attn_k", "vit_merger.attn_v", "vit_merger.attn_out", "vit_merger.ds_ln",
            "vit_merger.ds_ffn_up", "vit_merger.ds_ffn_down", "deepstack.{}.norm", "deepstack.{}.fc1",
            "deepstack.{}.fc2", "std_bias", "std_scale", "boi", "eoi", "image_newline", "view_seperator",
            "token_embd.img_break", "token_embd.img_start", "token_embd.img_end", "token_embd.img_pad",
        ],
    },
    // Q-Former projectors.
    Names { prefixes: &["v.", "a."], names: &["proj_query", "proj_norm", "proj_linear"] },
    Names {
        prefixes: &["v.proj_blk.{}.", "a.proj_blk.{}."],
        names: &[
            "img_pos", "query", "linear", "norm", "post_norm", "self_attn_q", "self_attn_k", "self_attn_v",
            "self_attn_out", "self_attn_norm", "cross_attn_q", "cross_attn_k", "cross_attn_v", "cross_attn_out",
            "cross_attn_norm", "ffn_up", "ffn_down", "ffn_norm",
        ],
    },
    // Audio encoders.
    Names {
        prefixes: &["a."],
        names: &[
            "conv1d.{}", "conv1d.{}.norm", "conv2d.{}", "conv_out", "input_projection", "pre_encode.out",
            "embd_to_logits", "enc_ctc_out", "enc_ctc_out_mid", "downsample.conv", "downsample.norm",
            "rvq.codebook", "asp_attn", "asp_tdnn", "speaker_proj", "mel_filters", "window",
        ],
    },
    // Mimi codec, encoder and decoder.
    Names {
        prefixes: &["a.seanet.", "a.gen.wav.seanet."],
        names: &["conv_in", "conv_out", "blk.{}.res_conv1", "blk.{}.res_conv2", "blk.{}.scale_conv"],
    },
    // Audio decoders (TTS).
    Names {
        prefixes: &["a.gen."],
        names: &[
            "code.embd", "code.head", "code.out_embd", "code.output_norm", "code.proj_in", "input_linear",
            "out_eos", "emb_mean", "emb_std", "flow.input_proj", "flow.cond_embd", "flow.final.ada",
            "flow.final.proj", "flow.time.{}.freqs", "flow.time.{}.up", "flow.time.{}.down", "flow.time.{}.norm",
            "flow.blk.{}.norm", "flow.blk.{}.up", "flow.blk.{}.down", "flow.blk.{}.ada", "wav.quant_out",
            "wav.quant.first.in_proj", "wav.quant.first.out_proj", "wav.quant.first.codebook",
            "wav.quant.rest.in_proj", "wav.quant.rest.out_proj", "wav.quant.rest.codebook", "wav.upsample",
            "wav.pre_conv", "wav.tfm.in_proj", "wav.tfm.out_proj", "wav.tfm.output_norm", "wav.up.blk.{}.conv",
            "wav.up.blk.{}.dwconv", "wav.up.blk.{}.norm", "wav.up.blk.{}.pw1", "wav.up.blk.{}.pw2",
            "wav.up.blk.{}.gamma", "wav.dac.entry", "wav.dac.blk.{}.snake", "wav.dac.blk.{}.conv",
            "wav.dac.blk.{}.res.{}.act1", "wav.dac.blk.{}.res.{}.act2", "wav.dac.blk.{}.res.{}.conv1",
            "wav.dac.blk.{}.res.{}.conv2", "wav.dac.post_snake", "wav.dac.post_conv",
        ],
    },
    // Projectors.
    Names {
        prefixes: &["mm.", "mm.a."],
        names: &[
            "{}", "mlp.{}", "fc", "up", "gate", "down", "norm_pre", "norm_mid", "pre_norm", "post_norm",
            "post_fc_norm", "input_norm", "input_projection", "soft_emb_norm", "hard_emb_norm", "embedding",
            "patch_merger", "merger.fc1", "merger.fc2", "image_begin", "image_end", "model.fc", "model.mlp.{}",
            "model.peg.{}", "model.mb_block.{}.block.{}.{}", "model.mb_block.{}.block.{}.fc1",
            "model.mb_block.{}.block.{}.fc2", "code_embd", "local_norm",
        ],
    },
    Names {
        prefixes: &["mm.a.local_blk.{}."],
        names: &[
            "ln1", "ln2", "attn_q", "attn_k", "attn_v", "attn_out", "ffn_gate", "ffn_up", "ffn_down",
        ],
    },
    Names {
        prefixes: &["resampler."],
        names: &[
            "pos_embd_k", "pos_embed_k", "query", "proj", "kv", "attn.q", "attn.k", "attn.v", "attn.out", "ln_q",
            "ln_kv", "ln_post",
        ],
    },
    Names {
        prefixes: &["adapter."],
        names: &[
            "boi", "eoi", "conv", "linear.linear", "linear.norm1", "linear.dense_h_to_4h", "linear.gate",
            "linear.dense_4h_to_h",
        ],
    },
    Names { prefixes: &["visual_projection", "text_projection"], names: &[""] },
];

/// Returns true if an encoder or projector has a tensor of this name.
pub fn is_known(name: &str) -> bool {
    static KNOWN: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let mut known = HashSet::new();
        for group in NAMES {
            for prefix in group.prefixes {
                known.extend(group.names.iter().map(|name| format!("{prefix}{name}")));
            }
        }
        known
    });
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
    let parts = name.split('.').map(|part| if is_number(part) { "{}" } else { part });
    let pattern = parts.collect::<Vec<_>>().join(".");
    let mut stems = SUFFIXES.iter().filter_map(|suffix| pattern.strip_suffix(suffix));
    stems.any(|stem| KNOWN.contains(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_prefix_pattern_and_suffix() {
        for name in [
            "v.patch_embd.weight.1",
            "v.blk.11.attn_q.bias",
            "v.blk.2.13.layer_scale.gamma",
            "a.blk.0.attn_v.input_max",
            "a.gen.wav.dac.blk.3.res.2.act1.alpha",
            "mm.2.weight",
            "mm.model.mb_block.1.block.2.0.weight",
            "v.sam.net_2.weight",
            "v.class_embd",
        ] {
            assert!(is_known(name), "{name}");
        }
        for name in [
            "",
            ".weight",
            "v",
            "v.blk.attn_q.weight",
            "v.blk.0.attn_q.scales",
            "blk.0.attn_q.weight",
            "v.sam.net_9.weight",
        ] {
            assert!(!is_known(name), "{name}");
        }
    }
}
