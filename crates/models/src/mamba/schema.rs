//! Metadata keys and tensors of `mamba`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

/// Optional keys; llama.cpp's converter writes the first two as 0.
pub(crate) const OPTIONAL: &[&str] =
    &[key::FEED_FORWARD_LENGTH, key::ATTENTION_HEAD_COUNT, key::VOCAB_SIZE];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "mamba",
    required: &[SIZES, RMS_NORM, SSM],
    optional: &[OPTIONAL, &[key::SSM_DT_B_C_RMS]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        Required("ssm_in.weight", "n_embd, 2*d_inner"),
        Required("ssm_conv1d.weight", "d_conv, d_inner"),
        Required("ssm_conv1d.bias", "d_inner"),
        Required("ssm_x.weight", "d_inner, dt_rank + 2*d_state"),
        Required("ssm_dt.weight", "dt_rank, d_inner"),
        Required("ssm_dt.bias", "d_inner"),
        Required("ssm_a", "d_state, d_inner"),
        Required("ssm_d", "d_inner"),
        Required("ssm_out.weight", "d_inner, n_embd"),
    ])],
    ..Architecture::DEFAULT
};
