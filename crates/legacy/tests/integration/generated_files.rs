//! Converts generated files, for layouts that no file of the reference data has.

use gguf::TensorType;
use gguf_legacy::{LegacyOptions, Overrides};

use super::builder::{GGJT, GGML, LegacyFile, bytes, llama, plain};
use super::{Converted, convert};

fn converted(file: &LegacyFile, options: &LegacyOptions) -> Converted {
    let dir = tempfile::tempdir().unwrap();
    convert(&file.write(dir.path(), "model.bin"), options).unwrap()
}

fn architecture(name: &str) -> LegacyOptions {
    LegacyOptions { architecture: Some(name.to_owned()), ..LegacyOptions::default() }
}

#[test]
fn kv_heads_follow_from_the_key_projection() {
    let file = llama(GGJT, Some(3), 32, plain);
    let model = converted(&file, &LegacyOptions::default());
    let keys = model.keys();
    assert_eq!(keys.u64("llama.attention.head_count_kv"), Some(2));
    assert_eq!(keys.u64("llama.feed_forward_length"), Some(256));

    let gqa = |gqa| LegacyOptions {
        overrides: Overrides { gqa: Some(gqa), ..Overrides::default() },
        ..LegacyOptions::default()
    };
    let dir = tempfile::tempdir().unwrap();
    let path = file.write(dir.path(), "model.bin");
    assert!(convert(&path, &gqa(2)).is_ok());
    let wrong = convert(&path, &gqa(8));
    assert!(wrong.err().unwrap().to_string().contains("4 heads and 2 KV heads"));
}

#[test]
fn overrides_set_missing_values() {
    let overrides = Overrides {
        context_length: Some(777),
        epsilon: Some(1e-6),
        rope_base: Some(1e6),
        head_count: Some(8),
        gqa: None,
    };
    let file = llama(GGJT, Some(3), 64, plain);
    let model = converted(&file, &LegacyOptions { overrides, ..LegacyOptions::default() });
    let keys = model.keys();
    assert_eq!(keys.u64("llama.context_length"), Some(777));
    assert_eq!(keys.f64("llama.rope.freq_base"), Some(1e6));
    assert_eq!(keys.u64("llama.attention.head_count"), Some(8));
    assert_eq!(keys.u64("llama.attention.head_count_kv"), Some(8));
    assert_eq!(keys.u64("llama.rope.dimension_count"), Some(8));
    // Nothing is assumed; the two notes state the corrected header values.
    assert_eq!(model.notes.len(), 2, "{:?}", model.notes);
}

/// Q4_0 rows in blocks, with scales 1/16, 2/16 and so on, and the same rows in planes.
fn q4_0_rows(dims: [u32; 2]) -> (Vec<u8>, Vec<u8>) {
    let (mut blocks, mut planes) = (Vec::new(), Vec::new());
    for row in 0..dims[1] {
        let count = dims[0] / 32;
        let scale = |i: u32| (((row + i) % 8 + 1) as f32 / 16.0).to_le_bytes();
        let nibbles = |i: u32| -> [u8; 16] {
            std::array::from_fn(|j| (row * 31 + i * 7 + j as u32 * 37) as u8)
        };
        (0..count).for_each(|i| blocks.extend([&scale(i)[..], &nibbles(i)].concat()));
        (0..count).for_each(|i| planes.extend(scale(i)));
        (0..count).for_each(|i| planes.extend(nibbles(i)));
    }
    (blocks, planes)
}

#[test]
fn planar_q4_0_is_detected() {
    let in_blocks = llama(GGML, None, 64, |file, name, dims| {
        file.tensor(name, 2, &dims, &q4_0_rows(dims).0);
    });
    let in_planes = llama(GGML, None, 64, |file, name, dims| {
        file.tensor(name, 2, &dims, &q4_0_rows(dims).1);
    });
    assert_eq!(in_blocks.bytes.len(), in_planes.bytes.len());
    let [blocks, planes] =
        [in_blocks, in_planes].map(|file| converted(&file, &LegacyOptions::default()));
    let tensors = blocks.tensors();
    assert!(tensors == planes.tensors());
    // Multiples of 1/16 are half precision values.
    assert_eq!(tensors[0].tensor_type, TensorType::Q4_0);
    // Adjacent elements share a byte: byte 0 of the first block is 0x00, byte 1 is 37, 0x25.
    assert_eq!(tensors[0].floats()[..4], [-0.5, -0.5, (5.0 - 8.0) / 16.0, (2.0 - 8.0) / 16.0]);
}

