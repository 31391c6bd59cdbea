//! Whole numbers under one scale for each group of columns: `w = scale * (q - zero)`, or
//! `w = scale * q + bias`.
//!
//! GGUF types with the same grid hold such weights without loss, at fewer bits than floats do.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use gguf::TensorType;
use half::f16;

use super::put_floats;
use crate::rows::Rows;

/// A matrix of such numbers.
pub(super) trait Levels: Send + Sync {
    /// Rows and columns.
    fn shape(&self) -> (u64, u64);

    /// `q` is below 2 to this power, which is at most 8.
    fn bits(&self) -> u32;

    /// Which columns have a scale in common.
    fn groups(&self) -> &Groups;

    /// Whether rows lie across those of the file, so that one costs nearly as much as several.
    fn is_transposed(&self) -> bool {
        false
    }

    /// Scales and offsets of `n` rows from `first` on: row by row, group by group.
    fn parameters(&self, first: u64, n: u64) -> Result<Parameters, gguf::Error>;

    /// `q` of `n` rows from `first` on: row by row.
    fn quants(&self, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error>;
}

/// Scales and offsets, one of each for each group of each row.
pub(super) struct Parameters {
    pub scales: Vec<f32>,
    pub offsets: Offsets,
}

/// Where the grid of each group begins.
pub(super) enum Offsets {
    /// The number that stands for 0: `w = scale * (q - zero)`.
    Zeros(Vec<i16>),
    /// The value that 0 stands for: `w = scale * q + bias`.
    Biases(Vec<f32>),
}

/// The offset of one group.
#[derive(Clone, Copy)]
enum Offset {
    Zero(i16),
    Bias(f32),
}

impl Offsets {
    fn of(&self, at: usize) -> Offset {
        match self {
            Self::Zeros(zeros) => Offset::Zero(zeros[at]),
            Self::Biases(biases) => Offset::Bias(biases[at]),
        }
    }
}

impl Offset {
    /// The value of the number `q`.
    fn value(self, scale: f32, q: u8) -> f32 {
        match self {
            Self::Zero(zero) => scale * f32::from(i16::from(q) - zero),
            Self::Bias(bias) => scale * f32::from(q) + bias,
        }
    }

    /// The value of the number 0.
    fn minimum(self, scale: f32) -> f32 {
        match self {
            Self::Zero(zero) => -scale * f32::from(zero),
            Self::Bias(bias) => bias,
        }
    }
}

/// Which group each column belongs to.
pub(super) enum Groups {
    /// So many neighbours each.
    Even {
        /// Columns of a group.
        size: u64,
        /// Groups in a row.
        count: u64,
    },
    /// The group of each column: they were sorted by importance before they were grouped.
    Listed {
        /// One for each column, below `count`.
        of_column: Vec<u32>,
        /// Groups in a row.
        count: u64,
    },
}

impl Groups {
    /// Groups of equal size; `None` if `columns` do not divide so.
    pub fn even(columns: u64, count: u64) -> Option<Self> {
        let divides = count > 0 && columns.is_multiple_of(count);
        divides.then(|| Self::Even { size: columns / count, count })
    }

    /// The groups of a list; `None` if it names others than `count`.
    pub fn listed(list: &[i128], count: u64) -> Option<Self> {
        let group = |g: &i128| u32::try_from(*g).ok().filter(|g| u64::from(*g) < count);
        let of_column = list.iter().map(group).collect::<Option<Vec<_>>>()?;
        let even = Self::even(of_column.len() as u64, count);
        if let Some(even @ Self::Even { size, .. }) = even
            && of_column.iter().zip(0u64..).all(|(g, column)| u64::from(*g) == column / size)
        {
            return Some(even);
        }
        Some(Self::Listed { of_column, count })
    }

    /// Groups in a row.
    pub fn count(&self) -> u64 {
        match self {
            Self::Even { count, .. } | Self::Listed { count, .. } => *count,
        }
    }

    fn of(&self, column: usize) -> usize {
        match self {
            Self::Even { size, .. } => column / *size as usize,
            Self::Listed { of_column, .. } => of_column[column] as usize,
        }
    }

