//! Tokenizers of `tokenizer.json`, and of the files that are converted from it, beside the `tokenizers` library, on random
//! texts with special tokens in random places.

use std::path::Path;

use gguf_kit::convert::{ConvertOptions, Kind, Plan};
use gguf_kit::tokens::Encoder;
use gguf_tokenizer::{EncodeOptions, HuggingFace, Tokenizer, TokenizerOptions};
use serde_json::{Map, Value, json};

/// Texts for each tokenizer.
const COUNT: u64 = 200;

const WITHOUT_BOS: EncodeOptions = EncodeOptions { add_special: false, parse_special: true };

/// Parts of texts; special tokens are added.
#[rustfmt::skip]
const PARTS: &[&str] = &[
    " ", " ", "  ", "\n", "\t ", "the", "The", "he", "in", "there", "this", "ab", "ABC", "1 2", "12", ".", "'s", "é", "e\u{301}",
    "你好", "\u{2581}", "\u{2581}\u{2581}the", "\u{200b}", "\u{7f}", "x<s", "<t", "t>", "aaaaaaaa",
];

/// Returns the next of a sequence of pseudo-random numbers (SplitMix64).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn texts(special: &[String]) -> Vec<String> {
    let text = |mut state: u64| {
        let parts = 1 + next(&mut state) % 8;
        (0..parts).fold(String::new(), |text, _| {
            let pick = next(&mut state) as usize;
            let is_special = next(&mut state).is_multiple_of(3) && !special.is_empty();
            text + if is_special {
                &special[pick % special.len()]
            } else {
                PARTS[pick % PARTS.len()]
            }
        })
    };
    (0..COUNT).map(|i| text(i << 32)).collect()
}

fn added(id: usize, content: &str, special: bool, flags: &[&str]) -> Value {
    let mut token = json!({ "id": id, "content": content, "special": special });
    for flag in ["lstrip", "rstrip", "single_word", "normalized"] {
        token[flag] = flags.contains(&flag).into();
    }
    token
}

/// Returns ids of the texts in order.
fn numbered<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Map<String, Value> {
    let mut vocab = Map::new();
    for text in texts {
        let id = vocab.len();
        vocab.entry(text.as_ref()).or_insert(id.into());
    }
    vocab
}

/// Returns a BPE model with tokens for specials, an alphabet and merges.
fn bpe(first: &[&str], alphabet: impl Iterator<Item = String>, merges: &[[&str; 2]]) -> Value {
    let first = first.iter().map(|text| (*text).to_owned());
    let results = merges.iter().map(|pair| pair.concat());
    json!({ "type": "BPE", "vocab": numbered(first.chain(alphabet).chain(results)), "merges": merges })
}

