//! Conversion of Mamba and Mamba 2: `A_log` becomes `-exp(A_log)`, convolutions lose a dimension,
//! and per-head values of Mamba 2 become matrices of one column.

use gguf::{Error, Shape};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{Name, Table, captures};
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind, export, hparams};
use crate::schema::key;

/// Version of Mamba.
pub(crate) enum Version {
    Mamba1,
    Mamba2,
}

/// Tensor names of both versions.
pub(crate) const NAMES: Table = &[
    ("backbone.embeddings", "token_embd"),
    // Name in the original code.
    ("backbone.embedding", "token_embd"),
    ("backbone.norm_f", "output_norm"),
    ("lm_head", "output"),
    ("backbone.layers.{}.norm", "blk.{}.attn_norm"),
    ("backbone.layers.{}.mixer.in_proj", "blk.{}.ssm_in"),
    ("backbone.layers.{}.mixer.conv1d", "blk.{}.ssm_conv1d"),
    ("backbone.layers.{}.mixer.x_proj", "blk.{}.ssm_x"),
    ("backbone.layers.{}.mixer.dt_proj", "blk.{}.ssm_dt"),
    ("backbone.layers.{}.mixer.norm", "blk.{}.ssm_norm"),
    ("backbone.layers.{}.mixer.out_proj", "blk.{}.ssm_out"),
];

/// Parameters without a `.weight` suffix, and their GGUF names.
const PARAMETERS: [(&str, &str); 3] = [
    ("backbone.layers.{}.mixer.A_log", "ssm_a"),
    ("backbone.layers.{}.mixer.D", "ssm_d"),
    ("backbone.layers.{}.mixer.dt_bias", "ssm_dt.bias"),
];

/// Context length, which an SSM does not limit.
const CONTEXT_LENGTH: u32 = 1 << 20;

pub(crate) struct Mamba;

/// Description of [`Mamba`].
pub(crate) static MAMBA: Description = Description {
    classes: &["MambaForCausalLM", "MambaLMHeadModel", "FalconMambaForCausalLM"],
    architecture: "mamba",
    model_type: "mamba",
    vocabulary: VocabularyKind::BpeElseSentencePiece,
    pre_tokenizers: &["gpt-2"],
    tensor_names: &[NAMES],
    required_flags: &[("use_bias", false), ("use_conv_bias", true)],
    ..Description::DECODER
};

impl Converter for Mamba {
    fn description(&self) -> &'static Description {
        &MAMBA
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        Version::Mamba1.keys(config, keys)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        Version::Mamba1.map_tensor(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Version::Mamba1.export(model, exported)
    }
}

/// Sizes of a layer.
struct Sizes {
    embedding: u32,
    inner: u32,
    kernel: u32,
    state: u32,
    /// Rank of the time steps; number of heads in Mamba 2.
    rank: u32,
    groups: u32,
}

