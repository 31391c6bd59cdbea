//! Tests of every step on small tensors.

use std::sync::Arc;

use super::*;
use crate::tensor::Stored;

fn tensor(shape: &[u64], file: &[u8]) -> Tensor {
    let at = Stored { source: Arc::new(file.to_vec()), offset: 0 };
    Tensor::stored("t", Shape::new(shape).unwrap(), TensorType::I8, at)
}

/// Reads all elements and checks that the result does not depend on how the reads are split.
fn read(tensor: &Tensor) -> Vec<u8> {
    let mut whole = vec![0; tensor.shape.iter().product::<u64>() as usize];
    tensor.read_at(&mut whole, 0).unwrap();
    for piece in 1..whole.len() {
        let mut pieces = vec![0; whole.len()];
        for (i, buffer) in pieces.chunks_mut(piece).enumerate() {
            tensor.read_at(buffer, (i * piece) as u64).unwrap();
        }
        assert_eq!(pieces, whole, "in pieces of {piece}");
    }
    whole
}

fn changed(shape: &[u64], step: Step) -> Result<(Vec<u64>, Vec<u8>), TensorMismatch> {
    let file: Vec<u8> = (0..shape.iter().product::<u64>() as u8).collect();
    let tensor = tensor(shape, &file).changed(step)?;
    Ok((tensor.shape.to_vec(), read(&tensor)))
}

#[test]
fn interleaves_halves_of_each_head() {
    let step = Step::InterleaveHalves { heads: 2 };
    let rows = vec![0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15];
    assert_eq!(changed(&[2, 8], step), Ok((vec![2, 8], rows)));
    let elements = vec![0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15];
    assert_eq!(changed(&[16], step), Ok((vec![16], elements)));
    assert!(changed(&[2, 6], step).unwrap_err().to_string().contains("do not divide"));
}

#[test]
fn regroups_rows_by_kind() {
    // Two groups of two queries, one key and one value.
    let step = Step::Regroup { groups: 2, kinds: [2, 1, 1] };
    assert_eq!(changed(&[8], step), Ok((vec![8], vec![0, 1, 4, 5, 2, 6, 3, 7])));
    let rows = vec![0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15];
    assert_eq!(changed(&[2, 8], step), Ok((vec![2, 8], rows)));
    assert!(changed(&[6], step).unwrap_err().to_string().contains("groups of 3 rows"));
}

#[test]
fn transposes_row_blocks() {
    // After two rows, three blocks of one row for each of two.
    let step = Step::Exchange { groups: 1, start: 2, outer: 2, inner: 3, len: 1 };
    assert_eq!(changed(&[8], step), Ok((vec![8], vec![0, 1, 2, 5, 3, 6, 4, 7])));
    // In each of two groups, pairs are separated and the last row stays.
    let step = Step::Exchange { groups: 2, start: 0, outer: 2, inner: 2, len: 1 };
    assert_eq!(changed(&[10], step), Ok((vec![10], vec![0, 2, 1, 3, 4, 5, 7, 6, 8, 9])));
    let beyond = Step::Exchange { groups: 2, start: 2, outer: 2, inner: 2, len: 1 };
    assert!(changed(&[10], beyond).unwrap_err().to_string().contains("groups of 5 rows"));
}

#[test]
fn transposes_column_blocks() {
    let step = Step::ExchangeColumns { outer: 2, inner: 3, len: 1 };
    let (shape, moved) = changed(&[6, 2], step).unwrap();
    assert_eq!(shape, [6, 2]);
    assert_eq!(moved, [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]);
    let step = Step::ExchangeColumns { outer: 2, inner: 2, len: 2 };
    assert_eq!(changed(&[8, 1], step).unwrap().1, [0, 1, 4, 5, 2, 3, 6, 7]);
    assert!(changed(&[6, 2], step).is_err());
}

#[test]
fn picks_rows_of_each_group() {
    let step = Step::Pick { groups: 2, start: 2, len: 1 };
    assert_eq!(changed(&[8], step), Ok((vec![2], vec![2, 6])));
    assert_eq!(changed(&[2, 8], step), Ok((vec![2, 2], vec![4, 5, 12, 13])));
    assert_eq!(changed(&[1, 4, 2], step), Ok((vec![1, 1, 2], vec![2, 6])));
    let beyond = Step::Pick { groups: 2, start: 3, len: 2 };
    assert!(
        changed(&[8], beyond).unwrap_err().to_string().contains("expected at least 2 from row 3")
    );
}

#[test]
fn inverse_steps_restore_the_tensor() {
    let file: Vec<u8> = (0..48).collect();
    for step in [
        Step::InterleaveHalves { heads: 2 },
        Step::Regroup { groups: 2, kinds: [2, 4, 6] },
        Step::Exchange { groups: 2, start: 1, outer: 2, inner: 5, len: 1 },
        Step::ExchangeColumns { outer: 2, inner: 1, len: 1 },
        Step::Transpose,
        Step::ZeroFirst,
    ] {
        let undone = step.inverse().unwrap();
        assert_eq!(undone.inverse(), Some(step));
        let there_and_back = tensor(&[2, 24], &file)
            .changed(step)
            .and_then(|tensor| tensor.changed(undone))
            .unwrap();
        assert_eq!(read(&there_and_back), file, "{step:?}");
    }
}

