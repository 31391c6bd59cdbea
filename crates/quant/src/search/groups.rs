//! The searches for consecutive groups of floats: to lanes and back.

use pulp::{Simd, WithSimd};

use super::{Affine, Trials, affine, symmetric, symmetric_by_moves, unsigned_lanes};
use crate::block::Row;
use crate::lanes::{self, Lanes};

/// Vectors to work on side by side: enough to hide the time of an addition.
const WIDTH: usize = 2;

/// The same for a search that waits for one division after the other: more vectors than fit in
/// registers cost more than they hide.
const WIDTH_OF_MOVES: usize = 2;

/// The most groups to fit at once.
pub(crate) const MOST: usize = 256;

/// What a search finds, one number for each group.
pub(crate) struct Fits {
    /// Scale.
    pub scale: [f32; MOST],
    /// The minimum of the group is `-m`.
    pub m: [f32; MOST],
    /// The trial that won: what the levels are made from.
    pub inverse: [f32; MOST],
    /// See `inverse`.
    pub min: [f32; MOST],
    /// Sum of the weights.
    pub weight: [f32; MOST],
}

impl Fits {
    /// Nothing yet.
    #[inline(always)]
    pub fn new() -> Self {
        let zeros = [0.0; MOST];
        Self { scale: zeros, m: zeros, inverse: zeros, min: zeros, weight: zeros }
    }

    /// [`affine`] for each group; `weigh` makes the weights, given the number of the first group.
    #[inline(always)]
    pub fn affine<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        (top, trials): (i32, &Trials),
        groups: &[[f32; N]],
        weigh: impl Fn(usize, &[Lanes<S, WIDTH>; N]) -> [Lanes<S, WIDTH>; N],
    ) {
        for at in (0..groups.len()).step_by(Lanes::<S, WIDTH>::COUNT) {
            let x = Lanes::transpose(simd, &groups[at..]);
            let weights = weigh(at, &x);
            let found = apart(simd, AffineSearch { top, x: &x, weights: &weights, trials });
            found.scale.store(&mut self.scale[at..]);
            found.m.store(&mut self.m[at..]);
            found.inverse.store(&mut self.inverse[at..]);
            found.min.store(&mut self.min[at..]);
            lanes::sum(&weights).store(&mut self.weight[at..]);
        }
    }

    /// Levels of group `g`, fitted by [`Fits::affine`], for the scale and minimum that are stored
    /// for it; those that were found if that scale is 0.
    #[inline(always)]
    pub fn round_affine<S: Simd, const N: usize>(
        &self,
        simd: S,
        (top, g): (i32, usize),
        x: &[f32; N],
        (d, m): (f32, f32),
        levels: &mut [f32; N],
    ) {
        if d == 0.0 {
            return self.affine_levels(simd, (top, g), x, levels);
        }
        let (d, m) = (Lanes::splat(simd, d), Lanes::splat(simd, m));
        lanes::transform(
            simd,
            x,
            levels,
            #[inline(always)]
            |x| ((x + m) / d).nearest(0.0, top as f32),
        );
    }

    /// The levels of group `g` that [`Fits::affine`] found.
    #[inline(always)]
    pub fn affine_levels<S: Simd, const N: usize>(
        &self,
        simd: S,
        (top, g): (i32, usize),
        x: &[f32; N],
        levels: &mut [f32; N],
    ) {
        let (inverse, min) = (self.inverse[g], self.min[g]);
        let (inverse, min) = (Lanes::splat(simd, inverse), Lanes::splat(simd, min));
        lanes::transform(
            simd,
            x,
            levels,
            #[inline(always)]
            |x| (inverse * (x - min)).nearest(0.0, top as f32),
        );
    }

    /// Levels of group `g`, fitted by [`Fits::symmetric`], for the scale that is stored for it;
    /// those that were found if that scale is 0.
    #[inline(always)]
    pub fn round_symmetric<S: Simd, const N: usize>(
        &self,
        simd: S,
        (half, g): (i32, usize),
        x: &[f32; N],
        d: f32,
        levels: &mut [f32; N],
    ) {
        if d == 0.0 {
            return self.symmetric_levels(simd, (half, g), x, levels);
        }
        let (half, d) = (half as f32, Lanes::splat(simd, d));
        lanes::transform(
            simd,
            x,
            levels,
            #[inline(always)]
            |x| (x / d).nearest(-half, half - 1.0) + x.constant(half),
        );
    }

    /// The levels of group `g` that [`Fits::symmetric`] found.
    #[inline(always)]
    pub fn symmetric_levels<S: Simd, const N: usize>(
        &self,
        simd: S,
        (half, g): (i32, usize),
        x: &[f32; N],
        levels: &mut [f32; N],
    ) {
        let half = half as f32;
        let inverse = self.inverse[g];
        if inverse.is_nan() {
            // The levels of a group of zeros are 0, not `half`: its scale is 0.
            return levels.fill(0.0);
        }
        let inverse = Lanes::splat(simd, inverse);
        lanes::transform(
            simd,
            x,
            levels,
            #[inline(always)]
            |x| (inverse * x).nearest(-half, half - 1.0) + x.constant(half),
        );
    }

    /// [`symmetric`] for each group; `weigh` makes the weights, given the number of the first group.
    #[inline(always)]
    pub fn symmetric<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        half: i32,
        groups: &[[f32; N]],
        weigh: impl Fn(usize, &[Lanes<S, WIDTH>; N]) -> [Lanes<S, WIDTH>; N],
    ) {
        for at in (0..groups.len()).step_by(Lanes::<S, WIDTH>::COUNT) {
            let x = Lanes::transpose(simd, &groups[at..]);
            let weights = weigh(at, &x);
            let (scale, inverse) = apart(simd, SymmetricSearch { half, x: &x, weights: &weights });
            scale.store(&mut self.scale[at..]);
            inverse.store(&mut self.inverse[at..]);
            lanes::sum(&weights).store(&mut self.weight[at..]);
        }
    }

    /// [`symmetric_by_moves`] for each group; returns its levels.
    #[inline(always)]
    pub fn symmetric_by_moves<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        half: i32,
        groups: &[[f32; N]],
    ) -> [[f32; N]; MOST] {
        let mut levels = [[0.0; N]; MOST];
        for at in (0..groups.len()).step_by(Lanes::<S, WIDTH_OF_MOVES>::COUNT) {
            let x = Lanes::<S, WIDTH_OF_MOVES>::transpose(simd, &groups[at..]);
            let (scale, found) = symmetric_by_moves(half, &x);
            scale.store(&mut self.scale[at..]);
            store_levels(&found, half as f32, &mut levels[at..]);
        }
        levels
    }
}

