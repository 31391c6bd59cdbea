//! PLaMo: the first, with fewer heads of keys; the second, with state spaces in most layers; the third,
//! with windows.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;
use serde_json::{Value, json};

use super::exported::{self, count};
use super::hyper::{self, Keys};
use super::names::{Table, captures, filled};
use super::{Exported, Family, Mapping};
use crate::vocab;

const ENDS: Table =
    &[("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output")];
const NAMES: Table = &[
    ("model.layers.layers.{}.norm", "blk.{}.attn_norm"),
    ("model.layers.layers.{}.self_attn.q_proj", "blk.{}.attn_q"),
    ("model.layers.layers.{}.self_attn.k_proj", "blk.{}.attn_k"),
    ("model.layers.layers.{}.self_attn.v_proj", "blk.{}.attn_v"),
    ("model.layers.layers.{}.self_attn.o_proj", "blk.{}.attn_output"),
    ("model.layers.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate"),
    ("model.layers.layers.{}.mlp.up_proj", "blk.{}.ffn_up"),
    ("model.layers.layers.{}.mlp.down_proj", "blk.{}.ffn_down"),
];
/// Of the second and the third.
const NAMES_SINCE: Table = &[
    ("model.layers.layers.{}.pre_mixer_norm", "blk.{}.attn_norm"),
    ("model.layers.layers.{}.mixer.qkv_proj", "blk.{}.attn_qkv"),
    ("model.layers.layers.{}.mixer.o_proj", "blk.{}.attn_output"),
    ("model.layers.layers.{}.pre_mlp_norm", "blk.{}.ffn_norm"),
    ("model.layers.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"),
    ("model.layers.layers.{}.mlp.down_proj", "blk.{}.ffn_down"),
];
const STATE_SPACE: Table = &[
    ("model.layers.layers.{}.mixer.in_proj", "blk.{}.ssm_in"),
    ("model.layers.layers.{}.mixer.conv1d", "blk.{}.ssm_conv1d"),
    ("model.layers.layers.{}.mixer.bcdt_proj", "blk.{}.ssm_x"),
    ("model.layers.layers.{}.mixer.dt_proj", "blk.{}.ssm_dt"),
    ("model.layers.layers.{}.mixer.out_proj", "blk.{}.ssm_out"),
];
const HEAD_NORMS: Table = &[
    ("model.layers.layers.{}.mixer.q_norm", "blk.{}.attn_q_norm"),
    ("model.layers.layers.{}.mixer.k_norm", "blk.{}.attn_k_norm"),
];
/// Whole names, of norms behind a part and of what is no matrix.
const POST_NORMS: [(&str, &str); 2] = [
    ("model.layers.layers.{}.post_mixer_norm.weight", "blk.{}.post_attention_norm"),
    ("model.layers.layers.{}.post_mlp_norm.weight", "blk.{}.post_ffw_norm"),
];
const PARAMETERS: [(&str, &str); 8] = [
    ("model.layers.layers.{}.mixer.A_log", "blk.{}.ssm_a"),
    ("model.layers.layers.{}.mixer.D", "blk.{}.ssm_d"),
    ("model.layers.layers.{}.mixer.dt_bias", "blk.{}.ssm_dt.bias"),
    ("model.layers.layers.{}.mixer.dt_norm_weight", "blk.{}.ssm_dt_norm"),
    ("model.layers.layers.{}.mixer.B_norm_weight", "blk.{}.ssm_b_norm"),
    ("model.layers.layers.{}.mixer.C_norm_weight", "blk.{}.ssm_c_norm"),
    ("model.layers.layers.{}.mixer.q_weight", "blk.{}.attn_q_norm.weight"),
    ("model.layers.layers.{}.mixer.k_weight", "blk.{}.attn_k_norm.weight"),
];

pub(super) static PLAMO: Family = Family {
    classes: &["PlamoForCausalLM"],
    architecture: "plamo",
    model_type: "plamo",
    vocabulary: vocab::Kind::SentencePiece,
    names: &[ENDS, NAMES],
    keys,
    steps,
    export: |model, exported| {
        let (heads, kv) = (count(model, "attention.head_count")?, exported::head_count_kv(model)?);
        let exported = exported.without(&["context_length", "attention.head_count_kv"]);
        Some(exported.set("num_key_value_heads", heads).set(SHARED[0], heads.checked_div(kv)?))
    },
    ..Family::DEFAULT
};

/// Heads that share one of keys; what the configuration calls heads of keys are all.
const SHARED: &[&str] = &["n_shared_head"];

