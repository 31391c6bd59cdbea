//! KV cache of a sequence.

use std::collections::TryReserveError;

use gguf::TensorType;
use half::f16;
use half::slice::HalfFloatSliceExt;
use pulp::bytemuck::cast_slice;
use rayon::prelude::*;

use crate::cache_type::CacheType;
use crate::prefetch::prefetch;
use crate::rotation::rotate;

/// Contents of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Keys, which are read as columns.
    Keys,
    /// Values, which are read as rows.
    Values,
}

/// Layout of a cache with rows of `heads` heads of `len` elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub ty: CacheType,
    pub heads: usize,
    pub len: usize,
    pub role: Role,
}

impl Layout {
    /// Whether the cache stores columns, [`BLOCK`] rows per block. Quantized caches store rows.
    fn columns(self) -> bool {
        self.role == Role::Keys && !self.ty.for_heads(self.len).has_blocks()
    }

    /// Returns the number of rows to allocate for `rows`.
    fn allocated_rows(self, rows: usize) -> usize {
        if self.columns() { rows.checked_next_multiple_of(BLOCK).unwrap_or(rows) } else { rows }
    }

    /// Whether the first row is the origin of all rows.
    fn has_origin(self) -> bool {
        self.role == Role::Keys && self.ty.for_heads(self.len).has_blocks()
    }

    /// Returns the number of elements of the origin of a cache with `rows` rows.
    fn origin_len(self, rows: usize) -> usize {
        if self.has_origin() && rows > 0 { self.heads * self.len } else { 0 }
    }

    /// Returns the size in bytes of a cache with `rows` rows, without the origin, which is a row of floats.
    pub fn byte_len(self, rows: usize) -> u64 {
        let elements = (self.len as u64).saturating_mul(self.allocated_rows(rows) as u64);
        self.ty.for_heads(self.len).byte_len(elements).saturating_mul(self.heads as u64)
    }
}

/// Number of rows that attention reads together. Blocks begin at multiples of it, so that the order of sums does not
/// depend on the batches.
pub(crate) const BLOCK: usize = 64;

/// Rows before the window that stay, so that the last tokens can be removed.
const REMOVABLE: usize = 256;

/// Returns the maximum number of rows that a cache keeps, of which tokens attend to the last `window`, if batches append at
/// most `batch` rows.
pub(crate) fn kept_rows(window: usize, batch: usize) -> usize {
    let rows = window.saturating_add(REMOVABLE).saturating_add(batch).saturating_add(BLOCK);
    rows.checked_next_multiple_of(BLOCK).unwrap_or(rows)
}

/// Keys or values of a sequence, one row per position.
#[derive(Clone)]
pub(crate) struct KvCache {
    layout: Layout,
    rows: usize,
    /// Number of rows that tokens attend to, the last ones; `None` for all.
    window: Option<usize>,
    /// First rows that are not kept, a multiple of [`BLOCK`].
    dropped: usize,
    /// Maximum number of rows that are kept, but for larger batches.
    capacity: usize,
    data: Data,
    /// First row of all heads, rotated, of keys in blocks: rows are stored as differences from it. Keys of a head have
    /// much in common, such as a bias, which would take most of the range.
    origin: Vec<f32>,
}

/// Elements by head, then by position.
#[derive(Clone)]
enum Data {
    F32(Vec<Vec<f32>>),
    F16(Vec<Vec<f16>>),
    /// Blocks of a quantized type.
    Blocks(TensorType, Vec<Vec<u8>>),
}

impl KvCache {
    /// Returns an empty cache that keeps at most `capacity` rows, which take [`Layout::byte_len`] bytes. Of more rows, those
    /// before the window are dropped; [`kept_rows`] are enough.
    pub fn new(layout: Layout, capacity: usize, window: Option<usize>) -> Self {
        let heads = layout.heads;
        let data = match layout.ty.for_heads(layout.len) {
            CacheType::F32 => Data::F32(vec![Vec::new(); heads]),
            CacheType::F16 => Data::F16(vec![Vec::new(); heads]),
            ty => Data::Blocks(ty.tensor_type(), vec![Vec::new(); heads]),
        };
        Self { layout, rows: 0, window, dropped: 0, capacity, data, origin: Vec::new() }
    }

    /// Returns an empty cache of the same layout.
    pub fn emptied(&self) -> Self {
        Self::new(self.layout, self.capacity, self.window)
    }

