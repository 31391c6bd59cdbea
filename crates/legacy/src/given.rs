//! Hyper-parameters that old files do not hold: from the command line, from a folder with the
//! original configuration, or the usual default.

use std::path::{Path, PathBuf};

use gguf::Error;
use gguf_checkpoint::config::Config;

use super::header::{Field, Header, Program};

/// What the user can say that the file does not.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Longest context, in tokens.
    pub context_length: Option<u32>,
    /// What norms add before they divide.
    pub epsilon: Option<f32>,
    /// Base frequency of rotary embedding.
    pub rope_base: Option<f32>,
    /// Attention heads, where the header has a wrong number.
    pub head_count: Option<u32>,
    /// How many query heads share a key and value head.
    pub gqa: Option<u32>,
}

/// The same after everything has been asked.
#[derive(Clone, Debug)]
pub(super) struct Resolved {
    /// 0 for whisper, which has two.
    pub context_length: u32,
    pub epsilon: f32,
    /// `None` for 10000, which programs take where nothing is said.
    pub rope_base: Option<f32>,
    pub heads: u32,
    pub gqa: Option<u32>,
    /// What was taken for granted.
    pub notes: Vec<String>,
}

impl Overrides {
    /// Puts together what is known. `dir` may hold a `config.json`.
    pub(super) fn complete(
        &self,
        program: Program,
        header: &Header,
        dir: Option<&Path>,
    ) -> Result<Resolved, Error> {
        self.refuse_unused(program)?;
        let config = dir.filter(|dir| dir.join("config.json").is_file());
        let config = config.map(Config::read).transpose()?;
        let config = Stated(config.as_ref());
        config.check(header)?;
        let mut notes = Vec::new();

        let stated = self.context_length.or(header.get(Field::Context)).or(config.u32(CONTEXT)?);
        let context_length = stated.unwrap_or_else(|| {
            // Whisper has two contexts, under names of their own.
            if program == Program::Whisper {
                return 0;
            }
            notes.push(format!(
                "the file does not say how long contexts can be: {USUAL_CONTEXT} is assumed \
                 (--context-length)"
            ));
            USUAL_CONTEXT
        });

        let epsilon = self.epsilon.or(config.f32(EPSILON)?);
        let epsilon = epsilon.unwrap_or_else(|| match program {
            Program::Llama => {
                notes.push(
                    "the file does not say what the norms add: 5e-6 is assumed, as the programs \
                     of its time did; 1e-6 is right for LLaMA, 1e-5 for Llama 2 (--eps)"
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
            let what = format!("a width of {width} does not divide into {heads} heads");
            return Err(Error::request("option-contradicts", what, "correct --head-count"));
        }
        if heads != stored {
            notes.push(format!("{heads} attention heads, where the file says {stored}"));
        }
        Ok(Resolved {
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
    /// Refuses what has no place in a file of this program, by the name of its flag.
    fn refuse_unused(&self, program: Program) -> Result<(), Error> {
        let given = [
            ("--gqa", self.gqa.is_some()),
            ("--context-length", self.context_length.is_some()),
            ("--eps", self.epsilon.is_some()),
            ("--rope-base", self.rope_base.is_some()),
            ("--head-count", self.head_count.is_some()),
        ];
        let unused = match program {
            Program::Llama => &[],
            // Two contexts, two numbers of heads, and all of them in the header.
            Program::Whisper => &given[..],
            _ => &given[..1],
        };
        match unused.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((flag, _)) => {
                let what = format!("{flag}: files of this program have no place for it");
                let help = "leave it out, or set a key with --override-kv";
                Err(Error::request("option-contradicts", what, help))
            }
        }
    }
}

const USUAL_CONTEXT: u32 = 2048;

const CONTEXT: &[&str] =
    &["max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"];
const EPSILON: &[&str] = &["rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps"];
const HEADS: &[&str] = &["num_attention_heads", "n_head", "n_heads"];
const WIDTH: &[&str] = &["hidden_size", "n_embd", "n_embed", "d_model"];
const BLOCKS: &[&str] = &["num_hidden_layers", "n_layer", "n_layers"];

/// The configuration, if there is one.
struct Stated<'c>(Option<&'c Config>);

impl Stated<'_> {
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
        // The base that programs take without being told needs no key.
        let base = nested.or(self.f32(&["rope_theta", "rotary_emb_base"])?);
        Ok(base.filter(|base| *base != 10000.0))
    }

    /// The configuration is of this model, as far as both say the same things.
    fn check(&self, header: &Header) -> Result<(), Error> {
        let path = self.0.map_or_else(PathBuf::new, |config| config.path().to_owned());
        for (field, names) in [(Field::Width, WIDTH), (Field::Blocks, BLOCKS)] {
            if let (Some(here), Some(there)) = (header.get(field), self.u32(names)?)
                && here != there
            {
                let what = format!("`{}` is {there}, and {here} in the old file", names[0]);
                let help = "name the folder of the same model";
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
    fn what_a_program_has_no_place_for_is_refused_by_name() {
        let flags = |given: Overrides| {
            [Program::Llama, Program::Gpt2, Program::Whisper].map(|program| {
                let refused = given.refuse_unused(program).err()?.to_string();
                Some(refused.split(':').next()?.to_owned())
            })
        };
        let name = |flag: &str| Some(flag.to_owned());
        let gqa = Overrides { gqa: Some(1), ..Overrides::default() };
        assert_eq!(flags(gqa), [None, name("--gqa"), name("--gqa")]);
        let context = Overrides { context_length: Some(7), ..Overrides::default() };
        assert_eq!(flags(context), [None, None, name("--context-length")]);
        let heads = Overrides { head_count: Some(7), ..Overrides::default() };
        assert_eq!(flags(heads), [None, None, name("--head-count")]);
        assert_eq!(flags(Overrides::default()), [None, None, None]);
    }
}
