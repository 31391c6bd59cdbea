//! Target model of a draft model, which provides the vocabulary and hidden states.

use std::path::{Path, PathBuf};

use gguf::Error;
use gguf_checkpoint::config::Config;

use super::converter::{Converter, Draft};
use super::vocabulary::VocabularyKind;

/// Field of a draft model's configuration that holds the target's configuration during a conversion.
pub const FIELD: &str = "target_model";

/// File with the embedding of the mask token, which the conversion does not support.
const MASK_EMBEDDING: &str = "mask_embedding.pt";

/// Target model of a draft model.
pub struct Target {
    dir: PathBuf,
    /// Converter of the target; `None` if its class is unknown.
    converter: Option<&'static dyn Converter>,
    draft: Draft,
}

impl Target {
    /// Returns the target of a draft model, and sets its configuration as a field of the draft's.
    ///
    /// # Errors
    /// If a draft model has no target, another model has one, or the target has no configuration.
    pub fn of(
        config: &mut Config,
        converter: &dyn Converter,
        dir: &Path,
        given: Option<&Path>,
    ) -> Result<Option<Self>, Error> {
        let (target, draft) = match (given, converter.draft()) {
            (None, None) => return Ok(None),
            (Some(_), None) => {
                let what = format!("the class `{}` is no draft", config.class()?);
                let help = "leave --target-model-dir out";
                return Err(Error::request("option-contradicts", what, help));
            }
            (None, Some(_)) => {
                let what = format!(
                    "the class `{}` is a draft model, which uses the vocabulary of its target model",
                    config.class()?
                );
                let help = "give the directory of the target model with --target-model-dir";
                return Err(Error::input("target-missing", config.path(), what, help));
            }
            (Some(target), Some(draft)) => (target, draft),
        };
        if dir.join(MASK_EMBEDDING).is_file() {
            let what = format!(
                "has a `{MASK_EMBEDDING}`, which belongs to the token embedding of the target"
            );
            let help = "such drafts cannot be converted";
            return Err(Error::input("config-unsupported", dir, what, help));
        }
        let of_target = Config::read(target)?;
        config.set(FIELD, of_target.json().clone());
        let converter = of_target.class().ok().and_then(super::find);
        let converter = converter.map(|converter| converter.of_model(&of_target));
        Ok(Some(Self { dir: target.to_owned(), converter, draft }))
    }

    /// Returns the directory of the vocabulary.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the kind of vocabulary and the preferred pre-tokenizers of a draft model with this converter.
    pub fn vocabulary(
        &self,
        draft: &'static dyn Converter,
    ) -> (VocabularyKind, &'static [&'static str]) {
        let kind = match (self.draft, self.converter) {
            (Draft::Target, Some(converter)) => converter.vocabulary(),
            _ => draft.vocabulary(),
        };
        (
            kind,
            self.converter.map_or(draft.pre_tokenizers(), |converter| converter.pre_tokenizers()),
        )
    }
}
