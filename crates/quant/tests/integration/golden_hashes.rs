//! Pins the bytes of every codec without reference data: hashes of the encoding of a generated
//! tensor, recorded when it matched llama.cpp's encoder (`reference_vectors.rs`).
//!
//! If a hash changes, the bytes changed: run `reference_vectors.rs` with its data before recording
//! a new one.

use gguf::TensorType;
use gguf_quant::{codec, decode_row, encode_row};

const COLUMNS: usize = 512;

/// Type, then hashes of the encoded bytes, of the encoded bytes with importance weights, and of the
/// decoded floats of the former. Types that require importance weights have only the second
/// encoding: their first hash is that of empty data, and the third belongs to the second.
const GOLDEN: &[(TensorType, u64, u64, u64)] = &[
    (TensorType::F32, 0xf21cb0ae042d1fca, 0xf21cb0ae042d1fca, 0xf21cb0ae042d1fca),
    (TensorType::F16, 0xad7b92b07b47a0a3, 0xad7b92b07b47a0a3, 0xc9e885fe57fad7bd),
    (TensorType::Q4_0, 0xf9f5d689d0850e07, 0x028b62d80e4b715d, 0xb34263479f6102ef),
    (TensorType::Q4_1, 0xd92ffd4e84c1d167, 0xdc9ffec6499e33ce, 0x3f49601cc62d090e),
    (TensorType::Q5_0, 0xdc89cf463b329528, 0x714f4277504581da, 0x023c6cba5d197e33),
    (TensorType::Q5_1, 0x1e9f2444b502eae1, 0x24929e298d06d019, 0x0aa10626877c6a84),
    (TensorType::Q8_0, 0x14a00b6151289571, 0x14a00b6151289571, 0x74109d557c22ab4e),
    (TensorType::Q8_1, 0x2009061b77942f3d, 0x2009061b77942f3d, 0x74109d557c22ab4e),
    (TensorType::Q2_K, 0x902522611edb9b94, 0x71d3b56abde4fb19, 0xada8311a1b877ed3),
    (TensorType::Q3_K, 0xf042e3ab024f3711, 0xe360597608e85230, 0xde5e1af4837cc981),
    (TensorType::Q4_K, 0xec050aa26682b7f9, 0x3f3783ca54a48e0d, 0x3a632a6c14e0aaf9),
    (TensorType::Q5_K, 0x94e5cb1e5d825129, 0x4f77ee15fb0d4676, 0x894fe7cda0756f01),
    (TensorType::Q6_K, 0xb8590d489849ef2c, 0xfb881f1097ed9610, 0x6dc7388491763121),
    (TensorType::Q8_K, 0x8e6bd0838079f0bf, 0x8e6bd0838079f0bf, 0x7f73c2a02a6659b0),
    (TensorType::IQ2_XXS, 0xcbf29ce484222325, 0x497dd038edffda94, 0x7ad67d798057807f),
    (TensorType::IQ2_XS, 0xcbf29ce484222325, 0xbee1b85b24b432c3, 0x8cd9c827f905ecb8),
    (TensorType::IQ3_XXS, 0xa0918a8ef17f6b32, 0x7c59aa88219e4820, 0x15fdd047cb19771e),
    (TensorType::IQ1_S, 0xcbf29ce484222325, 0x8611b11de4d46628, 0xaac4b0b7925debd7),
    (TensorType::IQ4_NL, 0xc446a7e7c761d70e, 0x30cd82f4ffb6e3ce, 0x36471d4a9826be8c),
    (TensorType::IQ3_S, 0x17b5d44e992cfcd1, 0xa26934147b5c7aa3, 0xabac5b270317d27b),
    (TensorType::IQ2_S, 0xc5093da1353d24d1, 0xabc2208295719207, 0x939e55289d12b518),
    (TensorType::IQ4_XS, 0xadf5b9b1d0b3f1cb, 0xbac289b226392adc, 0x8728a72d0153e497),
    (TensorType::I8, 0x2924c7a2192b6a42, 0x2924c7a2192b6a42, 0x97e37c7b5c17a441),
    (TensorType::I16, 0xf53b6875454d2aec, 0xf53b6875454d2aec, 0x97e37c7b5c17a441),
    (TensorType::I32, 0x46ce529fc82e549c, 0x46ce529fc82e549c, 0x97e37c7b5c17a441),
    (TensorType::I64, 0x634ae1f96607e90c, 0x634ae1f96607e90c, 0x97e37c7b5c17a441),
    (TensorType::F64, 0xf96b568f3657eeb4, 0xf96b568f3657eeb4, 0xf21cb0ae042d1fca),
    (TensorType::IQ1_M, 0x4aaf0807666ce35b, 0x0a04ffcd182d4620, 0xf4ba1094858aa668),
    (TensorType::BF16, 0x702d0d3531ac63bd, 0x702d0d3531ac63bd, 0x7b6ac1c902fe008d),
    (TensorType::TQ1_0, 0x90e2d75194f85bf4, 0x90e2d75194f85bf4, 0x9bea4bf09f894b39),
    (TensorType::TQ2_0, 0x25b44303f95b56b8, 0x25b44303f95b56b8, 0x9bea4bf09f894b39),
    (TensorType::MXFP4, 0xd9529f3321134f6f, 0xd9529f3321134f6f, 0x500c5767df0259b9),
    (TensorType::NVFP4, 0xc51b8e842652725b, 0xc51b8e842652725b, 0x9eb0ef0c30b3bffc),
    (TensorType::Q1_0, 0xb69b86d522fb40b3, 0xb69b86d522fb40b3, 0x1242bb61a4fc1fa5),
    (TensorType::Q2_0, 0x39b9fc884c3ab7d5, 0x39b9fc884c3ab7d5, 0x403c5b804be29aca),
];

