//! Hyper-parameters: which fields stand in which order, per program.

use super::container::Container;
use super::cursor::{Cursor, Fault};

/// A field of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Tokens: rows of the embedding.
    Vocabulary,
    /// Longest context, in tokens.
    Context,
    /// Width of the model.
    Width,
    /// What the width of llama's feed-forward layers is a multiple of.
    Multiple,
    /// Feed-forward width, divided by the width.
    Ratio,
    /// Attention heads.
    Heads,
    /// Key and value heads.
    KeyHeads,
    /// Layers.
    Blocks,
    /// Dimensions of a head that are rotated.
    Rotary,
    /// Whether attention and feed-forward work side by side: 0 or 1.
    Parallel,
    /// Largest bias of ALiBi, of single precision.
    AlibiMax,
    /// The same as a whole number.
    AlibiMaxWhole,
    /// Where queries, keys and values are cut off, of single precision; 0 for nowhere.
    Clip,
    /// 7 or 40, for the size of the Falcon.
    FalconType,
    /// Number of merges.
    Merges,
    /// Of whisper's encoder: positions, width, heads, layers.
    AudioContext,
    AudioWidth,
    AudioHeads,
    AudioBlocks,
    /// Of whisper's decoder: the same.
    TextContext,
    TextWidth,
    TextHeads,
    TextBlocks,
    /// Frequency bands.
    Mels,
    /// Which types, with the generation in the thousands.
    FileType,
}

/// Which model a header is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Llama,
    /// GPT-2, Cerebras-GPT and, told apart by their weights, StarCoder.
    Gpt2,
    GptJ,
    GptNeox,
    Mpt,
    Replit,
    Bloom,
    Falcon,
    Whisper,
}

/// The form of a file's beginning.
#[derive(Debug)]
pub(super) struct Layout {
    pub program: Program,
    /// Names that `--architecture` knows it by.
    pub names: &'static [&'static str],
    pub containers: &'static [Container],
    pub fields: &'static [Field],
    pub vocabulary: Tokens,
}

/// What the vocabulary looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tokens {
    /// As many as the header says; scores if the container has them.
    Plain,
    /// Their number again, then the tokens.
    Counted,
    /// With scores in a container that has none.
    Scored,
    /// After a filter bank, their number again, which can be less.
    AfterFilters,
    /// With scores, then as many merges as the header says.
    WithMerges,
}

use Container::{Ggcc, Ggjt, Ggmf, Ggml};
use Field::*;

