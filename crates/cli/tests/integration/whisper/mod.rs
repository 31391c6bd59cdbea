//! Small untrained Whisper model, and an audio file.

use std::f32::consts::TAU;

use gguf::{Array, Header, RawHeader, Shape, TensorInfo, TensorType, write_header};
use gguf_models::token::{TokenType, char_of};

const EMBEDDING: u64 = 32;
const MELS: u64 = 80;
/// Encoder positions: three seconds of audio.
const FRAMES: u64 = 150;
/// Decoder positions.
const TOKENS: u64 = 40;

/// Returns a GGUF file with deterministic F32 weights.
pub fn model() -> Vec<u8> {
    let mut draft = RawHeader::default();
    let metadata = &mut draft.metadata;
    metadata.set("general.architecture", "whisper");
    for (half, context) in [("encoder", FRAMES), ("decoder", TOKENS)] {
        let sizes = [
            ("context_length", context),
            ("embedding_length", EMBEDDING),
            ("feed_forward_length", EMBEDDING),
            ("block_count", 1),
            ("attention.head_count", 2),
        ];
        for (key, size) in sizes {
            metadata.set(format!("whisper.{half}.{key}"), size as u32);
        }
    }
    metadata.set("whisper.encoder.mels_count", MELS as u32);
    let mut tokens: Vec<String> = (0..=255).map(|byte| char_of(byte).to_string()).collect();
    let special = "endoftext startoftranscript en de translate transcribe startoflm startofprev \
                   nospeech notimestamps";
    tokens.extend(special.split_whitespace().map(|text| format!("<|{text}|>")));
    tokens.extend((0..=FRAMES).map(|step| format!("<|{}.{:02}|>", step / 50, step % 50 * 2)));
    let kind = |id: usize| if id < 256 { TokenType::Normal } else { TokenType::Control };
    let kinds: Vec<i32> = (0..tokens.len()).map(|id| kind(id).id()).collect();
    metadata.set("tokenizer.ggml.model", "gpt2");
    metadata.set("tokenizer.ggml.pre", "gpt-2");
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(&tokens));
    metadata.set("tokenizer.ggml.token_type", Array::from(&kinds[..]));
    metadata.set("tokenizer.ggml.merges", Array::from_strings(["a b"; 0]));
    metadata.set("tokenizer.ggml.eos_token_id", 256u32);

    let mut tensors = vec![
        ("token_embd.weight".to_owned(), vec![EMBEDDING, tokens.len() as u64]),
        ("enc.conv1.weight".to_owned(), vec![3, MELS, EMBEDDING]),
        ("enc.conv1.bias".to_owned(), vec![EMBEDDING]),
        ("enc.conv2.weight".to_owned(), vec![3, EMBEDDING, EMBEDDING]),
        ("enc.conv2.bias".to_owned(), vec![EMBEDDING]),
        ("enc.position_embd.weight".to_owned(), vec![EMBEDDING, FRAMES]),
        ("dec.position_embd.weight".to_owned(), vec![EMBEDDING, TOKENS]),
    ];
    let norm = |name: &str| {
        ["weight", "bias"].map(|part| (format!("{name}.{part}"), vec![EMBEDDING])).to_vec()
    };
    tensors.extend(norm("enc.output_norm"));
    tensors.extend(norm("dec.output_norm"));
    for (block, parts) in [("enc", &["attn"][..]), ("dec", &["attn", "cross_attn"])] {
        for part in parts {
            tensors.extend(norm(&format!("{block}.blk.0.{part}_norm")));
            for matrix in ["q", "k", "v", "o"] {
                let name = format!("{block}.blk.0.{part}_{matrix}");
                tensors.push((format!("{name}.weight"), vec![EMBEDDING, EMBEDDING]));
                // Key projections have no bias.
                if matrix != "k" {
                    tensors.push((format!("{name}.bias"), vec![EMBEDDING]));
                }
            }
        }
        tensors.extend(norm(&format!("{block}.blk.0.ffn_norm")));
        for matrix in ["up", "down"] {
            let name = format!("{block}.blk.0.ffn_{matrix}");
            tensors.push((format!("{name}.weight"), vec![EMBEDDING, EMBEDDING]));
            tensors.push((format!("{name}.bias"), vec![EMBEDDING]));
        }
    }
    let mut values = Vec::new();
    for (name, shape) in tensors {
        let count: u64 = shape.iter().product();
        let seed = name.bytes().fold(7u64, |sum, byte| sum * 31 % 65521 + u64::from(byte));
        let value = |i: u64| ((i * 7919 + seed) % 1009) as f32 / 1009.0 - 0.5;
        values.push((0..count).map(value).collect::<Vec<f32>>());
        draft.tensors.push(TensorInfo {
            name,
            shape: Shape::new(&shape).unwrap(),
            tensor_type: TensorType::F32,
            offset: 0,
            opaque_len: None,
        });
    }
    draft.lay_out().unwrap();
    let offsets: Vec<u64> = draft.tensors.iter().map(|tensor| tensor.offset).collect();
    let mut file = write_header(&Header::new(draft).unwrap()).unwrap();
    let start = file.len();
    for (offset, values) in offsets.iter().zip(values) {
        file.resize(start + *offset as usize, 0);
        file.extend(values.into_iter().flat_map(f32::to_le_bytes));
    }
    file
}

/// Returns a WAV file with a tone.
pub fn sound(seconds: f32) -> Vec<u8> {
    const RATE: u32 = 8000;
    let samples = 0..(RATE as f32 * seconds) as u32;
    let sample = |i: u32| (9000.0 * (TAU * 440.0 * i as f32 / RATE as f32).sin()) as i16;
    let data: Vec<u8> = samples.flat_map(|i| sample(i).to_le_bytes()).collect();
    let mut file = b"RIFF".to_vec();
    file.extend((36 + data.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(RATE.to_le_bytes());
    file.extend((2 * RATE).to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file
}
