//! The codebooks (grids) of the IQ1, IQ2 and IQ3 types, one data file each, and their neighbour
//! tables.
//!
//! A codebook is a list of grid points; a block stores the index of a point instead of 8 (octet) or
//! 4 (quartet) single levels. The coordinates of a point are levels, `0..3` in octets and `0..8` in
//! quartets. Each level has a value, for example 8, 25 or 43 in IQ2. All numbers are those of
//! llama.cpp's tables (`ggml-common.h`; the encoder's copy is in `ggml-quants.c`).
//!
//! The encoder treats level l of IQ2 and IQ3 as the odd number 2l + 1, whatever its value. The
//! octets of IQ2 belong to the lattice E8: coordinates l + 1/2 with an even sum. The quartets of
//! IQ3_XXS belong to the lattice D4: coordinates l with an even sum. The other codebooks were
//! chosen among all combinations of levels. The code of a point packs its levels, 2 bits each in
//! octets and 3 in quartets, the first lowest.
//!
//! Rounding each weight to its nearest level gives a cell, which need not be a point of the
//! codebook. The neighbour table lists the nearest points of each such cell; the encoder chooses
//! among them by weighted error. The table is built at first use by the rule of `iq2xs_init_impl`
//! and `iq3xs_init_impl`: all points at the `shells` smallest distances, sorted by distance, then
//! by index. The first of equally good points wins, so the order affects the bytes.

use std::sync::OnceLock;

pub(crate) use argmin::{CodeChunk, Costs};
use pulp::Simd;

mod argmin;
mod iq1_s;
mod iq2_s;
mod iq2_xs;
mod iq2_xxs;
mod iq3_s;
mod iq3_xxs;

/// Values of the three levels of IQ2.
const IQ2_VALUES: [i8; 3] = [8, 25, 43];

pub(crate) static IQ1_S: Grid<8, 3, 2048> = Grid::new(&iq1_s::CODES, [-1, 0, 1], 3);
pub(crate) static IQ2_XXS: Grid<8, 3, 256> = Grid::new(&iq2_xxs::CODES, IQ2_VALUES, 2);
pub(crate) static IQ2_XS: Grid<8, 3, 512> = Grid::new(&iq2_xs::CODES, IQ2_VALUES, 2);
pub(crate) static IQ2_S: Grid<8, 3, 1024> = Grid::new(&iq2_s::CODES, IQ2_VALUES, 1);
pub(crate) static IQ3_XXS: Grid<4, 8, 256> =
    Grid::new(&iq3_xxs::CODES, [4, 12, 20, 28, 36, 44, 52, 62], 2);
pub(crate) static IQ3_S: Grid<4, 8, 512> = Grid::new(&iq3_s::CODES, [1, 3, 5, 7, 9, 11, 13, 15], 3);

/// A codebook of `N` points with `DIM` coordinates in `0..LEVELS`.
pub(crate) struct Grid<const DIM: usize, const LEVELS: usize, const N: usize> {
    /// Values of each point.
    pub values: [[i8; DIM]; N],
    /// Code of each point.
    codes: &'static [u16; N],
    shells: usize,
    cells: OnceLock<Cells>,
}

/// Neighbour table.
struct Cells {
    cells: Vec<Cell>,
    /// Codes of the neighbours of cells that are not in the codebook.
    near: Vec<CodeChunk>,
}

#[derive(Clone, Copy)]
enum Cell {
    /// The cell is this point of the codebook.
    Point(u16),
    /// Start of the neighbours in `Cells::near`, and the number of chunks.
    Near { start: u32, chunks: u16 },
}

/// Candidate points of a cell.
pub(crate) enum Place<'a> {
    /// The cell is this point of the codebook.
    Point(u16),
    /// Codes of the neighbours; at least one.
    Near(&'a [CodeChunk]),
}

impl<const DIM: usize, const LEVELS: usize, const N: usize> Grid<DIM, LEVELS, N> {
    const BITS: usize = if LEVELS > 4 { 3 } else { 2 };

    const fn new(codes: &'static [u16; N], value: [i8; LEVELS], shells: usize) -> Self {
        assert!(DIM * (1 << Self::BITS) == 32 && LEVELS <= 1 << Self::BITS);
        let mut values = [[0; DIM]; N];
        // `for` is not available in constant functions.
        let mut n = 0;
        while n < N {
            let mut i = 0;
            while i < DIM {
                values[n][i] = value[Self::level(codes[n], i) as usize];
                i += 1;
            }
            n += 1;
        }
        Self { values, codes, shells, cells: OnceLock::new() }
    }

    /// Returns the level of a code at coordinate `i`, in `0..LEVELS`.
    #[inline(always)]
    pub const fn level(code: u16, i: usize) -> u8 {
        (code >> (Self::BITS * i)) as u8 & ((1 << Self::BITS) - 1)
    }

    /// Returns the code of a point.
    #[inline(always)]
    pub fn code(&self, point: u16) -> u16 {
        self.codes[usize::from(point) % N]
    }

    /// Returns the point with this code, or 0 if there is none.
    #[inline(always)]
    pub fn point(&self, code: u16) -> u16 {
        match self.place(self.cell(std::array::from_fn(|i| Self::level(code, i)))) {
            Place::Point(point) => point,
            Place::Near(_) => 0,
        }
    }