/// Does `work` in a function of its own, compiled once for all formats that share it. The long
/// searches are worth the call; inlined into every encoder they were most of the program.
#[inline(never)]
fn apart<S: Simd, Work: WithSimd>(simd: S, work: Work) -> Work::Output {
    simd.vectorize(work)
}

/// [`affine`] with its arguments.
struct AffineSearch<'a, S: Simd, const N: usize> {
    top: i32,
    x: &'a [Lanes<S, WIDTH>; N],
    weights: &'a [Lanes<S, WIDTH>; N],
    trials: &'a Trials,
}

impl<S: Simd, const N: usize> WithSimd for AffineSearch<'_, S, N> {
    type Output = Affine<S, WIDTH>;

    // The lanes bring their instruction set.
    #[inline(always)]
    fn with_simd<Same: Simd>(self, _: Same) -> Self::Output {
        affine(self.top, self.x, self.weights, self.trials)
    }
}

/// [`symmetric`] with its arguments.
struct SymmetricSearch<'a, S: Simd, const N: usize> {
    half: i32,
    x: &'a [Lanes<S, WIDTH>; N],
    weights: &'a [Lanes<S, WIDTH>; N],
}

impl<S: Simd, const N: usize> WithSimd for SymmetricSearch<'_, S, N> {
    type Output = (Lanes<S, WIDTH>, Lanes<S, WIDTH>);

    #[inline(always)]
    fn with_simd<Same: Simd>(self, _: Same) -> Self::Output {
        symmetric(self.half, self.x, self.weights)
    }
}

/// Levels of lanes into groups, plus `offset`.
#[inline(always)]
fn store_levels<S: Simd, const U: usize, const N: usize>(
    found: &[Lanes<S, U>; N],
    offset: f32,
    groups: &mut [[f32; N]],
) {
    for (i, found) in found.iter().enumerate() {
        for (levels, level) in groups.iter_mut().zip(found.as_slice()) {
            levels[i] = level + offset;
        }
    }
}

/// `unsigned` of `scalar.rs` for each group: scales and levels.
#[inline(always)]
pub(crate) fn unsigned_groups<S: Simd, const N: usize, const GROUPS: usize>(
    simd: S,
    top: i32,
    groups: &[[f32; N]],
    weights: &[[f32; N]],
) -> ([f32; GROUPS], [[u8; N]; GROUPS]) {
    apart(simd, UnsignedGroups { top, groups, weights })
}

/// [`unsigned_groups`] with its arguments.
struct UnsignedGroups<'a, const N: usize, const GROUPS: usize> {
    top: i32,
    groups: &'a [[f32; N]],
    weights: &'a [[f32; N]],
}

