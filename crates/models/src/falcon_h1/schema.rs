//! Metadata keys and tensors.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional, Required};
use crate::schema::groups::*;
use crate::schema::key;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "falcon-h1",
    note: "Every layer has a state space and attention. The factors of the configuration are in the weights.",
    required: &[SIZES, TRANSFORMER, RMS, STATE_SPACE, &[key::SSM_GROUP_COUNT]],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(HYBRID_ATTENTION),
        All(MAMBA2_WITHOUT_NORM),
        Optional("ssm_norm.weight", "d_inner/n_group, n_group"),
        // Without an end, which programs do not expect of it.
        Required("ffn_norm", "n_embd"),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
