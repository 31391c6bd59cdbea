//! Every instruction set of this processor produces the same bytes and the same floats.

use gguf::TensorType;
use gguf_quant::{Codec, InstructionSet, codec};

/// BlockParams in -1..1.
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> f32 {
        // Multiplier and increment of Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / 8_388_608.0 - 1.0
    }
}

/// Rows that fill vectors and rows that do not, with ordinary numbers and edge cases.
fn rows() -> Vec<(&'static str, Vec<f32>)> {
    let mut random = Generator(3);
    let mut row = |blocks: usize, f: &dyn Fn(f32, f32, usize) -> f32| -> Vec<f32> {
        (0..256 * blocks).map(|i| f(random.next(), random.next(), i)).collect()
    };
    vec![
        ("bell", row(1, &|a, b, _| a + b)),
        ("many blocks", row(19, &|a, b, _| a * b)),
        ("one side", row(3, &|a, b, _| -1.0 - a * b)),
        ("zeros", row(2, &|_, _, i| if i.is_multiple_of(2) { 0.0 } else { -0.0 })),
        ("constant groups", row(2, &|_, _, i| (i / 32) as f32 - 5.0)),
        ("groups of all sizes", row(2, &|a, _, i| a * 2f32.powi((i / 16) as i32 * 7 - 110))),
        ("subnormals", row(2, &|a, _, _| a * 1e-41)),
        ("outliers", row(2, &|a, b, i| if i % 37 == 0 { 1e9 * a } else { b })),
        ("ties", row(2, &|a, _, _| (a * 4.0).round())),
        ("largest", row(2, &|a, _, i| if i % 3 == 0 { a } else { f32::MAX * a.signum() })),
    ]
}

fn weights(len: usize) -> Vec<Option<Vec<f32>>> {
    let mut random = Generator(4);
    let mut columns = |f: &dyn Fn(f32, usize) -> f32| -> Option<Vec<f32>> {
        Some((0..len).map(|i| f(random.next(), i)).collect())
    };
    vec![
        None,
        columns(&|a, _| a * a + 0.01),
        columns(&|_, i| if i % 5 == 0 { 1e20 } else { 1e-20 }),
        columns(&|_, i| if i % 64 < 32 { 0.0 } else { 1.0 }),
        columns(&|a, _| a),
        columns(&|_, _| f32::MAX),
    ]
}

fn encode(codec: &Codec, set: InstructionSet, row: &[f32], weights: Option<&[f32]>) -> Vec<u8> {
    let len = codec.tensor_type().byte_len(&[row.len() as u64]).unwrap();
    let mut bytes = vec![0; len as usize];
    codec.encode_row_with(set, row, weights, &mut bytes).unwrap();
    bytes
}

fn decode(codec: &Codec, set: InstructionSet, bytes: &[u8], len: usize) -> Vec<u32> {
    let mut out = vec![0.0; len];
    codec.decode_row_with(set, bytes, &mut out).unwrap();
    out.into_iter().map(f32::to_bits).collect()
}

#[test]
fn instruction_sets_agree() {
    let sets = InstructionSet::available();
    let (scalar, others) = sets.split_first().unwrap();
    for ty in TensorType::all().filter(|ty| ty.is_quantized()) {
        let Some(codec) = codec(ty) else { continue };
        for (name, row) in rows() {
            for (kind, weights) in weights(row.len()).iter().enumerate() {
                if weights.is_none() && codec.requires_importance() {
                    continue;
                }
                let expected = encode(codec, *scalar, &row, weights.as_deref());
                let floats = decode(codec, *scalar, &expected, row.len());
                for &set in others {
                    let found = encode(codec, set, &row, weights.as_deref());
                    let at = found.iter().zip(&expected).position(|(a, b)| a != b);
                    assert_eq!(at, None, "{ty}, {name}, weights {kind}, {set}: first byte");
                    let found = decode(codec, set, &expected, row.len());
                    assert!(found == floats, "{ty}, {name}, weights {kind}, {set}: floats");
                }
            }
        }
    }
}

#[test]
fn batched_rows_encode_like_single_rows() {
    // More rows than a vector has lanes, with a length that is not a multiple of the vector width.
    let (len, count) = (768, 23);
    let mut random = Generator(5);
    let rows: Vec<f32> = (0..len * count).map(|i| random.next() * (1 + i / len) as f32).collect();
    let weights: Vec<f32> = (0..len).map(|_| random.next() + 1.1).collect();
    let block_types = TensorType::all().filter(|ty| ty.is_quantized());
    for codec in block_types.filter_map(codec) {
        for set in InstructionSet::available() {
            let apart = rows.chunks(len).map(|row| encode(codec, set, row, Some(&weights)));
            let apart: Vec<u8> = apart.flatten().collect();
            let mut together = vec![0; apart.len()];
            codec.encode_rows_with(set, &rows, Some(&weights), &mut together).unwrap();
            assert!(apart == together, "{} {set}", codec.tensor_type());
        }
    }
}