    /// Becomes a copy of a cache of the same layout, in the memory that it has.
    pub fn copy_from(&mut self, other: &Self) {
        (self.rows, self.dropped) = (other.rows, other.dropped);
        match (&mut self.data, &other.data) {
            (Data::F32(heads), Data::F32(other)) => heads.clone_from(other),
            (Data::F16(heads), Data::F16(other)) => heads.clone_from(other),
            (Data::Blocks(_, heads), Data::Blocks(_, other)) => heads.clone_from(other),
            (data, other) => data.clone_from(other),
        }
        self.origin.clone_from(&other.origin);
    }

    /// Returns the allocated bytes, without the origin.
    #[cfg(test)]
    pub fn allocated(&self) -> u64 {
        match &self.data {
            Data::F32(heads) => heads.iter().map(|head| 4 * head.capacity() as u64).sum(),
            Data::F16(heads) => heads.iter().map(|head| 2 * head.capacity() as u64).sum(),
            Data::Blocks(_, heads) => heads.iter().map(Vec::capacity).sum::<usize>() as u64,
        }
    }

    /// Allocates room for more rows, at least doubling the memory up to the capacity. Drops rows that no token from position
    /// `next` on attends to, if there is no room.
    ///
    /// # Errors
    /// If the system does not have the memory.
    pub fn reserve(&mut self, rows: usize, next: usize) -> Result<(), TryReserveError> {
        let Layout { len, .. } = self.layout;
        if let Some(window) = self.window
            && self.kept() + rows > self.capacity
        {
            self.drop_rows(next.saturating_sub(window + REMOVABLE) / BLOCK * BLOCK);
        }
        let needed = self.layout.allocated_rows(self.kept() + rows);
        let target = self.layout.allocated_rows((2 * needed).min(self.capacity)).max(needed);
        let origin_len = self.layout.origin_len(self.rows + rows);
        grow(&mut self.origin, origin_len, origin_len)?;
        match &mut self.data {
            Data::F32(heads) => {
                heads.iter_mut().try_for_each(|head| grow(head, needed * len, target * len))
            }
            Data::F16(heads) => {
                heads.iter_mut().try_for_each(|head| grow(head, needed * len, target * len))
            }
            Data::Blocks(ty, heads) => {
                let bytes = |rows: usize| rows * row_bytes(*ty, len);
                heads.iter_mut().try_for_each(|head| grow(head, bytes(needed), bytes(target)))
            }
        }
    }

    /// Returns the number of rows that are kept: the last ones.
    pub fn kept(&self) -> usize {
        self.rows - self.dropped
    }

    /// Returns the number of rows to which tokens attend; `None` for all.
    pub fn window(&self) -> Option<usize> {
        self.window
    }

    /// Drops the first rows.
    fn drop_rows(&mut self, end: usize) {
        let Some(rows) = end.min(self.rows).checked_sub(self.dropped) else { return };
        let elements = rows * self.layout.len;
        match &mut self.data {
            Data::F32(heads) => heads.iter_mut().for_each(|head| drop(head.drain(..elements))),
            Data::F16(heads) => heads.iter_mut().for_each(|head| drop(head.drain(..elements))),
            Data::Blocks(ty, heads) => {
                let bytes = row_bytes(*ty, elements);
                heads.iter_mut().for_each(|head| drop(head.drain(..bytes)));
            }
        }
        self.dropped += rows;
    }

    /// Returns the size in bytes of the cache with a number of rows: of [`KvCache::to_bytes`].
    pub fn byte_len(&self, rows: usize) -> u64 {
        self.layout.byte_len(rows)
    }

    /// Returns the origin of the rows of all heads, rotated; nothing if there is none.
    pub fn origin(&self) -> &[f32] {
        &self.origin
    }

    /// Returns the number of elements of the origin of a cache with a number of rows.
    pub fn origin_len(&self, rows: usize) -> usize {
        self.layout.origin_len(rows)
    }

    /// Returns the number of heads.
    pub fn heads(&self) -> usize {
        self.layout.heads
    }

    /// Returns the type of the elements.
    pub fn tensor_type(&self) -> TensorType {
        match self.data {
            Data::F32(_) => TensorType::F32,
            Data::F16(_) => TensorType::F16,
            Data::Blocks(ty, _) => ty,
        }
    }

