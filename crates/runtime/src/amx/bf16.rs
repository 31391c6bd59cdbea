//! AMX: BF16 tile products.
#![allow(unsafe_code)]

use std::arch::asm;

use super::{Amx, ROW, SIDE, Shaped, has};

/// Columns of weights per tile.
pub(crate) const DEPTH: usize = ROW / 2;

/// Tile of BF16 numbers: weights as `[row][column]`, activations as `[column / 2][token][column % 2]`.
pub(crate) type Tile = [[u16; DEPTH]; SIDE];

/// Tile of sums, `[row][token]`.
pub(crate) type Sums = [[f32; SIDE]; SIDE];

/// Proof that the processor has AMX with BF16 and that the operating system lets the process use it.
#[derive(Clone, Copy)]
pub(crate) struct AmxBf16(Amx);

impl AmxBf16 {
    /// Queries the processor and, once, the operating system.
    pub fn try_new() -> Option<Self> {
        Some(Self(Amx::try_new().filter(|_| has(1 << 22))?))
    }

    /// Configures the tiles of the thread; `None` if it has configured tiles already.
    pub fn tiles(self) -> Option<Tiles> {
        Some(Tiles { _shaped: self.0.shaped(&[(SIDE, ROW); 8])? })
    }
}

/// Tiles of the thread: 0 to 3 for sums, the others for factors.
pub(crate) struct Tiles {
    _shaped: Shaped,
}

/// Factors of a step: two tiles of 16 rows of weights, and `T` tiles of 16 tokens.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Step<'t, const T: usize> {
    pub weights: &'t [Tile; 2],
    pub x: [&'t Tile; T],
}

impl Tiles {
    /// Adds the products of all steps to `sums`, `[rows / 16]`.
    pub fn add_sixteen(&self, steps: &[Step<'_, 1>], sums: &mut [Sums; 2]) {
        if steps.is_empty() {
            return;
        }
        let steps = steps.as_ptr_range();
        // SAFETY: `Tiles` exists only while the tiles have 16 rows of 64 bytes. A step is two pointers, to two
        // tiles of weights and to one of activations. There is at least one step, and the loop ends after the
        // last one. The instructions read and write two tiles, the size of `sums`.
        unsafe {
            asm!(
                "tileloadd tmm0, [{sums} + {row}]",
                "tileloadd tmm1, [{sums} + {row} + 1024]",
                "2:",
                "mov {weights}, [{step}]",
                "mov {x}, [{step} + 8]",
                "tileloadd tmm4, [{weights} + {row}]",
                "tileloadd tmm6, [{x} + {row}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm5, [{weights} + {row} + 1024]",
                "tdpbf16ps tmm1, tmm5, tmm6",
                "add {step}, 16",
                "cmp {step}, {end}",
                "jne 2b",
                "tilestored [{sums} + {row}], tmm0",
                "tilestored [{sums} + {row} + 1024], tmm1",
                step = inout(reg) steps.start => _,
                end = in(reg) steps.end,
                sums = in(reg) sums,
                row = in(reg) ROW,
                weights = out(reg) _,
                x = out(reg) _,
                out("tmm0") _, out("tmm1") _, out("tmm4") _, out("tmm5") _, out("tmm6") _,
                options(nostack),
            );
        }
    }

    /// Adds the products of all steps to `sums`, `[tokens / 16][rows / 16]`.
    pub fn add_thirty_two(&self, steps: &[Step<'_, 2>], sums: &mut [[Sums; 2]; 2]) {
        if steps.is_empty() {
            return;
        }
        let steps = steps.as_ptr_range();
        // SAFETY: `Tiles` exists only while the tiles have 16 rows of 64 bytes. A step is three pointers, to two
        // tiles of weights and to one of activations each. There is at least one step, and the loop ends after
        // the last one. The instructions read and write four tiles, the size of `sums`.
        unsafe {
            asm!(
                "tileloadd tmm0, [{sums} + {row}]",
                "tileloadd tmm1, [{sums} + {row} + 1024]",
                "tileloadd tmm2, [{sums} + {row} + 2048]",
                "tileloadd tmm3, [{sums} + {row} + 3072]",
                "2:",
                "mov {weights}, [{step}]",
                "mov {x}, [{step} + 8]",
                "mov {more_x}, [{step} + 16]",
                "tileloadd tmm4, [{weights} + {row}]",
                "tileloadd tmm6, [{x} + {row}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{more_x} + {row}]",
                "tdpbf16ps tmm2, tmm4, tmm7",
                "tileloadd tmm5, [{weights} + {row} + 1024]",
                "tdpbf16ps tmm1, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {step}, 24",
                "cmp {step}, {end}",
                "jne 2b",
                "tilestored [{sums} + {row}], tmm0",
                "tilestored [{sums} + {row} + 1024], tmm1",
                "tilestored [{sums} + {row} + 2048], tmm2",
                "tilestored [{sums} + {row} + 3072], tmm3",
                step = inout(reg) steps.start => _,
                end = in(reg) steps.end,
                sums = in(reg) sums,
                row = in(reg) ROW,
                weights = out(reg) _,
                x = out(reg) _,
                more_x = out(reg) _,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }
}
