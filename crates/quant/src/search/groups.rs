//! Scale searches over consecutive groups of floats, with transposition to lanes and back.

use pulp::{Simd, WithSimd};

use super::{Affine, Trials, affine, symmetric, symmetric_descent, unsigned_lanes};
use crate::block::Row;
use crate::lanes::{self, Lanes};

/// Number of vectors to process side by side: enough to hide the latency of an addition.
const WIDTH: usize = 2;

/// Number of vectors for the coordinate descent, which waits for one division after the other:
/// vectors that exceed the registers cost more than they hide.
const DESCENT_WIDTH: usize = 2;

/// Maximum number of groups per call.
pub(crate) const MAX_GROUPS: usize = 256;

/// Results of a search, one number per group.
pub(crate) struct Fits {
    /// Scale.
    pub scale: [f32; MAX_GROUPS],
    /// Negated minimum.
    pub m: [f32; MAX_GROUPS],
    /// Inverse scale of the best trial, from which levels are computed.
    pub inverse: [f32; MAX_GROUPS],
    /// Minimum of the best trial.
    pub min: [f32; MAX_GROUPS],
    /// Sum of the weights.
    pub weight: [f32; MAX_GROUPS],
}

impl Fits {
    /// All zeros.
    #[inline(always)]
    pub fn new() -> Self {
        let zeros = [0.0; MAX_GROUPS];
        Self { scale: zeros, m: zeros, inverse: zeros, min: zeros, weight: zeros }
    }

    /// Runs [`affine`] for each group; `weigh` computes the weights, given the index of the first
    /// group.
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
            let found = outlined(simd, AffineSearch { top, x: &x, weights: &weights, trials });
            found.scale.store(&mut self.scale[at..]);
            found.m.store(&mut self.m[at..]);
            found.inverse.store(&mut self.inverse[at..]);
            found.min.store(&mut self.min[at..]);
            lanes::sum(&weights).store(&mut self.weight[at..]);
        }
    }

    /// Rounds group `g` to levels for the stored scale and minimum; if that scale is 0, returns the
    /// levels that [`Fits::affine`] found.
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

    /// Computes the levels of group `g` that [`Fits::affine`] found.
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

    /// Rounds group `g` to levels for the stored scale; if that scale is 0, returns the levels that
    /// [`Fits::symmetric`] found.
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

    /// Computes the levels of group `g` that [`Fits::symmetric`] found.
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
            // The levels of an all-zero group are 0, not `half`: its scale is 0.
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

    /// Runs [`symmetric`] for each group; `weigh` computes the weights, given the index of the
    /// first group.
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
            let (scale, inverse) =
                outlined(simd, SymmetricSearch { half, x: &x, weights: &weights });
            scale.store(&mut self.scale[at..]);
            inverse.store(&mut self.inverse[at..]);
            lanes::sum(&weights).store(&mut self.weight[at..]);
        }
    }

    /// Runs [`symmetric_descent`] for each group and returns the levels.
    #[inline(always)]
    pub fn symmetric_descent<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        half: i32,
        groups: &[[f32; N]],
    ) -> [[f32; N]; MAX_GROUPS] {
        let mut levels = [[0.0; N]; MAX_GROUPS];
        for at in (0..groups.len()).step_by(Lanes::<S, DESCENT_WIDTH>::COUNT) {
            let x = Lanes::<S, DESCENT_WIDTH>::transpose(simd, &groups[at..]);
            let (scale, found) = symmetric_descent(half, &x);
            scale.store(&mut self.scale[at..]);
            store_levels(&found, half as f32, &mut levels[at..]);
        }
        levels
    }
}

/// Runs `work` in a separate function, compiled once for all formats that share it. The long
/// searches are worth the call; inlining them into every encoder made up most of the program size.
#[inline(never)]
fn outlined<S: Simd, Work: WithSimd>(simd: S, work: Work) -> Work::Output {
    simd.vectorize(work)
}

/// Arguments of [`affine`].
struct AffineSearch<'a, S: Simd, const N: usize> {
    top: i32,
    x: &'a [Lanes<S, WIDTH>; N],
    weights: &'a [Lanes<S, WIDTH>; N],
    trials: &'a Trials,
}

impl<S: Simd, const N: usize> WithSimd for AffineSearch<'_, S, N> {
    type Output = Affine<S, WIDTH>;

    // The lanes carry their instruction set.
    #[inline(always)]
    fn with_simd<Same: Simd>(self, _: Same) -> Self::Output {
        affine(self.top, self.x, self.weights, self.trials)
    }
}

/// Arguments of [`symmetric`].
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

/// Stores the levels of lanes plus `offset` into groups.
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

/// Runs `unsigned` of `reference.rs` for each group and returns scales and levels.
#[inline(always)]
pub(crate) fn unsigned_groups<S: Simd, const N: usize, const GROUPS: usize>(
    simd: S,
    top: i32,
    groups: &[[f32; N]],
    weights: &[[f32; N]],
) -> ([f32; GROUPS], [[u8; N]; GROUPS]) {
    outlined(simd, UnsignedGroups { top, groups, weights })
}

/// Arguments of [`unsigned_groups`].
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

/// Importance weights of the groups starting at `at`, emphasized by magnitude: each is multiplied
/// by `sqrt(energy + x^2)`, where `energy` is about the mean square around the group.
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

/// Emphasizes like [`emphasize_lanes`] with the mean squares of whole rows as energy. Without
/// importance weights the result is 0.
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

/// Mean squares of rows whose length is a multiple of sixteen, each summed from left to right, one
/// row per lane.
#[inline(always)]
pub(crate) fn mean_squares<S: Simd>(simd: S, rows: &[f32], row_len: usize) -> Vec<f32> {
    let mut means = Vec::with_capacity(rows.len() / row_len);
    for rows in rows.chunks(row_len * Lanes::<S, 1>::COUNT) {
        let mut sum = Lanes::<S, 1>::splat(simd, 0.0);
        let mut lane_rows: [&[[f32; 16]]; 16] = [&[]; 16];
        for (lane_row, row) in lane_rows.iter_mut().zip(rows.chunks(row_len)) {
            *lane_row = row.as_chunks().0;
        }
        for sixteen in 0..row_len / 16 {
            let x = Lanes::transpose_from(
                simd,
                #[inline(always)]
                |k| lane_rows[k].get(sixteen),
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
    // All sums advance together, which hides the latency of each addition.
    let mut sums = [0.0; BLOCKS];
    for (sums, blocks) in sums.chunks_mut(8).zip(blocks.chunks(8)) {
        let mut eight = [&blocks[0]; 8];
        for (slot, block) in eight.iter_mut().zip(blocks) {
            *slot = block;
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