#[test]
fn super_blocks_of_64_are_detected() {
    // Q6_K with quants 0 (-32), scales 1 and d = 1.
    let block = [&[0; 48][..], &[1; 4], &[0x00, 0x3c]].concat();
    let file = llama(GGJT, Some(3), 64, |file, name, dims| {
        let blocks = (dims[0] * dims[1] / 64) as usize;
        file.tensor(name, 14, &dims, &block.repeat(blocks));
    });
    let model = converted(&file, &LegacyOptions::default());
    assert_tensor(&model, "token_embd.weight", TensorType::F16, -32.0);
    assert!(
        model.notes.iter().any(|note| note.contains("super-blocks of 64")),
        "{:?}",
        model.notes
    );
}

fn assert_tensor(model: &Converted, name: &str, ty: TensorType, value: f32) {
    let tensors = model.tensors();
    let tensor = tensors.iter().find(|tensor| tensor.name == name).unwrap();
    assert_eq!(tensor.tensor_type, ty, "{name}");
    assert!(tensor.floats().iter().all(|&x| x == value), "{name}");
}

/// A GPT-2 with one layer; `fused` gives the values of the fused Q, K and V.
fn gpt2(fused: impl Fn(usize, usize) -> f32) -> LegacyFile {
    let (width, heads) = (32u32, 4);
    let mut file = LegacyFile::new(GGML, None, &[3, 16, width, heads, 1, 0]);
    file.numbers(&[3]);
    for text in ["a", "b", "ab"] {
        file.token(text.as_bytes(), None);
    }
    file.floats("model/wte", &[width, 3]);
    file.floats("model/wpe", &[width, 16]);
    let rows = |columns: usize| -> Vec<f32> {
        (0..3 * width as usize * columns).map(|i| fused(i / columns, i % columns)).collect()
    };
    let matrix = bytes(&rows(width as usize));
    file.tensor("model/h0/attn/c_attn/w", 0, &[width, 3 * width], &matrix);
    file.tensor("model/h0/attn/c_attn/b", 0, &[3 * width], &bytes(&rows(1)));
    for (name, dims) in [
        ("attn/c_proj/w", &[width, width][..]),
        ("attn/c_proj/b", &[width]),
        ("mlp/c_fc/w", &[width, 4 * width]),
        ("mlp/c_fc/b", &[4 * width]),
        ("mlp/c_proj/w", &[4 * width, width]),
        ("mlp/c_proj/b", &[width]),
        ("ln_1/g", &[width]),
        ("ln_1/b", &[width]),
        ("ln_2/g", &[width]),
        ("ln_2/b", &[width]),
    ] {
        file.floats(&format!("model/h0/{name}"), dims);
    }
    file.floats("model/ln_f/g", &[width]);
    file.floats("model/ln_f/b", &[width]);
    file
}

#[test]
fn starcoder_is_detected_by_repeated_kv_heads() {
    // Rows 0 to 31 are queries, followed by 4 copies of 8 rows of keys, then of values.
    let source = |row: usize| match row {
        0..32 => row,
        32..64 => 32 + row % 8,
        _ => 40 + row % 8,
    };
    let file = gpt2(|row, column| (source(row) * 64 + column) as f32);
    let model = converted(&file, &LegacyOptions::default());
    model.assert_clean();
    let keys = model.keys();
    assert_eq!(keys.architecture(), Some("starcoder"));
    assert_eq!(keys.str("tokenizer.ggml.pre"), Some("starcoder"));
    assert_eq!(keys.u64("starcoder.attention.head_count_kv"), Some(1));
    let tensors = model.tensors();
    for (name, columns) in [("blk.0.attn_qkv.weight", 32), ("blk.0.attn_qkv.bias", 1)] {
        let fused = tensors.iter().find(|tensor| tensor.name == name).unwrap();
        assert_eq!(fused.dims.last(), Some(&48));
        let expected: Vec<f32> =
            (0..48).flat_map(|row| (0..columns).map(move |c| (row * 64 + c) as f32)).collect();
        assert_eq!(fused.floats(), expected, "{name}");
    }
    // `--architecture` takes precedence.
    assert_eq!(converted(&file, &architecture("gpt2")).keys().architecture(), Some("gpt2"));

    let plain = gpt2(|row, column| (row * 64 + column) as f32);
    let model = converted(&plain, &LegacyOptions::default());
    assert_eq!(model.keys().architecture(), Some("gpt2"));
    let dir = tempfile::tempdir().unwrap();
    let wrong = convert(&plain.write(dir.path(), "model.bin"), &architecture("starcoder"));
    assert!(wrong.err().unwrap().to_string().contains("try --architecture gpt2"));
}

