//! Affine quantization: unsigned integers with a scale per group of columns, `w = scale * (q -
//! zero)` or `w = scale * q + bias`.
//!
//! GGUF types with the same grid store such weights losslessly, at fewer bits than floats do.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use gguf::TensorType;
use half::f16;

use super::put_floats;
use crate::rows::Rows;

/// A matrix with affine quantization.
pub(super) trait Affine: Send + Sync {
    /// Returns the number of rows and columns.
    fn shape(&self) -> (u64, u64);

    /// Returns the number of bits of `q`, at most 8.
    fn bits(&self) -> u32;

    /// Returns the groups of columns that share a scale.
    fn groups(&self) -> &Groups;

    /// Whether rows lie across those of the file, so that reading one costs nearly as much as
    /// several.
    fn is_transposed(&self) -> bool {
        false
    }

    /// Returns scales and offsets of `n` rows from `first` on: row by row, group by group.
    fn parameters(&self, first: u64, n: u64) -> Result<Parameters, gguf::Error>;

    /// Returns `q` of `n` rows from `first` on, row by row.
    fn quants(&self, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error>;
}

/// Scales and offsets, one each per group of each row.
pub(super) struct Parameters {
    pub scales: Vec<f32>,
    pub offsets: Offsets,
}

/// Offset of each group.
pub(super) enum Offsets {
    /// Zero point: `w = scale * (q - zero)`.
    Zeros(Vec<i16>),
    /// Bias: `w = scale * q + bias`.
    Biases(Vec<f32>),
}

/// Offset of one group.
#[derive(Clone, Copy)]
enum Offset {
    Zero(i16),
    Bias(f32),
}

impl Offsets {
    fn get(&self, at: usize) -> Offset {
        match self {
            Self::Zeros(zeros) => Offset::Zero(zeros[at]),
            Self::Biases(biases) => Offset::Bias(biases[at]),
        }
    }
}

impl Offset {
    /// Returns the weight of `q`.
    fn value(self, scale: f32, q: u8) -> f32 {
        match self {
            Self::Zero(zero) => scale * f32::from(i16::from(q) - zero),
            Self::Bias(bias) => scale * f32::from(q) + bias,
        }
    }

    /// Returns the weight of `q` = 0.
    fn minimum(self, scale: f32) -> f32 {
        match self {
            Self::Zero(zero) => -scale * f32::from(zero),
            Self::Bias(bias) => bias,
        }
    }
}

/// Groups of columns.
pub(super) enum Groups {
    /// Consecutive groups of equal size.
    Even {
        /// Columns per group.
        size: u64,
        /// Groups per row.
        count: u64,
    },
    /// Arbitrary groups: the columns were sorted by importance before grouping (`act-order`).
    Arbitrary {
        /// Group of each column, below `count`.
        of_column: Vec<u32>,
        /// Groups per row.
        count: u64,
    },
}

impl Groups {
    /// Returns groups of equal size; `None` if `columns` is not divisible by `count`.
    pub fn even(columns: u64, count: u64) -> Option<Self> {
        let divides = count > 0 && columns.is_multiple_of(count);
        divides.then(|| Self::Even { size: columns / count, count })
    }

    /// Returns the groups of a list; `None` if an element is not below `count`.
    pub fn from_list(list: &[i128], count: u64) -> Option<Self> {
        let group = |g: &i128| u32::try_from(*g).ok().filter(|g| u64::from(*g) < count);
        let of_column = list.iter().map(group).collect::<Option<Vec<_>>>()?;
        let even = Self::even(of_column.len() as u64, count);
        if let Some(even @ Self::Even { size, .. }) = even
            && of_column.iter().zip(0u64..).all(|(g, column)| u64::from(*g) == column / size)
        {
            return Some(even);
        }
        Some(Self::Arbitrary { of_column, count })
    }

    /// Returns the number of groups per row.
    pub fn count(&self) -> u64 {
        match self {
            Self::Even { count, .. } | Self::Arbitrary { count, .. } => *count,
        }
    }