    /// Returns the elements as bytes, little endian: [`KvCache::byte_len`] of the rows that are kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.data {
            Data::F32(heads) => heads.iter().flatten().flat_map(|x| x.to_le_bytes()).collect(),
            Data::F16(heads) => heads.iter().flatten().flat_map(|x| x.to_le_bytes()).collect(),
            Data::Blocks(_, heads) => heads.concat(),
        }
    }

    /// Fills an empty cache with the rows from `dropped` to `rows` of another one, given its [`KvCache::to_bytes`], which
    /// begin with them, and its origin. Their memory has been reserved.
    pub fn fill(&mut self, [dropped, rows]: [usize; 2], bytes: &[u8], origin: &[f32]) {
        let heads = self.layout.heads;
        let len = self.layout.byte_len(rows - dropped) as usize / heads;
        if rows > 0 {
            self.origin.extend_from_slice(origin);
        }
        let parts = bytes.chunks_exact((bytes.len() / heads).max(1)).map(|part| &part[..len]);
        match &mut self.data {
            Data::F32(heads) => heads.iter_mut().zip(parts).for_each(|(head, part)| {
                head.extend(part.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            }),
            Data::F16(heads) => heads.iter_mut().zip(parts).for_each(|(head, part)| {
                head.extend(part.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes)));
            }),
            Data::Blocks(_, heads) => {
                heads.iter_mut().zip(parts).for_each(|(head, part)| head.extend_from_slice(part));
            }
        }
        (self.dropped, self.rows) = (dropped, rows);
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether heads are rotated: [`KvCache::read`] and [`KvCache::read_columns`] return rotated rows.
    pub fn is_rotated(&self) -> bool {
        self.layout.ty.for_heads(self.layout.len).has_blocks()
    }

    /// Appends rows. Their memory has been reserved.
    pub fn append(&mut self, rows: &[&[f32]]) {
        let Layout { len, heads, .. } = self.layout;
        let columns = self.layout.columns().then_some(self.kept());
        if self.layout.has_origin()
            && self.rows == 0
            && let Some(first) = rows.first()
        {
            self.origin.extend_from_slice(&first[..heads * len]);
            self.origin.chunks_exact_mut(len).for_each(rotate);
        }
        let origin = &self.origin;
        match &mut self.data {
            Data::F32(heads) => {
                each_head(heads, rows, len, |head, _, number, part| match columns {
                    Some(first) => put(head, first + number, part, 0.0, |x| x),
                    None => head.extend_from_slice(part),
                });
            }
            Data::F16(heads) => {
                each_head(heads, rows, len, |head, _, number, part| match columns {
                    Some(first) => put(head, first + number, part, f16::ZERO, f16::from_f32),
                    None => head.extend(part.iter().map(|x| f16::from_f32(*x))),
                });
            }
            Data::Blocks(ty, heads) => {
                each_head(heads, rows, len, |head, number_of_head, _, part| {
                    let mut rotated = part.to_vec();
                    rotate(&mut rotated);
                    let origin = origin.iter().skip(number_of_head * len);
                    rotated.iter_mut().zip(origin).for_each(|(x, origin)| *x -= origin);
                    encode(*ty, &rotated, head);
                });
            }
        }
        self.rows += rows.len();
    }

    /// Whether [`KvCache::truncate`] can remove the rows from `rows` on: the rows in the window of the next token must be
    /// kept.
    pub fn can_truncate(&self, rows: usize) -> bool {
        let first = (rows + 1).saturating_sub(self.window.unwrap_or(0));
        rows == 0 || self.dropped <= first
    }

    /// Removes the rows from `rows` on.
    pub fn truncate(&mut self, rows: usize) {
        self.rows = self.rows.min(rows);
        if rows == 0 {
            self.origin.clear();
            self.dropped = 0;
        }
        let (len, rows) = (self.layout.len, self.layout.allocated_rows(self.kept()));
        match &mut self.data {
            Data::F32(heads) => heads.iter_mut().for_each(|head| head.truncate(rows * len)),
            Data::F16(heads) => heads.iter_mut().for_each(|head| head.truncate(rows * len)),
            Data::Blocks(ty, heads) => {
                let bytes = rows * row_bytes(*ty, len);
                heads.iter_mut().for_each(|head| head.truncate(bytes));
            }
        }
    }

    /// Reads `count` rows of a head from `first` on as columns of [`BLOCK`] elements; elements from `count` on are
    /// undefined. `first` is a multiple of [`BLOCK`], and kept.
    pub fn read_columns(&self, head: usize, first: usize, count: usize, out: &mut [f32]) {
        if self.layout.columns() {
            return self.read(head, first, out);
        }
        let len = self.layout.len;
        let mut rows = vec![0.0; count * len];
        self.read(head, first, &mut rows);
        transpose(rows.chunks_exact(len), out);
    }

    /// Returns the numbers that [`KvCache::read_columns`] or, for values, [`KvCache::read`] would copy, if they are stored as
    /// they are read.
    pub fn stored(&self, head: usize, first: usize, count: usize) -> Option<&[f32]> {
        let Data::F32(heads) = &self.data else { return None };
        let rows = if self.layout.columns() { BLOCK } else { count };
        let start = (first - self.dropped) * self.layout.len;
        heads[head].get(start..start + rows * self.layout.len)
    }

    /// Prefetches rows of a head that are read next.
    #[inline(always)]
    pub fn prefetch(&self, head: usize, first: usize, count: usize) {
        let rows = if self.layout.columns() { BLOCK } else { count };
        let elements = |rows: usize| rows * self.layout.len;
        let (start, end) = (elements(first - self.dropped), elements(first - self.dropped + rows));
        match &self.data {
            Data::F32(heads) => prefetch_all(heads[head].get(start..end)),
            Data::F16(heads) => prefetch_all(heads[head].get(start..end)),
            Data::Blocks(ty, heads) => {
                prefetch_all(heads[head].get(row_bytes(*ty, start)..row_bytes(*ty, end)));
            }
        }
    }

    /// Returns rows of a head as blocks of [`KvCache::tensor_type`], rotated, and as differences from the origin if there is
    /// one; none if it has no blocks.
    pub fn blocks(&self, head: usize, first: usize, count: usize) -> &[u8] {
        let Data::Blocks(ty, heads) = &self.data else { return &[] };
        let bytes = |rows: usize| row_bytes(*ty, rows * self.layout.len);
        &heads[head][bytes(first - self.dropped)..][..bytes(count)]
    }

    /// Reads rows of a head from `first` on, which are kept, as many as `out` holds.
    pub fn read(&self, head: usize, first: usize, out: &mut [f32]) {
        let start = (first - self.dropped) * self.layout.len;
        let end = start + out.len();
        match &self.data {
            Data::F32(heads) => out.copy_from_slice(&heads[head][start..end]),
            Data::F16(heads) if cfg!(target_endian = "little") => {
                // The bytes are those of a file, so that the codec of the file type decodes them.
                decode(
                    TensorType::F16,
                    cast_slice(heads[head][start..end].reinterpret_cast()),
                    out,
                );
            }
            Data::F16(heads) => heads[head][start..end].convert_to_f32_slice(out),
            Data::Blocks(ty, heads) => {
                let len = self.layout.len;
                decode(*ty, &heads[head][row_bytes(*ty, start)..row_bytes(*ty, end)], out);
                if let Some(origin) = self.origin.chunks_exact(len).nth(head) {
                    for row in out.chunks_exact_mut(len) {
                        row.iter_mut().zip(origin).for_each(|(x, origin)| *x += origin);
                    }
                }
            }
        }
    }
}