    /// Returns the candidates of a cell. A cell is numbered by its levels as digits in base
    /// `LEVELS`, the first lowest.
    #[inline(always)]
    pub fn place(&self, cell: usize) -> Place<'_> {
        let Cells { cells, near } = self.cells.get_or_init(|| self.neighbours());
        match cells[cell] {
            Cell::Point(point) => Place::Point(point),
            Cell::Near { start, chunks } => {
                Place::Near(&near[start as usize..][..usize::from(chunks)])
            }
        }
    }

    /// Returns the number of the cell with these levels.
    #[inline(always)]
    pub fn cell(&self, levels: [u8; DIM]) -> usize {
        levels.iter().rev().fold(0, |cell, &l| cell * LEVELS + usize::from(l))
    }

    /// Returns the code of the neighbour with the smallest sum of costs, the first of equals.
    #[inline(always)]
    pub fn argmin<S: Simd>(&self, simd: S, near: &[CodeChunk], costs: &Costs) -> u16 {
        argmin::argmin::<S, DIM>(simd, near, costs)
    }

    fn neighbours(&self) -> Cells {
        // A squared distance is the sum over the lower and the upper half of the coordinates.
        let halves = LEVELS.pow(DIM as u32 / 2);
        let [lower, upper] = [0, DIM / 2].map(|from| {
            (0..halves).map(|cell| self.half_distances(cell, from)).collect::<Vec<_>>()
        });
        let mut cells = Cells { cells: Vec::with_capacity(halves * halves), near: Vec::new() };
        let mut found = Vec::new();
        for upper in &upper {
            for lower in &lower {
                let distances: [u8; N] = std::array::from_fn(|n| lower[n] + upper[n]);
                if let Some(point) = distances.iter().position(|&d| d == 0) {
                    cells.cells.push(Cell::Point(point as u16));
                    continue;
                }
                let mut seen = [false; 256];
                distances.iter().for_each(|&d| seen[usize::from(d)] = true);
                let last = (0..=u8::MAX).filter(|&d| seen[usize::from(d)]).take(self.shells).last();
                found.clear();
                found.extend((0..N).filter(|&n| Some(distances[n]) <= last));
                // The sort is stable: points at equal distance stay in index order.
                found.sort_by_key(|&n| distances[n]);
                let (start, chunks) = (cells.near.len() as u32, found.len().div_ceil(16) as u16);
                cells.near.extend(found.chunks(16).map(|sixteen| {
                    std::array::from_fn(|k| self.codes[*sixteen.get(k).unwrap_or(&found[0])])
                }));
                cells.cells.push(Cell::Near { start, chunks });
            }
        }
        cells
    }

    /// Squared distance of each point to a cell over the half of the coordinates that starts at
    /// `from`; `cell` holds the digits of that half. At most 2 * 7 * 7.
    fn half_distances(&self, cell: usize, from: usize) -> [u8; N] {
        std::array::from_fn(|n| {
            let (mut sum, mut digits) = (0, cell);
            for i in from..from + DIM / 2 {
                let diff = Self::level(self.codes[n], i).abs_diff((digits % LEVELS) as u8);
                sum += diff * diff;
                digits /= LEVELS;
            }
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level_sum<const DIM: usize, const LEVELS: usize, const N: usize>(
        grid: &Grid<DIM, LEVELS, N>,
    ) -> Vec<u32> {
        let sum = |&code| (0..DIM).map(|i| u32::from(Grid::<DIM, LEVELS, N>::level(code, i))).sum();
        grid.codes.iter().map(sum).collect()
    }

    #[test]
    fn lattice_points_have_even_level_sums() {
        let sums =
            [level_sum(&IQ2_XXS), level_sum(&IQ2_XS), level_sum(&IQ2_S), level_sum(&IQ3_XXS)];
        assert!(sums.iter().flatten().all(|sum| sum % 2 == 0));
    }

    fn check<const DIM: usize, const LEVELS: usize, const N: usize>(
        grid: &Grid<DIM, LEVELS, N>,
        total: usize,
        most: usize,
    ) {
        let (mut sum, mut max) = (0, 0);
        for point in 0..N as u16 {
            assert_eq!(grid.point(grid.code(point)), point);
        }
        for cell in 0..LEVELS.pow(DIM as u32) {
            if let Place::Near(near) = grid.place(cell) {
                let near = near.as_flattened();
                // The last chunk is padded with the first point.
                let fill = near[1..].iter().rev().take_while(|&&code| code == near[0]).count();
                sum += near.len() - fill;
                max = max.max(near.len() - fill);
            }
        }
        assert_eq!((sum, max), (total, most));
    }

    /// The sizes are those of llama.cpp's tables.
    #[test]
    fn neighbour_tables_have_llama_cpp_sizes() {
        check(&IQ1_S, 327_721, 205);
        check(&IQ2_XXS, 113_157, 150);
        check(&IQ2_XS, 181_721, 292);
        check(&IQ2_S, 44_716, 70);
        check(&IQ3_XXS, 18_985, 36);
        check(&IQ3_S, 24_733, 38);
    }
}