/// Every form that a program is known to have written.
pub(super) static LAYOUTS: &[Layout] = &[
    Layout {
        program: Program::Llama,
        names: &["llama"],
        containers: &[Ggml, Ggmf, Ggjt(1), Ggjt(2), Ggjt(3)],
        fields: &[Vocabulary, Width, Multiple, Heads, Blocks, Rotary, FileType],
        vocabulary: Tokens::Plain,
    },
    Layout {
        program: Program::Falcon,
        names: &["falcon"],
        containers: &[Ggmf],
        fields: &[Vocabulary, Width, Heads, KeyHeads, Blocks, FalconType, FileType],
        vocabulary: Tokens::Plain,
    },
    Layout {
        program: Program::Falcon,
        names: &["falcon"],
        containers: &[Ggcc],
        fields: &[Vocabulary, Width, Heads, KeyHeads, Blocks, FalconType, FileType, Merges],
        vocabulary: Tokens::WithMerges,
    },
    Layout {
        program: Program::Gpt2,
        names: &["gpt2", "starcoder"],
        containers: &[Ggml],
        fields: &[Vocabulary, Context, Width, Heads, Blocks, FileType],
        vocabulary: Tokens::Counted,
    },
    Layout {
        program: Program::GptJ,
        names: &["gptj"],
        containers: &[Ggml],
        fields: &[Vocabulary, Context, Width, Heads, Blocks, Rotary, FileType],
        vocabulary: Tokens::Counted,
    },
    Layout {
        program: Program::GptNeox,
        names: &["gptneox", "dolly-v2"],
        containers: &[Ggml],
        fields: &[Vocabulary, Context, Width, Heads, Blocks, Rotary, Parallel, FileType],
        vocabulary: Tokens::Plain,
    },
    // Dolly v2 before 20 May 2023, whose models are all parallel.
    Layout {
        program: Program::GptNeox,
        names: &["gptneox", "dolly-v2"],
        containers: &[Ggml],
        fields: &[Vocabulary, Context, Width, Heads, Blocks, Rotary, FileType],
        vocabulary: Tokens::Plain,
    },
    Layout {
        program: Program::Mpt,
        names: &["mpt"],
        containers: &[Ggml],
        fields: &[Width, Context, Heads, Blocks, Vocabulary, AlibiMax, Clip, FileType],
        vocabulary: Tokens::Plain,
    },
    Layout {
        program: Program::Replit,
        names: &["replit"],
        containers: &[Ggml],
        fields: &[Width, Context, Heads, Blocks, Vocabulary, FileType],
        vocabulary: Tokens::Scored,
    },
    // Replit in its first days.
    Layout {
        program: Program::Replit,
        names: &["replit"],
        containers: &[Ggml],
        fields: &[AlibiMaxWhole, Width, Context, Ratio, Heads, Blocks, Vocabulary, FileType],
        vocabulary: Tokens::Scored,
    },
    Layout {
        program: Program::Bloom,
        names: &["bloom"],
        containers: &[Ggml],
        fields: &[Vocabulary, Width, Multiple, Heads, Blocks, FileType],
        vocabulary: Tokens::Plain,
    },
    Layout {
        program: Program::Whisper,
        names: &["whisper"],
        containers: &[Ggml],
        fields: &[
            Vocabulary,
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
        vocabulary: Tokens::AfterFilters,
    },
];

/// All names of architectures, in the order of the table.
pub(super) fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = LAYOUTS.iter().flat_map(|layout| layout.names).copied().collect();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

/// The fields of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header(Vec<(Field, u32)>);

impl Header {
    /// Reads the fields, none of which may be beyond what models have.
    pub fn read(cursor: &mut Cursor, layout: &Layout) -> Result<Self, Fault> {
        let mut header = Self(Vec::with_capacity(layout.fields.len()));
        for &field in layout.fields {
            let at = cursor.at();
            let value = cursor.u32("the hyper-parameters")?;
            if !field.allows(value) {
                return Cursor::fault(at, format!("the field {field:?} is {value}"));
            }
            header.0.push((field, value));
        }
        for (width, heads) in [(Width, Heads), (AudioWidth, AudioHeads), (TextWidth, TextHeads)] {
            if let (Some(width), Some(heads)) = (header.get(width), header.get(heads))
                && !width.is_multiple_of(heads)
            {
                let what = format!("a width of {width} does not divide into {heads} heads");
                return Cursor::fault(cursor.at(), what);
            }
        }
        Ok(header)
    }

    /// A field that this form of header has.
    pub fn get(&self, field: Field) -> Option<u32> {
        self.0.iter().find(|(known, _)| *known == field).map(|(_, value)| *value)
    }

    /// A field of single precision.
    pub fn f32(&self, field: Field) -> Option<f32> {
        self.get(field).map(f32::from_bits)
    }

    /// The mix, without generation.
    pub fn file_type(&self) -> u32 {
        self.get(FileType).unwrap_or(0) % 1000
    }

    /// The generation as the quantizers of June 2023 and later put it into the file type.
    pub fn stated_generation(&self) -> u32 {
        self.get(FileType).unwrap_or(0) / 1000
    }
}

impl Field {
    /// Wide bounds: they are to tell one form of header from another.
    fn allows(self, value: u32) -> bool {
        match self {
            Vocabulary => (1..1 << 24).contains(&value),
            Context | AudioContext | TextContext => (1..1 << 24).contains(&value),
            Width | AudioWidth | TextWidth => (1..1 << 20).contains(&value),
            Heads | KeyHeads | AudioHeads | TextHeads => (1..1 << 16).contains(&value),
            Blocks | AudioBlocks | TextBlocks => (1..1 << 12).contains(&value),
            Multiple | Rotary | Mels | AlibiMaxWhole => value < 1 << 16,
            Ratio => (1..=64).contains(&value),
            Parallel => value <= 1,
            AlibiMax | Clip => f32::from_bits(value).is_finite() && f32::from_bits(value) >= 0.0,
            FalconType => matches!(value, 7 | 40),
            Merges => value < 1 << 24,
            FileType => value / 1000 <= 2 && value % 1000 <= 18,
        }
    }
}
