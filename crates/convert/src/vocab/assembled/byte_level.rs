//! `vocab.json` and `merges.txt`: GPT-2's tokenizer.

use gguf::Error;
use gguf_models::pre_tokenizer::CL100K_DIGITS;
use serde_json::{Map, Value, json};

use super::{Assembled, added_tokens, class, template};
use crate::vocab::files::Files;

/// Special tokens of GPT-2.
const GPT2: &[&str] = &["<|endoftext|>"];
const ROBERTA: &[&str] = &["<s>", "</s>", "<unk>", "<pad>", "<mask>"];

pub(super) fn assemble(files: &Files, vocab: Map<String, Value>) -> Result<Assembled, Error> {
    let path = files.path("vocab.json");
    if !files.has("merges.txt") {
        let what = "has no `merges.txt` in its directory";
        return Err(Error::input(
            "vocabulary-missing",
            &path,
            what,
            "copy the missing file to the directory",
        ));
    }
    let class = class(files);
    let is_roberta = match class {
        "" => !vocab.contains_key("<|endoftext|>") && vocab.contains_key("<s>"),
        class => ["Roberta", "Bart", "Longformer"].iter().any(|start| class.starts_with(start)),
    };
    let added = added_tokens(files, &vocab, if is_roberta { ROBERTA } else { GPT2 })?;
    let has = |text: &str| added.iter().any(|token| token["content"] == text);
    let post_processor = match class {
        _ if is_roberta => {
            let pair = |text| json!([text, vocab.get(text).and_then(Value::as_u64)]);
            json!({ "type": "RobertaProcessing", "cls": pair("<s>"), "sep": pair("</s>") })
        }
        "WhisperTokenizer" if has("<|startoftranscript|>") && has("<|notimestamps|>") => {
            template(&["<|startoftranscript|>", "<|notimestamps|>"], "<|endoftext|>")
        }
        _ => json!({ "type": "ByteLevel" }),
    };
    let bytes = |use_regex: bool| {
        let prefix = files.tokenizer_config_bool("add_prefix_space").unwrap_or(false);
        json!({ "type": "ByteLevel", "add_prefix_space": prefix, "use_regex": use_regex })
    };
    let (normalizer, pre_tokenizer) = match class {
        "Qwen2Tokenizer" => {
            let cut = json!({ "type": "Split", "pattern": { "Regex": CL100K_DIGITS },
                "behavior": "Isolated", "invert": false });
            (
                json!({ "type": "NFC" }),
                json!({ "type": "Sequence", "pretokenizers": [cut, bytes(false)] }),
            )
        }
        _ => (Value::Null, bytes(true)),
    };
    let tokenizer = json!({
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": post_processor,
        "decoder": { "type": "ByteLevel" },
        "model": { "type": "BPE", "vocab": vocab }, // the merges are read where they are
    });
    Ok(Assembled { tokenizer, path, has_pre_tokenizer: true, roles: vec![] })
}
