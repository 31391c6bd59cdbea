//! CodeShell: as GPT-2, with rotary positions and shared heads of keys and values.

use gguf::Error;
use gguf_checkpoint::config::Config;

use super::hyper::{self, Keys};
use super::{Family, gpt2};

pub(super) static CODESHELL: Family = Family {
    classes: &["CodeShellForCausalLM"],
    architecture: "codeshell",
    model_type: "codeshell",
    pre_tokenizers: &["codeshell"],
    prefix: "transformer.",
    names: &[gpt2::NAMES],
    fields: &gpt2::FIELDS,
    expects: &[("tie_word_embeddings", false)],
    keys,
    export: |_, exported| {
        let fields = &[("attention.head_count_kv", "num_query_groups")];
        let without = &["rope.freq_base", "rope.scaling.type"];
        Some(exported.fields(fields).without(without).set("tie_word_embeddings", false))
    },
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let width = hyper::width(config)?;
    keys.set("context_length", config.require_u32(&["n_positions"], "the longest context")?);
    keys.set("embedding_length", width);
    keys.set("feed_forward_length", hyper::inner_width(config, width)?);
    keys.set("block_count", hyper::block_count(config)?);
    keys.set("attention.head_count", hyper::head_count(config)?);
    let groups = config.require_u32(&["num_query_groups"], "heads of keys and values")?;
    keys.set("attention.head_count_kv", groups);
    keys.set("attention.layer_norm_epsilon", hyper::layer_norm_epsilon(config)?);
    keys.file_type();
    keys.set("rope.freq_base", hyper::DEFAULT_BASE);
    keys.set("rope.scaling.type", "linear");
    keys.set("rope.scaling.factor", 1.0f32);
    Ok(())
}
