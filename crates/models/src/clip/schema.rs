//! Metadata keys and tensors of `clip`.

use crate::schema::architecture::Item::{Maybe, Optional, Required};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "clip",
    note: "A file that goes with a language model. There are some dozens of encoders and \
           projectors; listed is the vision tower that most of them share, of which every tensor \
           may be missing or shaped otherwise somewhere. The names of all stand below.",
    optional: &[&[key::PROJECTOR_TYPE, key::HAS_VISION_ENCODER, key::HAS_AUDIO_ENCODER]],
    tensors: &[
        Optional("v.class_embd", "v_embd"),
        Optional("v.patch_embd.weight", "v_patch, v_patch, 3, v_embd"),
        Optional("v.patch_embd.bias", "v_embd"),
        Optional("v.pre_ln.weight", "v_embd"),
        Optional("v.pre_ln.bias", "v_embd"),
        Optional("v.post_ln.weight", "v_embd"),
        Optional("v.post_ln.bias", "v_embd"),
    ],
    blocks: &[Block {
        prefix: "v.blk.",
        from: "0",
        to: "v_layer",
        items: &[Maybe(&[
            Required("ln1.weight", "v_embd"),
            Required("ln1.bias", "v_embd"),
            Required("attn_q.weight", "v_embd, v_embd"),
            Required("attn_q.bias", "v_embd"),
            Required("attn_k.weight", "v_embd, v_embd"),
            Required("attn_k.bias", "v_embd"),
            Required("attn_v.weight", "v_embd, v_embd"),
            Required("attn_v.bias", "v_embd"),
            Required("attn_out.weight", "v_embd, v_embd"),
            Required("attn_out.bias", "v_embd"),
            Required("ln2.weight", "v_embd"),
            Required("ln2.bias", "v_embd"),
            Required("ffn_up.weight", "v_embd, v_ff"),
            Required("ffn_up.bias", "v_ff"),
            Required("ffn_down.weight", "v_ff, v_embd"),
            Required("ffn_down.bias", "v_embd"),
        ])],
    }],
    open: true,
    ..Architecture::DEFAULT
};
