//! The pre-tokenizers that `tokenizer.ggml.pre` can name, by the structure which their models
//! have in `tokenizer.json`. Data only; [`super::pre`] compares.
//!
//! Names and what runtimes do for them are those of llama.cpp (`llama-vocab.cpp`); its regular
//! expressions are rewritten for its own engine, the ones here are those of the models.

use std::borrow::Cow::Borrowed;

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
          isolated("[0-9][0-9][0-9]")]),
    known!(&["chameleon"], false,
        &[isolated("<sentinel:[0-9]+>"), isolated("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"),
          isolated(r"([\t\n]|    |  )"), isolated(DIGIT),
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
        &[isolated(r"[\r\n]"), isolated(DEEPSEEK_LETTERS), isolated(DEEPSEEK_PUNCTUATION),
          isolated(r"\s+$"), isolated(CJK_HANGUL), isolated(DIGIT), Bytes]),
    known!(&["deepseek-coder"], false,
        &[isolated(r"[\r\n]"), isolated(r"\s?\p{L}+"), isolated(r"\s?\p{P}+"), isolated(CJK_HANGUL),
          isolated(DIGIT), Bytes]),

    // Others.
    known!(&["bloom", "gpt3-finnish"], false, &[isolated(BLOOM), Bytes]),
    known!(&["poro-chat"], false, &[isolated(BLOOM), Bytes]),
    known!(&["viking"], false, &[isolated(BLOOM), isolated(DIGIT), Bytes]),
    known!(&["superbpe"], false, &[isolated(DIGITS), isolated(r"(?=(\d{3})+(?!\d))"), Bytes]),
    known!(&["gemma4", "granite-embed-multi-311m"], false, VISIBLE_SPACES),
    known!(&["sarvam-moe"], false, VISIBLE_SPACES),
];

const DIGIT: &str = r"\p{N}";
const DIGITS: &str = r"\p{N}+";
const THREE_DIGITS: &str = r"\p{N}{1,3}";
/// Chinese characters and both kinds of kana.
const CJK_KANA: &str = "[\u{4E00}-\u{9FA5}\u{3040}-\u{309F}\u{30A0}-\u{30FF}]+";
/// Meant for Chinese characters and Hangul, but the middle range spans all between.
const CJK_HANGUL: &str = "[\u{4E00}-\u{9FA5}\u{800}-\u{4E00}\u{AC00}-\u{D7FF}]+";
const DEEPSEEK_PUNCTUATION: &str =
    "\\s?[!-/:-~\u{FF01}-\u{FF0F}\u{FF1A}-\u{FF5E}\u{2018}-\u{201F}\u{3000}-\u{3002}]+";
/// Hangul, Chinese punctuation, Bopomofo, Chinese and kana.
const YOUTU_SCRIPTS: &str = "[\u{AC00}-\u{D7A3}\u{3131}-\u{318E}]+|\
    [\u{FF01}\u{2026}\u{201C}\u{201D}\u{2018}\u{2019}\u{2014}\u{FF1A}\u{FF1B}\u{FF0C}\
    \u{3001}-\u{303F}\u{FE30}-\u{FE4F}]+|\
    [\u{3105}-\u{312F}]+|[\u{4E00}-\u{9FA5}\u{3040}-\u{309F}\u{30A0}-\u{30FF}]+";
/// Everything but spaces and punctuation of several scripts. The inner class is a slip of its
/// authors that changes nothing.
const BLOOM: &str = " ?[^(\\s|[.,!?\u{2026}\u{3002}\u{FF0C}\u{3001}\u{964}\u{6D4}\u{60C}])]+";

// Parts that `concat!` puts together: it takes no constants.
macro_rules! contractions {
    () => {
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    };
}

/// The expression inside `ByteLevel`.
pub(super) const GPT2: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
/// OpenAI's cl100k, as Llama 3 took it over: digits in groups of up to three.
const CL100K: &str = concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// cl100k with single digits, as in Qwen 2.
pub(super) const CL100K_DIGITS: &str = concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// cl100k with runs of digits.
const CL100K_RUNS: &str = concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// cl100k with single digits, and marks as part of words, as in Qwen 3.5.
const CL100K_MARKS: &str = concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}",
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// cl100k with runs of spaces cut to powers of two.
const CL100K_SPACES: &str = concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)",
    r"|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}",
);
/// OpenAI's o200k: words cut where lower case turns to upper case.
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    contractions!(),
    r"?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    contractions!(),
    r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// o200k with single digits.
