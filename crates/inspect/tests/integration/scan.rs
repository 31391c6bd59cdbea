//! Tensor data that are damaged, in every type and both byte orders.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gguf::endian::swap_blocks;
use gguf::{
    ByteOrder, Finding, Header, RawHeader, Severity, Shape, TensorInfo, TensorType, write_header,
};
use gguf_inspect::scan;
use gguf_quant::{codec, decode_row};
use gguf_store::Model;

/// A file of one block per tensor, and what a scan finds in it.
fn scanned(path: &Path, order: ByteOrder, tensors: &[(TensorType, Vec<u8>)]) -> Vec<Finding> {
    let mut draft = RawHeader { order, ..RawHeader::default() };
    draft.metadata.set("general.alignment", 8u32);
    let mut offset = 0;
    for (i, (tensor_type, block)) in tensors.iter().enumerate() {
        let elements = tensor_type.block().map_or(1, |(elements, _)| elements);
        draft.tensors.push(TensorInfo {
            name: i.to_string(),
            shape: Shape::new(&[elements]).unwrap(),
            tensor_type: *tensor_type,
            offset,
            opaque_len: None,
        });
        offset += block.len().next_multiple_of(8) as u64;
    }
    let header = Header::new(draft).unwrap();
    let mut file = write_header(&header).unwrap();
    let start = file.len();
    for (info, (ty, block)) in header.tensors().iter().zip(tensors) {
        file.resize(start + info.offset as usize, 0);
        let mut block = block.clone();
        if order == ByteOrder::Big {
            assert!(swap_blocks(*ty, &mut block));
        }
        file.extend(block);
    }
    fs::write(path, file).unwrap();
    let files = Model::open(path).unwrap();
    scan(&files, &()).unwrap()
}

const INTEGERS: [TensorType; 4] =
    [TensorType::I8, TensorType::I16, TensorType::I32, TensorType::I64];

/// Bytes of NaN and infinities: in half-precision and wider floats, and in 8-bit scales.
const PATTERNS: [&[u8]; 9] = [
    &[0x00, 0x7e],
    &[0x00, 0x7c],
    &[0x00, 0xfc],
    &[0, 0, 0xc0, 0x7f],
    &[0, 0, 0x80, 0xff],
    &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f],
    &[0, 0, 0, 0, 0, 0, 0xf0, 0xff],
    &[0xff],
    &[0x7f],
];

/// Blocks of zeros and of ones with each pattern at each place.
fn damaged(ty: TensorType) -> Vec<Vec<u8>> {
    let len = ty.block().unwrap().1 as usize;
    // IQ1_M has a scale in four pieces.
    let mut blocks = vec![vec![0xff; len], vec![0x7f; len]];
    for pattern in PATTERNS.into_iter().filter(|pattern| pattern.len() <= len) {
        for at in 0..=len - pattern.len() {
            for fill in [0x00, 0x11] {
                let mut block = vec![fill; len];
                block[at..at + pattern.len()].copy_from_slice(pattern);
                blocks.push(block);
            }
        }
    }
    blocks
}

#[test]
fn what_does_not_decode_to_numbers_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let types = TensorType::all().filter(|ty| codec(*ty).is_some());
    for ty in types {
        let tensors: Vec<_> = damaged(ty).into_iter().map(|block| (ty, block)).collect();
        let bad: Vec<bool> = tensors
            .iter()
            .map(|(ty, block)| {
                let mut out = vec![0.0; ty.block().unwrap().0 as usize];
                decode_row(*ty, block, &mut out).unwrap();
                out.iter().any(|x| !x.is_finite())
            })
            .collect();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let mut found = BTreeMap::new();
            for finding in scanned(&directory.path().join("m.gguf"), order, &tensors) {
                assert_ne!(finding.code, "data-unread", "{ty}");
                if finding.code == "data-not-finite" {
                    assert_eq!(finding.severity, Severity::Error);
                    assert!(finding.offset.is_some());
                    let i: usize = finding.tensor.unwrap().parse().unwrap();
                    assert!(found.insert(i, finding.message).is_none(), "{ty}: told twice");
                }
            }
            for (i, (bad, (_, block))) in bad.iter().zip(&tensors).enumerate() {
                assert!(!bad || found.contains_key(&i), "{ty} {order:?}: {block:x?} passed");
            }
            assert_eq!(found.is_empty(), INTEGERS.contains(&ty), "{ty} {order:?}");
        }
    }
}

/// The fault is told with its place: the second of three blocks, by its scale.
#[test]
fn a_bad_scale_is_told_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.gguf");
    for (ty, at, bytes, what) in [
        (TensorType::Q4_K, 2, &[0x00, 0x7e][..], "dmin is NaN"),
        (TensorType::Q8_0, 0, &[0x00, 0x7c], "d is inf"),
        (TensorType::MXFP4, 0, &[0xff], "e is NaN"),
        (TensorType::NVFP4, 2, &[0x7f], "d is NaN"),
        (TensorType::NVFP4, 0, &[0xff], "d is NaN"),
        (TensorType::F16, 0, &[0x00, 0xfc], "value is -inf"),
    ] {
        let len = ty.block().unwrap().1 as usize;
        let mut tensors = vec![(ty, vec![0x11; len]); 3];
        tensors[1].1[at..at + bytes.len()].copy_from_slice(bytes);
        let found = scanned(&path, ByteOrder::Little, &tensors);
        let found: Vec<_> = found.iter().filter(|one| one.code == "data-not-finite").collect();
        assert_eq!(found.len(), 1, "{ty}: {found:?}");
        assert_eq!(found[0].message.as_ref(), format!("{what} at element 0"), "{ty}");
        assert_eq!(found[0].tensor.as_deref(), Some("1"), "{ty}");
    }
}

/// Types that nobody can decode are one finding each, not one per tensor.
#[test]
fn what_is_not_looked_at_is_told_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.gguf");
    let removed = TensorType::Q4_2;
    let tensors = vec![
        (removed, vec![1; 8]),
        (TensorType::F32, 1f32.to_le_bytes().to_vec()),
        (removed, vec![1; 8]),
        (TensorType::from_id(99), vec![1; 8]),
    ];
    let found = scanned(&path, ByteOrder::Little, &tensors);
    let told: Vec<_> = found.iter().map(|one| one.message.as_ref()).collect();
    assert_eq!(told, ["the Q4_2 data of 2 tensors is not scanned", "type 99 data is not scanned"]);
    assert_eq!(found[1].tensor.as_deref(), Some("3"));
}
