//! The presets of llama.cpp's quantizer: their types that do not depend on the layer. Numbers and
//! default types are those of the file type of the same name.

use std::fmt;

use gguf::TensorType;
use gguf::{FileType, file_type_named};

macro_rules! presets {
    ($($name:ident $output:ident $embedding:ident $about:literal,)*) => {
        /// A preset of llama.cpp's quantizer, which assigns a type to each tensor of a model.
        ///
        /// Stored in files as the number `general.file_type` (`enum llama_ftype` in `llama.h`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(non_camel_case_types, reason = "the spelling of llama.cpp")]
        #[repr(u32)]
        pub enum Preset {
            $(#[doc = $about] $name = file_type_of(stringify!($name)).id,)*
        }

        impl Preset {
            /// All presets, in order of number.
            pub const ALL: &[Preset] = &[$(Preset::$name,)*];

            const fn row(self) -> Row {
                match self {
                    $(Preset::$name => Row {
                        file_type: const { file_type_of(stringify!($name)) },
                        output: TensorType::$output,
                        embedding: TensorType::$embedding,
                        about: $about,
                    },)*
                }
            }
        }
    };
}

/// Looks up the file type of a preset at compile time; an unknown name does not compile.
const fn file_type_of(name: &str) -> &'static FileType {
    file_type_named(name).expect("every preset is a file type")
}

struct Row {
    file_type: &'static FileType,
    output: TensorType,
    embedding: TensorType,
    about: &'static str,
}

// Sizes and perplexity increases are those in llama.cpp's help; "8B" is Llama 3 8B. Removed file
// types are missing.
presets! {
    // name    output embedding description
    F32        F32    F32      "single precision: 26 GB at 7B",
    F16        F16    F16      "half precision: 14 GB at 7B, +0.0020 perplexity",
    Q4_0       Q6_K   Q4_0     "4.34 GB at 8B, +0.4685 perplexity",
    Q4_1       Q6_K   Q4_1     "4.78 GB at 8B, +0.4511 perplexity",
    Q8_0       Q8_0   Q8_0     "7.96 GB at 8B, +0.0026 perplexity",
    Q5_0       Q6_K   Q5_0     "5.21 GB at 8B, +0.1316 perplexity",
    Q5_1       Q6_K   Q5_1     "5.65 GB at 8B, +0.1062 perplexity",
    Q2_K       Q6_K   Q2_K     "2.96 GB at 8B, +3.5199 perplexity",
    Q3_K_S     Q6_K   Q3_K     "3.41 GB at 8B, +1.6321 perplexity",
    Q3_K_M     Q6_K   Q3_K     "3.74 GB at 8B, +0.6569 perplexity",
    Q3_K_L     Q6_K   Q3_K     "4.03 GB at 8B, +0.5562 perplexity",
    Q4_K_S     Q6_K   Q4_K     "4.37 GB at 8B, +0.2689 perplexity",
    Q4_K_M     Q6_K   Q4_K     "4.58 GB at 8B, +0.1754 perplexity",
    Q5_K_S     Q6_K   Q5_K     "5.21 GB at 8B, +0.1049 perplexity",
    Q5_K_M     Q6_K   Q5_K     "5.33 GB at 8B, +0.0569 perplexity",
    Q6_K       Q6_K   Q6_K     "6.14 GB at 8B, +0.0217 perplexity",
    IQ2_XXS    Q5_K   Q2_K     "2.06 bits per weight; needs an importance matrix",
    IQ2_XS     Q5_K   Q2_K     "2.31 bits per weight; needs an importance matrix",
    Q2_K_S     Q6_K   Q2_K     "2.96 GB at 8B, +3.1836 perplexity; needs an importance matrix",
    IQ3_XS     Q6_K   IQ3_S    "3.3 bits per weight; needs an importance matrix",
    IQ3_XXS    Q5_K   IQ3_S    "3.06 bits per weight; needs an importance matrix",
    IQ1_S      Q5_K   Q2_K     "1.56 bits per weight; needs an importance matrix",
    IQ4_NL     Q6_K   IQ4_NL   "4.5 bits per weight, into a non-linear table",
    IQ3_S      Q6_K   IQ3_S    "3.44 bits per weight",
    IQ3_M      Q6_K   IQ3_S    "3.66 bits per weight",
    IQ2_S      Q5_K   IQ3_S    "2.5 bits per weight; needs an importance matrix",
    IQ2_M      Q5_K   IQ3_S    "2.7 bits per weight; needs an importance matrix",
    IQ4_XS     Q6_K   IQ4_XS   "4.25 bits per weight, into a non-linear table",
    IQ1_M      Q5_K   Q2_K     "1.75 bits per weight; needs an importance matrix",
    BF16       BF16   BF16     "upper half of single precision: 14 GB at 7B",
    TQ1_0      Q6_K   Q4_K     "1.69 bits per weight, for ternary models",
    TQ2_0      Q6_K   Q4_K     "2.06 bits per weight, for ternary models",
    MXFP4_MOE  Q8_0   Q8_0     "experts in MXFP4, everything else in Q8_0",
    NVFP4      Q6_K   NVFP4    "4.5 bits per weight, E2M1 with E4M3 scales",
    Q1_0       Q6_K   Q1_0     "1.125 bits per weight, signs only",
    Q2_0       Q6_K   Q4_K     "2.25 bits per weight",
}