impl Version {
    /// Writes the hyper-parameters.
    pub(crate) fn keys(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let sizes = self.sizes(config)?;
        keys.set(key::CONTEXT_LENGTH, CONTEXT_LENGTH);
        keys.set(key::EMBEDDING_LENGTH, sizes.embedding);
        // llama.cpp needs both keys.
        keys.set(key::FEED_FORWARD_LENGTH, 0u32);
        keys.set(key::ATTENTION_HEAD_COUNT, 0u32);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::SSM_CONV_KERNEL, sizes.kernel);
        keys.set(key::SSM_INNER_SIZE, sizes.inner);
        keys.set(key::SSM_STATE_SIZE, sizes.state);
        keys.set(key::SSM_TIME_STEP_RANK, sizes.rank);
        if let Self::Mamba2 = self {
            keys.set(key::SSM_GROUP_COUNT, sizes.groups);
        }
        let epsilon = config.f32(&["layer_norm_epsilon", "rms_norm_eps"])?.unwrap_or(1e-5);
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, epsilon);
        if let Self::Mamba1 = self {
            let is_falcon = config.find(&["model_type"]).is_some_and(|(_, t)| t == "falcon_mamba");
            keys.set(key::SSM_DT_B_C_RMS, is_falcon);
        }
        keys.file_type();
        Ok(())
    }

    /// Maps a checkpoint tensor.
    pub(crate) fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let name = match name.strip_prefix("model.") {
            Some(rest) if rest.starts_with("backbone.") || rest.starts_with("lm_head.") => rest,
            _ => name,
        };
        if matches!(self, Self::Mamba1) && name == "lm_head.weight" && is_tied(config)? {
            return Ok(Some(Mapping::Dropped));
        }
        for (hf_name, gguf_name) in PARAMETERS {
            if let Some(&[block]) = captures(hf_name, name).as_deref() {
                let steps = self.parameter_steps(config, gguf_name)?;
                return Ok(Some(Mapping::one(format!("blk.{block}.{gguf_name}"), steps)));
            }
        }
        let mapped = Name::parse(name).and_then(|name| name.mapped(NAMES));
        let Some(mapped) = mapped else { return Ok(Some(Mapping::Unknown)) };
        let step = if mapped.ends_with(".ssm_conv1d.weight") {
            // Depthwise convolution: the dimension of size 1 is dropped.
            let sizes = self.sizes(config)?;
            let channels = self.channels(&sizes);
            Some(reshape(&[sizes.kernel, 1, channels], &[sizes.kernel, channels]))
        } else if mapped.ends_with(".ssm_norm.weight") {
            let sizes = self.sizes(config)?;
            Some(reshape(&[sizes.inner], &[sizes.inner / sizes.groups, sizes.groups]))
        } else {
            None
        };
        Ok(Some(Mapping::one(mapped, Vec::from_iter(step))))
    }

    /// Completes an export.
    pub(crate) fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let parameters = PARAMETERS.map(|(name, _)| name);
        let exported = match self {
            Self::Mamba1 => {
                let is_falcon = model.metadata().bool("mamba.ssm.dt_b_c_rms").unwrap_or(false);
                let (class, model_type) = if is_falcon {
                    ("FalconMambaForCausalLM", "falcon_mamba")
                } else {
                    ("MambaForCausalLM", "mamba")
                };
                exported
                    .class(class, model_type)
                    .patterns(parameters)
                    .fields(&[("ssm.time_step_rank", "time_step_rank")])
            }
            Self::Mamba2 => {
                let head_dim = export::ratio(model, key::SSM_INNER_SIZE, "ssm.time_step_rank");
                exported
                    .first(parameters)
                    .fields(&[("ssm.time_step_rank", "num_heads"), ("ssm.group_count", "n_groups")])
                    .set_some("head_dim", head_dim)
            }
        };
        let exported = exported
            .fields(&[
                ("ssm.conv_kernel", "conv_kernel"),
                ("ssm.inner_size", "intermediate_size"),
                ("ssm.state_size", "state_size"),
                ("attention.layer_norm_rms_epsilon", "layer_norm_epsilon"),
            ])
            .without(&[key::CONTEXT_LENGTH, key::FEED_FORWARD_LENGTH, key::ATTENTION_HEAD_COUNT])
            .set_some("expand", export::ratio(model, key::SSM_INNER_SIZE, "embedding_length"))
            .set("use_bias", export::has(model, "blk.0.ssm_in.bias"))
            .set("use_conv_bias", export::may_have(model, "blk.0.ssm_conv1d.bias"));
        Some(exported)
    }

    /// Reads the sizes of a layer.
    fn sizes(&self, config: &Config) -> Result<Sizes, Error> {
        let or = |names: &[&str], default: u32| {
            Ok::<u32, Error>(config.u32(names)?.filter(|&value| value > 0).unwrap_or(default))
        };
        let embedding =
            config.require_u32(&["hidden_size", "d_model", "dim"], "the embedding size")?;
        let expand = or(&["expand"], 2)?;
        let inner = or(&["intermediate_size", "d_inner"], embedding.saturating_mul(expand))?;
        let (state, rank) = match self {
            Self::Mamba1 => (16, or(&["time_step_rank", "dt_rank"], embedding.div_ceil(16))?),
            Self::Mamba2 => (128, inner / or(&["head_dim"], 64)?),
        };
        if matches!(self, Self::Mamba1) && inner != embedding.saturating_mul(2) {
            let what =
                format!("the inner size {inner} is not twice the embedding size {embedding}");
            let help =
                "llama.cpp supports only this ratio; correct the configuration if it is wrong";
            return Err(Error::input("config-unsupported", config.path(), what, help));
        }
        let groups = or(&["n_groups"], 1)?;
        let kernel = or(&["conv_kernel", "d_conv"], 4)?;
        Ok(Sizes {
            embedding,
            inner,
            kernel,
            state: or(&["state_size", "d_state"], state)?,
            rank,
            groups,
        })
    }

    /// Returns the number of channels of the convolution, which covers B and C too in Mamba 2.
    fn channels(&self, sizes: &Sizes) -> u32 {
        match self {
            Self::Mamba1 => sizes.inner,
            Self::Mamba2 => sizes
                .groups
                .saturating_mul(sizes.state)
                .saturating_mul(2)
                .saturating_add(sizes.inner),
        }
    }

    /// Returns the steps for a parameter without a `.weight` suffix.
    fn parameter_steps(&self, config: &Config, gguf_name: &str) -> Result<Vec<Step>, Error> {
        let mut steps = Vec::new();
        // One value per head, as a matrix of one column that is broadcast over the head.
        if matches!(self, Self::Mamba2) && gguf_name != "ssm_dt.bias" {
            let heads = self.sizes(config)?.rank;
            steps.push(reshape(&[heads], &[1, heads]));
        }
        if gguf_name == "ssm_a" {
            steps.push(Step::Map(Function::MinusExp));
        }
        Ok(steps)
    }
}

