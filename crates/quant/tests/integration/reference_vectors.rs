//! Compares every codec with llama.cpp's encoder: bytes with and without importance weights, and
//! the bits of decoded floats. Needs the reference data.

use std::path::{Path, PathBuf};

use gguf::TensorType;
use safetensors::SafeTensors;

/// Every type that llama.cpp encodes, with its file; F32 needs none because its codec copies.
const FILES: [(TensorType, &str); 27] = [
    (TensorType::F16, "f16"),
    (TensorType::BF16, "bf16"),
    (TensorType::Q4_0, "q4_0"),
    (TensorType::Q4_1, "q4_1"),
    (TensorType::Q5_0, "q5_0"),
    (TensorType::Q5_1, "q5_1"),
    (TensorType::Q8_0, "q8_0"),
    (TensorType::Q2_K, "q2_K"),
    (TensorType::Q3_K, "q3_K"),
    (TensorType::Q4_K, "q4_K"),
    (TensorType::Q5_K, "q5_K"),
    (TensorType::Q6_K, "q6_K"),
    (TensorType::IQ1_S, "iq1_s"),
    (TensorType::IQ1_M, "iq1_m"),
    (TensorType::IQ2_XXS, "iq2_xxs"),
    (TensorType::IQ2_XS, "iq2_xs"),
    (TensorType::IQ2_S, "iq2_s"),
    (TensorType::IQ3_XXS, "iq3_xxs"),
    (TensorType::IQ3_S, "iq3_s"),
    (TensorType::IQ4_NL, "iq4_nl"),
    (TensorType::IQ4_XS, "iq4_xs"),
    (TensorType::TQ1_0, "tq1_0"),
    (TensorType::TQ2_0, "tq2_0"),
    (TensorType::MXFP4, "mxfp4"),
    (TensorType::NVFP4, "nvfp4"),
    (TensorType::Q1_0, "q1_0"),
    (TensorType::Q2_0, "q2_0"),
];

#[test]
fn every_codec_is_covered() {
    // Q8_1 and Q8_K exist only in the memory of llama.cpp's runtime; the others are plain numbers.
    let others = [
        TensorType::F32,
        TensorType::Q8_1,
        TensorType::Q8_K,
        TensorType::F64,
        TensorType::I8,
        TensorType::I16,
        TensorType::I32,
        TensorType::I64,
    ];
    let with_codec =
        TensorType::all().filter(|&ty| gguf_quant::codec(ty).is_some()).collect::<Vec<_>>();
    let mut named: Vec<_> = FILES.iter().map(|(ty, _)| *ty).chain(others).collect();
    named.sort();
    assert_eq!(with_codec, named);
    // Removed types have no blocks.
    let with_blocks: Vec<_> = TensorType::all().filter(|ty| ty.block().is_some()).collect();
    assert_eq!(with_codec, with_blocks);
}

fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("GGUF_TEST_DATA");
    if folder.is_none() {
        eprintln!("SKIPPED: set GGUF_TEST_DATA to the folder of reference data");
    }
    Some(Path::new(&folder?).join("quant-vectors"))
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    let path = folder.join(format!("{name}.safetensors"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn floats(file: &SafeTensors, name: &str) -> Vec<f32> {
    let view = file.tensor(name).unwrap();
    view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

#[test]
fn matches_llama_cpp() {
    let Some(folder) = folder() else { return };
    let input = read(&folder, "input");
    let input = SafeTensors::deserialize(&input).unwrap();
    let (rows, weights) = (floats(&input, "input"), floats(&input, "imatrix"));
    let columns = weights.len();
    assert!(!rows.is_empty() && rows.len() % columns == 0);

    let mut wrong = Vec::new();
    for (ty, name) in FILES {
        let vectors = read(&folder, name);
        let vectors = SafeTensors::deserialize(&vectors).unwrap();
        let requires_importance = gguf_quant::codec(ty).unwrap().requires_importance();
        assert_eq!(vectors.tensor("q").is_err(), requires_importance, "{ty}");
        let weighted = if ty.is_quantized() { "q_imatrix" } else { "q" };
        let plain = (!requires_importance).then_some(("q", None));
        for (which, weights) in plain.into_iter().chain([(weighted, Some(weights.as_slice()))]) {
            let bytes = vectors.tensor(which).unwrap();
            let decoded = floats(&vectors, &format!("{which}_dequantized"));
            let row_bytes = ty.byte_len(&[columns as u64]).unwrap() as usize;
            assert_eq!(bytes.data().len(), rows.len() / columns * row_bytes, "{ty} {which}");
            let expected = bytes.data().chunks_exact(row_bytes).zip(decoded.chunks_exact(columns));
            for (r, (row, (bytes, decoded))) in rows.chunks_exact(columns).zip(expected).enumerate()
            {
                let mut encoded = vec![0; row_bytes];
                gguf_quant::encode_row(ty, row, weights, &mut encoded).unwrap();
                if encoded != bytes {
                    let at = encoded.iter().zip(bytes).position(|(a, b)| a != b);
                    wrong.push(format!("{ty} {which} row {r}: encoded bytes, first at {at:?}"));
                }
                let mut floats = vec![0.0; columns];
                gguf_quant::decode_row(ty, bytes, &mut floats).unwrap();
                let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits();
                if !floats.iter().zip(decoded).all(same) {
                    wrong.push(format!("{ty} {which} row {r}: decoded floats"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
