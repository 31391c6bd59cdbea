//! Keys and values of the tokens of a sequence.

use gguf::TensorType;
use half::f16;
use half::slice::HalfFloatSliceExt;

/// How caches store numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheType {
    /// As they are.
    F32,
    /// Rounded to half precision.
    #[default]
    F16,
    /// Rounded to 8 bits with a scale for 32 numbers.
    Q8_0,
}

impl CacheType {
    /// How heads of so many numbers are stored: one that is no whole number of blocks stays in half
    /// precision.
    pub(crate) fn of_heads(self, len: usize) -> Self {
        match self {
            Self::Q8_0 if !len.is_multiple_of(32) => Self::F16,
            ty => ty,
        }
    }

    /// Bytes of so many numbers.
    pub fn byte_len(self, numbers: u64) -> u64 {
        match self {
            Self::F32 => numbers.saturating_mul(4),
            Self::F16 => numbers.saturating_mul(2),
            Self::Q8_0 => numbers.div_ceil(32).saturating_mul(34),
        }
    }
}

/// Positions of a block of keys, which are looked at together. Blocks begin at multiples of it, so that sums
/// are in the same order however tokens are cut into batches.
pub(crate) const BLOCK: usize = 64;

/// Rows of heads, one row for each position: the keys, or the values, of a sequence.
#[derive(Clone)]
pub(crate) struct Cache {
    heads: usize,
    len: usize,
    rows: usize,
    /// Whether rows stand side by side as columns, [`BLOCK`] of them in a block; those of 8 bits never do.
    columns: bool,
    data: Data,
}

/// By head, then by position.
#[derive(Clone)]
enum Data {
    F32(Vec<Vec<f32>>),
    F16(Vec<Vec<f16>>),
    Q8_0(Vec<Vec<u8>>),
}

impl Cache {
    /// Empty, for keys: rows of `heads` times `len` numbers, which are read as columns.
    pub fn of_keys(ty: CacheType, heads: usize, len: usize) -> Self {
        let cache = Self::of_values(ty, heads, len);
        Self { columns: !matches!(cache.data, Data::Q8_0(_)), ..cache }
    }

    /// Empty, for values: rows of `heads` times `len` numbers.
    pub fn of_values(ty: CacheType, heads: usize, len: usize) -> Self {
        let data = match ty.of_heads(len) {
            CacheType::F32 => Data::F32(vec![Vec::new(); heads]),
            CacheType::F16 => Data::F16(vec![Vec::new(); heads]),
            CacheType::Q8_0 => Data::Q8_0(vec![Vec::new(); heads]),
        };
        Self { heads, len, rows: 0, columns: false, data }
    }

    /// Positions that it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Adds the row of the next position.
    pub fn push(&mut self, row: &[f32]) {
        let columns = self.columns.then_some(self.rows);
        for (head, part) in row.chunks_exact(self.len).enumerate().take(self.heads) {
            match (&mut self.data, columns) {
                (Data::F32(heads), Some(at)) => put(&mut heads[head], at, part, 0.0, |x| x),
                (Data::F16(heads), Some(at)) => {
                    put(&mut heads[head], at, part, f16::ZERO, f16::from_f32);
                }
                (Data::F32(heads), None) => heads[head].extend_from_slice(part),
                (Data::F16(heads), None) => {
                    heads[head].extend(part.iter().map(|x| f16::from_f32(*x)));
                }
                (Data::Q8_0(heads), _) => {
                    let start = heads[head].len();
                    heads[head].resize(start + self.len / 32 * 34, 0);
                    let encoded = gguf_quant::encode_row(
                        TensorType::Q8_0,
                        part,
                        None,
                        &mut heads[head][start..],
                    );
                    debug_assert!(encoded.is_ok(), "{encoded:?}");
                }
            }
        }
        self.rows += 1;
    }

