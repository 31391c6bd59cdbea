//! The pre-tokenizers that `tokenizer.ggml.pre` can name, by the structure which their models
//! have in `tokenizer.json`. Data only; [`super::pre`] compares.
//!
//! Names and what runtimes do for them are those of llama.cpp (`llama-vocab.cpp`); its regular
//! expressions are rewritten for its own engine, the ones here are those of the models
//! ([`gguf::pre_tokenizer`]).

use std::borrow::Cow::Borrowed;

use gguf::pre_tokenizer::*;

use super::pre::Step::{self, Bytes, Punctuation, Replace, Split};

/// The names that runtimes treat alike, and the structure they stand for.
pub(super) struct Known {
    /// Interchangeable names, the usual one first.
    pub names: &'static [&'static str],
    /// Whether runtimes take a word that is a token whole, before any merge.
    pub ignore_merges: bool,
    /// What the models with these names do to a text.
    pub steps: &'static [Step<'static>],
}

/// Names that runtimes know, whose structure is not recognised here: they can be asked for.
pub(super) const NAMES_ONLY: [&str; 3] = ["default", "afmoe", "whitespace"];

// Not a function: what is borrowed in its arguments would not live as long as the table.
macro_rules! known {
    ($names:expr, $ignore_merges:expr, $steps:expr) => {
        Known { names: $names, ignore_merges: $ignore_merges, steps: $steps }
    };
}

/// A cut before and behind every match.
const fn isolated(regex: &'static str) -> Step<'static> {
    Split { regex: Borrowed(regex), behavior: Borrowed("Isolated") }
}

/// What gemma 4 does to spaces: visible ones, which then are no place to cut any more.
const VISIBLE_SPACES: &[Step<'static>] = &[
    Replace { from: Borrowed(" "), to: Borrowed("\u{2581}") },
    Split { regex: Borrowed(" "), behavior: Borrowed("MergedWithPrevious") },
];

/// All that are known. Among rows of one structure the first is the one to take without a hint.
#[rustfmt::skip]
pub(super) static TABLE: &[Known] = &[
    // ByteLevel as it is.
    known!(&["gpt-2", "mpt", "olmo", "jais", "phi-2", "jina-es", "jina-de", "jina-v2-es",
            "jina-v2-de", "gigachat", "a.x-4.0", "mellum", "modern-bert", "exaone4"],
        false, &[isolated(GPT2), Bytes]),
    known!(&["trillion", "granite-docling"], false, &[isolated(GPT2), Bytes]),
    known!(&["roberta-bpe", "jina-v1-en", "jina-v2-code"], false, &[isolated(GPT2), Bytes]),
    known!(&["starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"],
        false, &[isolated(DIGIT), isolated(GPT2), Bytes]),
    known!(&["command-r", "smollm"], false, &[isolated(DIGIT), isolated(GPT2), Bytes]),
    known!(&["falcon"], false,
        &[Punctuation { behavior: Borrowed("Contiguous") }, isolated(GPT2), Bytes, isolated(DIGITS),
          isolated(THREE_ASCII)]),
    known!(&["chameleon"], false,
        &[isolated(SENTINELS), isolated(IMAGES),
          isolated(TABS_AND_PAIRS), isolated(DIGIT),
          Punctuation { behavior: Borrowed("Isolated") }, isolated(GPT2), Bytes]),

    // cl100k and its relatives.
    known!(&["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
            "lfm2", "jina-v5-nano"],
        true, &[isolated(CL100K), Bytes]),
    known!(&["dbrx", "smaug-bpe"], false, &[isolated(CL100K), Bytes]),
    known!(&["glm4", "glm5"], true, &[isolated(CL100K), Bytes]),
    known!(&["chatglm-bpe"], false, &[isolated(CL100K), Bytes]),
    known!(&["qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "hunyuan", "solar-open", "grok-2"],
        false, &[isolated(CL100K_DIGITS), Bytes]),
    known!(&["stablelm2", "megrez"], false, &[isolated(CL100K_DIGITS), Bytes]),
    known!(&["qwen35"], false, &[isolated(CL100K_MARKS), Bytes]),
    known!(&["jais-2"], false, &[isolated(CL100K_SPACES), Bytes]),
    known!(&["minicpm5"], true, &[isolated(THREE_DIGITS), isolated(CL100K_RUNS), Bytes]),
    known!(&["laguna"], false,
        &[Split { regex: Borrowed(r"(?:\r?\n)+(?!\r?\n)"), behavior: Borrowed("MergedWithNext") },
          isolated(CL100K_DIGITS), Bytes]),
    known!(&["bailingmoe", "bailingmoe2", "llada-moe"], false, &[isolated(BAILING), Bytes]),
    known!(&["seed-coder"], false, &[isolated(SEED_CODER), Bytes]),
    known!(&["ufakzeka"], false, &[isolated(UFAKZEKA), Bytes]),
    known!(&["exaone-moe"], false, &[isolated(EXAONE_MOE), Bytes]),

    // o200k and its relatives.
    known!(&["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
        false, &[isolated(O200K), Bytes]),
    known!(&["granite-embed-multi-97m"], true, &[isolated(O200K), Bytes]),
    known!(&["tekken"], true, &[isolated(TEKKEN), Bytes]),
    known!(&["kimi-k2"], false, &[isolated(KIMI), Bytes]),
    known!(&["tiny_aya", "cohere2moe"], false,
        &[isolated(r"\d{1,3}(?=(?:\d{3})*\b)"), isolated(O200K), Bytes]),
    known!(&["youtu"], true, &[isolated(YOUTU_SCRIPTS), isolated(O200K_DIGITS), Bytes]),

    // Cuts by script.
    known!(&["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"], false,
        &[isolated(THREE_DIGITS), isolated(CJK_KANA), isolated(DEEPSEEK_V3), Bytes]),
    known!(&["spark2_5"], false,
        &[isolated(THREE_DIGITS), isolated(CJK_KANA), isolated(SPARK), isolated(DIGIT), Bytes]),
    known!(&["deepseek-llm"], false,
        &[isolated(LINE_BREAK), isolated(DEEPSEEK_LETTERS), isolated(DEEPSEEK_PUNCTUATION),
          isolated(LAST_SPACE), isolated(CJK_HANGUL), isolated(DIGIT), Bytes]),
    known!(&["deepseek-coder"], false,
        &[isolated(LINE_BREAK), isolated(SPACED_LETTERS), isolated(SPACED_PUNCTUATION), isolated(CJK_HANGUL),
          isolated(DIGIT), Bytes]),

    // Others.
    known!(&["bloom", "gpt3-finnish"], false, &[isolated(BLOOM), Bytes]),
    known!(&["poro-chat"], false, &[isolated(BLOOM), Bytes]),
    known!(&["viking"], false, &[isolated(BLOOM), isolated(DIGIT), Bytes]),
    known!(&["superbpe"], false, &[isolated(DIGITS), isolated(r"(?=(\d{3})+(?!\d))"), Bytes]),
    known!(&["gemma4", "granite-embed-multi-311m"], false, VISIBLE_SPACES),
    known!(&["sarvam-moe"], false, VISIBLE_SPACES),
];

/// cl100k with single digits in an older spelling; a run of line breaks is cut.
const BAILING: &str = concat!(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*",
    r"|\s*[\r\n]|\s+(?!\S)|\s+",
);
