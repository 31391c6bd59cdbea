//! Table of pre-tokenizers by name. Data only.
//!
//! The names are those of llama.cpp; the rules are those of the models' `tokenizer.json`.

use gguf_models::pre_tokenizer::*;

use super::Alphabet;
use super::patterns::*;
use super::step::SplitRule::{self, Before, Groups, Isolate, Keep, LatinDigits, Thousands};

/// Pre-tokenizers with the same rules.
pub(super) struct Row {
    /// Canonical names; each has further aliases ([`gguf_models::pre_tokenizer::aliases`]).
    pub names: &'static [&'static str],
    pub alphabet: Alphabet,
    pub ignore_merges: IgnoreMerges,
    /// Rules of the models' reference tokenizers.
    pub original: &'static [SplitRule],
    /// Rules of llama.cpp if they differ.
    pub llama_cpp: Option<&'static [SplitRule]>,
}

/// Which words skip the merges if they are tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IgnoreMerges {
    Never,
    /// Runs of line breaks.
    LineBreaks,
    /// `ignore_merges` in `tokenizer.json`.
    Always,
}

const fn row(names: &'static [&'static str], original: &'static [SplitRule]) -> Row {
    Row {
        names,
        alphabet: Alphabet::ByteLevel,
        ignore_merges: IgnoreMerges::Never,
        original,
        llama_cpp: None,
    }
}

impl Row {
    const fn ignore_merges(self) -> Self {
        Self { ignore_merges: IgnoreMerges::Always, ..self }
    }

    const fn llama_cpp(self, steps: &'static [SplitRule]) -> Self {
        Self { llama_cpp: Some(steps), ..self }
    }

    const fn characters(self, visible_spaces: bool, ignore_merges: IgnoreMerges) -> Self {
        Self { alphabet: Alphabet::Characters { visible_spaces }, ignore_merges, ..self }
    }
}