    /// Whether each 32 neighbours, a block of the types in question, are of one group.
    fn fit_blocks(&self, columns: u64) -> bool {
        columns.is_multiple_of(32)
            && match self {
                Self::Even { size, .. } => size.is_multiple_of(32),
                Self::Listed { of_column, .. } => {
                    of_column.chunks(32).all(|block| block.iter().all(|g| *g == block[0]))
                }
            }
    }
}

/// The types in question, the smallest first.
const TYPES: [TensorType; 5] =
    [TensorType::Q4_0, TensorType::Q4_1, TensorType::Q5_0, TensorType::Q5_1, TensorType::Q8_0];

/// The type that holds each matrix: the same for all whose names differ in numbers only, since
/// these may become one tensor. A matrix that none holds is not in the result.
pub(super) fn choose<'m>(
    matrices: impl Iterator<Item = (&'m str, &'m dyn Levels)>,
) -> Result<HashMap<String, TensorType>, gguf::Error> {
    let mut kinds: BTreeMap<String, (Vec<&str>, [bool; TYPES.len()])> = BTreeMap::new();
    for (name, levels) in matrices {
        let kind = name.replace(|c: char| c.is_ascii_digit(), "");
        let (names, fit) = kinds.entry(kind).or_insert_with(|| (Vec::new(), [true; TYPES.len()]));
        names.push(name);
        if fit.contains(&true) {
            let fits = fitting(levels)?;
            fit.iter_mut().zip(fits).for_each(|(all, one)| *all &= one);
        }
    }
    let chosen = kinds.into_values().flat_map(|(names, fit)| {
        let ty = TYPES.into_iter().zip(fit).find(|(_, fits)| *fits).map(|(ty, _)| ty);
        names.into_iter().filter_map(move |name| Some((name.to_owned(), ty?)))
    });
    Ok(chosen.collect())
}

