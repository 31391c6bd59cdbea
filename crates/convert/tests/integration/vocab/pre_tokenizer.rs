//! Recognition of pre-tokenizers.

use gguf_convert::vocab::VocabularyOptions;
use serde_json::{Value, json};

use super::{assert_noted, convert_bpe, tiny_bpe};
use crate::fixtures::tokenizer_files::rows;

const LLAMA3: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// Returns the tiny tokenizer with these pre-tokenizers.
fn with_steps(steps: Value) -> Value {
    let mut tokenizer = tiny_bpe();
    tokenizer["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": steps});
    tokenizer
}

fn with_split(regex: &str, behavior: &str, invert: bool) -> Value {
    with_steps(json!([
        {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert},
        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
    ]))
}

/// Returns the recognized name and the notes.
fn pre(tokenizer: &Value, hints: &[&str]) -> (String, String) {
    let options = VocabularyOptions { hints, ..rows(8) };
    let found = convert_bpe(tokenizer, &options).unwrap();
    (found.metadata.str("tokenizer.ggml.pre").unwrap().to_owned(), found.notes.join("\n"))
}

#[test]
fn hints_and_ignore_merges_choose_among_equivalent_names() {
    let mut llama = with_split(LLAMA3, "Isolated", false);
    assert_eq!(pre(&llama, &[]).0, "dbrx");
    assert_eq!(pre(&llama, &["llama-bpe", "smaug-bpe"]).0, "smaug-bpe");
    assert_eq!(pre(&llama, &["nothing", "chatglm-bpe"]).0, "chatglm-bpe");
    let (name, notes) = pre(&llama, &["llama-bpe"]);
    assert_eq!(name, "llama-bpe");
    assert!(notes.contains("`ignore_merges` is false in tokenizer.json, but true"), "{notes}");
    llama["model"]["ignore_merges"] = json!(true);
    let (name, notes) = pre(&llama, &[]);
    assert_eq!(name, "llama-bpe");
    assert!(notes.contains("names that runtimes treat the same: llama3"), "{notes}");
    assert!(notes.contains("other defaults: dbrx, smaug-bpe, glm4"), "{notes}");
    assert_eq!(pre(&llama, &["llama-bpe", "smaug-bpe"]).0, "llama-bpe");

    let digits = with_steps(json!([
        {"type": "Digits", "individual_digits": true},
        {"type": "ByteLevel", "add_prefix_space": false},
    ]));
    assert_eq!(pre(&digits, &[]).0, "starcoder");
    assert_eq!(pre(&digits, &["smollm"]).0, "smollm");
}

#[test]
fn equivalent_spellings_are_recognized() {
    let expanded = LLAMA3.replace(
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])",
    );
    for tokenizer in [
        with_split(LLAMA3, "Isolated", false),
        with_split(LLAMA3, "Removed", true),
        with_split(&expanded, "Isolated", false),
        with_split(&LLAMA3.replace(r"\r\n", "\r\n"), "Isolated", false),
    ] {
        assert_eq!(pre(&tokenizer, &[]).0, "dbrx");
    }
    let split = |pattern: Value, behavior| json!({"type": "Split", "pattern": pattern, "behavior": behavior, "invert": false});
    let regex = |text: &str| split(json!({"Regex": text}), "Isolated");
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false});
    // DeepSeek V3 has literal line breaks in the pattern.
    let deepseek = with_steps(json!([
        regex(r"\p{N}{1,3}"),
        regex("[一-龥぀-ゟ゠-ヿ]+"),
        regex(concat!(
            r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^"##,
            "\r\n",
            r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[",
            "\r\n]*|\\s*[\r\n",
            r"]+|\s+(?!\S)|\s+"
        )),
        bytes,
    ]));
    assert_eq!(pre(&deepseek, &[]).0, "deepseek-v3");
    let nested = with_steps(json!([{"type": "Sequence", "pretokenizers": [regex(LLAMA3)]}, bytes]));
    assert_eq!(pre(&nested, &["dbrx"]).0, "dbrx");
    let mut gemma = with_steps(json!([split(json!({"String": " "}), "MergedWithPrevious")]));
    gemma["normalizer"] = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
    assert_eq!(pre(&gemma, &[]).0, "gemma4");

    let mut normalized = tiny_bpe();
    normalized["normalizer"] = json!({"type": "Sequence", "normalizers": [{"type": "NFC"}]});
    let (name, notes) = pre(&normalized, &[]);
    assert_eq!(name, "gpt-2");
    assert!(notes.contains("normalizes text to NFC"), "{notes}");
}

#[test]
fn unknown_pre_tokenizer_error_names_its_steps_and_the_nearest() {
    let tokenizer = with_split(&LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}{1,2}"), "Isolated", false);
    let fault = convert_bpe(&tokenizer, &rows(8)).unwrap_err().to_string();
    assert!(fault.contains(r"\p{N}{1,2}"), "{fault}");
    assert!(fault.contains("--pre llama-bpe"), "{fault}");
    let found =
        convert_bpe(&tokenizer, &VocabularyOptions { pre: Some("dbrx"), ..rows(8) }).unwrap();
    assert_eq!(found.metadata.str("tokenizer.ggml.pre"), Some("dbrx"));
    assert!(found.notes.iter().all(|n| !n.contains("does not know")), "{:?}", found.notes);
    let found =
        convert_bpe(&tokenizer, &VocabularyOptions { pre: Some("mine"), ..rows(8) }).unwrap();
    assert_noted(&found, "does not know");

    // `prepend_scheme: always` adds a space to every piece, not only to the text.
    let mut tokenizer = tiny_bpe();
    tokenizer["pre_tokenizer"]["add_prefix_space"] = json!(true);
    assert!(pre(&tokenizer, &[]).1.contains("adds a space in front of every text"));
    let tokenizer = with_steps(json!([
        {"type": "Digits", "individual_digits": true},
        {"type": "ByteLevel", "add_prefix_space": true},
    ]));
    assert!(convert_bpe(&tokenizer, &rows(8)).is_err());
    // An inverted split would drop text that does not match.
    assert!(convert_bpe(&with_split(r"\p{N}+", "Removed", true), &rows(8)).is_err());
}