    /// Forgets the positions from `rows` on.
    pub fn truncate(&mut self, rows: usize) {
        self.rows = self.rows.min(rows);
        let whole = if self.columns { BLOCK } else { 1 };
        let (len, rows) = (self.len, self.rows.next_multiple_of(whole));
        match &mut self.data {
            Data::F32(heads) => heads.iter_mut().for_each(|head| head.truncate(rows * len)),
            Data::F16(heads) => heads.iter_mut().for_each(|head| head.truncate(rows * len)),
            Data::Q8_0(heads) => {
                heads.iter_mut().for_each(|head| head.truncate(rows * len / 32 * 34))
            }
        }
    }

    /// Rows of a head from a position on, as many as `out` holds, as columns: of [`BLOCK`] numbers the
    /// first ones, the others are anything. `first` is where a block begins.
    pub fn read_columns(&self, head: usize, first: usize, count: usize, out: &mut [f32]) {
        if self.columns {
            return self.read(head, first, out);
        }
        let mut rows = vec![0.0; count * self.len];
        self.read(head, first, &mut rows);
        turn(rows.chunks_exact(self.len), out);
    }

    /// Rows of a head from a position on, as many as `out` holds.
    pub fn read(&self, head: usize, first: usize, out: &mut [f32]) {
        let start = first * self.len;
        let end = start + out.len();
        match &self.data {
            Data::F32(heads) => out.copy_from_slice(&heads[head][start..end]),
            Data::F16(heads) => heads[head][start..end].convert_to_f32_slice(out),
            Data::Q8_0(heads) => {
                let bytes = &heads[head][start / 32 * 34..end / 32 * 34];
                let decoded = gguf_quant::decode_row(TensorType::Q8_0, bytes, out);
                debug_assert!(decoded.is_ok(), "{decoded:?}");
            }
        }
    }
}

/// Puts a row as a column into the last block, or begins one.
fn put<T: Copy>(data: &mut Vec<T>, at: usize, row: &[f32], zero: T, number: impl Fn(f32) -> T) {
    let block = at / BLOCK * BLOCK * row.len();
    if at.is_multiple_of(BLOCK) {
        data.resize(block + BLOCK * row.len(), zero);
    }
    let lines = data[block..].chunks_exact_mut(BLOCK);
    lines.zip(row).for_each(|(line, x)| line[at % BLOCK] = number(*x));
}

/// Rows as the first columns of a block.
pub(crate) fn turn<'r>(rows: impl Iterator<Item = &'r [f32]>, out: &mut [f32]) {
    for (column, row) in rows.enumerate() {
        out.chunks_exact_mut(BLOCK).zip(row).for_each(|(line, x)| line[column] = *x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_the_rows_that_were_pushed() {
        let (heads, len) = (2, 32);
        let number = |row: usize, i: usize| ((row * 37 + i * 11) % 97) as f32 - 48.0;
        for ty in [CacheType::F32, CacheType::F16, CacheType::Q8_0] {
            let mut keys = Cache::of_keys(ty, heads, len);
            let mut values = Cache::of_values(ty, heads, len);
            let push = |cache: &mut Cache, from: usize, to: usize| {
                for row in from..to {
                    cache.push(&(0..heads * len).map(|i| number(row, i)).collect::<Vec<_>>());
                }
            };
            for cache in [&mut keys, &mut values] {
                push(cache, 0, 2 * BLOCK + 5);
                // Into the middle of a block, to its end, and on from there.
                for kept in [BLOCK + 3, BLOCK, 7] {
                    cache.truncate(kept);
                    push(cache, kept, 2 * BLOCK + 9);
                }
                assert_eq!(cache.rows(), 2 * BLOCK + 9);
            }
            for (first, count) in [(0, BLOCK), (BLOCK, BLOCK), (2 * BLOCK, 9)] {
                let (mut columns, mut rows) = (vec![0.0; BLOCK * len], vec![0.0; count * len]);
                keys.read_columns(1, first, count, &mut columns);
                values.read(1, first, &mut rows);
                for (k, row) in rows.chunks_exact(len).enumerate() {
                    for (i, x) in row.iter().enumerate() {
                        assert_eq!(columns[i * BLOCK + k], *x, "{ty:?} {first} {k} {i}");
                        let off = if ty == CacheType::Q8_0 { 0.3 } else { 0.0 };
                        assert!((x - number(first + k, len + i)).abs() <= off, "{x}");
                    }
                }
            }
        }
    }
}
