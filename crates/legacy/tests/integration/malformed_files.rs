//! Malformed files are rejected with a message, without a panic or excessive memory use.

use std::path::Path;

use gguf::Error;
use gguf_legacy::{LegacyModel, LegacyOptions, is_legacy};

use super::builder::{GGJT, GGML, LegacyFile, llama, plain};
use super::convert;
use super::reference_data::data;

fn message(bytes: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.bin");
    std::fs::write(&path, bytes).unwrap();
    match open(&path) {
        Ok(()) => panic!("the malformed file was accepted"),
        Err(error) => error.to_string(),
    }
}

fn open(path: &Path) -> Result<(), Error> {
    let options = LegacyOptions::default();
    LegacyModel::open(path, &options)?.plan(&options).map(drop)
}

#[test]
fn truncated_files_are_rejected() {
    let file = llama(GGJT, Some(3), 64, plain).bytes;
    for end in (8..2000).chain((2000..file.len()).step_by(997)) {
        let message = message(&file[..end]);
        // A file that ends between two tensors is not malformed, but tensors are missing.
        let expected = ["truncated, damaged", "incomplete", "do not match"];
        assert!(expected.iter().any(|text| message.contains(text)), "{end}: {message}");
    }
    let message = message(&file[..file.len() - 1]);
    assert!(message.contains("only 255 remain"), "{message}");
}

#[test]
fn invalid_values_are_named() {
    let number = |at: usize, value: u32| {
        let mut bytes = llama(GGJT, Some(3), 64, plain).bytes;
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        message(&bytes)
    };
    for (at, value, expected) in [
        (4, 4, "unsupported GGJT version 4, expected 1 to 3"),
        (8, u32::MAX, "header field VocabSize is 4294967295"),
        (8, 1 << 20, "token 5 has 4194304 bytes"),
        (12, 63, "embedding length 63 is not a multiple of 4 heads"),
        (20, 0, "header field Heads is 0"),
        (32, 19, "header field FileType is 19"),
        (36, u32::MAX, "token 0 has 4294967295 bytes"),
    ] {
        let message = number(at, value);
        assert!(message.contains(expected), "{at}: {message}");
    }
}

#[test]
fn other_formats_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let adapter = LegacyFile::new(0x6767_6c61, Some(1), &[8, 16]).write(dir.path(), "adapter.bin");
    assert!(is_legacy(&adapter).unwrap());
    assert!(open(&adapter).unwrap_err().to_string().contains("LoRA adapter"));

    let gguf = dir.path().join("model.gguf");
    std::fs::write(&gguf, b"GGUF\x03\0\0\0").unwrap();
    assert!(!is_legacy(&gguf).unwrap());
    assert!(!is_legacy(dir.path()).unwrap());

    let with_architecture =
        |name: &str| LegacyOptions { architecture: Some(name.into()), ..LegacyOptions::default() };
    let llama = llama(GGML, None, 64, plain).write(dir.path(), "llama.bin");
    let unknown = LegacyModel::open(&llama, &with_architecture("rwkv")).err().unwrap().to_string();
    assert!(unknown.contains("supported architectures: llama, falcon, gpt2"), "{unknown}");
    let wrong = LegacyModel::open(&llama, &with_architecture("gptj")).err().unwrap().to_string();
    assert!(wrong.contains("read as gptj, byte"), "{wrong}");
}

#[test]
fn tensors_must_match_the_architecture() {
    let mut file = llama(GGJT, Some(3), 64, plain);
    file.floats("layers.1.attention_norm.weight", &[64]);
    assert!(message(&file.bytes).contains("tensors do not match a llama model"));
    let mut file = llama(GGJT, Some(3), 64, plain);
    file.floats("layers.0.attention.rotary.weight", &[64]);
    assert!(message(&file.bytes).contains("llama models have no tensor"));
    let mut file = llama(GGJT, Some(3), 64, plain);
    file.tensor("norm.weight", 0, &[64], &[0; 256]);
    assert!(!message(&file.bytes).is_empty());
}

#[test]
fn missing_and_foreign_parts_are_rejected() {
    let Some(data) = data() else { return };
    let dir = tempfile::tempdir().unwrap();
    let name = "ggml-f16-nano-2part.bin";
    let copy = |from: &str, to: &str| {
        std::fs::copy(data.join("llama").join(from), dir.path().join(to)).unwrap();
    };
    copy(name, name);
    let path = dir.path().join(name);
    let missing = open(&path).unwrap_err().to_string();
    assert!(missing.contains("is part 1 of 2, but"), "{missing}");
    copy("ggml-f16-nano.bin", &format!("{name}.1"));
    let foreign = open(&path).unwrap_err().to_string();
    assert!(foreign.contains("belongs to a different model"), "{foreign}");
}

#[test]
fn non_finite_weights_are_rejected() {
    let file = llama(GGML, None, 64, |file, name, dims| {
        let mut block = vec![0x77; 20];
        block[..4].copy_from_slice(&f32::NAN.to_le_bytes());
        let good = [&0.5f32.to_le_bytes()[..], &[0x77; 16]].concat();
        let mut data = good.repeat((dims[0] * dims[1] / 32) as usize);
        if name.contains("wq") {
            let end = data.len();
            data[end - 20..].copy_from_slice(&block);
        }
        file.tensor(name, 2, &dims, &data);
    });
    let dir = tempfile::tempdir().unwrap();
    let path = file.write(dir.path(), "model.bin");
    let message = convert(&path, &LegacyOptions::default()).err().unwrap().to_string();
    assert!(message.contains("blk.0.attn_q.weight") && message.contains("NaN"), "{message}");
}

/// Random changes give a model or an error message. Most changes are in the header and the first
/// records.
#[test]
fn random_changes_cause_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.bin");
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let mut files = vec![llama(GGJT, Some(3), 64, plain).bytes, llama(GGML, None, 64, plain).bytes];
    if let Some(data) = data() {
        for name in [
            "bloom/ggml-q4_0.bin",
            "falcon/ggcc-q4_0.bin",
            "gpt2/ggml-qnt0-q4_0.bin",
            "gptj/ggml-qnt2-q4_0.bin",
            "mpt/ggml-qnt1-q4_0.bin",
            "whisper/ggml-qnt2-q4_0.bin",
        ] {
            files.push(std::fs::read(data.join(name)).unwrap());
        }
    }
    for file in files {
        for _ in 0..150 {
            let mut bytes = file.clone();
            for _ in 0..1 + random(3) {
                // The magic is not changed: other files are not parsed at all.
                let at = 4 + if random(4) > 0 { random(160) } else { random(bytes.len() - 4) };
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random(256) as u8][random(6)];
            }
            std::fs::write(&path, &bytes).unwrap();
            if let Err(error) = open(&path) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}
