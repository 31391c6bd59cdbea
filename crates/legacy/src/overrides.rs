//! Hyperparameters that legacy files do not store. They come from the command line, from the
//! original configuration, or from a default.

use std::path::{Path, PathBuf};

use gguf::Error;
use gguf_checkpoint::config::Config;

use super::header::{Field, Header, ModelFamily};

/// Hyperparameters set by the user.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Maximum context length in tokens.
    pub context_length: Option<u32>,
    /// Epsilon of the norms.
    pub epsilon: Option<f32>,
    /// RoPE base frequency.
    pub rope_base: Option<f32>,
    /// Number of attention heads, if the header is wrong.
    pub head_count: Option<u32>,
    /// Number of query heads per KV head.
    pub gqa: Option<u32>,
}

/// Hyperparameters after overrides, configuration and defaults are applied.
#[derive(Clone, Debug)]
pub(super) struct Hyperparameters {
    /// 0 for Whisper, which has two context lengths.
    pub context_length: u32,
    pub epsilon: f32,
    /// `None` for 10000, the default of runtimes.
    pub rope_base: Option<f32>,
    pub heads: u32,
    pub gqa: Option<u32>,
    /// Notes about assumed values.
    pub notes: Vec<String>,
}

impl Overrides {
    /// Resolves the hyperparameters. `dir` may contain a `config.json`.
    pub(super) fn resolve(
        &self,
        family: ModelFamily,
        header: &Header,
        dir: Option<&Path>,
    ) -> Result<Hyperparameters, Error> {
        self.reject_inapplicable(family)?;
        let config = dir.filter(|dir| dir.join("config.json").is_file());
        let config = config.map(Config::read).transpose()?;
        let config = OptionalConfig(config.as_ref());
        config.check(header)?;
        let mut notes = Vec::new();

        let stated = self.context_length.or(header.get(Field::Context)).or(config.u32(CONTEXT)?);
        let context_length = stated.unwrap_or_else(|| {
            // Whisper has two context lengths, under keys of their own.
            if family == ModelFamily::Whisper {
                return 0;
            }
            notes.push(format!(
                "the file does not store the context length; assuming {DEFAULT_CONTEXT} \
                 (--context-length)"
            ));
            DEFAULT_CONTEXT
        });

        let epsilon = self.epsilon.or(config.f32(EPSILON)?);
        let epsilon = epsilon.unwrap_or_else(|| match family {
            ModelFamily::Llama => {
                notes.push(
                    "the file does not store the norm epsilon; assuming 5e-6, the default of its \
                     time; LLaMA uses 1e-6, Llama 2 uses 1e-5 (--eps)"
                        .to_owned(),
                );
                5e-6
            }
            _ => 1e-5,
        });

        let stored = header.get(Field::Heads).unwrap_or(1);
        let heads = self.head_count.or(config.u32(HEADS)?).unwrap_or(stored);
        let width = header.get(Field::Width).unwrap_or(heads);
        if heads == 0 || !width.is_multiple_of(heads) {
            let what = format!("embedding length {width} is not a multiple of {heads} heads");
            return Err(Error::request("option-contradicts", what, "correct --head-count"));
        }
        if heads != stored {
            notes.push(format!("using {heads} attention heads; the file states {stored}"));
        }
        Ok(Hyperparameters {
            context_length,
            epsilon,
            rope_base: self.rope_base.or(config.rope_base()?),
            heads,
            gqa: self.gqa,
            notes,
        })
    }
}

impl Overrides {
    /// Rejects flags that do not apply to the model family.
    fn reject_inapplicable(&self, family: ModelFamily) -> Result<(), Error> {
        let flags = [
            ("--gqa", self.gqa.is_some()),
            ("--context-length", self.context_length.is_some()),
            ("--eps", self.epsilon.is_some()),
            ("--rope-base", self.rope_base.is_some()),
            ("--head-count", self.head_count.is_some()),
        ];
        let inapplicable = match family {
            ModelFamily::Llama => &[],
            // Whisper has two contexts and head counts, all in the header.
            ModelFamily::Whisper => &flags[..],
            _ => &flags[..1],
        };
        match inapplicable.iter().find(|(_, is_set)| *is_set) {
            None => Ok(()),
            Some((flag, _)) => {
                let what = format!("{flag} does not apply to this kind of model");
                let help = "remove the flag, or set a key with --override-kv";
                Err(Error::request("option-contradicts", what, help))
            }
        }
    }
}

const DEFAULT_CONTEXT: u32 = 2048;

const CONTEXT: &[&str] =
    &["max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"];
const EPSILON: &[&str] = &["rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps"];
const HEADS: &[&str] = &["num_attention_heads", "n_head", "n_heads"];
const WIDTH: &[&str] = &["hidden_size", "n_embd", "n_embed", "d_model"];
const BLOCKS: &[&str] = &["num_hidden_layers", "n_layer", "n_layers"];

/// `config.json`, if it exists.
struct OptionalConfig<'c>(Option<&'c Config>);

impl OptionalConfig<'_> {
    fn u32(&self, names: &[&str]) -> Result<Option<u32>, Error> {
        self.0.map_or(Ok(None), |config| config.u32(names))
    }

    fn f32(&self, names: &[&str]) -> Result<Option<f32>, Error> {
        self.0.map_or(Ok(None), |config| config.f32(names))
    }

    fn rope_base(&self) -> Result<Option<f32>, Error> {
        let nested = self.0.and_then(|config| {
            let (_, fields) = config.find(&["rope_parameters", "rope_scaling"])?;
            fields.get("rope_theta")?.as_f64().map(|base| base as f32)
        });
        // The default base needs no key.
        let base = nested.or(self.f32(&["rope_theta", "rotary_emb_base"])?);
        Ok(base.filter(|base| *base != 10000.0))
    }

    /// Checks that the configuration and the header agree.
    fn check(&self, header: &Header) -> Result<(), Error> {
        let path = self.0.map_or_else(PathBuf::new, |config| config.path().to_owned());
        for (field, names) in [(Field::Width, WIDTH), (Field::Blocks, BLOCKS)] {
            if let (Some(here), Some(there)) = (header.get(field), self.u32(names)?)
                && here != there
            {
                let what = format!("`{}` is {there}, but {here} in the legacy file", names[0]);
                let help = "pass the folder of the same model";
                return Err(Error::input("legacy-config-differs", &path, what, help));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inapplicable_flags_are_rejected() {
        let rejected_flags = |overrides: Overrides| {
            [ModelFamily::Llama, ModelFamily::Gpt2, ModelFamily::Whisper].map(|family| {
                let message = overrides.reject_inapplicable(family).err()?.to_string();
                Some(message.split(' ').next()?.to_owned())
            })
        };
        let name = |flag: &str| Some(flag.to_owned());
        let gqa = Overrides { gqa: Some(1), ..Overrides::default() };
        assert_eq!(rejected_flags(gqa), [None, name("--gqa"), name("--gqa")]);
        let context = Overrides { context_length: Some(7), ..Overrides::default() };
        assert_eq!(rejected_flags(context), [None, None, name("--context-length")]);
        let heads = Overrides { head_count: Some(7), ..Overrides::default() };
        assert_eq!(rejected_flags(heads), [None, None, name("--head-count")]);
        assert_eq!(rejected_flags(Overrides::default()), [None, None, None]);
    }
}
