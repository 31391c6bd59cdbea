//! Xverse: llama with a vocabulary without scores.

use super::Family;
use super::hyper;
use crate::vocab;

pub(super) static XVERSE: Family = Family {
    classes: &["XverseForCausalLM"],
    architecture: "xverse",
    model_type: "xverse",
    vocabulary: vocab::Kind::Xverse,
    keys: |config, keys| {
        keys.stated(config)?;
        keys.set("tensor_data_layout", "Meta AI original pth");
        keys.set("rope.dimension_count", hyper::width(config)? / hyper::head_count(config)?.max(1));
        Ok(())
    },
    steps: hyper::llama_order,
    ..Family::DEFAULT
};
