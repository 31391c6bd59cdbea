//! The hyperparameter header of each model family.

use super::container::Container;
use super::cursor::{Cursor, ReadError};

/// A header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Number of tokens, which is the number of embedding rows.
    VocabSize,
    /// Maximum context length in tokens.
    Context,
    /// Embedding length.
    Width,
    /// The feed-forward length of llama is rounded up to a multiple of this.
    FfnMultiple,
    /// Feed-forward length divided by the embedding length.
    FfnRatio,
    /// Number of attention heads.
    Heads,
    /// Number of KV heads.
    KvHeads,
    /// Number of layers.
    Blocks,
    /// Number of rotary dimensions per head.
    RotaryDims,
    /// Whether attention and feed-forward are computed in parallel: 0 or 1.
    ParallelResidual,
    /// Maximum ALiBi bias, as `f32`.
    AlibiMax,
    /// Maximum ALiBi bias, as integer.
    AlibiMaxInt,
    /// Clamp of Q, K and V, as `f32`; 0 for none.
    QkvClamp,
    /// 7 or 40: the Falcon model size.
    FalconType,
    /// Number of merges.
    Merges,
    /// Whisper encoder: context length, width, heads, layers.
    AudioContext,
    AudioWidth,
    AudioHeads,
    AudioBlocks,
    /// Whisper decoder: the same.
    TextContext,
    TextWidth,
    TextHeads,
    TextBlocks,
    /// Number of mel bands.
    Mels,
    /// File type plus 1000 times the quantization version.
    FileType,
}

/// The family of models that a header layout belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelFamily {
    Llama,
    /// GPT-2, Cerebras-GPT, and StarCoder, which is detected by its weights.
    Gpt2,
    GptJ,
    GptNeox,
    Mpt,
    Replit,
    Bloom,
    Falcon,
    Whisper,
}

/// The layout of header and vocabulary.
#[derive(Debug)]
pub(super) struct HeaderLayout {
    pub family: ModelFamily,
    /// Names accepted by `--architecture`.
    pub names: &'static [&'static str],
    pub containers: &'static [Container],
    pub fields: &'static [Field],
    pub vocabulary: VocabularyLayout,
}

/// The layout of the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VocabularyLayout {
    /// As many tokens as the header states, with scores if the container has them.
    Plain,
    /// The token count again, then the tokens.
    Counted,
    /// With scores, although the container has none.
    Scored,
    /// The mel filter bank, the token count (which can be smaller), then the tokens.
    AfterFilters,
    /// Tokens with scores, then the number of merges that the header states.
    WithMerges,
}

use Container::{Ggcc, Ggjt, Ggmf, Ggml};
use Field::*;

/// All known header layouts.
pub(super) static LAYOUTS: &[HeaderLayout] = &[
    HeaderLayout {
        family: ModelFamily::Llama,
        names: &["llama"],
        containers: &[Ggml, Ggmf, Ggjt(1), Ggjt(2), Ggjt(3)],
        fields: &[VocabSize, Width, FfnMultiple, Heads, Blocks, RotaryDims, FileType],
        vocabulary: VocabularyLayout::Plain,
    },
    HeaderLayout {
        family: ModelFamily::Falcon,
        names: &["falcon"],
        containers: &[Ggmf],
        fields: &[VocabSize, Width, Heads, KvHeads, Blocks, FalconType, FileType],
        vocabulary: VocabularyLayout::Plain,
    },
    HeaderLayout {
        family: ModelFamily::Falcon,
        names: &["falcon"],
        containers: &[Ggcc],
        fields: &[VocabSize, Width, Heads, KvHeads, Blocks, FalconType, FileType, Merges],
        vocabulary: VocabularyLayout::WithMerges,
    },
    HeaderLayout {
        family: ModelFamily::Gpt2,
        names: &["gpt2", "starcoder"],
        containers: &[Ggml],
        fields: &[VocabSize, Context, Width, Heads, Blocks, FileType],
        vocabulary: VocabularyLayout::Counted,
    },
    HeaderLayout {
        family: ModelFamily::GptJ,
        names: &["gptj"],
        containers: &[Ggml],
        fields: &[VocabSize, Context, Width, Heads, Blocks, RotaryDims, FileType],
        vocabulary: VocabularyLayout::Counted,
    },
    HeaderLayout {
        family: ModelFamily::GptNeox,
        names: &["gptneox", "dolly-v2"],
        containers: &[Ggml],
        fields: &[VocabSize, Context, Width, Heads, Blocks, RotaryDims, ParallelResidual, FileType],
        vocabulary: VocabularyLayout::Plain,
    },
    // Dolly v2 before 20 May 2023; all its models have parallel residuals.
    HeaderLayout {
        family: ModelFamily::GptNeox,
        names: &["gptneox", "dolly-v2"],
        containers: &[Ggml],
        fields: &[VocabSize, Context, Width, Heads, Blocks, RotaryDims, FileType],
        vocabulary: VocabularyLayout::Plain,
    },
    HeaderLayout {
        family: ModelFamily::Mpt,
        names: &["mpt"],
        containers: &[Ggml],
        fields: &[Width, Context, Heads, Blocks, VocabSize, AlibiMax, QkvClamp, FileType],
        vocabulary: VocabularyLayout::Plain,
    },
    HeaderLayout {
        family: ModelFamily::Replit,
        names: &["replit"],
        containers: &[Ggml],
        fields: &[Width, Context, Heads, Blocks, VocabSize, FileType],
        vocabulary: VocabularyLayout::Scored,
    },
    // The first Replit layout.
    HeaderLayout {
        family: ModelFamily::Replit,
        names: &["replit"],
        containers: &[Ggml],
        fields: &[AlibiMaxInt, Width, Context, FfnRatio, Heads, Blocks, VocabSize, FileType],
        vocabulary: VocabularyLayout::Scored,
    },
    HeaderLayout {
        family: ModelFamily::Bloom,
        names: &["bloom"],
        containers: &[Ggml],
        fields: &[VocabSize, Width, FfnMultiple, Heads, Blocks, FileType],
        vocabulary: VocabularyLayout::Plain,
    },
    HeaderLayout {
        family: ModelFamily::Whisper,
        names: &["whisper"],
        containers: &[Ggml],
        fields: &[
            VocabSize,
            AudioContext,
            AudioWidth,
            AudioHeads,
            AudioBlocks,
            TextContext,
            TextWidth,
            TextHeads,
            TextBlocks,
            Mels,
            FileType,
        ],
        vocabulary: VocabularyLayout::AfterFilters,
    },
];