/// Which of the types hold exactly these weights. Looks at scales and offsets only.
fn fitting(levels: &dyn Levels) -> Result<[bool; TYPES.len()], gguf::Error> {
    let (rows, columns) = levels.shape();
    if !levels.groups().fit_blocks(columns) || rows == 0 {
        return Ok([false; TYPES.len()]);
    }
    let bits = levels.bits();
    let largest = (1i16 << bits) - 1;
    let mut fits = [true, bits <= 4, true, bits <= 5, true];
    let step = (1 << 20) / levels.groups().count().max(1) + 1;
    for first in (0..rows).step_by(step as usize) {
        let Parameters { scales, offsets } = levels.parameters(first, step.min(rows - first))?;
        for (at, scale) in scales.iter().enumerate() {
            let is_half = |x: f32| f16::from_f32(x).to_f32() == x;
            if !is_half(*scale) {
                return Ok([false; TYPES.len()]);
            }
            let offset = offsets.of(at);
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

/// The rows of a matrix in F32, or in a type that [`choose`] has found to hold them.
pub(super) fn rows(levels: Arc<dyn Levels>, ty: TensorType) -> Box<dyn Rows> {
    Box::new(Encoded { levels, ty })
}

struct Encoded {
    levels: Arc<dyn Levels>,
    ty: TensorType,
}

/// Elements of a tile of rows that lie across those of the file: what the pipeline asks for.
const TILE: u64 = 128 * 1024;

impl Rows for Encoded {
    fn count(&self) -> u64 {
        self.levels.shape().0
    }

    fn row_bytes(&self) -> u64 {
        self.ty.byte_len(&[self.levels.shape().1]).unwrap_or(0)
    }

    fn tile(&self) -> u64 {
        match self.levels.is_transposed() {
            true => (TILE / self.levels.shape().1).max(1),
            false => 1,
        }
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), gguf::Error> {
        let n = out.len() as u64 / self.row_bytes();
        let Parameters { scales, offsets } = self.levels.parameters(first, n)?;
        let quants = self.levels.quants(first, n)?;
        let groups = self.levels.groups();
        let of_row = groups.count() as usize;
        let columns = self.levels.shape().1 as usize;
        let group_of: Vec<usize> = (0..columns).map(|column| groups.of(column)).collect();
        let rows =
            quants.chunks_exact(columns).zip(out.chunks_exact_mut(self.row_bytes() as usize));
        for (row, (quants, out)) in rows.enumerate() {
            let of_group = |group: usize| {
                let at = row * of_row + group;
                (scales[at], offsets.of(at))
            };
            if self.ty == TensorType::F32 {
                let value = |(q, group): (&u8, &usize)| {
                    let (scale, offset) = of_group(*group);
                    offset.value(scale, *q)
                };
                put_floats(out, quants.iter().zip(&group_of).map(value));
                continue;
            }
            let blocks = quants.as_chunks::<32>().0.iter().zip(group_of.iter().step_by(32));
            let block_bytes = out.len() / (columns / 32);
            for ((quants, group), out) in blocks.zip(out.chunks_exact_mut(block_bytes)) {
                let (scale, offset) = of_group(*group);
                put_block(self.ty, scale, offset, quants, out);
            }
        }
        Ok(())
    }
}

/// Writes a block: the scale, the minimum of Q4_1 and Q5_1, the fifth bits of Q5_0 and Q5_1, and
/// the numbers; see the drawings in the files of the block types.
fn put_block(ty: TensorType, scale: f32, offset: Offset, quants: &[u8; 32], out: &mut [u8]) {
    let mut block = f16::from_f32(scale).to_le_bytes().to_vec();
    let has_minimum = matches!(ty, TensorType::Q4_1 | TensorType::Q5_1);
    if has_minimum {
        block.extend(f16::from_f32(offset.minimum(scale)).to_le_bytes());
    }
    // What a type without minimum adds to the levels: its own zero point.
    let own_zero = match ty {
        TensorType::Q4_0 => 8,
        TensorType::Q5_0 => 16,
        _ => 0,
    };
    let q = match offset {
        Offset::Zero(zero) if !has_minimum => {
            quants.map(|q| (i16::from(q) - zero + own_zero) as u8)
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
    struct Made {
        bits: u32,
        groups: Groups,
        scales: Vec<f32>,
        zeros: Vec<i16>,
    }

    impl Made {
        fn new(bits: u32, scales: [f32; 4], zeros: [i16; 4]) -> Self {
            let groups = Groups::even(64, 2).unwrap();
            Self { bits, groups, scales: scales.to_vec(), zeros: zeros.to_vec() }
        }
    }

    impl Levels for Made {
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

    fn decoded(levels: &Arc<dyn Levels>, ty: TensorType) -> Vec<f32> {
        let rows = rows(levels.clone(), ty);
        let mut bytes = vec![0; 2 * rows.row_bytes() as usize];
        rows.read(0, &mut bytes).unwrap();
        let mut out = vec![0.0; 128];
        gguf_quant::decode_row(ty, &bytes, &mut out).unwrap();
        out
    }

    #[test]
    fn the_smallest_type_that_holds_the_values_is_taken() {
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
            // 1e-3 is not a half-precision number.
            (4, scales, [8; 4], None),
        ];
        for (bits, scales, zeros, expected) in cases {
            let levels: Arc<dyn Levels> = Arc::new(Made::new(bits, scales, zeros));
            let chosen = choose([("a", &*levels)].into_iter()).unwrap();
            assert_eq!(chosen.get("a").copied(), expected, "{bits} {scales:?} {zeros:?}");
            if let Some(ty) = expected {
                let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits);
                let (packed, floats) = (decoded(&levels, ty), decoded(&levels, TensorType::F32));
                // Zeros may lose their sign where a minimum is added.
                if ty == TensorType::Q4_1 {
                    assert_eq!(packed, floats);
                } else {
                    assert!(bits(packed).eq(bits(floats)), "{ty}");
                }
            }
        }
    }

    #[test]
    fn tensors_beside_each_other_have_one_type() {
        let symmetric = Made::new(4, [1.0; 4], [8; 4]);
        let not = Made::new(4, [1.0 + 1.0 / 1024.0; 4], [7; 4]);
        let chosen = choose(
            [("l.0.up", &symmetric as &dyn Levels), ("l.1.up", &not), ("l.1.down", &symmetric)]
                .into_iter(),
        )
        .unwrap();
        let types = ["l.0.up", "l.1.up", "l.1.down"].map(|name| chosen[name]);
        assert_eq!(types, [TensorType::Q5_0, TensorType::Q5_0, TensorType::Q4_0]);
    }

    #[test]
    fn listed_groups_that_are_in_order_are_even() {
        let even = Groups::listed(&[0, 0, 1, 1], 2).unwrap();
        assert!(matches!(even, Groups::Even { size: 2, count: 2 }));
        let sorted = Groups::listed(&[0, 1, 1, 0], 2).unwrap();
        assert!((0..4).map(|column| sorted.of(column)).eq([0, 1, 1, 0]));
        assert!(Groups::listed(&[0, 2], 2).is_none());
        assert!(Groups::listed(&[-1, 0], 2).is_none());
    }
}