fn sentencepiece() -> Value {
    let bytes = (0..256).map(|byte| format!("<0x{byte:02X}>"));
    let characters = ('!'..='~').chain(['\u{2581}', 'é']).map(String::from);
    let merges = [
        ["\u{2581}", "\u{2581}"],
        ["\u{2581}", "t"],
        ["h", "e"],
        ["i", "n"],
        ["\u{2581}t", "he"],
        ["a", "b"],
        ["1", "2"],
    ];
    let mut model = bpe(&["<unk>", "<s>", "</s>"], bytes.chain(characters), &merges);
    model["byte_fallback"] = true.into();
    model["unk_token"] = "<unk>".into();
    let special = |id, text| added(id, text, true, &[]);
    json!({
        "version": "1.0",
        "added_tokens": [special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")],
        "normalizer": { "type": "Sequence", "normalizers": [
            { "type": "Prepend", "prepend": "\u{2581}" },
            { "type": "Replace", "pattern": { "String": " " }, "content": "\u{2581}" },
        ] },
        "pre_tokenizer": null, "post_processor": null,
        "decoder": { "type": "Sequence", "decoders": [{ "type": "ByteFallback" }, { "type": "Fuse" }] },
        "model": model,
    })
}

fn byte_level() -> Value {
    let alphabet = (0..=255).map(|byte| gguf_convert::vocab::spell(&[byte]));
    let merges = [
        ["\u{120}", "t"],
        ["h", "e"],
        ["i", "n"],
        ["\u{120}t", "he"],
        ["a", "b"],
        ["1", "2"],
        ["\u{120}", "\u{120}"],
    ];
    json!({
        "version": "1.0", "added_tokens": [added(0, "<s>", true, &[])],
        "normalizer": null, "post_processor": null,
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        "decoder": null, "model": bpe(&["<s>"], alphabet, &merges),
    })
}

fn word_piece() -> Value {
    let letters = ('!'..='~').chain("éä你好".chars());
    let pieces = letters.flat_map(|char| [char.to_string(), format!("##{char}")]);
    let first = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "in", "##he", "你好"].map(String::from);
    let special = |id, text| added(id, text, true, &[]);
    json!({
        "version": "1.0",
        "added_tokens": [special(0, "[PAD]"), special(1, "[UNK]"), special(2, "[CLS]"), special(3, "[SEP]")],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
            "lowercase": true,
        },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": { "type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2] },
        "decoder": null,
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": numbered(first.into_iter().chain(pieces)),
        },
    })
}

/// Returns the number of ids.
fn size(tokenizer: &Value) -> usize {
    let trained = tokenizer["model"]["vocab"].as_object().unwrap().len();
    let added = tokenizer["added_tokens"].as_array().unwrap().iter();
    added.map(|token| token["id"].as_u64().unwrap() as usize + 1).fold(trained, usize::max)
}

/// Returns the tokenizer with a part replaced.
fn with(mut tokenizer: Value, pointer: &str, part: Value) -> Value {
    *tokenizer.pointer_mut(pointer).unwrap() = part;
    tokenizer
}

/// Returns the tokenizer with one more token.
fn with_token(mut tokenizer: Value, special: bool, flags: &[&str]) -> Value {
    let token = added(size(&tokenizer), "<Tool>", special, flags);
    tokenizer["added_tokens"].as_array_mut().unwrap().push(token);
    tokenizer
}

/// Conversion of a `tokenizer.json` alone.
struct Converted {
    /// Ids of the `tokenizers` library.
    expected: Vec<Vec<u32>>,
    /// Ids of the converted file.
    ids: Vec<Vec<u32>>,
    /// Notes about texts with other ids.
    notes: Vec<String>,
}

fn convert(tokenizer: &Value, class: &str, texts: &[String]) -> Converted {
    let dir = tempfile::tempdir().unwrap();
    let (json, config) = (dir.path().join("tokenizer.json"), dir.path().join("config.json"));
    std::fs::write(&json, tokenizer.to_string()).unwrap();
    let config_json = json!({
        "architectures": [class], "vocab_size": size(tokenizer), "hidden_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 1, "num_key_value_heads": 1, "intermediate_size": 8, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5, "layer_norm_eps": 1e-5, "type_vocab_size": 2,
        "n_ctx": 64, "n_embd": 8, "n_head": 1, "n_layer": 1, "layer_norm_epsilon": 1e-5,
    });
    std::fs::write(config, config_json.to_string()).unwrap();
    let library = HuggingFace::from_json(tokenizer.to_string().as_bytes()).unwrap();
    let expected: Vec<_> =
        texts.iter().map(|text| library.encode(text, WITHOUT_BOS).unwrap()).collect();
    assert_eq!(ids(&json, texts), expected, "{tokenizer}");
    let options = ConvertOptions { vocab_only: true, ..ConvertOptions::default() };
    let plan = Plan::new(dir.path().to_str().unwrap(), Kind::Checkpoint, &options, &()).unwrap();
    let metadata = &plan.outputs[0].job.metadata;
    let ours = Tokenizer::from_metadata(metadata, TokenizerOptions::default()).unwrap();
    let ids = ours.encode_batch(texts, WITHOUT_BOS);
    let notes = plan.notes.into_iter().filter(|note| note.contains("get other ids")).collect();
    Converted { expected, ids, notes }
}

