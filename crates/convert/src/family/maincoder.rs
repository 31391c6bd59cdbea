//! Maincoder: as llama without its order of rows, with norms of queries and keys.

use super::{Family, hyper};

pub(super) static MAINCODER: Family = Family {
    classes: &["MaincoderForCausalLM"],
    architecture: "maincoder",
    model_type: "maincoder",
    pre_tokenizers: &["qwen2"],
    keys: |config, keys| {
        keys.stated(config)?;
        keys.set_u32("rope.dimension_count", hyper::stated_head_dim(config)?);
        Ok(())
    },
    ..Family::DEFAULT
};
