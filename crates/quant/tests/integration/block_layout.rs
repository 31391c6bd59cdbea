//! The layout of each type agrees with its decoder.

use gguf::TensorType;
use gguf_quant::{block_layout, codec, decode_row};

/// Deterministic pseudo-random bytes.
fn noise(len: usize, mut state: u64) -> Vec<u8> {
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn types() -> impl Iterator<Item = TensorType> {
    TensorType::all().filter(|ty| codec(*ty).is_some())
}

/// Compares bits, for any bytes: also scales that are NaN, infinite or tiny.
#[test]
fn weights_from_fields_match_the_decoder() {
    let mut count = 0;
    for ty in types() {
        let (len, bytes) = ty.block().unwrap();
        let layout = block_layout(ty).unwrap_or_else(|| panic!("{ty} has no layout"));
        for seed in 1..=40 {
            let block = noise(bytes as usize, seed);
            let mut expected = vec![0.0; len as usize];
            decode_row(ty, &block, &mut expected).unwrap();
            for (w, expected) in expected.into_iter().enumerate() {
                let found = layout.weight(&block, w);
                let same =
                    found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                assert!(same, "{ty} weight {w} of block {seed}: {found} instead of {expected}");
            }
        }
        count += 1;
    }
    assert_eq!(count, 35);
}

/// No bit of a block is missing and none occurs twice.
#[test]
fn every_bit_belongs_to_one_item() {
    for ty in types() {
        let (_, bytes) = ty.block().unwrap();
        let layout = block_layout(ty).unwrap();
        let mut owners = vec![0; 8 * bytes as usize];
        for (field, items) in layout.fields.iter().zip(layout.items(&vec![0; bytes as usize])) {
            assert_eq!(items.len(), field.count, "{ty} {}", field.name);
            for (first, len) in items.iter().flat_map(|item| &item.bits) {
                owners[*first..first + len].iter_mut().for_each(|owners| *owners += 1);
            }
        }
        assert!(owners.iter().all(|owners| *owners == 1), "{ty}: {owners:?}");
    }
}

/// Flipping a bit of a weight's items changes the weight or yields another encoding of the same
/// number; flipping any other bit does not affect it.
#[test]
fn weights_depend_only_on_their_items() {
    for ty in types() {
        let (len, bytes) = ty.block().unwrap();
        let layout = block_layout(ty).unwrap();
        let block = noise(bytes as usize, 7);
        let items = layout.items(&block);
        for w in [0, len as usize / 3, len as usize - 1] {
            let own: Vec<_> =
                layout.items_of_weight(w).into_iter().map(|(f, i)| &items[f][i]).collect();
            let before = layout.weight(&block, w);
            for bit in 0..8 * bytes as usize {
                let is_own = own
                    .iter()
                    .flat_map(|item| &item.bits)
                    .any(|(first, len)| (*first..first + len).contains(&bit));
                if is_own {
                    continue;
                }
                let mut other = block.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                let mut decoded = vec![0.0; len as usize];
                decode_row(ty, &other, &mut decoded).unwrap();
                assert!(
                    decoded[w].to_bits() == before.to_bits() || before.is_nan(),
                    "{ty} weight {w} bit {bit}"
                );
            }
        }
    }
}

#[test]
fn items_decode() {
    // d = 1, dmin = 2, scale 3 and minimum 0 in group 3.
    let mut block = [0; 144];
    block[..9].copy_from_slice(&[0x00, 0x3c, 0x00, 0x40, 1, 0, 0, 3, 1]);
    block[16 + 32 + 7] = 0xc1;
    let layout = block_layout(TensorType::Q4_K).unwrap();
    let items = layout.items(&block);
    let names: Vec<_> = layout.fields.iter().map(|field| field.name).collect();
    assert_eq!(names, ["d", "dmin", "s", "m", "q"]);
    assert_eq!((items[0][0].value, items[1][0].value), (Some(1.0), Some(2.0)));
    assert_eq!((items[2][3].raw, items[2][3].bits.as_slice()), (3, &[(56, 6)][..]));
    assert_eq!(items[2][4].bits, [(96, 4), (38, 2)]);
    assert_eq!(items[4][96 + 7].raw, 0xc);
    assert_eq!(layout.items_of_weight(96 + 7), [(0, 0), (1, 0), (2, 3), (3, 3), (4, 96 + 7)]);
    assert_eq!(layout.weight(&block, 96 + 7), 36.0);
}