const ALIASES: &[(&str, Preset)] =
    &[("Q3_K", Preset::Q3_K_M), ("Q4_K", Preset::Q4_K_M), ("Q5_K", Preset::Q5_K_M)];

impl Preset {
    /// Returns llama.cpp's name, such as `Q4_K_M`.
    pub const fn name(self) -> &'static str {
        self.row().file_type.name
    }

    /// Returns the number stored in `general.file_type`.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Returns the preset of a `general.file_type`; `None` for removed and unknown numbers.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|preset| preset.number() == number)
    }

    /// Returns the type of tensors without a special rule.
    pub const fn default_type(self) -> TensorType {
        self.row().file_type.main
    }

    /// Returns the type of the output projection, or of tied embeddings.
    pub(crate) const fn output_type(self) -> TensorType {
        self.row().output
    }

    /// Returns the type of token embeddings in files with an output projection.
    pub(crate) const fn embedding_type(self) -> TensorType {
        self.row().embedding
    }

    /// Returns a one-line description for help texts.
    pub const fn description(self) -> &'static str {
        self.row().about
    }

    /// Returns the aliases of the preset.
    pub fn aliases(self) -> impl Iterator<Item = &'static str> {
        ALIASES.iter().filter(move |(_, preset)| *preset == self).map(|(alias, _)| *alias)
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that is not the name, alias or number of a preset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a preset; supported: {known}", known = known_names().collect::<Vec<_>>().join(" "))]
pub struct UnknownPreset(pub String);

/// Returns the names that [`Preset`] parses, aliases last.
pub(super) fn known_names() -> impl Iterator<Item = &'static str> {
    Preset::ALL.iter().map(|preset| preset.name()).chain(ALIASES.iter().map(|(alias, _)| *alias))
}

impl std::str::FromStr for Preset {
    type Err = UnknownPreset;

    /// Parses a case-insensitive name or alias, or the number.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.iter().copied().find(|preset| preset.name().eq_ignore_ascii_case(s));
        let alias = || {
            ALIASES
                .iter()
                .find(|(alias, _)| alias.eq_ignore_ascii_case(s))
                .map(|(_, preset)| *preset)
        };
        let numbered = || s.parse().ok().and_then(Self::from_number);
        named.or_else(alias).or_else(numbered).ok_or_else(|| UnknownPreset(s.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use gguf::FILE_TYPES;

    use super::*;

    #[test]
    fn names_aliases_and_numbers_parse() {
        for &preset in Preset::ALL {
            assert_eq!(preset.name(), format!("{preset:?}"));
            assert_eq!(preset.name().to_lowercase().parse(), Ok(preset));
            assert_eq!(preset.number().to_string().parse(), Ok(preset));
            assert_eq!(Preset::from_number(preset.number()), Some(preset));
            for alias in preset.aliases() {
                assert_eq!(alias.parse(), Ok(preset));
            }
        }
        assert_eq!("q4_k".parse(), Ok(Preset::Q4_K_M));
        assert_eq!("15".parse(), Ok(Preset::Q4_K_M));
        assert_eq!(Preset::from_number(4), None);
        let error = "Q9_K".parse::<Preset>().unwrap_err().to_string();
        assert!(error.starts_with("`Q9_K` is not a preset; supported: F32 F16 Q4_0"), "{error}");
    }
    #[test]
    fn every_current_file_type_is_a_preset() {
        let is_preset = |name: &str| Preset::ALL.iter().any(|preset| preset.name() == name);
        let others: Vec<_> = FILE_TYPES
            .iter()
            .filter(|row| row.main.block().is_some() && !is_preset(row.name))
            .map(|row| row.name)
            .collect();
        assert_eq!(others, ["Q4_1, some F16"], "only old programs wrote it");
    }
}