fn heads(config: &Config) -> Result<[u32; 2], Error> {
    let heads = hyper::head_count(config)?;
    let shared = config.u32(SHARED)?.unwrap_or(8);
    match heads.checked_div(shared) {
        Some(kv) if kv > 0 && kv * shared == heads => Ok([heads, kv]),
        _ => Err(hyper::not_computed(config, SHARED[0], shared)),
    }
}

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    /// No configuration says it.
    const CONTEXT: u32 = 4096;
    let [heads, kv] = heads(config)?;
    keys.set("context_length", CONTEXT);
    keys.set("embedding_length", hyper::width(config)?);
    keys.set("feed_forward_length", hyper::feed_forward(config)?);
    keys.set("block_count", hyper::block_count(config)?);
    keys.set("attention.head_count", heads);
    keys.set("attention.head_count_kv", kv);
    keys.set("attention.layer_norm_rms_epsilon", epsilon(config)?);
    keys.file_type();
    Ok(())
}

fn epsilon(config: &Config) -> Result<f32, Error> {
    config.require_f32(&["rms_norm_eps"], "what the norms add before they divide")
}

/// Heads are stored for one share of all heads of keys after the other; programs have those of one head
/// of keys together.
fn steps(config: &Config, name: &str) -> Result<Vec<Step>, Error> {
    let [heads, kv] = heads(config)?;
    let len = u64::from(hyper::width(config)? / heads.max(1));
    let (outer, inner) = (u64::from(heads / kv), u64::from(kv));
    Ok(if name.ends_with(".attn_q.weight") {
        vec![Step::Exchange { groups: 1, start: 0, outer, inner, len }]
    } else if name.ends_with(".attn_output.weight") {
        vec![Step::ExchangeColumns { outer, inner, len }]
    } else {
        Vec::new()
    })
}

pub(super) static PLAMO2: Family = Family {
    classes: &["Plamo2ForCausalLM", "PLaMo2ForCausalLM"],
    architecture: "plamo2",
    model_type: "plamo2",
    vocabulary: vocab::Kind::Plamo { template: false },
    names: &[ENDS, NAMES_SINCE, STATE_SPACE],
    fields: &[
        ("attention.key_length", "hidden_size_per_head"),
        ("ssm.conv_kernel", "mamba_d_conv"),
        ("ssm.state_size", "mamba_d_state"),
        ("ssm.time_step_rank", "mamba_num_heads"),
    ],
    expects: &[("mamba_enabled", true)],
    complete: |config| {
        for (field, usual) in [
            ("mamba_step", 2),
            ("num_key_value_heads", 4),
            ("num_attention_heads", 32),
            ("max_position_embeddings", 2048),
            ("hidden_size", 4096),
            ("hidden_size_per_head", 128),
            ("mamba_d_state", 64),
            ("mamba_d_conv", 4),
            ("mamba_num_heads", 64),
            ("intermediate_size", 13312),
        ] {
            config.default(field, usual);
        }
        config.default("rms_norm_eps", 1e-6);
        Ok(())
    },
    keys: keys_of_second,
    special: |config, name| {
        for (foreign, ours) in PARAMETERS {
            if let Some(numbers) = captures(foreign, name) {
                let decay = ours.ends_with("ssm_a").then_some(Step::Map(Function::MinusExp));
                return Ok(Some(Mapping::one(filled(ours, &numbers), Vec::from_iter(decay))));
            }
        }
        post_norm(config, name)
    },
    steps: |config, name| {
        if name.ends_with(".ssm_conv1d.weight") {
            let kernel = size(config, "mamba_d_conv")?;
            return Ok(vec![hyper::channels(kernel, inner(config)?.into())]);
        }
        norms(config, name)
    },
    export: export_second,
    ..Family::DEFAULT
};

fn size(config: &Config, field: &str) -> Result<u32, Error> {
    config.require_u32(&[field], "a size of the model")
}

/// The width of the state space.
fn inner(config: &Config) -> Result<u32, Error> {
    Ok(size(config, "mamba_num_heads")?.saturating_mul(size(config, "hidden_size_per_head")?))
}

fn keys_of_second(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let blocks = hyper::block_count(config)?;
    let step = size(config, "mamba_step")?.max(1);
    // With few layers the last one has attention.
    let is_attention = |layer: u32| match blocks <= step / 2 {
        true => layer + 1 == blocks,
        false => layer % step == step / 2,
    };
    let heads = |count: u32| -> Array {
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        let layers = (0..blocks).map(|layer| if is_attention(layer) { count } else { 0 });
        Array::from(&layers.collect::<Vec<i32>>()[..])
    };
    keys.vocab_size(config)?;
    keys.set("attention.head_count_kv", heads(hyper::head_count_kv(config)?));
    keys.set("attention.head_count", heads(hyper::head_count(config)?));
    keys.set("context_length", hyper::context_length(config)?);
    keys.set("embedding_length", hyper::width(config)?);
    let head = size(config, "hidden_size_per_head")?;
    keys.set("attention.key_length", head);
    keys.set("attention.value_length", head);
    keys.set("block_count", blocks);
    keys.set("attention.layer_norm_rms_epsilon", epsilon(config)?);
    let base = hyper::Rope::of(config)?.base;
    keys.set("rope.freq_base", base.unwrap_or(hyper::DEFAULT_BASE));
    keys.set("ssm.state_size", size(config, "mamba_d_state")?);
    keys.set("ssm.conv_kernel", size(config, "mamba_d_conv")?);
    keys.set("ssm.time_step_rank", size(config, "mamba_num_heads")?);
    keys.set("ssm.inner_size", inner(config)?);
    keys.set("ssm.group_count", 0u32);
    keys.set("feed_forward_length", hyper::feed_forward(config)?);
    keys.file_type();
    Ok(())
}