/// Returns the size in bytes of elements of whole blocks.
fn row_bytes(ty: TensorType, elements: usize) -> usize {
    ty.block().map_or(0, |(len, bytes)| elements / len as usize * bytes as usize)
}

#[inline(always)]
fn prefetch_all<T>(data: Option<&[T]>) {
    let lines = data.unwrap_or_default().chunks(64 / size_of::<T>());
    lines.for_each(|line| prefetch(line.as_ptr()));
}

/// Appends a row as blocks.
fn encode(ty: TensorType, row: &[f32], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + row_bytes(ty, row.len()), 0);
    let encoded = gguf_quant::encode_row(ty, row, None, &mut out[start..]);
    debug_assert!(encoded.is_ok(), "{encoded:?}");
}

/// Decodes as many blocks as `out` holds.
fn decode(ty: TensorType, blocks: &[u8], out: &mut [f32]) {
    let decoded = gguf_quant::decode_row(ty, blocks, out);
    debug_assert!(decoded.is_ok(), "{decoded:?}");
}

/// Reserves `target` elements, if there is no room for `needed`.
fn grow<T>(data: &mut Vec<T>, needed: usize, target: usize) -> Result<(), TryReserveError> {
    match data.capacity() < needed {
        true => data.try_reserve_exact(target - data.len()),
        false => Ok(()),
    }
}

