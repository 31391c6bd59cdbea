//! Vocabularies of real models against llama.cpp's test suites.

use std::path::{Path, PathBuf};

use gguf::Gguf;
use gguf_store::LocalFile;
use gguf_tokenizer::{Compat, DecodeOptions, EncodeOptions, Tokenizer, TokenizerOptions};

fn data() -> Option<PathBuf> {
    let data = std::env::var_os("GGUF_TEST_DATA");
    if data.is_none() {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name a folder of reference data");
    }
    data.map(PathBuf::from)
}

fn tokenizer(path: &Path, compat: Compat) -> Tokenizer {
    let map = LocalFile::open(path).unwrap();
    let gguf = Gguf::read(map.mapped()).unwrap();
    Tokenizer::from_metadata(
        gguf.metadata(),
        TokenizerOptions { compat, ..TokenizerOptions::default() },
    )
    .unwrap()
}

const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };

#[test]
fn ids_match_llama_cpp() {
    let Some(data) = data() else { return };
    let mut count = 0;
    for name in ["falcon", "gpt-2", "llama-spm", "mpt", "phi-3", "qwen2", "starcoder"] {
        let path = data.join(format!("vocab/ggml-vocab-{name}.gguf"));
        let text =
            |extension| std::fs::read_to_string(format!("{}.{extension}", path.display())).unwrap();
        let (inputs, outputs) = (text("inp"), text("out"));
        let inputs: Vec<&str> = inputs.split("\n__ggml_vocab_test__\n").collect();
        let expected: Vec<Vec<u32>> = outputs
            .lines()
            .map(|line| line.split_whitespace().map(|id| id.parse().unwrap()).collect())
            .collect();
        for compat in [Compat::Original, Compat::LlamaCpp] {
            let tokenizer = tokenizer(&path, compat);
            for (input, expected) in inputs.iter().zip(&expected) {
                let ids = tokenizer.encode(input, PLAIN);
                assert_eq!(&ids, expected, "{name}, {compat:?}: {input:?}");
                assert_eq!(
                    String::from_utf8(tokenizer.decode(&ids, DecodeOptions::default())).unwrap(),
                    *input,
                    "{name}, {compat:?}"
                );
                count += 1;
            }
        }
    }
    assert!(count > 500, "{count}");
}
