//! Nanbeige 4.2: as llama, its layers run through several times.

use super::Family;
use super::hyper;
use crate::vocab;

pub(super) static NANBEIGE: Family = Family {
    classes: &["NanbeigeForCausalLM"],
    architecture: "nanbeige",
    model_type: "nanbeige",
    vocabulary: vocab::Kind::Llama,
    fields: &[("num_loops", "num_loops"), ("skip_loop_final_norm", "skip_loop_final_norm")],
    complete: |config| {
        config.default("rms_norm_eps", 1e-6);
        hyper::default_attention(config)
    },
    keys: |config, keys| {
        keys.llama_like(config, hyper::stated_head_dim(config)?)?;
        keys.set("num_loops", config.u32(&["num_loops"])?.unwrap_or(1).max(1));
        keys.set("skip_loop_final_norm", config.bool("skip_loop_final_norm")?.unwrap_or(false));
        Ok(())
    },
    steps: hyper::llama_order,
    computed: hyper::rope_freqs,
    ..Family::DEFAULT
};
