//! Damaged and false files: a sentence that says what to do, and no more memory than they have.

use std::path::Path;

use gguf::Error;
use gguf_legacy::{Legacy, Options, is_legacy};

use super::build::{File, GGJT, GGML, llama, plain};
use super::convert;
use super::reference::data;

fn message(bytes: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.bin");
    std::fs::write(&path, bytes).unwrap();
    match open(&path) {
        Ok(()) => panic!("a damaged file was taken"),
        Err(fault) => fault.to_string(),
    }
}

fn open(path: &Path) -> Result<(), Error> {
    let options = Options::default();
    Legacy::open(path, &options)?.plan(&options).map(drop)
}

#[test]
fn wherever_a_file_ends_it_is_refused() {
    let file = llama(GGJT, Some(3), 64, plain).bytes;
    for end in (8..2000).chain((2000..file.len()).step_by(997)) {
        let message = message(&file[..end]);
        // Between two tensors nothing is cut off, but something is missing.
        let words = ["cut off or damaged", "incomplete", "does not make up"];
        assert!(words.iter().any(|word| message.contains(word)), "{end}: {message}");
    }
    let message = message(&file[..file.len() - 1]);
    assert!(message.contains("of which the file has 255"), "{message}");
}

#[test]
fn false_numbers_are_named() {
    let number = |at: usize, value: u32| {
        let mut bytes = llama(GGJT, Some(3), 64, plain).bytes;
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        message(&bytes)
    };
    for (at, value, expected) in [
        (4, 4, "GGJT has versions 1 to 3, not 4"),
        (8, u32::MAX, "the field Vocabulary is 4294967295"),
        (8, 1 << 20, "token 5 of 4194304 bytes"),
        (12, 63, "a width of 63 does not divide into 4 heads"),
        (20, 0, "the field Heads is 0"),
        (32, 19, "the field FileType is 19"),
        (36, u32::MAX, "token 0 of 4294967295 bytes"),
    ] {
        let message = number(at, value);
        assert!(message.contains(expected), "{at}: {message}");
    }
}

#[test]
fn other_files_are_told_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let adapter = File::new(0x6767_6c61, Some(1), &[8, 16]).write(dir.path(), "adapter.bin");
    assert!(is_legacy(&adapter).unwrap());
    assert!(open(&adapter).unwrap_err().to_string().contains("LoRA adapter"));

    let gguf = dir.path().join("model.gguf");
    std::fs::write(&gguf, b"GGUF\x03\0\0\0").unwrap();
    assert!(!is_legacy(&gguf).unwrap());
    assert!(!is_legacy(dir.path()).unwrap());

    let names = |name: &str| Options { architecture: Some(name.into()), ..Options::default() };
    let llama = llama(GGML, None, 64, plain).write(dir.path(), "llama.bin");
    let unknown = Legacy::open(&llama, &names("rwkv")).err().unwrap().to_string();
    assert!(unknown.contains("known are llama, falcon, gpt2"), "{unknown}");
    let wrong = Legacy::open(&llama, &names("gptj")).err().unwrap().to_string();
    assert!(wrong.contains("read as gptj, byte"), "{wrong}");
}

#[test]
fn tensors_must_make_up_a_model() {
    let mut file = llama(GGJT, Some(3), 64, plain);
    file.floats("layers.1.attention_norm.weight", &[64]);
    assert!(message(&file.bytes).contains("does not make up a llama model"));
    let mut file = llama(GGJT, Some(3), 64, plain);
    file.floats("layers.0.attention.rotary.weight", &[64]);
    assert!(message(&file.bytes).contains("is of no llama model"));
    let mut file = llama(GGJT, Some(3), 64, plain);
    file.tensor("norm.weight", 0, &[64], &[0; 256]);
    assert!(!message(&file.bytes).is_empty());
}

#[test]
fn missing_and_foreign_parts_are_named() {
    let Some(data) = data() else { return };
    let dir = tempfile::tempdir().unwrap();
    let name = "ggml-f16-nano-2part.bin";
    let copy = |from: &str, to: &str| {
        std::fs::copy(data.join("llama").join(from), dir.path().join(to)).unwrap();
    };
    copy(name, name);
    let path = dir.path().join(name);
    let missing = open(&path).unwrap_err().to_string();
    assert!(missing.contains("is part 1 of 2, and"), "{missing}");
    copy("ggml-f16-nano.bin", &format!("{name}.1"));
    let foreign = open(&path).unwrap_err().to_string();
    assert!(foreign.contains("is no part of the same model"), "{foreign}");
}

#[test]
fn weights_that_are_no_numbers_are_found() {
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
    let fault = convert(&path, &Options::default()).err().unwrap().to_string();
    assert!(fault.contains("blk.0.attn_q.weight") && fault.contains("NaN"), "{fault}");
}

/// Whatever bytes are changed: a model comes out or a sentence, and nothing else. Headers and
/// records get most of the changes.
#[test]
fn changed_bytes_never_break_the_reader() {
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
                // The magic stays: other files are not read at all.
                let at = 4 + if random(4) > 0 { random(160) } else { random(bytes.len() - 4) };
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random(256) as u8][random(6)];
            }
            std::fs::write(&path, &bytes).unwrap();
            if let Err(fault) = open(&path) {
                assert!(!fault.to_string().is_empty());
            }
        }
    }
}
