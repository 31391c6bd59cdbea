//! The codebooks of the IQ1, IQ2 and IQ3 types, one file of data each, and their neighbour tables.
//!
//! A codebook is a list of points; a block stores the number of a point instead of 8 (or 4) single
//! levels. The coordinates of a point are levels, `0..3` in octets and `0..8` in quartets; what a
//! level stands for is its value: 8, 25, 43 in IQ2, say. All numbers are those of llama.cpp's
//! tables (`ggml-common.h`; the encoder's copy of them is in `ggml-quants.c`).
//!
//! While it encodes, level l of IQ2 and IQ3 counts as the odd number 2l + 1, whatever its value.
//! The octets of IQ2 belong to the lattice E8: coordinates l + 1/2 with an even sum. The quartets
//! of IQ3_XXS belong to the lattice D4: coordinates l with an even sum. The others were chosen
//! among all combinations of levels. The code of a point holds its levels, 2 bits each in octets and
//! 3 in quartets, the first lowest.
//!
//! Levels found by plain rounding make a cell, which need not be a point of the codebook. The
//! neighbour table gives for each such cell the points nearest to it, among which the encoder
//! chooses by weighted error. It is made at first use by the rule of `iq2xs_init_impl` and
//! `iq3xs_init_impl`: all points at the smallest distances, `shells` of them, sorted by distance,
//! those of equal distance by number. The first of equally good points wins, so the order shows
//! in the bytes.

use std::sync::OnceLock;

pub(crate) use cheapest::{Costs, Sixteen};
use pulp::Simd;

mod cheapest;
mod iq1_s;
mod iq2_s;
mod iq2_xs;
mod iq2_xxs;
mod iq3_s;
mod iq3_xxs;

/// What the three levels of IQ2 stand for.
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
    /// The values of each point.
    pub values: [[i8; DIM]; N],
    /// The code of each point.
    codes: &'static [u16; N],
    shells: usize,
    cells: OnceLock<Cells>,
}

/// The neighbour table.
struct Cells {
    cells: Vec<Cell>,
    /// The codes of points near cells that are no points themselves.
    near: Vec<Sixteen>,
}

#[derive(Clone, Copy)]
enum Cell {
    /// It is this point of the codebook.
    Point(u16),
    /// Where the points near it start in `Cells::near`, and how many sixteens they fill.
    Near { start: u32, sixteens: u16 },
}

/// Where a cell lies.
pub(crate) enum Place<'a> {
    /// It is this point of the codebook.
    Point(u16),
    /// These points are near, given by their codes; there is at least one.
    Near(&'a [Sixteen]),
}

impl<const DIM: usize, const LEVELS: usize, const N: usize> Grid<DIM, LEVELS, N> {
    const BITS: usize = if LEVELS > 4 { 3 } else { 2 };

    const fn new(codes: &'static [u16; N], value: [i8; LEVELS], shells: usize) -> Self {
        assert!(DIM * (1 << Self::BITS) == 32 && LEVELS <= 1 << Self::BITS);
        let mut values = [[0; DIM]; N];
        // A constant function has no `for`.
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

    /// The level of a code at coordinate `i`, in `0..LEVELS`.
    #[inline(always)]
    pub const fn level(code: u16, i: usize) -> u8 {
        (code >> (Self::BITS * i)) as u8 & ((1 << Self::BITS) - 1)
    }

    /// The code of a point.
    #[inline(always)]
    pub fn code(&self, point: u16) -> u16 {
        self.codes[usize::from(point) % N]
    }

    /// The point with this code; 0 if there is none.
    #[inline(always)]
    pub fn point(&self, code: u16) -> u16 {
        match self.place(self.cell(std::array::from_fn(|i| Self::level(code, i)))) {
            Place::Point(point) => point,
            Place::Near(_) => 0,
        }
    }

    /// The place of a cell, which is numbered by its levels as digits to base `LEVELS`, the first
    /// the lowest.
    #[inline(always)]
    pub fn place(&self, cell: usize) -> Place<'_> {
        let Cells { cells, near } = self.cells.get_or_init(|| self.neighbours());
        match cells[cell] {
            Cell::Point(point) => Place::Point(point),
            Cell::Near { start, sixteens } => {
                Place::Near(&near[start as usize..][..usize::from(sixteens)])
            }
        }
    }

    /// The number of the cell of some levels.
    #[inline(always)]
    pub fn cell(&self, levels: [u8; DIM]) -> usize {
        levels.iter().rev().fold(0, |cell, &l| cell * LEVELS + usize::from(l))
    }

    /// The code of the point with the smallest sum of costs, the first of equals.
    #[inline(always)]
    pub fn cheapest<S: Simd>(&self, simd: S, near: &[Sixteen], costs: &Costs) -> u16 {
        cheapest::cheapest::<S, DIM>(simd, near, costs)
    }

    fn neighbours(&self) -> Cells {
        // A squared distance is the sum of those in the lower and the upper half of the coordinates.
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
                // A stable sort: points at the same distance stay in order of number.
                found.sort_by_key(|&n| distances[n]);
                let (start, sixteens) = (cells.near.len() as u32, found.len().div_ceil(16) as u16);
                cells.near.extend(found.chunks(16).map(|sixteen| {
                    std::array::from_fn(|k| self.codes[*sixteen.get(k).unwrap_or(&found[0])])
                }));
                cells.cells.push(Cell::Near { start, sixteens });
            }
        }
        cells
    }

    /// The squared distance of each point to a cell, in half of the coordinates only: those from
    /// `from`, for which `cell` has the digits. At most 2 * 7 * 7.
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
                // Past its end a list is filled up with its first point.
                let fill = near[1..].iter().rev().take_while(|&&code| code == near[0]).count();
                sum += near.len() - fill;
                max = max.max(near.len() - fill);
            }
        }
        assert_eq!((sum, max), (total, most));
    }

    /// Sizes of llama.cpp's tables.
    #[test]
    fn neighbour_tables_have_their_sizes() {
        check(&IQ1_S, 327_721, 205);
        check(&IQ2_XXS, 113_157, 150);
        check(&IQ2_XS, 181_721, 292);
        check(&IQ2_S, 44_716, 70);
        check(&IQ3_XXS, 18_985, 36);
        check(&IQ3_S, 24_733, 38);
    }
}
