//! LFM2-Audio: a Conformer.

use super::audio;
use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, common, reshaped};
use super::tensor_types::TypeOverride;
use crate::convert::tensor_names::Table;
use crate::schema::key;

pub static LFM2_AUDIO: Encoder = Encoder {
    classes: &["Lfm2AudioForConditionalGeneration"],
    audio: &["encoder"],
    complete: |parts| {
        for (field, stated) in [
            ("hidden_size", "d_model"),
            ("intermediate_size", "d_model"),
            ("num_attention_heads", "n_heads"),
            ("num_mel_bins", "feat_in"),
        ] {
            let number =
                EncoderConfigs::number(&parts.audio, &[stated], "a size of the audio encoder")?;
            parts.audio.set(field, number);
        }
        Ok(())
    },
    keys: |parts, keys| {
        common(parts, keys)?;
        keys.set(key::PROJECTOR_TYPE, "lfm2a");
        keys.set_u32(key::AUDIO_NUM_MEL_BINS, parts.audio.u32(&["num_mel_bins"])?);
        keys.set(key::AUDIO_ATTENTION_LAYER_NORM_EPSILON, 1e-5f32);
        Ok(())
    },
    places: &[
        ("conformer.", CONFORMER),
        ("audio_adapter.", &[("model.{}", "mm.a.mlp.{}")]),
        (
            "audio_embedding.",
            &[
                ("embedding", "a.position_embd"),
                ("embedding_norm", "a.position_embd_norm"),
                ("to_logits", "a.embd_to_logits"),
            ],
        ),
    ],
    special: |_, tensor| {
        let folded = audio::folded_norm(tensor, "conformer.layers.{}.conv.batch_norm")?;
        Ok(folded.map(|(layer, scale, shift)| match layer {
            Some(layer) => EncoderMapping::Vectors(vec![
                (format!("a.blk.{layer}.conv_norm.weight"), scale),
                (format!("a.blk.{layer}.conv_norm.bias"), shift),
            ]),
            None => EncoderMapping::DROPPED,
        }))
    },
    steps: |_, name, shape| {
        let is_convolution = name.contains(".conv_dw.") || name.contains(".conv_pw");
        Ok(match *shape {
            [len] if name.starts_with("a.conv1d.") && name.ends_with(".bias") => {
                reshaped(shape, &[1, 1, len])
            }
            [width, 1, rows] if is_convolution => reshaped(shape, &[width, rows]),
            [1, width, rows] if is_convolution => reshaped(shape, &[width, rows]),
            _ => Vec::new(),
        })
    },
    kept: &[
        ("a.conv1d.", TypeOverride::F32),
        (".conv_dw.", TypeOverride::F32),
        (".conv_pw", TypeOverride::F32),
    ],
    ..Encoder::AUDIO
};

const CONFORMER: Table = &[
    ("pre_encode.conv.{}", "a.conv1d.{}"),
    ("pre_encode.out", "a.pre_encode.out"),
    ("layers.{}.norm_feed_forward1", "a.blk.{}.ffn_norm"),
    ("layers.{}.feed_forward1.linear1", "a.blk.{}.ffn_up"),
    ("layers.{}.feed_forward1.linear2", "a.blk.{}.ffn_down"),
    ("layers.{}.norm_feed_forward2", "a.blk.{}.ffn_norm_1"),
    ("layers.{}.feed_forward2.linear1", "a.blk.{}.ffn_up_1"),
    ("layers.{}.feed_forward2.linear2", "a.blk.{}.ffn_down_1"),
    ("layers.{}.norm_self_att", "a.blk.{}.ln1"),
    ("layers.{}.self_attn.linear_q", "a.blk.{}.attn_q"),
    ("layers.{}.self_attn.linear_k", "a.blk.{}.attn_k"),
    ("layers.{}.self_attn.linear_v", "a.blk.{}.attn_v"),
    ("layers.{}.self_attn.linear_out", "a.blk.{}.attn_out"),
    ("layers.{}.self_attn.linear_pos", "a.blk.{}.linear_pos"),
    ("layers.{}.self_attn.pos_bias_u", "a.blk.{}.pos_bias_u"),
    ("layers.{}.self_attn.pos_bias_v", "a.blk.{}.pos_bias_v"),
    ("layers.{}.norm_conv", "a.blk.{}.norm_conv"),
    ("layers.{}.conv.pointwise_conv1", "a.blk.{}.conv_pw1"),
    ("layers.{}.conv.depthwise_conv", "a.blk.{}.conv_dw"),
    ("layers.{}.conv.pointwise_conv2", "a.blk.{}.conv_pw2"),
    ("layers.{}.norm_out", "a.blk.{}.ln2"),
];
