//! The codebooks of the IQ1, IQ2 and IQ3 types, one file of data each, and their neighbour tables.
//!
//! A codebook is a list of points; a block stores the number of a point instead of 8 (or 4) single
//! levels. The coordinates of a point are levels, `0..3` in octets and `0..8` in quartets; what a
//! level stands for is its value: 8, 25, 43 in IQ2, say. All numbers are those of the official
//! tables (`ggml-common.h`; the encoder's copy of them is in `ggml-quants.c`).
//!
//! While it encodes, level l of IQ2 and IQ3 counts as the odd number 2l + 1, whatever its value.
//! The octets of IQ2 belong to the lattice E8: coordinates l + 1/2 with an even sum. The quartets
//! of IQ3_XXS belong to the lattice D4: coordinates l with an even sum. The others were chosen
//! among all combinations of levels.
//!
//! Levels found by plain rounding make a cell, which need not be a point of the codebook. The
//! neighbour table gives for each such cell the points nearest to it, among which the encoder
//! chooses by weighted error. It is made at first use by the rule of `iq2xs_init_impl` and
//! `iq3xs_init_impl`: all points at the smallest distances, `shells` of them, sorted by distance,
//! those of equal distance by number. The first of equally good points wins, so the order shows
//! in the bytes.

use std::sync::OnceLock;

mod iq1_s;
mod iq2_s;
mod iq2_xs;
mod iq2_xxs;
mod iq3_s;
mod iq3_xxs;

/// What the three levels of IQ2 stand for.
const IQ2_VALUES: [i8; 3] = [8, 25, 43];

pub(crate) static IQ1_S: Grid<8, 3, 2048> = Grid::new(2, &iq1_s::CODES, [-1, 0, 1], 3);
pub(crate) static IQ2_XXS: Grid<8, 3, 256> = Grid::new(2, &iq2_xxs::CODES, IQ2_VALUES, 2);
pub(crate) static IQ2_XS: Grid<8, 3, 512> = Grid::new(2, &iq2_xs::CODES, IQ2_VALUES, 2);
pub(crate) static IQ2_S: Grid<8, 3, 1024> = Grid::new(2, &iq2_s::CODES, IQ2_VALUES, 1);
pub(crate) static IQ3_XXS: Grid<4, 8, 256> =
    Grid::new(3, &iq3_xxs::CODES, [4, 12, 20, 28, 36, 44, 52, 62], 2);
pub(crate) static IQ3_S: Grid<4, 8, 512> =
    Grid::new(3, &iq3_s::CODES, [1, 3, 5, 7, 9, 11, 13, 15], 3);

/// A codebook of `N` points with `DIM` coordinates in `0..LEVELS`.
pub(crate) struct Grid<const DIM: usize, const LEVELS: usize, const N: usize> {
    /// The values of each point.
    pub values: [[i8; DIM]; N],
    /// The levels of each point, 4 bits each, the first lowest.
    packed: [u32; N],
    shells: usize,
    cells: OnceLock<Cells>,
}

/// The neighbour table.
struct Cells {
    /// For each cell: where its points start in `points`, how many they are, and whether it is a
    /// point of the codebook itself, which is then its only one.
    cells: Vec<(u32, u16, bool)>,
    points: Vec<u16>,
}

/// Where a cell lies.
pub(crate) enum Place<'a> {
    /// It is this point of the codebook.
    Point(u16),
    /// These points are near; there is at least one.
    Near(&'a [u16]),
}

/// What each level would cost at each coordinate; `LEVELS` of 8 are used.
pub(crate) type Costs<const DIM: usize> = [[f32; 8]; DIM];

impl<const DIM: usize, const LEVELS: usize, const N: usize> Grid<DIM, LEVELS, N> {
    const fn new(bits: u32, codes: &[u16; N], value: [i8; LEVELS], shells: usize) -> Self {
        assert!(LEVELS <= 8 && DIM <= 8);
        let (mut values, mut packed) = ([[0; DIM]; N], [0; N]);
        // A constant function has no `for`.
        let mut n = 0;
        while n < N {
            let mut i = 0;
            while i < DIM {
                let level = codes[n] >> (bits * i as u32) & ((1 << bits) - 1);
                values[n][i] = value[level as usize];
                packed[n] |= (level as u32) << (4 * i);
                i += 1;
            }
            n += 1;
        }
        Self { values, packed, shells, cells: OnceLock::new() }
    }

