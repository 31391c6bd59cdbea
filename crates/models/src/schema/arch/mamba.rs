//! Mamba.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;

/// The converter writes both, as 0.
const ZEROS: &[&str] = &["feed_forward_length", "attention.head_count", "vocab_size"];

pub(super) static MAMBA: Architecture = Architecture {
    name: "mamba",
    note: "",
    required: &[SIZES, RMS, STATE_SPACE],
    optional: &[ZEROS, &["ssm.dt_b_c_rms"]],
    defaults: &[],
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
    open: false,
};

pub(super) static MAMBA2: Architecture = Architecture {
    name: "mamba2",
    note: "",
    required: &[SIZES, RMS, STATE_SPACE, &["ssm.group_count"]],
    optional: &[ZEROS],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        Required("ssm_in.weight", "n_embd, 2*d_inner + 2*n_group*d_state + dt_rank"),
        Required("ssm_conv1d.weight", "d_conv, d_inner + 2*n_group*d_state"),
        Required("ssm_conv1d.bias", "d_inner + 2*n_group*d_state"),
        Required("ssm_dt.bias", "dt_rank"),
        Required("ssm_a", "1, dt_rank"),
        Required("ssm_d", "1, dt_rank"),
        Required("ssm_norm.weight", "d_inner/n_group, n_group"),
        Required("ssm_out.weight", "d_inner, n_embd"),
    ])],
    open: false,
};
