//! Metadata keys and tensors of `mamba2`.

use crate::mamba::schema::OPTIONAL;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "mamba2",
    required: &[SIZES, RMS_NORM, SSM, &[key::SSM_GROUP_COUNT]],
    optional: &[OPTIONAL],
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
    ..Architecture::DEFAULT
};