/// Minimum number of rows that are appended to several heads at the same time.
const MIN_PARALLEL: usize = 64;

/// Calls `append` with each head, its number, and the numbers of rows and their parts of the head, in order.
fn each_head<T: Send>(
    heads: &mut [Vec<T>],
    rows: &[&[f32]],
    len: usize,
    append: impl Fn(&mut Vec<T>, usize, usize, &[f32]) + Sync,
) {
    let append_all = |(number, head): (usize, &mut Vec<T>)| {
        for (row, elements) in rows.iter().enumerate() {
            append(head, number, row, &elements[number * len..(number + 1) * len]);
        }
    };
    match rows.len() >= MIN_PARALLEL {
        true => heads.par_iter_mut().enumerate().for_each(append_all),
        false => heads.iter_mut().enumerate().for_each(append_all),
    }
}

/// Appends a row as a column of the last block, or of a new one.
fn put<T: Copy>(data: &mut Vec<T>, at: usize, row: &[f32], zero: T, number: impl Fn(f32) -> T) {
    let block = at / BLOCK * BLOCK * row.len();
    if at.is_multiple_of(BLOCK) {
        data.resize(block + BLOCK * row.len(), zero);
    }
    let lines = data[block..].chunks_exact_mut(BLOCK);
    lines.zip(row).for_each(|(line, x)| line[at % BLOCK] = number(*x));
}