    fn group_of(&self, column: usize) -> usize {
        match self {
            Self::Even { size, .. } => column / *size as usize,
            Self::Arbitrary { of_column, .. } => of_column[column] as usize,
        }
    }

    /// Whether each block of 32 columns lies within one group.
    fn fit_blocks(&self, columns: u64) -> bool {
        columns.is_multiple_of(32)
            && match self {
                Self::Even { size, .. } => size.is_multiple_of(32),
                Self::Arbitrary { of_column, .. } => {
                    of_column.chunks(32).all(|block| block.iter().all(|g| *g == block[0]))
                }
            }
    }
}

/// Candidate types, the smallest first.
const TYPES: [TensorType; 5] =
    [TensorType::Q4_0, TensorType::Q4_1, TensorType::Q5_0, TensorType::Q5_1, TensorType::Q8_0];

/// Returns the lossless type of each matrix: the same for all whose names differ only in numbers,
/// since these may become one tensor. A matrix without a lossless type is not in the result.
pub(super) fn lossless_types<'m>(
    matrices: impl Iterator<Item = (&'m str, &'m dyn Affine)>,
) -> Result<HashMap<String, TensorType>, gguf::Error> {
    let mut kinds: BTreeMap<String, (Vec<&str>, [bool; TYPES.len()])> = BTreeMap::new();
    for (name, affine) in matrices {
        let kind = name.replace(|c: char| c.is_ascii_digit(), "");
        let (names, fit) = kinds.entry(kind).or_insert_with(|| (Vec::new(), [true; TYPES.len()]));
        names.push(name);
        if fit.contains(&true) {
            let fits = lossless(affine)?;
            fit.iter_mut().zip(fits).for_each(|(all, one)| *all &= one);
        }
    }
    let chosen = kinds.into_values().flat_map(|(names, fit)| {
        let ty = TYPES.into_iter().zip(fit).find(|(_, fits)| *fits).map(|(ty, _)| ty);
        names.into_iter().filter_map(move |name| Some((name.to_owned(), ty?)))
    });
    Ok(chosen.collect())
}

/// Returns which candidate types are lossless for these weights. Reads scales and offsets only.
fn lossless(affine: &dyn Affine) -> Result<[bool; TYPES.len()], gguf::Error> {
    let (rows, columns) = affine.shape();
    if !affine.groups().fit_blocks(columns) || rows == 0 {
        return Ok([false; TYPES.len()]);
    }
    let bits = affine.bits();
    let largest = (1i16 << bits) - 1;
    let mut fits = [true, bits <= 4, true, bits <= 5, true];
    let step = (1 << 20) / affine.groups().count().max(1) + 1;
    for first in (0..rows).step_by(step as usize) {
        let Parameters { scales, offsets } = affine.parameters(first, step.min(rows - first))?;
        for (at, scale) in scales.iter().enumerate() {
            let is_half = |x: f32| f16::from_f32(x).to_f32() == x;
            if !is_half(*scale) {
                return Ok([false; TYPES.len()]);
            }
            let offset = offsets.get(at);
            let within = |low: i16, high: i16| match offset {
                Offset::Zero(zero) => -zero >= low && largest - zero <= high,
                Offset::Bias(_) => false,
            };
            let has_minimum = is_half(offset.minimum(*scale));
            fits[0] &= within(-8, 7);
            fits[1] &= has_minimum;
            fits[2] &= within(-16, 15);
            fits[3] &= has_minimum;
            fits[4] &= within(-128, 127);
        }
        if !fits.contains(&true) {
            break;
        }
    }
    Ok(fits)
}

/// Returns the rows of a matrix in F32, or in a type from [`lossless_types`].
pub(super) fn rows(affine: Arc<dyn Affine>, ty: TensorType) -> Box<dyn Rows> {
    Box::new(EncodedRows { affine, ty })
}

struct EncodedRows {
    affine: Arc<dyn Affine>,
    ty: TensorType,
}

/// Elements per tile of rows that lie across those of the file, as in the pipeline.
const TILE: u64 = 128 * 1024;

