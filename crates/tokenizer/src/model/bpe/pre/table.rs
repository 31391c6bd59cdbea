//! The pre-tokenizers by name. Data only.
//!
//! Names are those of llama.cpp; what they do is what the models' `tokenizer.json` does.

use gguf_models::pre_tokenizer::*;

use super::Spelling;
use super::patterns::*;
use super::step::Cut::{self, Before, Groups, Isolate, Keep, LatinDigits, Thousands};

/// The usual names of pre-tokenizers that cut alike, and how they do.
pub(super) struct Row {
    /// Each stands for others too ([`gguf_models::pre_tokenizer::alike`]).
    pub names: &'static [&'static str],
    pub spelling: Spelling,
    pub whole: Whole,
    /// The steps of the models' own tokenizers.
    pub own: &'static [Cut],
    /// Those of llama.cpp where they differ.
    pub llama_cpp: Option<&'static [Cut]>,
}

/// Which words stay whole if they are tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    Never,
    /// Runs of line breaks.
    LineBreaks,
    /// What `tokenizer.json` calls `ignore_merges`.
    Always,
}

const fn row(names: &'static [&'static str], own: &'static [Cut]) -> Row {
    Row { names, spelling: Spelling::Bytes, whole: Whole::Never, own, llama_cpp: None }
}

impl Row {
    const fn whole(self) -> Self {
        Self { whole: Whole::Always, ..self }
    }

    const fn llama_cpp(self, steps: &'static [Cut]) -> Self {
        Self { llama_cpp: Some(steps), ..self }
    }

    const fn characters(self, visible_spaces: bool, whole: Whole) -> Self {
        Self { spelling: Spelling::Characters { visible_spaces }, whole, ..self }
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
    row(&["llama-bpe", "glm4"], &[Isolate(CL100K)]).whole(),
    row(&["dbrx", "chatglm-bpe"], &[Isolate(CL100K)]),
    row(&["qwen2", "stablelm2"], &[Isolate(CL100K_DIGITS)]),
    row(&["qwen35"], &[Isolate(CL100K_MARKS)]),
    row(&["jais-2"], &[Isolate(CL100K_SPACES)]),
    row(&["minicpm5"], &[Isolate(THREE_DIGITS), Isolate(CL100K_RUNS)]).whole(),
    row(&["laguna"], &[Before(LINE_BREAKS), Isolate(CL100K_DIGITS)])
        .llama_cpp(&[Isolate(LINES), Isolate(CL100K_DIGITS)]),
    row(&["bailingmoe"], &[Isolate(BAILING)]),
    row(&["seed-coder"], &[Isolate(SEED_CODER)]),
    row(&["ufakzeka"], &[Isolate(UFAKZEKA)]),
    row(&["exaone-moe"], &[Isolate(EXAONE_MOE)]),

    // o200k and its relatives.
    row(&["gpt-4o"], &[Isolate(O200K)])
        .llama_cpp(&[Isolate(O200K_ASCII)]),
    row(&["granite-embed-multi-97m"], &[Isolate(O200K)]).llama_cpp(&[Isolate(O200K_ASCII_MARKS)]).whole(),
    row(&["tekken"], &[Isolate(TEKKEN)]).llama_cpp(&[Isolate(TEKKEN_ASCII)]).whole(),
    row(&["kimi-k2"], &[Isolate(KIMI)]).llama_cpp(&[Isolate(KIMI_LETTERS)]),
    row(&["tiny_aya"],
        &[Groups { class: r"\d", before_words: false, first: true }, Isolate(O200K)])
        .llama_cpp(&[Groups { class: DIGIT, before_words: true, first: false }, Isolate(O200K_CASELESS)]),
    row(&["youtu"], &[Isolate(YOUTU_SCRIPTS), Isolate(O200K_DIGITS)])
        .llama_cpp(&[Isolate(YOUTU_SCRIPTS), Isolate(O200K_CASELESS_DIGITS)]).whole(),

    // Cuts by script.
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
    row(&["gemma4"], &[Isolate(LINES)]).characters(true, Whole::LineBreaks),
    row(&["sarvam-moe"], &[Isolate(LINES)]).characters(true, Whole::Never),
    row(&["whitespace"], &[Isolate(NON_SPACE)]).characters(false, Whole::Never),
    // Not a name: what `tokenizer.ggml.model` asks for where white space only separates.
    row(&["(words)"], &[Keep(NON_SPACE)]).characters(false, Whole::Never),
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
