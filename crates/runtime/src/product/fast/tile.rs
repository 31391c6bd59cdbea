//! Weights in the form that kernels of tiles multiply: rows in lanes.

use gguf_quant::integers::{Integers, Lookup, Unpacked};

use super::ROWS;

/// Weights of a row that are unpacked together.
pub(super) const DEPTH: usize = 256;

/// Some columns of [`ROWS`] rows.
#[repr(align(64))]
pub(super) struct Tile {
    /// `[k / 4][row][k % 4]`: levels in 8 bits.
    pub narrow: [[[u8; 4]; ROWS]; DEPTH / 4],
    /// `[k / 2][row][k % 2]`: levels times their scales.
    pub wide: [[[i16; 2]; ROWS]; DEPTH / 2],
    /// `[group][row]`: each scale twice.
    pub scales: [[[i16; 2]; ROWS]; 16],
    /// `[group / 2][row][group % 2]`: the minima; or, without minima, scales times the level of 0.
    pub minimums: [[[i16; 2]; ROWS]; 8],
    /// `[block][row]`.
    pub d: [[f32; ROWS]; 8],
    /// `[block][row]`.
    pub dmin: [[f32; ROWS]; 8],
}

impl Tile {
    pub const EMPTY: Self = Self {
        narrow: [[[0; 4]; ROWS]; DEPTH / 4],
        wide: [[[0; 2]; ROWS]; DEPTH / 2],
        scales: [[[0; 2]; ROWS]; 16],
        minimums: [[[0; 2]; ROWS]; 8],
        d: [[0.0; ROWS]; 8],
        dmin: [[0.0; ROWS]; 8],
    };

    /// Unpacks `blocks` blocks of each row from a block on. Rows that there are not stay as they were.
    #[inline(always)]
    pub fn unpack<F: Integers, L: Lookup>(
        &mut self,
        lookup: L,
        weights: &[u8],
        row_bytes: usize,
        first: usize,
        blocks: usize,
    ) {
        let mut rows = [[0; 256]; ROWS];
        let mut unpacked = Unpacked::EMPTY;
        for (r, (row, bytes)) in rows.iter_mut().zip(weights.chunks_exact(row_bytes)).enumerate() {
            let bytes = bytes[first * F::BYTES..].chunks_exact(F::BYTES);
            let parts = row.chunks_exact_mut(F::LEN).take(blocks);
            for (b, (part, bytes)) in parts.zip(bytes).enumerate() {
                F::unpack(lookup, bytes, &mut unpacked);
                (self.d[b][r], self.dmin[b][r]) = (unpacked.d, unpacked.dmin);
                part.copy_from_slice(&unpacked.levels[..F::LEN]);
                if F::LEN == 32 {
                    continue;
                }
                for g in 0..256 / F::GROUP {
                    let s = unpacked.scales[g];
                    self.scales[g][r] = [s; 2];
                    self.minimums[g / 2][r][g % 2] =
                        if F::MINIMUMS { unpacked.minimums[g] } else { s * i16::from(F::ZERO) };
                }
                if F::TOP.is_none() {
                    // With a sign, they are multiplied here, in 16 bits.
                    for (g, levels) in part.chunks_exact(F::GROUP).enumerate() {
                        let s = unpacked.scales[g];
                        for (i, pair) in levels.as_chunks::<2>().0.iter().enumerate() {
                            self.wide[g * F::GROUP / 2 + i][r] =
                                pair.map(|level| i16::from(level as i8) * s);
                        }
                    }
                }
            }
        }
        if F::TOP.is_some() {
            for (r, row) in rows.iter().enumerate() {
                for (four, narrow) in row.as_chunks::<4>().0.iter().zip(&mut self.narrow) {
                    narrow[r] = *four;
                }
            }
        } else if F::LEN == 32 {
            for (r, row) in rows.iter().enumerate() {
                for (pair, wide) in row.as_chunks::<2>().0.iter().zip(&mut self.wide) {
                    wide[r] = pair.map(|level| i16::from(level as i8));
                }
            }
        }
    }
}