#[rustfmt::skip]
pub(super) static TABLE: &[Row] = &[
    row(&["default"], &[Isolate(PUNCTUATION_DEFAULT), Isolate(GPT2), Isolate(DIGITS), Isolate(THREE_ASCII)]),

    // GPT-2 and its relatives.
    row(&["gpt-2", "trillion", "roberta-bpe"], &[Isolate(GPT2)]),
    row(&["starcoder", "command-r"],
        &[Isolate(DIGIT), Isolate(GPT2)]),
    row(&["falcon"], &[Isolate(PUNCTUATION_RUN), Isolate(GPT2), LatinDigits, Isolate(THREE_ASCII)])
        .llama_cpp(&[Isolate(PUNCTUATION_RUN), Isolate(GPT2), Isolate(THREE_ASCII)]),
    row(&["chameleon"], &[Isolate(SENTINELS), Isolate(IMAGES), Isolate(TABS_AND_PAIRS), Isolate(DIGIT),
          Isolate(PUNCTUATION), Isolate(GPT2)]),

    // cl100k and its relatives.
    row(&["llama-bpe", "glm4"], &[Isolate(CL100K)]).ignore_merges(),
    row(&["dbrx", "chatglm-bpe"], &[Isolate(CL100K)]),
    row(&["qwen2", "stablelm2"], &[Isolate(CL100K_DIGITS)]),
    row(&["qwen35"], &[Isolate(CL100K_MARKS)]),
    row(&["jais-2"], &[Isolate(CL100K_SPACES)]),
    row(&["minicpm5"], &[Isolate(THREE_DIGITS), Isolate(CL100K_RUNS)]).ignore_merges(),
    row(&["laguna"], &[Before(LINE_BREAKS), Isolate(CL100K_DIGITS)])
        .llama_cpp(&[Isolate(LINES), Isolate(CL100K_DIGITS)]),
    row(&["bailingmoe"], &[Isolate(BAILING)]),
    row(&["seed-coder"], &[Isolate(SEED_CODER)]),
    row(&["ufakzeka"], &[Isolate(UFAKZEKA)]),
    row(&["exaone-moe"], &[Isolate(EXAONE_MOE)]),

    // o200k and its relatives.
    row(&["gpt-4o"], &[Isolate(O200K)])
        .llama_cpp(&[Isolate(O200K_ASCII)]),
    row(&["granite-embed-multi-97m"], &[Isolate(O200K)]).llama_cpp(&[Isolate(O200K_ASCII_MARKS)]).ignore_merges(),
    row(&["tekken"], &[Isolate(TEKKEN)]).llama_cpp(&[Isolate(TEKKEN_ASCII)]).ignore_merges(),
    row(&["kimi-k2"], &[Isolate(KIMI)]).llama_cpp(&[Isolate(KIMI_LETTERS)]),
    row(&["tiny_aya"],
        &[Groups { class: r"\d", before_words: false, first: true }, Isolate(O200K)])
        .llama_cpp(&[Groups { class: DIGIT, before_words: true, first: false }, Isolate(O200K_CASELESS)]),
    row(&["youtu"], &[Isolate(YOUTU_SCRIPTS), Isolate(O200K_DIGITS)])
        .llama_cpp(&[Isolate(YOUTU_SCRIPTS), Isolate(O200K_CASELESS_DIGITS)]).ignore_merges(),

    // Split by script.
    row(&["deepseek-v3"],
        &[Isolate(THREE_DIGITS), Isolate(CJK_KANA), Isolate(DEEPSEEK_V3)]),
    row(&["spark2_5"],
        &[Isolate(THREE_DIGITS), Isolate(CJK_KANA), Isolate(SPARK), Isolate(DIGIT)]),
    row(&["afmoe"],
        &[Groups { class: DIGIT, before_words: true, first: true }, Isolate(ASIAN), Isolate(DEEPSEEK_V3)])
        .llama_cpp(&[Groups { class: DIGIT, before_words: true, first: false }, Isolate(ASIAN_WIDE),
                    Isolate(DEEPSEEK_V3)]),
    row(&["deepseek-llm"],
        &[Isolate(LINE_BREAK), Isolate(DEEPSEEK_LETTERS), Isolate(DEEPSEEK_PUNCTUATION),
          Isolate(LAST_SPACE), Isolate(CJK_HANGUL), Isolate(DIGIT)])
        .llama_cpp(&[Isolate(LINE_BREAK), Isolate(DEEPSEEK_LETTERS), Isolate(DEEPSEEK_PUNCTUATION_ONLY),
                    Isolate(LAST_SPACE), Isolate(CJK_HANGUL_ONLY), Isolate(DIGITS)]),
    row(&["deepseek-coder"],
        &[Isolate(LINE_BREAK), Isolate(SPACED_LETTERS), Isolate(SPACED_PUNCTUATION),
          Isolate(CJK_HANGUL), Isolate(DIGIT)])
        .llama_cpp(&[Isolate(LINE_BREAK), Isolate(SPACED_LETTERS), Isolate(SPACED_PUNCTUATION),
                    Isolate(CJK_HANGUL_ONLY), Isolate(DIGIT)]),

    // Others.
    row(&["bloom", "poro-chat"], &[Isolate(BLOOM)]),
    row(&["viking"], &[Isolate(BLOOM), Isolate(DIGIT)]),
    row(&["superbpe"],
        &[Isolate(DIGITS), Groups { class: r"\d", before_words: true, first: true }])
        .llama_cpp(&[Isolate(DIGITS), Thousands]),
    row(&["gemma4"], &[Isolate(LINES)]).characters(true, IgnoreMerges::LineBreaks),
    row(&["sarvam-moe"], &[Isolate(LINES)]).characters(true, IgnoreMerges::Never),
    row(&["whitespace"], &[Isolate(NON_SPACE)]).characters(false, IgnoreMerges::Never),
    // Not a name: used if `tokenizer.ggml.model` is `whitespace`.
    row(&["(words)"], &[Keep(NON_SPACE)]).characters(false, IgnoreMerges::Never),
];

#[cfg(test)]
mod tests {
    use gguf_models::pre_tokenizer::NAMES;

    use super::*;

    #[test]
    fn every_name_has_one_row() {
        for names in NAMES {
            let rows = TABLE.iter().filter(|row| row.names.contains(&names[0]));
            assert_eq!(rows.count(), 1, "{names:?}");
        }
    }
}