impl<const N: usize, const GROUPS: usize> WithSimd for UnsignedGroups<'_, N, GROUPS> {
    type Output = ([f32; GROUPS], [[u8; N]; GROUPS]);

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        fit_unsigned(simd, self.top, self.groups, self.weights)
    }
}

#[inline(always)]
fn fit_unsigned<S: Simd, const N: usize, const GROUPS: usize>(
    simd: S,
    top: i32,
    groups: &[[f32; N]],
    weights: &[[f32; N]],
) -> ([f32; GROUPS], [[u8; N]; GROUPS]) {
    let (mut scales, mut levels) = ([0.0; GROUPS], [[0.0; N]; GROUPS]);
    for at in (0..groups.len()).step_by(Lanes::<S, 1>::COUNT) {
        let x = Lanes::<S, 1>::transpose(simd, &groups[at..]);
        let weights = Lanes::transpose(simd, &weights[at..]);
        let (scale, found) = unsigned_lanes(top, &x, &weights);
        scale.store(&mut scales[at..]);
        store_levels(&found, 0.0, &mut levels[at..]);
    }
    let mut bytes = [[0; N]; GROUPS];
    for (bytes, levels) in bytes.iter_mut().zip(&levels) {
        *bytes = lanes::bytes(levels);
    }
    (scales, bytes)
}

/// Importance weights of the groups from `at` on, emphasized: large values count more than small
/// ones, but not by their square, since `energy` of the group (about the mean square around it) is
/// added first.
#[inline(always)]
pub(crate) fn emphasize_lanes<S: Simd, const U: usize, const N: usize>(
    simd: S,
    columns: &[[f32; N]],
    x: &[Lanes<S, U>; N],
    energy: impl Fn(usize) -> f32,
) -> [Lanes<S, U>; N] {
    let energy = Lanes::from_fn(simd, energy);
    let mut weights = Lanes::transpose(simd, columns);
    for (w, &x) in weights.iter_mut().zip(x) {
        *w = *w * (energy + x * x).sqrt();
    }
    weights
}

/// The same by the mean squares of whole rows. Without importance weights: all 0.
#[inline(always)]
pub(crate) fn emphasize_by_rows<S: Simd, const U: usize, const N: usize>(
    simd: S,
    row: Row<N>,
    at: usize,
    x: &[Lanes<S, U>; N],
) -> [Lanes<S, U>; N] {
    let last = row.mean_squares.len() - 1;
    let columns = row.columns.unwrap_or_default();
    emphasize_lanes(
        simd,
        &columns[at..],
        x,
        #[inline(always)]
        |lane| row.mean_squares[(at + lane).min(last)],
    )
}

/// Mean squares of rows of whole sixteens, each summed from left to right: a row per lane.
#[inline(always)]
pub(crate) fn mean_squares<S: Simd>(simd: S, rows: &[f32], row_len: usize) -> Vec<f32> {
    let mut means = Vec::with_capacity(rows.len() / row_len);
    for rows in rows.chunks(row_len * Lanes::<S, 1>::COUNT) {
        let mut sum = Lanes::<S, 1>::splat(simd, 0.0);
        let mut of_lanes: [&[[f32; 16]]; 16] = [&[]; 16];
        for (of_lane, row) in of_lanes.iter_mut().zip(rows.chunks(row_len)) {
            *of_lane = row.as_chunks().0;
        }
        for sixteen in 0..row_len / 16 {
            let x = Lanes::transpose_from(
                simd,
                #[inline(always)]
                |k| of_lanes[k].get(sixteen),
            );
            for x in x {
                sum = sum + x * x;
            }
        }
        let sums = &sum.as_slice()[..rows.len() / row_len];
        means.extend(sums.iter().map(|sum| sum / row_len as f32));
    }
    means
}

/// Sums of squares of blocks, each from left to right.
#[inline(always)]
pub(crate) fn sums_of_squares<const N: usize, const BLOCKS: usize>(
    blocks: &[[f32; N]],
) -> [f32; BLOCKS] {
    // All side by side: an addition takes longer than it keeps the processor from starting others.
    let mut sums = [0.0; BLOCKS];
    for (sums, blocks) in sums.chunks_mut(8).zip(blocks.chunks(8)) {
        let mut eight = [&blocks[0]; 8];
        for (of_eight, block) in eight.iter_mut().zip(blocks) {
            *of_eight = block;
        }
        let mut found = [0.0; 8];
        for i in 0..N {
            for (sum, block) in found.iter_mut().zip(eight) {
                *sum += block[i] * block[i];
            }
        }
        for (sum, found) in sums.iter_mut().zip(found) {
            *sum = found;
        }
    }
    sums
}
