//! Keys and values of the tokens of a sequence.

use gguf::TensorType;
use half::f16;
use half::slice::HalfFloatSliceExt;
use pulp::bytemuck::cast_slice;

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
    fn of_heads(self, len: usize) -> Self {
        match self {
            Self::Q8_0 if !len.is_multiple_of(32) => Self::F16,
            ty => ty,
        }
    }

    /// Bytes of so many numbers.
    fn byte_len(self, numbers: u64) -> u64 {
        match self {
            Self::F32 => numbers.saturating_mul(4),
            Self::F16 => numbers.saturating_mul(2),
            Self::Q8_0 => numbers.div_ceil(32).saturating_mul(34),
        }
    }
}

/// What a cache is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Rows that are read as columns.
    Keys,
    /// Rows that are read as they are.
    Values,
}

/// How a cache is laid out: for rows of `heads` times `len` numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub ty: CacheType,
    pub heads: usize,
    pub len: usize,
    pub role: Role,
}

impl Layout {
    /// Whether rows stand side by side as columns, [`BLOCK`] of them in a block; those of 8 bits never do.
    fn columns(self) -> bool {
        self.role == Role::Keys && self.ty.of_heads(self.len) != CacheType::Q8_0
    }

    /// Rows that there is memory for where so many are kept.
    fn whole(self, rows: usize) -> usize {
        if self.columns() { rows.checked_next_multiple_of(BLOCK).unwrap_or(rows) } else { rows }
    }

    /// Bytes of a cache with so many rows.
    pub fn byte_len(self, rows: usize) -> u64 {
        let numbers = (self.len as u64).saturating_mul(self.whole(rows) as u64);
        self.ty.of_heads(self.len).byte_len(numbers).saturating_mul(self.heads as u64)
    }
}

/// Positions of a block of keys, which are looked at together. Blocks begin at multiples of it, so that sums
/// are in the same order however tokens are cut into batches.
pub(crate) const BLOCK: usize = 64;

/// Rows of heads, one row for each position: the keys, or the values, of a sequence.
#[derive(Clone)]
pub(crate) struct Cache {
    layout: Layout,
    rows: usize,
    /// Rows that it is to hold at most.
    most: usize,
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
    /// Empty, for `most` rows, which take [`Layout::byte_len`] bytes.
    pub fn new(layout: Layout, most: usize) -> Self {
        let heads = layout.heads;
        let data = match layout.ty.of_heads(layout.len) {
            CacheType::F32 => Data::F32(vec![Vec::new(); heads]),
            CacheType::F16 => Data::F16(vec![Vec::new(); heads]),
            CacheType::Q8_0 => Data::Q8_0(vec![Vec::new(); heads]),
        };
        Self { layout, rows: 0, most, data }
    }

    /// Bytes that it has memory for.
    #[cfg(test)]
    pub fn allocated(&self) -> u64 {
        let bytes = match &self.data {
            Data::F32(heads) => heads.iter().map(|head| 4 * head.capacity()).sum::<usize>(),
            Data::F16(heads) => heads.iter().map(|head| 2 * head.capacity()).sum(),
            Data::Q8_0(heads) => heads.iter().map(Vec::capacity).sum(),
        };
        bytes as u64
    }

    /// Makes room for one more row: twice as much as there was, but no more than for all.
    fn make_room(&mut self) {
        let Layout { len, .. } = self.layout;
        let needed = self.layout.whole(self.rows + 1);
        let wanted = self.layout.whole((2 * needed).min(self.most)).max(needed);
        match &mut self.data {
            Data::F32(heads) => {
                heads.iter_mut().for_each(|head| grow(head, needed * len, wanted * len))
            }
            Data::F16(heads) => {
                heads.iter_mut().for_each(|head| grow(head, needed * len, wanted * len))
            }
            Data::Q8_0(heads) => {
                let bytes = |rows: usize| rows * (len / 32 * 34);
                heads.iter_mut().for_each(|head| grow(head, bytes(needed), bytes(wanted)));
            }
        }
    }

    /// Positions that it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Adds the row of the next position.
    pub fn push(&mut self, row: &[f32]) {
        self.make_room();
        let Layout { len, heads, .. } = self.layout;
        let columns = self.layout.columns().then_some(self.rows);
        for (head, part) in row.chunks_exact(len).enumerate().take(heads) {
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
                    heads[head].resize(start + len / 32 * 34, 0);
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
        let (len, rows) = (self.layout.len, self.layout.whole(self.rows));
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
        if self.layout.columns() {
            return self.read(head, first, out);
        }
        let len = self.layout.len;
        let mut rows = vec![0.0; count * len];
        self.read(head, first, &mut rows);
        turn(rows.chunks_exact(len), out);
    }

    /// Rows of a head from a position on, as many as `out` holds.
    pub fn read(&self, head: usize, first: usize, out: &mut [f32]) {
        let start = first * self.layout.len;
        let end = start + out.len();
        match &self.data {
            Data::F32(heads) => out.copy_from_slice(&heads[head][start..end]),
            Data::F16(heads) if cfg!(target_endian = "little") => {
                // In the order of a file, so that they are decoded as those of files are.
                decode(
                    TensorType::F16,
                    cast_slice(heads[head][start..end].reinterpret_cast()),
                    out,
                );
            }
            Data::F16(heads) => heads[head][start..end].convert_to_f32_slice(out),
            Data::Q8_0(heads) => {
                decode(TensorType::Q8_0, &heads[head][start / 32 * 34..end / 32 * 34], out);
            }
        }
    }
}

/// Decodes as many blocks as `out` holds.
fn decode(ty: TensorType, blocks: &[u8], out: &mut [f32]) {
    let decoded = gguf_quant::decode_row(ty, blocks, out);
    debug_assert!(decoded.is_ok(), "{decoded:?}");
}

/// Makes room for `wanted` elements, if there is none for `needed`.
fn grow<T>(data: &mut Vec<T>, needed: usize, wanted: usize) {
    if data.capacity() < needed {
        data.reserve_exact(wanted - data.len());
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
            let cache = |role| Cache::new(Layout { ty, heads, len, role }, 3 * BLOCK);
            let (mut keys, mut values) = (cache(Role::Keys), cache(Role::Values));
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

    #[test]
    fn a_full_cache_takes_what_its_layout_says() {
        for ty in [CacheType::F32, CacheType::F16, CacheType::Q8_0] {
            // Some of one block and a part, some that are no whole number of blocks of 8 bits.
            for (most, len) in [(1, 32), (64, 32), (100, 32), (200, 48), (129, 64)] {
                for role in [Role::Keys, Role::Values] {
                    let layout = Layout { ty, heads: 3, len, role };
                    let mut cache = Cache::new(layout, most);
                    assert_eq!(cache.allocated(), 0);
                    for row in 0..most {
                        cache.push(&vec![row as f32; 3 * len]);
                        assert!(
                            cache.allocated() <= layout.byte_len(most),
                            "{layout:?}, {row} of {most}"
                        );
                    }
                    assert_eq!(cache.allocated(), layout.byte_len(most), "{layout:?}, {most}");
                    assert_eq!(
                        cache.clone().allocated(),
                        layout.byte_len(most),
                        "{layout:?}, {most}"
                    );
                }
            }
        }
    }
}
