//! Metadata keys and tensors of `whisper`.

use crate::schema::architecture::Item::{All, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::key;

const ENCODER_LAYER: &[Item] = &[
    Required("attn_norm.weight", "enc_embd"),
    Required("attn_norm.bias", "enc_embd"),
    Required("attn_q.weight", "enc_embd, enc_embd"),
    Required("attn_q.bias", "enc_embd"),
    Required("attn_k.weight", "enc_embd, enc_embd"),
    Required("attn_v.weight", "enc_embd, enc_embd"),
    Required("attn_v.bias", "enc_embd"),
    Required("attn_o.weight", "enc_embd, enc_embd"),
    Required("attn_o.bias", "enc_embd"),
    Required("ffn_norm.weight", "enc_embd"),
    Required("ffn_norm.bias", "enc_embd"),
    Required("ffn_up.weight", "enc_embd, enc_ff"),
    Required("ffn_up.bias", "enc_ff"),
    Required("ffn_down.weight", "enc_ff, enc_embd"),
    Required("ffn_down.bias", "enc_embd"),
];

const DECODER_LAYER: &[Item] = &[
    Required("attn_norm.weight", "dec_embd"),
    Required("attn_norm.bias", "dec_embd"),
    Required("attn_q.weight", "dec_embd, dec_embd"),
    Required("attn_q.bias", "dec_embd"),
    Required("attn_k.weight", "dec_embd, dec_embd"),
    Required("attn_v.weight", "dec_embd, dec_embd"),
    Required("attn_v.bias", "dec_embd"),
    Required("attn_o.weight", "dec_embd, dec_embd"),
    Required("attn_o.bias", "dec_embd"),
    Required("cross_attn_norm.weight", "dec_embd"),
    Required("cross_attn_norm.bias", "dec_embd"),
    Required("cross_attn_q.weight", "dec_embd, dec_embd"),
    Required("cross_attn_q.bias", "dec_embd"),
    Required("cross_attn_k.weight", "enc_embd, dec_embd"),
    Required("cross_attn_v.weight", "enc_embd, dec_embd"),
    Required("cross_attn_v.bias", "dec_embd"),
    Required("cross_attn_o.weight", "dec_embd, dec_embd"),
    Required("cross_attn_o.bias", "dec_embd"),
    Required("ffn_norm.weight", "dec_embd"),
    Required("ffn_norm.bias", "dec_embd"),
    Required("ffn_up.weight", "dec_embd, dec_ff"),
    Required("ffn_up.bias", "dec_ff"),
    Required("ffn_down.weight", "dec_ff, dec_embd"),
    Required("ffn_down.bias", "dec_embd"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "whisper",
    note: "llama.cpp does not support it as GGUF: keys follow the specification, tensors are named as \
           in t5. Key projections have no bias; the output matrix is the token embedding.",
    required: &[&[
        key::ENCODER_CONTEXT_LENGTH,
        key::ENCODER_EMBEDDING_LENGTH,
        key::ENCODER_BLOCK_COUNT,
        key::ENCODER_MELS_COUNT,
        key::ENCODER_ATTENTION_HEAD_COUNT,
        key::DECODER_CONTEXT_LENGTH,
        key::DECODER_EMBEDDING_LENGTH,
        key::DECODER_BLOCK_COUNT,
        key::DECODER_ATTENTION_HEAD_COUNT,
    ]],
    optional: &[&[
        key::ENCODER_FEED_FORWARD_LENGTH,
        key::DECODER_FEED_FORWARD_LENGTH,
        key::VOCAB_SIZE,
    ]],
    tensors: &[
        Required("token_embd.weight", "dec_embd, n_vocab"),
        All(&[
            Required("enc.conv1.weight", "3, n_mels, enc_embd"),
            Required("enc.conv1.bias", "enc_embd"),
            Required("enc.conv2.weight", "3, enc_embd, enc_embd"),
            Required("enc.conv2.bias", "enc_embd"),
            Required("enc.position_embd.weight", "enc_embd, enc_ctx"),
            Required("enc.output_norm.weight", "enc_embd"),
            Required("enc.output_norm.bias", "enc_embd"),
        ]),
        Required("dec.position_embd.weight", "dec_embd, dec_ctx"),
        Required("dec.output_norm.weight", "dec_embd"),
        Required("dec.output_norm.bias", "dec_embd"),
    ],
    blocks: &[
        Block { prefix: "enc.blk.", from: "0", to: "enc_layer", items: ENCODER_LAYER },
        Block { prefix: "dec.blk.", from: "0", to: "dec_layer", items: DECODER_LAYER },
    ],
    open: true,
    ..Architecture::DEFAULT
};
