//! Missing and malformed tokenizer files.

use gguf::Error;
use gguf_convert::vocab::VocabularyOptions;
use gguf_models::convert::VocabularyKind;
use serde_json::{Value, json};

use super::sentencepiece::tiny_sentencepiece;
use super::{convert, convert_bpe, tiny_bpe};
use crate::fixtures::tokenizer_files::rows;

#[test]
fn missing_and_malformed_files_are_named() {
    let fault = |files: &[(&str, &[u8])], kind| {
        convert(files, kind, &VocabularyOptions::default()).unwrap_err().to_string()
    };
    for kind in [VocabularyKind::Llama, VocabularyKind::SentencePieceElseBpe, VocabularyKind::Bpe] {
        let fault = fault(&[], kind);
        assert!(fault.contains("looked for tokenizer.model, tokenizer.json"), "{fault}");
    }
    assert!(fault(&[("tekken.json", b"{}")], VocabularyKind::Llama).contains("tekken.json"));
    assert!(
        fault(&[("tokenizer_config.json", b"[]")], VocabularyKind::Bpe)
            .contains("not a JSON object")
    );
    assert!(fault(&[("tokenizer.json", b"{")], VocabularyKind::Bpe).contains("not valid JSON"));

    let broken = |change: fn(&mut Value), what: &str| {
        let mut tokenizer = tiny_bpe();
        change(&mut tokenizer);
        let fault = convert_bpe(&tokenizer, &rows(8)).unwrap_err().to_string();
        assert!(fault.contains(what), "{fault}");
    };
    broken(|t| t["model"]["vocab"] = json!([]), "model.vocab is missing");
    broken(|t| t["model"]["vocab"]["a"] = json!(-1), "the id of \"a\" is -1");
    broken(|t| t["model"]["vocab"]["a"] = json!(8), "token id 8 does not fit a vocabulary of 8");
    broken(|t| t["model"]["type"] = json!("WordPiece"), "expected BPE");
    broken(|t| t["model"]["merges"] = json!([["a"]]), "merge 0 is");
    broken(|t| t["added_tokens"][0] = json!({"id": 1}), "has no `id` or no `content`");

    let size = |fault: Error| assert!(fault.to_string().contains("vocab_size is"), "{fault}");
    size(convert_bpe(&tiny_bpe(), &rows(u64::MAX)).unwrap_err());
    let model = tiny_sentencepiece();
    size(
        convert(&[("tokenizer.model", &model)], VocabularyKind::Llama, &rows(u64::MAX))
            .unwrap_err(),
    );
}