/// Writes rows as the first columns of a block.
pub(crate) fn transpose<'r>(rows: impl Iterator<Item = &'r [f32]>, out: &mut [f32]) {
    for (column, row) in rows.enumerate() {
        out.chunks_exact_mut(BLOCK).zip(row).for_each(|(line, x)| line[column] = *x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_transposed_rows() {
        let (heads, len) = (2, 32);
        let number = |row: usize, i: usize| ((row * 37 + i * 11) % 97) as f32 - 48.0;
        for ty in CacheType::ALL {
            let cache = |role| KvCache::new(Layout { ty, heads, len, role }, 3 * BLOCK, None);
            let (mut keys, mut values) = (cache(Role::Keys), cache(Role::Values));
            let push = |cache: &mut KvCache, from: usize, to: usize| {
                for row in from..to {
                    cache.reserve(1, cache.rows()).unwrap();
                    cache.append(&[&(0..heads * len).map(|i| number(row, i)).collect::<Vec<_>>()]);
                }
            };
            for cache in [&mut keys, &mut values] {
                push(cache, 0, 2 * BLOCK + 5);
                // Truncates within a block, at its end, and within the first one.
                for rows in [BLOCK + 3, BLOCK, 7] {
                    cache.truncate(rows);
                    push(cache, rows, 2 * BLOCK + 9);
                }
                assert_eq!(cache.rows(), 2 * BLOCK + 9);
            }
            for (first, count) in [(0, BLOCK), (BLOCK, BLOCK), (2 * BLOCK, 9)] {
                let (mut columns, mut rows) = (vec![0.0; BLOCK * len], vec![0.0; count * len]);
                keys.read_columns(1, first, count, &mut columns);
                if let Some(stored) = keys.stored(1, first, count) {
                    assert!(ty == CacheType::F32 && stored == columns);
                }
                // Keys that are stored as rows are differences from their origin: they are rounded otherwise than values.
                let stored_as_rows = if keys.is_rotated() { &keys } else { &values };
                stored_as_rows.read(1, first, &mut rows);
                assert!(values.stored(1, first, count).is_none_or(|stored| stored == rows));
                for (k, row) in rows.chunks_exact(len).enumerate() {
                    for (i, x) in row.iter().enumerate() {
                        assert_eq!(columns[i * BLOCK + k], *x, "{ty:?} {first} {k} {i}");
                    }
                    let mut row = row.to_vec();
                    if keys.is_rotated() {
                        rotate(&mut row);
                    }
                    let error = |(i, x): (usize, &f32)| (x - number(first + k, len + i)).powi(2);
                    let error = row.iter().enumerate().map(error).sum::<f32>() / len as f32;
                    // Numbers are up to 48 in absolute value: about half a step.
                    let most = match ty {
                        CacheType::F32 | CacheType::F16 => 0.0,
                        CacheType::Q8_0 => 1.0,
                        CacheType::Q5_1 | CacheType::Q5_0 => 8.0,
                        CacheType::Q4_1 | CacheType::Q4_0 => 16.0,
                    };
                    assert!(error.sqrt() <= most, "{ty:?} {}", error.sqrt());
                }
            }
        }
    }

    #[test]
    fn rows_before_the_window_are_dropped() {
        let (window, batch) = (100, 30);
        let capacity = kept_rows(window, batch);
        let number = |row: usize, i: usize| ((row * 37 + i * 11) % 97) as f32;
        for role in [Role::Keys, Role::Values] {
            for ty in [CacheType::F32, CacheType::F16] {
                let layout = Layout { ty, heads: 2, len: 32, role };
                let mut cache = KvCache::new(layout, capacity, Some(window));
                while cache.rows() < 2000 {
                    let first = cache.rows();
                    cache.reserve(batch, first).unwrap();
                    for row in first..first + batch {
                        cache.append(&[&(0..64).map(|i| number(row, i)).collect::<Vec<_>>()]);
                    }
                    assert!(cache.allocated() <= layout.byte_len(capacity), "{role:?} {first}");
                    let oldest = (first + 1).saturating_sub(window);
                    assert!(cache.can_truncate(first) && cache.dropped <= oldest, "{first}");
                    for start in (oldest / BLOCK * BLOCK..first).step_by(BLOCK) {
                        let count = BLOCK.min(cache.rows() - start);
                        let mut found = vec![0.0; BLOCK * 32];
                        match role {
                            Role::Keys => cache.read_columns(1, start, count, &mut found),
                            Role::Values => cache.read(1, start, &mut found[..count * 32]),
                        }
                        for (row, i) in (0..count).flat_map(|row| (0..32).map(move |i| (row, i))) {
                            let at =
                                if role == Role::Keys { i * BLOCK + row } else { row * 32 + i };
                            assert_eq!(found[at], number(start + row, 32 + i), "{role:?} {start}");
                        }
                    }
                }
                assert!(cache.dropped > 1000);
                let removable = cache.rows() - REMOVABLE;
                assert!(cache.can_truncate(removable) && !cache.can_truncate(1000));
                cache.truncate(removable);
                assert_eq!(cache.rows(), removable);
                cache.truncate(0);
                assert_eq!((cache.rows(), cache.kept()), (0, 0));
            }
        }
    }

    #[test]
    fn a_common_part_of_keys_takes_no_range() {
        // A bias of 1000 in some elements, and differences up to 1.
        let number = |row: usize, i: usize| {
            let bias = if i.is_multiple_of(7) { 1000.0 } else { 0.0 };
            bias + ((row * 31 + i * 17) % 21) as f32 / 10.0 - 1.0
        };
        let layout = Layout { ty: CacheType::Q4_0, heads: 1, len: 64, role: Role::Keys };
        let mut cache = KvCache::new(layout, 70, None);
        cache.reserve(70, 0).unwrap();
        for row in 0..70 {
            cache.append(&[&(0..64).map(|i| number(row, i)).collect::<Vec<_>>()]);
        }
        let mut found = vec![0.0; 70 * 64];
        cache.read(0, 0, &mut found);
        for (row, found) in found.chunks_exact_mut(64).enumerate() {
            rotate(found);
            let error: f32 =
                found.iter().enumerate().map(|(i, x)| (x - number(row, i)).powi(2)).sum();
            assert!((error / 64.0).sqrt() < 0.2, "{row}: {error}");
        }
    }

    #[test]
    fn a_full_cache_has_the_size_of_its_layout() {
        for ty in CacheType::ALL {
            // Partial blocks, and heads that are not divisible into blocks of 8 bits.
            for (capacity, len) in [(1, 32), (64, 32), (100, 32), (200, 48), (129, 64)] {
                for role in [Role::Keys, Role::Values] {
                    let layout = Layout { ty, heads: 3, len, role };
                    let mut cache = KvCache::new(layout, capacity, None);
                    assert_eq!(cache.allocated(), 0);
                    for row in 0..capacity {
                        cache.reserve(1, cache.rows()).unwrap();
                        cache.append(&[&vec![row as f32; 3 * len]]);
                        assert!(
                            cache.allocated() <= layout.byte_len(capacity),
                            "{layout:?}, {row} of {capacity}"
                        );
                    }
                    assert_eq!(
                        cache.allocated(),
                        layout.byte_len(capacity),
                        "{layout:?}, {capacity}"
                    );
                    assert_eq!(
                        cache.clone().allocated(),
                        layout.byte_len(capacity),
                        "{layout:?}, {capacity}"
                    );
                }
            }
        }
    }
}