/// Generates multiples of 2^-24 in -0.5..0.5, which need no library function and no rounding.
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> f32 {
        // Multiplier and increment of Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / 16_777_216.0 - 0.5
    }
}

/// Distributions of real tensors: normal, heavy-tailed, one-sided, with outliers, sparse, tiny,
/// zero.
fn rows() -> Vec<Vec<f32>> {
    let mut random = Generator(1);
    let mut row = |f: &dyn Fn(f32, f32, f32, usize) -> f32| -> Vec<f32> {
        let mut next = || random.next();
        (0..COLUMNS).map(|i| f(next(), next(), next(), i)).collect()
    };
    vec![
        row(&|a, b, c, _| (a + b + c) * 0.125),
        row(&|a, b, c, _| a * b * c * 64.0),
        row(&|a, b, _, _| a * b + 0.25),
        row(&|a, b, c, i| if i % 97 == 5 { a * 512.0 } else { b + c }),
        row(&|a, b, c, _| if a > 0.25 { b * c } else { 0.0 }),
        row(&|a, b, c, i| (a + b * c) / (1u64 << (i / 32)) as f32),
        row(&|_, _, _, _| 0.0),
    ]
}

fn weights() -> Vec<f32> {
    let mut random = Generator(2);
    (0..COLUMNS).map(|_| random.next() + 0.5).map(|w| w * w * 3.0 + 0.015625).collect()
}

/// FNV-1a, 64 bits.
fn hash(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[test]
fn hashes_match() {
    let (rows, weights) = (rows(), weights());
    let mut found = Vec::new();
    for ty in TensorType::all().filter(|&ty| codec(ty).is_some()) {
        let (mut plain, mut weighted, mut decoded) = [0xcbf2_9ce4_8422_2325; 3].into();
        let requires_importance = codec(ty).is_some_and(|c| c.requires_importance());
        for row in &rows {
            let row: Vec<f32> = match ty.is_integer() {
                true => row.iter().map(|x| (x * 32.0).clamp(-128.0, 127.0).trunc()).collect(),
                false => row.clone(),
            };
            let mut bytes = vec![0; ty.byte_len(&[COLUMNS as u64]).unwrap() as usize];
            encode_row(ty, &row, Some(&weights), &mut bytes).unwrap();
            weighted = hash(weighted, &bytes);
            if !requires_importance {
                encode_row(ty, &row, None, &mut bytes).unwrap();
                plain = hash(plain, &bytes);
            }
            let mut floats = vec![0.0; COLUMNS];
            decode_row(ty, &bytes, &mut floats).unwrap();
            floats.iter().for_each(|x| decoded = hash(decoded, &x.to_le_bytes()));
        }
        found.push((ty, plain, weighted, decoded));
    }
    let listing: String = found
        .iter()
        .map(|(ty, a, b, c)| format!("    (TensorType::{ty}, {a:#018x}, {b:#018x}, {c:#018x}),\n"))
        .collect();
    assert!(found == GOLDEN, "the codecs now produce\n{listing}");
}