/// Returns the step from one shape to another.
fn reshape(from: &[u32], to: &[u32]) -> Step {
    let shape = |dims: &[u32]| {
        let dims: Vec<u64> = dims.iter().copied().map(u64::from).collect();
        Shape::new(&dims).unwrap_or_else(|| unreachable!("at most four dimensions"))
    };
    Step::Reshape { from: shape(from), to: shape(to) }
}

/// Returns whether the LM head is tied to the token embedding, which is the default.
fn is_tied(config: &Config) -> Result<bool, Error> {
    let stated = config.bool("tie_word_embeddings")?.or(config.bool("tie_embeddings")?);
    Ok(stated.unwrap_or(true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mamba2::convert::Mamba2;

    #[test]
    fn mamba2_values_per_head_become_matrices() {
        let config = Config::of(json!({"hidden_size": 64, "expand": 2, "head_dim": 16,
            "n_groups": 2, "state_size": 8, "conv_kernel": 4}));
        let steps = |name: &str| match (&Mamba2 as &dyn Converter).mapping(&config, name).unwrap() {
            Mapping::Tensors(made) => (made[0].name.clone(), made[0].steps.clone()),
            other => panic!("{other:?}"),
        };
        let (name, a) = steps("backbone.layers.1.mixer.A_log");
        assert_eq!(name, "blk.1.ssm_a");
        assert_eq!(a, [reshape(&[8], &[1, 8]), Step::Map(Function::MinusExp)]);
        let (name, bias) = steps("model.backbone.layers.1.mixer.dt_bias");
        assert_eq!((&*name, bias), ("blk.1.ssm_dt.bias", Vec::new()));
        let (_, norm) = steps("backbone.layers.1.mixer.norm.weight");
        assert_eq!(norm, [reshape(&[128], &[64, 2])]);
        let (_, convolution) = steps("backbone.layers.1.mixer.conv1d.weight");
        assert_eq!(convolution, [reshape(&[4, 1, 160], &[4, 160])]);
    }
}
