//! AMX: products of tiles of bytes, and what those of BF16 share with them.
#![allow(unsafe_code)]

pub(crate) mod brain;

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// Rows and columns of a product.
pub(crate) const SIDE: usize = 16;

/// Bytes of a row of a tile, at most.
const ROW: usize = 64;

/// Proof that this processor has AMX with bytes (Intel's for servers since 2023), and that the system
/// lets this process use it.
#[derive(Clone, Copy)]
pub(crate) struct Amx(());

impl Amx {
    /// Asks the processor and, once, the system.
    pub fn try_new() -> Option<Self> {
        static PERMITTED: OnceLock<bool> = OnceLock::new();
        PERMITTED.get_or_init(|| offered() && permitted()).then_some(Self(()))
    }

    /// Makes tiles of this thread ready for products over `depth` columns, which are a multiple of 4 and
    /// 64 at most; `None` if they are not, or this thread has such tiles already.
    pub fn tiles(self, depth: usize) -> Option<Tiles> {
        if depth == 0 || depth > ROW || !depth.is_multiple_of(4) {
            return None;
        }
        let full = (SIDE, ROW);
        let shaped = self.shaped(&[full, (SIDE, depth), (depth / 4, ROW)])?;
        Some(Tiles { depth, _shaped: shaped })
    }

    /// Gives the first tiles of this thread their rows, at most 16, and bytes of a row, at most 64; `None`
    /// if it has tiles already.
    fn shaped(self, tiles: &[(usize, usize)]) -> Option<Shaped> {
        if IN_USE.replace(true) {
            return None;
        }
        let mut shapes =
            Shapes { palette: 1, start: 0, rest: [0; 14], widths: [0; 16], rows: [0; 16] };
        let of_tiles = shapes.widths.iter_mut().zip(&mut shapes.rows);
        for ((width, rows), tile) in of_tiles.zip(tiles) {
            (*rows, *width) = (tile.0 as u8, tile.1 as u16);
        }
        // SAFETY: an `Amx` is only made where tiles are there and may be used. 64 bytes are read, those of
        // a description of tiles.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &shapes, options(nostack, preserves_flags, readonly))
        }
        Some(Shaped { of_thread: PhantomData })
    }
}

/// What tiles look like, as the processor reads it.
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start: u8,
    rest: [u8; 14],
    /// Bytes of a row.
    widths: [u16; 16],
    rows: [u8; 16],
}

thread_local! {
    /// Whether this thread has [`Shaped`] tiles: others would change their shapes.
    static IN_USE: Cell<bool> = const { Cell::new(false) };
}

/// Tiles of this thread that have their shapes.
struct Shaped {
    /// Not sent to another.
    of_thread: PhantomData<*const ()>,
}

impl Drop for Shaped {
    fn drop(&mut self) {
        // SAFETY: an `Amx` is only made where tiles are there and may be used.
        unsafe { asm!("tilerelease", options(nostack, preserves_flags, nomem)) }
        IN_USE.set(false);
    }
}

/// Sums of products, with a row for each of the first factor.
#[repr(align(64))]
pub(crate) struct Sums(pub [[i32; SIDE]; SIDE]);

/// The tiles of this thread: 0 for sums, 1 and 2 for factors.
pub(crate) struct Tiles {
    depth: usize,
    _shaped: Shaped,
}

impl Tiles {
    /// `sums[i][j]` becomes the sum of `a[i * stride + k] * b[k / 4][j][k % 4]` over k.
    ///
    /// # Panics
    /// If there are too few numbers.
    #[inline(always)]
    pub fn multiply(&self, a: &[i8], stride: usize, b: &[[[u8; 4]; SIDE]], sums: &mut Sums) {
        let last = stride.checked_mul(SIDE - 1).expect("rows are in memory");
        assert!(last <= a.len() && self.depth <= a.len() - last && self.depth / 4 <= b.len());
        // SAFETY: whoever has `Tiles` has tiles of these shapes. Of `a` 16 rows of `depth` bytes are read,
        // `stride` bytes from one to the next, and of `b` a quarter as many of 64 bytes: both were just
        // checked. 16 rows of 64 bytes are written, which are `sums`.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tileloadd tmm1, [{a} + {stride}]",
                "tileloadd tmm2, [{b} + {row}]",
                "tdpbsud tmm0, tmm1, tmm2",
                "tilestored [{sums} + {row}], tmm0",
                a = in(reg) a.as_ptr(),
                stride = in(reg) stride,
                b = in(reg) b.as_ptr(),
                sums = in(reg) sums,
                row = in(reg) ROW,
                out("tmm0") _, out("tmm1") _, out("tmm2") _,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// Whether the processor has tiles and multiplies bytes with them.
fn offered() -> bool {
    has(0b11 << 24)
}

/// Whether the processor has extended features (leaf 7 of CPUID, register EDX).
fn has(features: u32) -> bool {
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & features == features
}

/// Asks the system for room to keep tiles, which a process has only then.
#[cfg(target_os = "linux")]
fn permitted() -> bool {
    const ARCH_PRCTL: isize = 158;
    const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
    const XFEATURE_XTILEDATA: usize = 18;
    let mut result = ARCH_PRCTL;
    // SAFETY: this call neither reads nor writes memory of the process. By the rules of such calls two
    // registers are lost beside that of the result.
    unsafe {
        asm!(
            "syscall",
            inout("rax") result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XFEATURE_XTILEDATA,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    result == 0
}

#[cfg(not(target_os = "linux"))]
fn permitted() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_multiplied() {
        let Some(amx) = Amx::try_new() else {
            eprintln!("SKIPPED: this processor or system has no AMX");
            return;
        };
        for depth in [4, 16, 32, 64] {
            let stride = 70;
            let a: Vec<i8> = (0..15 * stride + depth).map(|i| (i * 37 % 255) as i8).collect();
            let b: Vec<[[u8; 4]; SIDE]> = (0..depth / 4)
                .map(|k| {
                    std::array::from_fn(|j| {
                        std::array::from_fn(|i| (k * 91 + j * 7 + i * 53) as u8)
                    })
                })
                .collect();
            let mut sums = Sums([[7; SIDE]; SIDE]);
            let tiles = amx.tiles(depth).unwrap();
            assert!(amx.tiles(depth).is_none(), "this thread has some");
            tiles.multiply(&a, stride, &b, &mut sums);
            drop(tiles);
            for (i, row) in sums.0.iter().enumerate() {
                for (j, sum) in row.iter().enumerate() {
                    let products = (0..depth)
                        .map(|k| i32::from(a[i * stride + k]) * i32::from(b[k / 4][j][k % 4]));
                    assert_eq!(*sum, products.sum::<i32>(), "{depth} {i} {j}");
                }
            }
        }
        assert!(amx.tiles(0).is_none() && amx.tiles(68).is_none() && amx.tiles(6).is_none());
    }
}
