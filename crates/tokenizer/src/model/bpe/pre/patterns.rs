//! Regular expressions of pre-tokenizers, besides those in the models' `tokenizer.json`
//! ([`gguf_models::pre_tokenizer`]): llama.cpp's simplified versions, and replacements for parts that are
//! not expressions there. Data only.

/// An older form of cl100k with single digits that splits runs of line breaks. The model's
/// expression has possessive quantifiers, which make no difference there and mean something else in
/// this regex engine.
pub(super) const BAILING: &str = concat!(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]|\s+(?!\S)|\s+",
);

/// Words of non-space characters.
pub(super) const NON_SPACE: &str = r"\S+";
/// Lines and runs of line breaks.
pub(super) const LINES: &str = r"[^\n]+|[\n]+";
/// Line breaks at the start of laguna's words.
pub(super) const LINE_BREAKS: &str = r"(?:\r?\n)+";
/// Punctuation as in `tokenizers`: of Unicode, and all of ASCII that is not a letter or digit.
pub(super) const PUNCTUATION: &str = r"[\p{P}$+<=>^`|~]";
/// A run of punctuation.
pub(super) const PUNCTUATION_RUN: &str = r"[\p{P}$+<=>^`|~]+";
/// Punctuation without the backtick: llama.cpp's default if a file names no pre-tokenizer.
pub(super) const PUNCTUATION_DEFAULT: &str = r"[\p{P}$+<=>^|~]+";
/// Scripts that afmoe splits off: Chinese, kana, Thai, Lao, Khmer, Myanmar, Hangul.
pub(super) const ASIAN: &str = "[\u{4E00}-\u{9FFF}\u{3400}-\u{4DBF}\u{F900}-\u{FAFF}\
    \u{3040}-\u{309F}\u{30A0}-\u{30FF}\u{FF65}-\u{FF9F}\u{2F00}-\u{2FDF}\u{E40}-\u{E7F}\
    \u{E80}-\u{EFF}\u{1780}-\u{17FF}\u{1000}-\u{109F}\u{AA60}-\u{AA7F}\u{A9E0}-\u{A9FF}\
    \u{AC00}-\u{D7AF}\u{1100}-\u{11FF}]+";
/// llama.cpp's version of [`ASIAN`], in which the compatibility ideographs begin at the canonical
/// equivalent of the first one.
pub(super) const ASIAN_WIDE: &str = "[\u{4E00}-\u{9FFF}\u{3400}-\u{4DBF}\u{8C48}-\u{FAFF}\
    \u{3040}-\u{309F}\u{30A0}-\u{30FF}\u{FF65}-\u{FF9F}\u{2F00}-\u{2FDF}\u{E40}-\u{E7F}\
    \u{E80}-\u{EFF}\u{1780}-\u{17FF}\u{1000}-\u{109F}\u{AA60}-\u{AA7F}\u{A9E0}-\u{A9FF}\
    \u{AC00}-\u{D7AF}\u{1100}-\u{11FF}]+";

// In llama.cpp's versions of o200k, only ASCII letters have a case.

/// llama.cpp's o200k.
pub(super) const O200K_ASCII: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{L}&&[^a-z]]*[\p{L}&&[^A-Z]]+(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?",
    r"|[^\r\n\p{L}\p{N}]?[\p{L}&&[^a-z]]+[\p{L}&&[^A-Z]]*(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// llama.cpp's o200k with marks.
pub(super) const O200K_ASCII_MARKS: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}&&[^a-z]]*[\p{L}\p{M}&&[^A-Z]]+(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?",
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}&&[^a-z]]+[\p{L}\p{M}&&[^A-Z]]*(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// llama.cpp's Tekken.
pub(super) const TEKKEN_ASCII: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{L}&&[^a-z]]*[\p{L}&&[^A-Z]]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{L}&&[^a-z]]+[\p{L}&&[^A-Z]]*|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
// In the expressions without a look-ahead, letters have no case.

/// llama.cpp's o200k for some models.
pub(super) const O200K_CASELESS: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// llama.cpp's o200k for some models, with single digits.
pub(super) const O200K_CASELESS_DIGITS: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
/// llama.cpp's DeepSeek punctuation, without the ideographic space.
pub(super) const DEEPSEEK_PUNCTUATION_ONLY: &str =
    "\\s?[!-/:-~\u{FF01}-\u{FF0F}\u{FF1A}-\u{FF5E}\u{2018}-\u{201F}\u{3001}-\u{3002}]+";
/// llama.cpp's DeepSeek scripts, without white space in these ranges.
pub(super) const CJK_HANGUL_ONLY: &str =
    "[\u{4E00}-\u{9FA5}\u{800}-\u{4E00}\u{AC00}-\u{D7FF}&&\\S]+";

/// Blocks of ideographs in llama.cpp.
macro_rules! han_blocks {
    () => {
        "[\u{3400}-\u{4DBF}\u{4E00}-\u{9FFF}\u{F900}-\u{FAFF}\u{20000}-\u{2A6DF}\u{2A700}-\u{2EBEF}\
         \u{2F800}-\u{2FA1F}]"
    };
}

/// llama.cpp's Kimi: words are not split by case, and Chinese characters are whole blocks.
pub(super) const KIMI_LETTERS: &str = concat!(
    han_blocks!(),
    r"+|[^\r\n\p{L}\p{N}]?[\p{L}--",
    han_blocks!(),
    r"]+(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