impl Rows for EncodedRows {
    fn count(&self) -> u64 {
        self.affine.shape().0
    }

    fn row_bytes(&self) -> u64 {
        self.ty.byte_len(&[self.affine.shape().1]).unwrap_or(0)
    }

    fn tile(&self) -> u64 {
        match self.affine.is_transposed() {
            true => (TILE / self.affine.shape().1).max(1),
            false => 1,
        }
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), gguf::Error> {
        let n = out.len() as u64 / self.row_bytes();
        let Parameters { scales, offsets } = self.affine.parameters(first, n)?;
        let quants = self.affine.quants(first, n)?;
        let groups = self.affine.groups();
        let groups_per_row = groups.count() as usize;
        let columns = self.affine.shape().1 as usize;
        let group_of: Vec<usize> = (0..columns).map(|column| groups.group_of(column)).collect();
        let rows =
            quants.chunks_exact(columns).zip(out.chunks_exact_mut(self.row_bytes() as usize));
        for (row, (quants, out)) in rows.enumerate() {
            let parameters = |group: usize| {
                let at = row * groups_per_row + group;
                (scales[at], offsets.get(at))
            };
            if self.ty == TensorType::F32 {
                let value = |(q, group): (&u8, &usize)| {
                    let (scale, offset) = parameters(*group);
                    offset.value(scale, *q)
                };
                put_floats(out, quants.iter().zip(&group_of).map(value));
                continue;
            }
            let blocks = quants.as_chunks::<32>().0.iter().zip(group_of.iter().step_by(32));
            let block_bytes = out.len() / (columns / 32);
            for ((quants, group), out) in blocks.zip(out.chunks_exact_mut(block_bytes)) {
                let (scale, offset) = parameters(*group);
                put_block(self.ty, scale, offset, quants, out);
            }
        }
        Ok(())
    }
}