const O200K_DIGITS: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    contractions!(),
    r"?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    contractions!(),
    r"?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// o200k with single digits and without English contractions: Mistral's Tekken.
const TEKKEN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// o200k with Chinese characters on their own.
const KIMI: &str = concat!(
    r"[\p{Han}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*",
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+",
    contractions!(),
    r"?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+",
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*",
    contractions!(),
    r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// A symbol with the Latin word behind it, words with marks, symbols, space.
const DEEPSEEK_V3: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// As above, with every line break on its own.
const SPARK: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
    r"| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+",
);
/// cl100k with single digits in an older spelling; a run of line breaks is cut.
const BAILING: &str = concat!(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*",
    r"|\s*[\r\n]|\s+(?!\S)|\s+",
);
/// cl100k with single digits; no line breaks behind symbols.
const SEED_CODER: &str = concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}",
    r"| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// cl100k with single digits, without English contractions.
const UFAKZEKA: &str =
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// cl100k with single digits, words joined by spaces, at most one character behind symbols.
const EXAONE_MOE: &str = concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
);
/// Letters of the scripts that have cases, with a space in front.
const DEEPSEEK_LETTERS: &str = "\
    \\s?[A-Za-z\u{B5}\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{1BA}\u{1BC}-\u{1BF}\u{1C4}-\u{293}\
    \u{295}-\u{2AF}\u{370}-\u{373}\u{376}\u{377}\u{37B}-\u{37D}\u{37F}\u{386}\u{388}-\u{38A}\
    \u{38C}\u{38E}-\u{3A1}\u{3A3}-\u{3F5}\u{3F7}-\u{481}\u{48A}-\u{52F}\u{531}-\u{556}\u{10A0}-\
    \u{10C5}\u{13A0}-\u{13F5}\u{13F8}-\u{13FD}\u{1C90}-\u{1CBA}\u{1CBD}-\u{1CBF}\u{1D00}-\
    \u{1D2B}\u{1D6B}-\u{1D77}\u{1D79}-\u{1D9A}\u{1E00}-\u{1F15}\u{1F18}-\u{1F1D}\u{1F20}-\
    \u{1F45}\u{1F48}-\u{1F4D}\u{1F50}-\u{1F57}\u{1F59}\u{1F5B}\u{1F5D}\u{1F5F}-\u{1F7D}\u{1F80}-\
    \u{1FB4}\u{1FB6}-\u{1FBC}\u{1FBE}\u{1FC2}-\u{1FC4}\u{1FC6}-\u{1FCC}\u{1FD0}-\u{1FD3}\u{1FD6}\
    -\u{1FDB}\u{1FE0}-\u{1FEC}\u{1FF2}-\u{1FF4}\u{1FF6}-\u{1FFC}\u{2102}\u{2107}\u{210A}-\
    \u{2113}\u{2115}\u{2119}-\u{211D}\u{2124}\u{2126}\u{2128}\u{212A}-\u{212D}\u{212F}-\u{2134}\
    \u{2139}\u{213C}-\u{213F}\u{2145}-\u{2149}\u{214E}\u{2183}\u{2184}\u{2C00}-\u{2C7B}\u{2C7E}-\
    \u{2CE4}\u{2CEB}-\u{2CEE}\u{2CF2}\u{2CF3}\u{A640}-\u{A66D}\u{A680}-\u{A69B}\u{A722}-\u{A76F}\
    \u{A771}-\u{A787}\u{A78B}-\u{A78E}\u{AB70}-\u{ABBF}\u{FB00}-\u{FB06}\u{FB13}-\u{FB17}\
    \u{FF21}-\u{FF3A}\u{FF41}-\u{FF5A}\u{10400}-\u{1044F}\u{104B0}-\u{104D3}\u{104D8}-\u{104FB}\
    \u{10C80}-\u{10CB2}\u{10CC0}-\u{10CF2}\u{118A0}-\u{118DF}\u{1E900}-\u{1E943}]+";