/// All architecture names, in table order.
pub(super) fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = LAYOUTS.iter().flat_map(|layout| layout.names).copied().collect();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

/// The header values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header(Vec<(Field, u32)>);

impl Header {
    /// Reads the fields and checks their ranges.
    pub fn read(cursor: &mut Cursor, layout: &HeaderLayout) -> Result<Self, ReadError> {
        let mut header = Self(Vec::with_capacity(layout.fields.len()));
        for &field in layout.fields {
            let at = cursor.at();
            let value = cursor.u32("hyperparameters")?;
            if !field.allows(value) {
                return Cursor::malformed(at, format!("header field {field:?} is {value}"));
            }
            header.0.push((field, value));
        }
        for (width, heads) in [(Width, Heads), (AudioWidth, AudioHeads), (TextWidth, TextHeads)] {
            if let (Some(width), Some(heads)) = (header.get(width), header.get(heads))
                && !width.is_multiple_of(heads)
            {
                let what = format!("embedding length {width} is not a multiple of {heads} heads");
                return Cursor::malformed(cursor.at(), what);
            }
        }
        Ok(header)
    }

    /// Value of a field, if the layout has it.
    pub fn get(&self, field: Field) -> Option<u32> {
        self.0.iter().find(|(known, _)| *known == field).map(|(_, value)| *value)
    }

    /// Value of an `f32` field.
    pub fn f32(&self, field: Field) -> Option<f32> {
        self.get(field).map(f32::from_bits)
    }

    /// The file type without the quantization version.
    pub fn file_type(&self) -> u32 {
        self.get(FileType).unwrap_or(0) % 1000
    }

    /// The quantization version that quantizers since June 2023 add to the file type.
    pub fn quantization_version(&self) -> u32 {
        self.get(FileType).unwrap_or(0) / 1000
    }
}

impl Field {
    /// Whether a value is plausible. The ranges are wide: they only distinguish layouts.
    fn allows(self, value: u32) -> bool {
        match self {
            VocabSize => (1..1 << 24).contains(&value),
            Context | AudioContext | TextContext => (1..1 << 24).contains(&value),
            Width | AudioWidth | TextWidth => (1..1 << 20).contains(&value),
            Heads | KvHeads | AudioHeads | TextHeads => (1..1 << 16).contains(&value),
            Blocks | AudioBlocks | TextBlocks => (1..1 << 12).contains(&value),
            FfnMultiple | RotaryDims | Mels | AlibiMaxInt => value < 1 << 16,
            FfnRatio => (1..=64).contains(&value),
            ParallelResidual => value <= 1,
            AlibiMax | QkvClamp => {
                f32::from_bits(value).is_finite() && f32::from_bits(value) >= 0.0
            }
            FalconType => matches!(value, 7 | 40),
            Merges => value < 1 << 24,
            FileType => value / 1000 <= 2 && value % 1000 <= 18,
        }
    }
}
