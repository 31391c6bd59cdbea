//! Weight repacking: copies of matrices in the order in which token generation reads them, and their memory.
#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "only kernels for x86-64 repack weights")
)]

use std::sync::Arc;
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::AtomicU32;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(target_arch = "x86_64")]
use memmap2::MmapMut;

use crate::memory_budget::MemoryBudget;

/// Budget of memory for repacked weights.
#[derive(Debug)]
pub(crate) struct RepackBudget {
    left: AtomicU64,
    used: AtomicU64,
    /// Number of products with few tokens per matrix before a tensor is repacked.
    uses_before: usize,
    /// Budget of all memory, which repacked weights take from, too.
    memory: Arc<MemoryBudget>,
}

impl RepackBudget {
    /// Returns a budget of a number of bytes.
    #[cfg(test)]
    pub fn new(limit: u64) -> Self {
        Self::within(limit, Arc::new(MemoryBudget::new(u64::MAX)))
    }

    /// Returns the bytes of repacked weights for a machine with this number of available bytes: a half.
    pub const fn share(available: u64) -> u64 {
        available / 2
    }

    /// Returns a budget of a number of bytes, which are part of the memory of a model.
    pub fn within(limit: u64, memory: Arc<MemoryBudget>) -> Self {
        let (left, used) = (AtomicU64::new(limit), AtomicU64::new(0));
        Self { left, used, uses_before: USES_BEFORE, memory }
    }

    /// Returns what is left of the budget, with another number of products with few tokens per matrix before a tensor is
    /// repacked.
    pub fn after(&self, uses_before: usize) -> Self {
        let left = self.left.load(Ordering::Relaxed);
        Self { uses_before, ..Self::within(left, self.memory.clone()) }
    }

    /// Reserves memory for weights of a size; false if the budget does not have it.
    pub fn reserve(&self, bytes: usize) -> bool {
        let less = |left: u64| left.checked_sub(bytes as u64);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
            && self.memory.take(bytes as u64)
    }

