//! Jais: the second generation with norms with bias and feed-forward layers without gates, and the first.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};

use super::names::{LLAMA_LIKE, Table};
use super::{Family, Mapping, Values, gpt2, hyper};

pub(super) static JAIS2: Family = Family {
    classes: &["Jais2ForCausalLM"],
    architecture: "jais2",
    model_type: "jais2",
    pre_tokenizers: &["jais-2"],
    names: &[LLAMA_LIKE],
    fields: &[("attention.layer_norm_epsilon", "layer_norm_eps")],
    expects: &[("attention_bias", true), ("mlp_bias", true)],
    complete: |config| {
        config.default("layer_norm_eps", 1e-5);
        let head_dim = hyper::head_dim(config)?;
        config.default("head_dim", head_dim);
        hyper::default_attention(config)
    },
    keys: |config, keys| {
        keys.stated(config)?;
        keys.set("rope.dimension_count", hyper::head_dim(config)?);
        Ok(())
    },
    ..Family::DEFAULT
};

/// The first generation: as GPT-2 with gates, and with positions by ALiBi.
const FIRST_NAMES: Table = &[("h.{}.mlp.c_fc2", "blk.{}.ffn_gate")];
const SLOPES: &str = "relative_pe.slopes";
/// Set by the slopes.
const MAX_BIAS: &str = "max_alibi_bias";

pub(super) static JAIS: Family = Family {
    classes: &["JAISLMHeadModel"],
    architecture: "jais",
    model_type: "jais",
    pre_tokenizers: &["jais"],
    prefix: "transformer.",
    names: &[FIRST_NAMES, gpt2::NAMES],
    fields: &gpt2::FIELDS,
    complete: |config| {
        require(config, "activation_function", "swiglu")?;
        require(config, "position_embedding_type", "alibi")
    },
    values,
    first_keys: |config, keys| {
        keys.set("attention.max_alibi_bias", config.f32(&[MAX_BIAS])?.unwrap_or(USUAL_BIAS));
        Ok(())
    },
    keys: |config, keys| {
        keys.set("block_count", hyper::block_count(config)?);
        keys.set("context_length", hyper::context_length(config)?);
        keys.set("embedding_length", hyper::width(config)?);
        keys.set("feed_forward_length", hyper::feed_forward(config)?);
        keys.set("attention.head_count", hyper::head_count(config)?);
        keys.set("attention.layer_norm_epsilon", hyper::layer_norm_epsilon(config)?);
        keys.file_type();
        Ok(())
    },
    special: |_, name| Ok(name.ends_with(SLOPES).then_some(Mapping::Dropped)),
    steps,
    export: |model, exported| {
        let exported = exported
            .set("activation_function", "swiglu")
            .set("position_embedding_type", "alibi")
            .set("embeddings_scale", 1.0)
            .set("width_scale", 1.0);
        let bias = super::exported::number(model, "attention.max_alibi_bias")?;
        Some(exported.unwritten(MAX_BIAS, bias.into()))
    },
    ..Family::DEFAULT
};

/// The largest bias where no slope tells.
const USUAL_BIAS: f32 = 8.0;

/// Fails if a field has another value than programs compute with.
fn require(config: &Config, field: &str, value: &str) -> Result<(), Error> {
    match config.find(&[field]) {
        None => Err(config.missing(field, "what the model computes with")),
        Some((_, stated)) if stated == value => Ok(()),
        Some((_, stated)) => Err(hyper::not_computed(config, field, stated)),
    }
}

/// The slope of the first head tells how large biases are.
fn values(config: &mut Config, values: &Values) -> Result<(), Error> {
    let heads = hyper::head_count(config)?;
    let slopes = match values.find(&format!("transformer.{SLOPES}"))? {
        None => values.find(SLOPES)?,
        found => found,
    };
    if let Some(first) = slopes.and_then(|slopes| slopes.first().copied()) {
        let power_of_two = f64::from(1u32 << heads.ilog2());
        let bias = -(f64::from(first).log2() * power_of_two).round_ties_even();
        config.set(MAX_BIAS, bias);
    }
    Ok(())
}

/// Embedding and output have factors, which become part of them; matrices are stored the other way round.
fn steps(config: &Config, name: &str) -> Result<Vec<Step>, Error> {
    let number = |field: &str| config.f64(&[field]);
    let scale = match name {
        "token_embd.weight" => {
            let scale = match number("mup_embeddings_scale")? {
                None => number("embeddings_scale")?,
                scale => scale,
            };
            scale.ok_or_else(|| config.missing("embeddings_scale", "the factor of embeddings"))?
        }
        "output.weight" => match number("mup_output_alpha")? {
            Some(alpha) => {
                alpha * config.require_f64(&["mup_width_scale"], "the factor of the output")?
            }
            None => config.require_f64(&["width_scale"], "the factor of the output")?,
        },
        name => {
            const ENDS: [&str; 5] = ["attn_qkv", "attn_output", "ffn_up", "ffn_gate", "ffn_down"];
            let is_turned = |end: &&str| name.ends_with(&format!(".{end}.weight"));
            return Ok(ENDS
                .iter()
                .find(|end| is_turned(end))
                .map(|_| Step::Transpose)
                .into_iter()
                .collect());
        }
    };
    Ok(vec![Step::Map(Function::Times(scale as f32))])
}