#[test]
fn untied_output_is_kept() {
    let mut tied = gpt2(|row, _| row as f32);
    let mut untied = tied.clone();
    let embedding = LegacyFile::default().floats("model/wte", &[32, 3]);
    tied.tensor("model/lm_head", 0, &[32, 3], &bytes(&embedding));
    untied.floats("model/lm_head", &[32, 3]);
    let has_output = |file: &LegacyFile| {
        let model = converted(file, &LegacyOptions::default());
        model.tensors().iter().any(|tensor| tensor.name == "output.weight")
    };
    assert!(!has_output(&tied));
    assert!(has_output(&untied));
}

/// Replit files have scores, and two header layouts.
#[test]
fn both_replit_headers_are_supported() {
    for header in [&[32, 16, 4, 1, 5, 0][..], &[8, 32, 16, 4, 4, 1, 5, 0]] {
        let mut file = LegacyFile::new(GGML, None, header);
        for (id, text) in
            ["<unk>", "<|endoftext|>", "\u{2581}", "a", "\u{2581}a"].iter().enumerate()
        {
            file.token(text.as_bytes(), Some(-(id as f32)));
        }
        file.floats("transformer.wte.weight", &[32, 5]);
        for (name, dims) in [
            ("norm_1", &[32][..]),
            ("attn.Wqkv", &[32, 96]),
            ("attn.out_proj", &[32, 32]),
            ("norm_2", &[32]),
            ("ffn.up_proj", &[32, 128]),
            ("ffn.down_proj", &[128, 32]),
        ] {
            file.floats(&format!("transformer.blocks.0.{name}.weight"), dims);
        }
        file.floats("transformer.norm_f.weight", &[32]);
        let model = converted(&file, &LegacyOptions::default());
        model.assert_clean();
        let keys = model.keys();
        assert_eq!(keys.architecture(), Some("mpt"));
        assert_eq!(keys.f64("mpt.attention.max_alibi_bias"), Some(8.0));
        assert_eq!(keys.str("tokenizer.ggml.model"), Some("t5"));
        let scores = keys.array("tokenizer.ggml.scores").unwrap().to_f64s();
        assert_eq!(scores, Some(vec![0.0, -1.0, -2.0, -3.0, -4.0]));
        assert_eq!(keys.u64("tokenizer.ggml.unknown_token_id"), Some(0));
    }
}

/// bloomz.cpp stored Q4_1 rows in planes: minima, scales, nibbles.
#[test]
fn planar_q4_1_is_detected() {
    let (width, vocabulary) = (64u32, 3);
    let row: Vec<u8> = [
        bytes(&[-1.0, -2.0]), // m of both blocks
        bytes(&[0.5, 0.25]),  // d of both blocks
        vec![0x10; 16],
        vec![0x32; 16],
    ]
    .concat();
    let mut file = LegacyFile::new(GGML, None, &[vocabulary, width, 1, 4, 1, 3]);
    for text in ["<unk>", "<s>", "</s>"] {
        file.token(text.as_bytes(), None);
    }
    file.tensor("tok_embeddings.weight", 3, &[width, vocabulary], &row.repeat(3));
    for name in ["norm", "output_norm", "layers.0.attention_norm", "layers.0.ffn_norm"] {
        file.floats(&format!("{name}.weight"), &[width]);
        file.floats(&format!("{name}.bias"), &[width]);
    }
    for (name, dims) in [
        ("attention.query_key_value", [width, 3 * width]),
        ("attention.wo", [width, width]),
        ("feed_forward.w1", [width, 4 * width]),
        ("feed_forward.w2", [4 * width, width]),
    ] {
        file.floats(&format!("layers.0.{name}.weight"), &dims);
        file.floats(&format!("layers.0.{name}.bias"), &dims[1..]);
    }
    file.tensor("output.weight", 3, &[width, vocabulary], &row.repeat(3));
    let model = converted(&file, &LegacyOptions::default());
    model.assert_clean();
    let tensors = model.tensors();
    assert_eq!(tensors[0].tensor_type, TensorType::Q4_1);
    let floats = tensors[0].floats();
    assert_eq!([floats[0], floats[1], floats[32], floats[33]], [-1.0, -0.5, -1.5, -1.25]);
    // The output matrix equals the embedding.
    assert!(!tensors.iter().any(|tensor| tensor.name == "output.weight"));
    let keys = model.keys();
    let id = |role: &str| keys.u64(&format!("tokenizer.ggml.{role}_token_id"));
    assert_eq!([id("unknown"), id("bos"), id("eos")], [Some(0), Some(1), Some(2)]);
}