/// Writes a block: the scale, the minimum of Q4_1 and Q5_1, the fifth bits of Q5_0 and Q5_1, and
/// the quants; the files of the block types draw the layouts.
fn put_block(ty: TensorType, scale: f32, offset: Offset, quants: &[u8; 32], out: &mut [u8]) {
    let mut block = f16::from_f32(scale).to_le_bytes().to_vec();
    let has_minimum = matches!(ty, TensorType::Q4_1 | TensorType::Q5_1);
    if has_minimum {
        block.extend(f16::from_f32(offset.minimum(scale)).to_le_bytes());
    }
    // Zero point of a type without a minimum.
    let type_zero = match ty {
        TensorType::Q4_0 => 8,
        TensorType::Q5_0 => 16,
        _ => 0,
    };
    let q = match offset {
        Offset::Zero(zero) if !has_minimum => {
            quants.map(|q| (i16::from(q) - zero + type_zero) as u8)
        }
        _ => *quants,
    };
    if ty == TensorType::Q8_0 {
        block.extend(q);
    } else {
        if matches!(ty, TensorType::Q5_0 | TensorType::Q5_1) {
            let high = (0..32).fold(0u32, |bits, i| bits | u32::from(q[i] >> 4 & 1) << i);
            block.extend(high.to_le_bytes());
        }
        block.extend((0..16).map(|i| q[i] & 15 | q[i + 16] << 4));
    }
    out.copy_from_slice(&block[..out.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows of 64 columns in groups of 32.
    struct TestMatrix {
        bits: u32,
        groups: Groups,
        scales: Vec<f32>,
        zeros: Vec<i16>,
    }

    impl TestMatrix {
        fn new(bits: u32, scales: [f32; 4], zeros: [i16; 4]) -> Self {
            let groups = Groups::even(64, 2).unwrap();
            Self { bits, groups, scales: scales.to_vec(), zeros: zeros.to_vec() }
        }
    }

    impl Affine for TestMatrix {
        fn shape(&self) -> (u64, u64) {
            (2, 64)
        }

        fn bits(&self) -> u32 {
            self.bits
        }

        fn groups(&self) -> &Groups {
            &self.groups
        }

        fn parameters(&self, first: u64, n: u64) -> Result<Parameters, gguf::Error> {
            let range = first as usize * 2..(first + n) as usize * 2;
            let (scales, zeros) = (&self.scales[range.clone()], &self.zeros[range]);
            Ok(Parameters { scales: scales.to_vec(), offsets: Offsets::Zeros(zeros.to_vec()) })
        }

        fn quants(&self, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error> {
            let mask = (1u32 << self.bits) - 1;
            let q = |at: u64| (at as u32).wrapping_mul(2_654_435_761) >> 13 & mask;
            Ok((first * 64..(first + n) * 64).map(|at| q(at) as u8).collect())
        }
    }

    fn decoded(affine: &Arc<dyn Affine>, ty: TensorType) -> Vec<f32> {
        let rows = rows(affine.clone(), ty);
        let mut bytes = vec![0; 2 * rows.row_bytes() as usize];
        rows.read(0, &mut bytes).unwrap();
        let mut out = vec![0.0; 128];
        gguf_quant::decode_row(ty, &bytes, &mut out).unwrap();
        out
    }

    #[test]
    fn smallest_lossless_type_is_selected() {
        let scales = [0.5, 0.25, -3.0, 1e-3];
        let halves = scales.map(|x| f16::from_f32(x).to_f32());
        let cases = [
            (4, [0.5, 0.25, -3.0, 0.125], [8; 4], Some(TensorType::Q4_0)),
            (4, halves, [8; 4], Some(TensorType::Q4_0)),
            (4, [0.5, 0.25, -3.0, 0.125], [7, 8, 0, 15], Some(TensorType::Q4_1)),
            (4, halves, [7, 16, 0, 15], Some(TensorType::Q5_0)),
            (3, halves, [1, 2, 8, 4], Some(TensorType::Q4_0)),
            (8, halves, [128; 4], Some(TensorType::Q8_0)),
            (8, halves, [127, 128, 128, 128], None),
            // 1e-3 is not representable in half precision.
            (4, scales, [8; 4], None),
        ];
        for (bits, scales, zeros, expected) in cases {
            let affine: Arc<dyn Affine> = Arc::new(TestMatrix::new(bits, scales, zeros));
            let chosen = lossless_types([("a", &*affine)].into_iter()).unwrap();
            assert_eq!(chosen.get("a").copied(), expected, "{bits} {scales:?} {zeros:?}");
            if let Some(ty) = expected {
                let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits);
                let (packed, floats) = (decoded(&affine, ty), decoded(&affine, TensorType::F32));
                // Zeros may lose their sign if a minimum is added.
                if ty == TensorType::Q4_1 {
                    assert_eq!(packed, floats);
                } else {
                    assert!(bits(packed).eq(bits(floats)), "{ty}");
                }
            }
        }
    }

    #[test]
    fn tensors_of_the_same_kind_share_a_type() {
        let symmetric = TestMatrix::new(4, [1.0; 4], [8; 4]);
        let not = TestMatrix::new(4, [1.0 + 1.0 / 1024.0; 4], [7; 4]);
        let chosen = lossless_types(
            [("l.0.up", &symmetric as &dyn Affine), ("l.1.up", &not), ("l.1.down", &symmetric)]
                .into_iter(),
        )
        .unwrap();
        let types = ["l.0.up", "l.1.up", "l.1.down"].map(|name| chosen[name]);
        assert_eq!(types, [TensorType::Q5_0, TensorType::Q5_0, TensorType::Q4_0]);
    }

    #[test]
    fn consecutive_groups_of_a_list_are_even() {
        let even = Groups::from_list(&[0, 0, 1, 1], 2).unwrap();
        assert!(matches!(even, Groups::Even { size: 2, count: 2 }));
        let sorted = Groups::from_list(&[0, 1, 1, 0], 2).unwrap();
        assert!((0..4).map(|column| sorted.group_of(column)).eq([0, 1, 1, 0]));
        assert!(Groups::from_list(&[0, 2], 2).is_none());
        assert!(Groups::from_list(&[-1, 0], 2).is_none());
    }
}