/// Norms are stored as the difference from one, those behind a part from a share of it.
const OF_MIXER: f32 = 0.2;
const OF_NETWORK: f32 = 0.089_442_72;

fn post_norm(_: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let mut norms = POST_NORMS.iter().zip([OF_MIXER, OF_NETWORK]);
    Ok(norms.find_map(|((foreign, ours), share)| {
        let numbers = captures(foreign, name)?;
        Some(Mapping::one(filled(ours, &numbers), [Step::Map(Function::Plus(share))]))
    }))
}

fn norms(_: &Config, name: &str) -> Result<Vec<Step>, Error> {
    let is_norm = name.ends_with("_norm.weight");
    Ok(Vec::from_iter(is_norm.then_some(Step::Map(Function::PlusOne))))
}

fn export_second(model: &Model, exported: Exported) -> Option<Exported> {
    let of_layers = |key: &str| {
        let heads = model.metadata().array(&format!("plamo2.attention.{key}"))?;
        Some(heads.iter().map(|count| count.to_u64().unwrap_or(0)).collect::<Vec<_>>())
    };
    let (heads, kv) = (of_layers("head_count")?, of_layers("head_count_kv")?);
    let first = heads.iter().position(|&count| count > 0);
    let second = first.and_then(|first| {
        Some(first + 1 + heads[first + 1..].iter().position(|&count| count > 0)?)
    });
    // Layers with attention come in the middle of each period.
    let step = match (first, second) {
        (Some(first), Some(second)) => second - first,
        (Some(first), None) if first > 0 && first * 3 >= heads.len() => first * 2,
        _ => heads.len() * 2,
    };
    let exported = exported
        .first(POST_NORMS.iter().chain(&PARAMETERS).map(|(name, _)| *name))
        .without(&["attention.head_count", "attention.head_count_kv"])
        .set("mamba_step", step)
        .set("num_attention_heads", heads.iter().max().copied())
        .set("num_key_value_heads", kv.iter().max().copied());
    Some(exported)
}

pub(super) static PLAMO3: Family = Family {
    classes: &["Plamo3ForCausalLM", "PLaMo3ForCausalLM"],
    architecture: "plamo3",
    model_type: "plamo3",
    vocabulary: vocab::Kind::Plamo { template: true },
    names: &[ENDS, NAMES_SINCE, HEAD_NORMS],
    fields: &[
        ("attention.sliding_window", "window_size"),
        ("attention.sliding_window_pattern", "sliding_window_pattern"),
        ("rope.freq_base_swa", "rope_local_theta"),
    ],
    complete: |config| {
        // Positions are stretched by fields of its own.
        let factor = config.f32(&["rope_scaling_factor"])?.unwrap_or(1.0);
        if factor != 1.0 && config.find(&["rope_scaling", "rope_parameters"]).is_none() {
            let original =
                config.require_u32(&["initial_context_length"], "the context before stretching")?;
            let scaling = json!({"rope_type": "yarn", "factor": factor, "beta_fast": 32.0,
                "beta_slow": 1.0, "original_max_position_embeddings": original});
            config.set("rope_scaling", scaling);
        }
        Ok(())
    },
    keys: |config, keys| {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        if let Some(window) = config.u32(&["window_size", "sliding_window"])? {
            const PERIOD: &[&str] = &["sliding_window_pattern"];
            keys.set("attention.sliding_window", window);
            let period = config.require_u32(PERIOD, "every how many layers there is no window")?;
            keys.set("attention.sliding_window_pattern", period);
        }
        Ok(())
    },
    special: post_norm,
    steps: norms,
    export: |model, exported| {
        let exported = exported.patterns(POST_NORMS.map(|(name, _)| name));
        let Some(factor) = exported::number(model, "rope.scaling.factor") else {
            return Some(exported);
        };
        let original = count(model, "rope.scaling.original_context_length");
        let original: Option<Value> = original.map(Value::from);
        Some(
            exported
                .set("rope_scaling_factor", factor)
                .set_some("initial_context_length", original),
        )
    },
    ..Family::DEFAULT
};
