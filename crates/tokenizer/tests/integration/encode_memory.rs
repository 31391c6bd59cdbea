//! Memory for encoding grows linearly with the text and its ids, whatever the text is.

use allocation_counter::measure;
use gguf::{Array, Metadata};
use gguf_tokenizer::{EncodeOptions, Tokenizer, TokenizerOptions};

/// Length of a text in bytes.
const LEN: usize = 3_000_000;

/// Maximum memory besides the ids, in bytes per byte of text: a copy with visible spaces.
const MAX_BYTES_PER_BYTE: usize = 4;

fn tokenizer(model: &str, tokens: &[&str]) -> Tokenizer {
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.model", model);
    metadata.set("tokenizer.ggml.pre", "gpt-2");
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(tokens));
    let scores: Vec<f32> = (0..tokens.len()).map(|id| -1.0 - id as f32).collect();
    metadata.set("tokenizer.ggml.scores", Array::from(&scores[..]));
    metadata.set("tokenizer.ggml.merges", Array::from_strings(["a a", "aa aa"]));
    metadata.set("tokenizer.ggml.unknown_token_id", 0u32);
    metadata.set("tokenizer.ggml.add_bos_token", false);
    metadata.set("tokenizer.ggml.add_space_prefix", false);
    Tokenizer::from_metadata(&metadata, TokenizerOptions::default()).unwrap()
}

/// Returns the peak memory of encoding a text, and its ids.
fn cost(tokenizer: &Tokenizer, text: &str) -> (usize, Vec<u32>) {
    let mut ids = Vec::new();
    let options = EncodeOptions { add_special: false, parse_special: false };
    let info = measure(|| ids = tokenizer.encode(text, options));
    assert!(info.count_total > 0, "nothing was counted");
    (info.bytes_max as usize, ids)
}

#[test]
fn endless_words_take_bounded_memory() {
    let tokens = ["<unk>", "a", "aa", "aaaa", "aaab", "\u{fffd}", "\u{fffd}\u{fffd}"];
    let texts = ["a".repeat(LEN + 3), "\u{fffd}".repeat(LEN / 3)];
    for model in ["llama", "gpt2", "t5"] {
        let tokenizer = tokenizer(model, &tokens);
        for text in &texts {
            let (bytes, ids) = cost(&tokenizer, text);
            // The vector of ids doubles when it is full, and both copies exist for a moment.
            let limit = text.len() * MAX_BYTES_PER_BYTE + ids.len() * 12 + (8 << 20);
            // Every position can be reached in several ways, up to the end.
            let ways = if model == "t5" { text.len() * 48 } else { 0 };
            let start: String = text.chars().take(3).collect();
            assert!(bytes < limit + ways, "{model}, {start}: {bytes} bytes, not {}", limit + ways);
            if start == "aaa" && model != "t5" {
                let expected = [vec![3; LEN / 4], vec![2, 1]].concat();
                assert!(ids == expected, "{model}: {:?}", &ids[ids.len() - 10..]);
            }
        }
    }
}

#[test]
fn texts_are_split_where_no_token_spans() {
    let tokenizer = tokenizer("t5", &["<unk>", "ab", "b", "a"]);
    let text = "abxxba".repeat(LEN / 6);
    let (bytes, ids) = cost(&tokenizer, &text);
    assert!(ids == [1, 0, 2, 3].repeat(LEN / 6), "{:?}", &ids[..20]);
    assert!(bytes < text.len() * MAX_BYTES_PER_BYTE + ids.len() * 12 + (1 << 20), "{bytes} bytes");
}
