//! Table of the pre-tokenizers that `tokenizer.ggml.pre` can name, with their structure in `tokenizer.json`.
//!
//! The names and their behavior are those of llama.cpp (`llama-vocab.cpp`). llama.cpp rewrites the regexes for its own
//! engine; those of the table are the models' own ([`gguf_models::pre_tokenizer`]).

use std::borrow::Cow::Borrowed;

use gguf_models::pre_tokenizer::*;

use super::step::Step::{self, Bytes, Punctuation, Replace, Split};

/// Name of a pre-tokenizer and its structure.
pub(super) struct Known {
    /// Usual name.
    pub name: &'static str,
    /// Whether a word that is a token skips the merges.
    pub ignore_merges: bool,
    /// Steps of the normalizer and the pre-tokenizer.
    pub steps: &'static [Step<'static>],
}

// A macro, because arguments borrowed by a function would not be 'static.
macro_rules! known {
    ($name:expr, $ignore_merges:expr, $steps:expr) => {
        Known { name: $name, ignore_merges: $ignore_merges, steps: $steps }
    };
}

impl Known {
    /// Returns all names that runtimes treat the same, the usual one first.
    pub fn names(&self) -> &'static [&'static str] {
        aliases(self.name)
    }
}

/// Returns a split before and behind every match.
const fn isolated(regex: &'static str) -> Step<'static> {
    Split { regex: Borrowed(regex), behavior: Borrowed("Isolated") }
}

/// Steps of Gemma 4: visible spaces, so that the split at spaces never matches.
const VISIBLE_SPACES: &[Step<'static>] = &[
    Replace { from: Borrowed(" "), to: Borrowed("\u{2581}") },
    Split { regex: Borrowed(" "), behavior: Borrowed("MergedWithPrevious") },
];

/// All known pre-tokenizers. Without a hint, the first row of a structure is used.
#[rustfmt::skip]
pub(super) static TABLE: &[Known] = &[
    // GPT-2's ByteLevel.
    known!("gpt-2",
        false, &[isolated(GPT2), Bytes]),
    known!("trillion", false, &[isolated(GPT2), Bytes]),
    known!("roberta-bpe", false, &[isolated(GPT2), Bytes]),
    known!("starcoder",
        false, &[isolated(DIGIT), isolated(GPT2), Bytes]),
    known!("command-r", false, &[isolated(DIGIT), isolated(GPT2), Bytes]),
    known!("falcon", false,
        &[Punctuation { behavior: Borrowed("Contiguous") }, isolated(GPT2), Bytes, isolated(DIGITS),
          isolated(THREE_ASCII)]),
    known!("chameleon", false,
        &[isolated(SENTINELS), isolated(IMAGES),
          isolated(TABS_AND_PAIRS), isolated(DIGIT),
          Punctuation { behavior: Borrowed("Isolated") }, isolated(GPT2), Bytes]),

    // Variants of cl100k.
    known!("llama-bpe",
        true, &[isolated(CL100K), Bytes]),
    known!("dbrx", false, &[isolated(CL100K), Bytes]),
    known!("glm4", true, &[isolated(CL100K), Bytes]),
    known!("chatglm-bpe", false, &[isolated(CL100K), Bytes]),
    known!("qwen2",
        false, &[isolated(CL100K_DIGITS), Bytes]),
    known!("stablelm2", false, &[isolated(CL100K_DIGITS), Bytes]),
    known!("qwen35", false, &[isolated(CL100K_MARKS), Bytes]),
    known!("jais-2", false, &[isolated(CL100K_SPACES), Bytes]),
    known!("minicpm5", true, &[isolated(THREE_DIGITS), isolated(CL100K_RUNS), Bytes]),
    known!("laguna", false,
        &[Split { regex: Borrowed(r"(?:\r?\n)+(?!\r?\n)"), behavior: Borrowed("MergedWithNext") },
          isolated(CL100K_DIGITS), Bytes]),
    known!("bailingmoe", false, &[isolated(BAILING), Bytes]),
    known!("seed-coder", false, &[isolated(SEED_CODER), Bytes]),
    known!("ufakzeka", false, &[isolated(UFAKZEKA), Bytes]),
    known!("exaone-moe", false, &[isolated(EXAONE_MOE), Bytes]),

    // Variants of o200k.
    known!("gpt-4o",
        false, &[isolated(O200K), Bytes]),
    known!("granite-embed-multi-97m", true, &[isolated(O200K), Bytes]),
    known!("tekken", true, &[isolated(TEKKEN), Bytes]),
    known!("kimi-k2", false, &[isolated(KIMI), Bytes]),
    known!("tiny_aya", false,
        &[isolated(r"\d{1,3}(?=(?:\d{3})*\b)"), isolated(O200K), Bytes]),
    known!("youtu", true, &[isolated(YOUTU_SCRIPTS), isolated(O200K_DIGITS), Bytes]),

    // Splits by script.
    known!("deepseek-v3", false,
        &[isolated(THREE_DIGITS), isolated(CJK_KANA), isolated(DEEPSEEK_V3), Bytes]),
    known!("spark2_5", false,
        &[isolated(THREE_DIGITS), isolated(CJK_KANA), isolated(SPARK), isolated(DIGIT), Bytes]),
    known!("deepseek-llm", false,
        &[isolated(LINE_BREAK), isolated(DEEPSEEK_LETTERS), isolated(DEEPSEEK_PUNCTUATION),
          isolated(LAST_SPACE), isolated(CJK_HANGUL), isolated(DIGIT), Bytes]),
    known!("deepseek-coder", false,
        &[isolated(LINE_BREAK), isolated(SPACED_LETTERS), isolated(SPACED_PUNCTUATION), isolated(CJK_HANGUL),
          isolated(DIGIT), Bytes]),

    // Others.
    known!("bloom", false, &[isolated(BLOOM), Bytes]),
    known!("poro-chat", false, &[isolated(BLOOM), Bytes]),
    known!("viking", false, &[isolated(BLOOM), isolated(DIGIT), Bytes]),
    known!("superbpe", false, &[isolated(DIGITS), isolated(r"(?=(\d{3})+(?!\d))"), Bytes]),
    known!("gemma4", false, VISIBLE_SPACES),
    known!("sarvam-moe", false, VISIBLE_SPACES),
];

/// cl100k with single digits, in an older spelling. A run of line breaks is split.
const BAILING: &str = concat!(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*",
    r"|\s*[\r\n]|\s+(?!\S)|\s+",
);