/// Returns the ids of `gguf tokenize`.
fn ids(path: &Path, texts: &[String]) -> Vec<Vec<u32>> {
    let options = TokenizerOptions::default();
    let (encoder, notes) = Encoder::open(path.to_str().unwrap(), options).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    encoder.encode_batch(texts, WITHOUT_BOS).unwrap()
}

/// Converts a tokenizer, and checks that each text has the ids of the library or a note says that some have not.
fn assert_right_or_noted(name: &str, tokenizer: &Value, class: &str) -> Vec<String> {
    let tokens = tokenizer["added_tokens"].as_array().unwrap();
    let special: Vec<String> =
        tokens.iter().map(|token| token["content"].as_str().unwrap().to_owned()).collect();
    let texts = texts(&special);
    let found = convert(tokenizer, class, &texts);
    let different = (0..texts.len()).find(|i| found.ids[*i] != found.expected[*i]);
    if let Some(i) = different {
        let (text, ours, theirs) = (&texts[i], &found.ids[i], &found.expected[i]);
        assert!(!found.notes.is_empty(), "{name}: {text:?}: {ours:?}, not {theirs:?}");
    }
    found.notes
}

const LLAMA: &str = "LlamaForCausalLM";
const BERT: &str = "BertModel";

#[test]
fn settings_that_gguf_holds_give_equal_ids_without_notes() {
    let replace = json!({ "type": "Replace", "pattern": { "String": " " }, "content": "\u{2581}" });
    let metaspace = |split: bool| json!({ "type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "never", "split": split });
    let without_normalizer = with(sentencepiece(), "/normalizer", Value::Null);
    let lowercase = |lower: bool, strip: Value| {
        let cased = with(word_piece(), "/normalizer/lowercase", lower.into());
        with(cased, "/normalizer/strip_accents", strip)
    };
    for (name, tokenizer, class) in [
        ("prefix", sentencepiece(), LLAMA),
        ("no prefix", with(sentencepiece(), "/normalizer", replace), LLAMA),
        ("metaspace never", with(without_normalizer, "/pre_tokenizer", metaspace(false)), LLAMA),
        ("nemotron", sentencepiece(), "NemotronForCausalLM"),
        ("internlm 2", sentencepiece(), "InternLM2ForCausalLM"),
        ("baichuan", sentencepiece(), "BaichuanForCausalLM"),
        ("qwen 2", sentencepiece(), "Qwen2ForCausalLM"),
        ("token", with_token(sentencepiece(), false, &[]), LLAMA),
        ("special token", with_token(sentencepiece(), true, &[]), LLAMA),
        ("bytes", byte_level(), "GPT2LMHeadModel"),
        ("bytes, token", with_token(byte_level(), false, &["normalized"]), "GPT2LMHeadModel"),
        ("words", word_piece(), BERT),
        ("words, token", with_token(word_piece(), false, &[]), BERT),
        ("words, cased", lowercase(false, Value::Null), BERT),
        ("words, accents", lowercase(true, false.into()), BERT),
        ("words, cased without accents", lowercase(false, true.into()), BERT),
    ] {
        let notes = assert_right_or_noted(name, &tokenizer, class);
        assert!(notes.is_empty(), "{name}: {notes:?}");
    }
}

#[test]
fn settings_without_a_key_are_noted() {
    let metaspace = |scheme: &str, split: bool| {
        let metaspace = json!({ "type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": scheme, "split": split });
        with(with(sentencepiece(), "/normalizer", Value::Null), "/pre_tokenizer", metaspace)
    };
    let normalized = |normalizer: Value| with(byte_level(), "/normalizer", normalizer);
    let gpt2 = "GPT2LMHeadModel";
    let mut cases = vec![
        // Runtimes strip white space after the special tokens of Phi 3 by its name.
        ("phi 3", sentencepiece(), "Phi3ForCausalLM", "white space after </s>"),
        ("space", metaspace("always", false), LLAMA, "begin with a space"),
        ("first", metaspace("first", false), LLAMA, "behind a special token"),
        ("first", metaspace("first", true), LLAMA, "behind a special token"),
        ("lower case", normalized(json!({ "type": "Lowercase" })), gpt2, "its normalizer"),
        ("accents", normalized(json!({ "type": "NFKD" })), gpt2, "its normalizer"),
        (
            "strip",
            normalized(json!({ "type": "Strip", "strip_left": true, "strip_right": true })),
            gpt2,
            "its normalizer",
        ),
        ("prefix", normalized(json!({ "type": "Prepend", "prepend": "x" })), gpt2, "all texts"),
        (
            "Chinese",
            with(word_piece(), "/normalizer/handle_chinese_chars", false.into()),
            BERT,
            "Chinese characters",
        ),
        (
            "control",
            with(word_piece(), "/normalizer/clean_text", false.into()),
            BERT,
            "control characters",
        ),
        (
            "long words",
            with(word_piece(), "/model/max_input_chars_per_word", 3.into()),
            BERT,
            "longer words",
        ),
    ];
    for (tokenizer, class) in [(sentencepiece(), LLAMA), (byte_level(), gpt2), (word_piece(), BERT)]
    {
        for special in [false, true] {
            for (flag, noted) in [
                ("lstrip", "white space before <Tool>"),
                ("rstrip", "white space after <Tool>"),
                ("single_word", "words that contain <Tool>"),
            ] {
                // BERT drops white space.
                if class == BERT && flag != "single_word" {
                    continue;
                }
                cases.push((flag, with_token(tokenizer.clone(), special, &[flag]), class, noted));
            }
        }
        if class != gpt2 {
            let noted = "texts with <Tool>";
            cases.push(("normalized", with_token(tokenizer, true, &["normalized"]), class, noted));
        }
    }
    for (name, tokenizer, class, noted) in cases {
        let notes = assert_right_or_noted(name, &tokenizer, class);
        assert!(notes.iter().any(|note| note.contains(noted)), "{name} {class}: {notes:?}");
    }
}

#[test]
fn reference_tokenizers_are_right() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA") else {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name a folder of reference data");
        return;
    };
    let mut count = 0;
    for entry in std::fs::read_dir(Path::new(&data).join("zoo")).unwrap() {
        let dir = entry.unwrap().path();
        let Ok(json) = std::fs::read(dir.join("tokenizer.json")) else { continue };
        let tokenizer: Value = serde_json::from_slice(&json).unwrap();
        let tokens = tokenizer["added_tokens"].as_array().unwrap();
        let special: Vec<String> =
            tokens.iter().map(|token| token["content"].as_str().unwrap().to_owned()).collect();
        let texts = texts(&special);
        let library = HuggingFace::from_json(&json).unwrap();
        let options = ConvertOptions { vocab_only: true, ..ConvertOptions::default() };
        let plan = Plan::new(dir.to_str().unwrap(), Kind::Checkpoint, &options, &()).unwrap();
        assert!(plan.notes.iter().all(|note| !note.contains("get other ids")), "{:?}", plan.notes);
        let metadata = &plan.outputs[0].job.metadata;
        let ours = Tokenizer::from_metadata(metadata, TokenizerOptions::default()).unwrap();
        for text in &texts {
            let expected = library.encode(text, WITHOUT_BOS).unwrap();
            assert_eq!(ours.encode(text, WITHOUT_BOS), expected, "{}: {text:?}", dir.display());
        }
        count += 1;
    }
    assert_eq!(count, 25);
}