#[test]
fn transposes_each_matrix() {
    let turned = vec![0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11];
    assert_eq!(changed(&[3, 2, 2], Step::Transpose), Ok((vec![2, 3, 2], turned)));
    assert!(changed(&[3], Step::Transpose).is_err());
}

#[test]
fn prepends_zeros() {
    let rows = vec![0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7];
    assert_eq!(changed(&[2, 2, 2], Step::ZeroFirst), Ok((vec![2, 2, 3], rows)));
    let (shape, rest) = changed(&[2, 2, 2], Step::WithoutFirst).unwrap();
    assert_eq!((shape, rest), (vec![2, 2, 1], vec![4, 5, 6, 7]));
}

#[test]
fn steps_compose() {
    let file: Vec<u8> = (0..12).collect();
    let [before, shape] = [&[4, 3][..], &[2, 3, 2]].map(|dims| Shape::new(dims).unwrap());
    let twice = tensor(&[3, 4], &file)
        .changed(Step::Pick { groups: 1, start: 0, len: 4 })
        .and_then(|tensor| tensor.changed(Step::Transpose))
        .and_then(|tensor| tensor.changed(Step::Reshape { from: before, to: shape }))
        .and_then(|tensor| tensor.changed(Step::Transpose))
        .unwrap();
    assert_eq!(read(&twice), [0, 6, 1, 3, 9, 4, 7, 2, 8, 10, 5, 11]);
}

#[test]
fn partial_reads_decode_whole_blocks() {
    // Two rows of two blocks: a scale of 2, then 32 numbers.
    let block = |first: u8| [vec![0x00, 0x40], (first..first + 32).collect()].concat();
    let file = [0, 32, 64, 90].map(block).concat();
    let at = Stored { source: Arc::new(file), offset: 0 };
    let blocks = Tensor::stored("t", Shape::new(&[64, 2]).unwrap(), TensorType::Q8_0, at);
    assert!(
        blocks.clone().changed(Step::Transpose).err().unwrap().to_string().contains("in blocks")
    );
    let decoded = blocks.changed(Step::Decode).unwrap();
    let floats = |tensor: &Tensor, first: u64, len: usize| {
        let mut bytes = vec![0; len * 4];
        tensor.read_at(&mut bytes, first * 4).unwrap();
        let floats = bytes.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap()));
        floats.collect::<Vec<_>>()
    };
    assert_eq!(floats(&decoded, 31, 3), [62.0, 64.0, 66.0]);
    assert_eq!(floats(&decoded, 64, 1), [128.0]);
    let turned = decoded.changed(Step::Transpose).unwrap();
    assert_eq!(floats(&turned, 63, 4), [190.0, 64.0, 180.0, 66.0]);
    assert_eq!(turned.rows_per_block(), 32);
}

#[test]
fn functions_compute_in_f32() {
    let file: Vec<u8> = [0.5f32, -1.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let at = Stored { source: Arc::new(file), offset: 0 };
    let tensor = Tensor::stored("t", Shape::new(&[2]).unwrap(), TensorType::F32, at);
    let mapped = tensor.changed(Step::Map(Function::PlusOne)).unwrap();
    let mut out = [0; 4];
    mapped.read_at(&mut out, 4).unwrap();
    assert_eq!(f32::from_le_bytes(out), 0.0);
    mapped.read_at(&mut out, 0).unwrap();
    assert_eq!(f32::from_le_bytes(out), 1.5);
}

#[test]
fn maps_some_rows() {
    let file: Vec<u8> = (0..6u8).flat_map(|x| f32::from(x).to_le_bytes()).collect();
    let at = Stored { source: Arc::new(file), offset: 0 };
    let tensor = Tensor::stored("t", Shape::new(&[2, 3]).unwrap(), TensorType::F32, at);
    let step =
        |start, len| Step::MapRows { groups: 1, start, len, function: Function::Times(10.0) };
    let changed = tensor.clone().changed(step(1, 1)).unwrap();
    let mut out = [0; 16];
    changed.read_at(&mut out, 4).unwrap();
    let floats = out.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap()));
    assert_eq!(floats.collect::<Vec<_>>(), [1.0, 20.0, 30.0, 4.0]);
    let misfit = tensor.changed(step(2, 2)).err().unwrap().to_string();
    assert!(misfit.contains("expected at least 2 from row 2"), "{misfit}");
}

#[test]
fn pads_rows() {
    assert_eq!(changed_floats(3), [1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
    assert_eq!(changed_floats(1), [1.0, 2.0, 3.0, 4.0]);
}

/// Pads two rows of two to `rows` and reads them in two pieces.
fn changed_floats(rows: u64) -> Vec<f32> {
    let file: Vec<u8> = (1..5u8).flat_map(|x| f32::from(x).to_le_bytes()).collect();
    let at = Stored { source: Arc::new(file), offset: 0 };
    let tensor = Tensor::stored("t", Shape::new(&[2, 2]).unwrap(), TensorType::F32, at);
    let padded = tensor.changed(Step::Pad { rows }).unwrap();
    let mut out = vec![0; padded.shape.iter().product::<u64>() as usize * 4];
    let (first, second) = out.split_at_mut(12);
    padded.read_at(first, 0).unwrap();
    padded.read_at(second, 12).unwrap();
    out.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect()
}