    /// Records the memory of repacked weights.
    fn record(&self, bytes: usize) {
        self.used.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns the bytes of all repacked weights.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

/// Rows of a strip.
#[cfg(target_arch = "x86_64")]
pub(crate) const ROWS: usize = 16;

/// Maximum number of columns of a piece.
#[cfg(target_arch = "x86_64")]
pub(crate) const DEPTH: usize = 256;

/// Default of the number of products before a tensor is repacked: a single short run does not wait for it.
const USES_BEFORE: usize = 4;

/// Format of repacked weights.
///
/// A strip is [`ROWS`] rows. It is stored piece by piece of [`DEPTH`] columns; the last piece may be shorter. A piece of
/// a type with blocks of 256 is
///
/// ```text
/// d         [row], as [`ScaleType`]
/// dmin      in the same form, for types with minimums
/// for each two groups:
///   scales    i8, [row][group]
///   minimums  u8 in the same order, for types that have them
///   levels    of the columns of both
/// ```
///
/// and with blocks of 32, for each block, `d`, `dmin` and levels. Levels are, for each 16 columns, planes of 8, 4, 2 or
/// 1 bits, `bits` in total, lowest bits first. A plane of 4 bits holds, for eight columns, `[row][column]` of the first
/// four in the low bits and of the last four in the high bits; a plane of 2 bits holds four times four columns in a
/// byte; a plane of 1 bit holds one bit for each of these bytes.
///
/// So everything is in the order in which it is read: hardware prefetching loses more than one stream per core.
#[cfg(target_arch = "x86_64")]
pub(crate) struct PackedFormat {
    /// Elements of a block: 32 or 256.
    pub len: usize,
    /// Elements that share an integer scale: 16 or 32.
    pub group: usize,
    /// Number of columns.
    pub width: usize,
    /// Bits of a level, or of its index in `table`: 2, 3, 4, 5, 6 or 8.
    pub bits: usize,
    /// Greatest level.
    pub top: u8,
    /// Levels, if `bits` is at most 4.
    pub table: [u8; 16],
    /// Level of the weight 0.
    pub zero: u8,
    /// Whether blocks have minimums.
    pub minimums: bool,
    /// Type of `d` and `dmin`.
    pub scales: ScaleType,
}

/// Type of the scales of blocks: the shortest one that holds them.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) enum ScaleType {
    Fp16,
    /// For powers of two.
    Bf16,
    Fp32,
}

#[cfg(target_arch = "x86_64")]
impl ScaleType {
    /// Returns the size in bytes.
    #[inline(always)]
    fn bytes(self) -> usize {
        match self {
            Self::Fp16 | Self::Bf16 => 2,
            Self::Fp32 => 4,
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl PackedFormat {
    /// Returns the sizes in bytes of `d` and `dmin` at the beginning of a piece.
    #[inline(always)]
    pub fn head(&self) -> [usize; 2] {
        if self.len == 256 { self.block_scales() } else { [0; 2] }
    }

    /// Returns the number of columns of a chunk: two groups, or a block of 32.
    #[inline(always)]
    pub fn chunk_columns(&self) -> usize {
        if self.len == 256 { 2 * self.group } else { self.len }
    }

    /// Returns the sizes in bytes of the parts of a chunk: scales, minimums, levels.
    #[inline(always)]
    pub fn chunk(&self) -> [usize; 3] {
        let has_minimums = usize::from(self.minimums);
        let [scales, minimums] =
            if self.len == 256 { [2 * ROWS, 2 * ROWS * has_minimums] } else { self.block_scales() };
        [scales, minimums, self.bits * self.chunk_columns() * ROWS / 8]
    }

    /// Returns the sizes in bytes of `d` and `dmin` of a block of all rows.
    #[inline(always)]
    fn block_scales(&self) -> [usize; 2] {
        let d = self.scales.bytes() * ROWS;
        [d, d * usize::from(self.minimums)]
    }

    /// Whether every index equals its level.
    pub fn is_plain(&self) -> bool {
        (0..)
            .zip(&self.table)
            .take(1 << self.bits.min(4))
            .all(|(i, level)| i == *level || *level == 0)
    }

    /// Returns columns and bytes of the pieces of a strip.
    #[inline(always)]
    pub fn pieces(&self) -> impl Iterator<Item = (usize, usize)> {
        let [d, dmin] = self.head();
        let chunk: usize = self.chunk().into_iter().sum();
        // A division takes as long as a tenth of a piece.
        let of_columns = self.chunk_columns().trailing_zeros();
        (0..self.width).step_by(DEPTH).map(move |start| {
            let columns = DEPTH.min(self.width - start);
            (columns, d + dmin + (columns >> of_columns) * chunk)
        })
    }
}

/// Repacked rows of a matrix.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Packed {
    pub format: PackedFormat,
    strip_bytes: usize,
    data: MmapMut,
}

#[cfg(target_arch = "x86_64")]
impl Packed {
    /// Returns zeroed strips; `None` if there is no memory for them.
    pub fn new(format: PackedFormat, strips: usize) -> Option<Self> {
        let strip_bytes: usize = format.pieces().map(|(_, bytes)| bytes).sum();
        let data = MmapMut::map_anon(strips * strip_bytes).ok()?;
        #[cfg(target_os = "linux")]
        // Huge pages cost fewer TLB misses. Repacking works without them.
        let _ = data.advise(memmap2::Advice::HugePage);
        Some(Self { format, strip_bytes, data })
    }

    /// Returns format and bytes of all strips.
    pub fn parts_mut(&mut self) -> (&PackedFormat, &mut [u8]) {
        (&self.format, &mut self.data)
    }

    /// Returns the size of a strip in bytes.
    pub fn strip_bytes(&self) -> usize {
        self.strip_bytes
    }

    /// Returns the strips of rows; the first row begins a strip.
    pub fn strips(&self, first: usize, rows: usize) -> &[u8] {
        let start = first / ROWS * self.strip_bytes;
        &self.data[start..start + rows.div_ceil(ROWS) * self.strip_bytes]
    }
}

/// Repacked copy of a matrix, made after several products with few tokens.
#[cfg(target_arch = "x86_64")]
#[derive(Default)]
pub(crate) struct LazyRepack {
    uses: AtomicU32,
    packed: OnceLock<Packed>,
}

#[cfg(target_arch = "x86_64")]
impl LazyRepack {
    /// Returns the repacked tensor, if there is one. Calls `pack` at most once, for `bytes` of weights in a number of
    /// matrices: a tensor of experts is used by several for each token, and repacked with all of them.
    pub fn get(
        &self,
        bytes: usize,
        matrices: usize,
        budget: &RepackBudget,
        pack: impl FnOnce() -> Option<Packed>,
    ) -> Option<&Packed> {
        // The thread whose use reaches the count packs, and no other waits for it: a thread that waits in a pool
        // may take work of others that wait too.
        if self.packed.get().is_none()
            && self.uses.fetch_add(1, Ordering::Relaxed) as usize == budget.uses_before * matrices
            && budget.reserve(bytes)
            && let Some(packed) = pack()
        {
            budget.record(packed.data.len());
            let _ = self.packed.set(packed);
        }
        self.packed.get()
    }

    /// Returns the repacked matrix, if there is one.
    pub fn existing(&self) -> Option<&Packed> {
        self.packed.get()
    }
}