    /// The level of a point at coordinate `i`, in `0..LEVELS`.
    #[inline]
    pub fn level(&self, point: u16, i: usize) -> u8 {
        (self.packed[usize::from(point) % N] >> (4 * i)) as u8 & 7
    }

    /// The place of a cell, which is numbered by its levels as digits to base `LEVELS`, the first
    /// the lowest.
    #[inline]
    pub fn place(&self, cell: usize) -> Place<'_> {
        let Cells { cells, points } = self.cells.get_or_init(|| self.neighbours());
        let (start, count, is_point) = cells[cell];
        let near = &points[start as usize..][..usize::from(count)];
        if is_point { Place::Point(near[0]) } else { Place::Near(near) }
    }

    /// The number of the cell of some levels.
    #[inline]
    pub fn cell(&self, levels: [u8; DIM]) -> usize {
        levels.iter().rev().fold(0, |cell, &l| cell * LEVELS + usize::from(l))
    }

    /// The point with the smallest sum of costs, the first of equals. If all sums are beyond the
    /// range of numbers it is the first point; the official encoder stops there.
    #[inline]
    pub fn cheapest(&self, near: &[u16], costs: &Costs<DIM>) -> u16 {
        let (mut best, mut found) = (f32::MAX, near[0]);
        for &point in near {
            let levels = self.packed[usize::from(point) % N];
            let mut sum = 0.0;
            for (i, cost) in costs.iter().enumerate() {
                sum += cost[(levels >> (4 * i)) as usize & 7];
            }
            if sum < best {
                (best, found) = (sum, point);
            }
        }
        found
    }

    fn neighbours(&self) -> Cells {
        // A squared distance is the sum of those in the lower and the upper half of the coordinates.
        let halves = LEVELS.pow(DIM as u32 / 2);
        let [lower, upper] = [0, DIM / 2].map(|from| {
            (0..halves).map(|cell| self.half_distances(cell, from)).collect::<Vec<_>>()
        });
        let mut cells = Cells { cells: Vec::with_capacity(halves * halves), points: Vec::new() };
        for upper in &upper {
            for lower in &lower {
                let distances: [u8; N] = std::array::from_fn(|n| lower[n] + upper[n]);
                let mut seen = [false; 256];
                distances.iter().for_each(|&d| seen[usize::from(d)] = true);
                let is_point = seen[0];
                let shells = if is_point { 1 } else { self.shells };
                let last = (0..=u8::MAX).filter(|&d| seen[usize::from(d)]).take(shells).last();
                let near = |&n: &u16| Some(distances[usize::from(n)]) <= last;
                let start = cells.points.len();
                cells.points.extend((0..N as u16).filter(near));
                // A stable sort: points at the same distance stay in order of number.
                cells.points[start..].sort_by_key(|&n| distances[usize::from(n)]);
                let count = cells.points.len() - start;
                cells.cells.push((start as u32, count as u16, is_point));
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
                let diff = self.level(n as u16, i).abs_diff((digits % LEVELS) as u8);
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
        let sum = |n| (0..DIM).map(|i| u32::from(grid.level(n, i))).sum();
        (0..N as u16).map(sum).collect()
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
            let cell = grid.cell(std::array::from_fn(|i| grid.level(point, i)));
            assert!(matches!(grid.place(cell), Place::Point(p) if p == point));
        }
        for cell in 0..LEVELS.pow(DIM as u32) {
            if let Place::Near(near) = grid.place(cell) {
                sum += near.len();
                max = max.max(near.len());
            }
        }
        assert_eq!((sum, max), (total, most));
    }

    /// Sizes of the official tables.
    #[test]
    fn neighbour_tables_have_their_sizes() {
        check(&IQ1_S, 327_721, 205);
        check(&IQ2_XXS, 113_157, 150);
        check(&IQ2_XS, 181_721, 292);
        check(&IQ2_S, 44_716, 70);
        check(&IQ3_XXS, 18_985, 36);
        check(&IQ3_S, 24_733, 38);
    }

    #[test]
    fn first_of_equals_is_cheapest() {
        let costs = [[1.0; 8]; 4];
        assert_eq!(IQ3_S.cheapest(&[7, 3, 5], &costs), 7);
        assert_eq!(IQ3_S.cheapest(&[7, 3], &[[f32::NAN; 8]; 4]), 7);
    }
}
