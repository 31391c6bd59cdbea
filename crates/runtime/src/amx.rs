//! AMX: INT8 tile products, and what they share with those of BF16.
#![allow(unsafe_code)]

pub(crate) mod bf16;

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// Rows and columns of a tile of sums.
pub(crate) const SIDE: usize = 16;

/// Maximum number of bytes in a row of a tile.
const ROW: usize = 64;

/// Proof that the processor has AMX with INT8 (Intel server processors since 2023) and that the operating system
/// lets the process use it.
#[derive(Clone, Copy)]
pub(crate) struct Amx(());

impl Amx {
    /// Queries the processor and, once, the operating system.
    pub fn try_new() -> Option<Self> {
        static PERMITTED: OnceLock<bool> = OnceLock::new();
        PERMITTED.get_or_init(|| offered() && permitted()).then_some(Self(()))
    }

    /// Configures the tiles of the thread for products over `depth` columns. Returns `None` if `depth` is not a
    /// multiple of 4 up to 64, or if the thread has configured tiles already.
    pub fn tiles(self, depth: usize) -> Option<Tiles> {
        if depth == 0 || depth > ROW || !depth.is_multiple_of(4) {
            return None;
        }
        let full = (SIDE, ROW);
        let shaped = self.shaped(&[full, (SIDE, depth), (depth / 4, ROW)])?;
        Some(Tiles { depth, _shaped: shaped })
    }

    /// Configures the first tiles of the thread with at most 16 rows and at most 64 bytes per row; `None` if it
    /// has configured tiles already.
    fn shaped(self, tiles: &[(usize, usize)]) -> Option<Shaped> {
        if IN_USE.replace(true) {
            return None;
        }
        let mut shapes =
            Shapes { palette: 1, start: 0, rest: [0; 14], widths: [0; 16], rows: [0; 16] };
        let tile_features = shapes.widths.iter_mut().zip(&mut shapes.rows);
        for ((width, rows), tile) in tile_features.zip(tiles) {
            (*rows, *width) = (tile.0 as u8, tile.1 as u16);
        }
        // SAFETY: an `Amx` exists only where tiles may be used. The instruction reads 64 bytes, the size of the
        // configuration.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &shapes, options(nostack, preserves_flags, readonly))
        }
        Some(Shaped { thread_tiles: PhantomData })
    }
}

/// Tile configuration in the layout of the processor.
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start: u8,
    rest: [u8; 14],
    /// Bytes per row.
    widths: [u16; 16],
    rows: [u8; 16],
}

thread_local! {
    /// Whether the thread has [`Shaped`] tiles: a second configuration would change their shapes.
    static IN_USE: Cell<bool> = const { Cell::new(false) };
}

/// Configured tiles of the thread.
struct Shaped {
    /// Makes the type not `Send`: tiles belong to a thread.
    thread_tiles: PhantomData<*const ()>,
}

impl Drop for Shaped {
    fn drop(&mut self) {
        // SAFETY: an `Amx` exists only where tiles may be used.
        unsafe { asm!("tilerelease", options(nostack, preserves_flags, nomem)) }
        IN_USE.set(false);
    }
}

/// Sums, with a row for each row of the first factor.
#[repr(align(64))]
pub(crate) struct Sums(pub [[i32; SIDE]; SIDE]);

/// Tiles of the thread: 0 for sums, 1 and 2 for factors.
pub(crate) struct Tiles {
    depth: usize,
    _shaped: Shaped,
}

impl Tiles {
    /// Computes `sums[i][j] = sum over k of a[i * stride + k] * b[k / 4][j][k % 4]`.
    ///
    /// # Panics
    /// If there are too few numbers.
    #[inline(always)]
    pub fn multiply(&self, a: &[i8], stride: usize, b: &[[[u8; 4]; SIDE]], sums: &mut Sums) {
        let last = stride.checked_mul(SIDE - 1).expect("rows are in memory");
        assert!(last <= a.len() && self.depth <= a.len() - last && self.depth / 4 <= b.len());
        // SAFETY: `Tiles` exists only while the tiles have these shapes. The instructions read 16 rows of
        // `depth` bytes of `a`, `stride` bytes apart, and `depth / 4` rows of 64 bytes of `b`; both lengths were
        // checked above. They write 16 rows of 64 bytes, the size of `sums`.
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

/// Whether the processor has AMX with INT8.
fn offered() -> bool {
    has(0b11 << 24)
}

/// Whether the processor has features of CPUID leaf 7, register EDX.
fn has(features: u32) -> bool {
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & features == features
}

/// Requests permission to use tiles from the operating system, which then saves their state.
#[cfg(target_os = "linux")]
fn permitted() -> bool {
    const ARCH_PRCTL: isize = 158;
    const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
    const XFEATURE_XTILEDATA: usize = 18;
    let mut result = ARCH_PRCTL;
    // SAFETY: the system call neither reads nor writes memory of the process. It clobbers two registers besides
    // that of the result, which are declared.
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
    fn tile_products_are_exact() {
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
