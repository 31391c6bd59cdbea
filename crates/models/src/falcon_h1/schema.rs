//! Metadata keys and tensors of `falcon-h1`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "falcon-h1",
    note: "Every layer has a Mamba 2 mixer and attention. The multipliers of config.json are in \
           the weights.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, SSM, &[key::SSM_GROUP_COUNT]],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(HYBRID_ATTENTION),
        All(MAMBA2_WITHOUT_NORM),
        Optional("ssm_norm.weight", "d_inner/n_group, n_group"),
        // The name has no suffix `.weight`.
        Required("ffn_norm", "n_embd"),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
