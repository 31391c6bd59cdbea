//! Vectors of independent lanes: each lane works on its own group, with exactly the operations, in
//! exactly the order, of the scalar code.
//!
//! Encoders can therefore use vectors of any width and still produce the bytes of the scalar code.
//! Where scalar code branches with `if`, lanes use [`Mask::select`].

use std::ops::{Add, BitAnd, BitOr, Div, Mul, Not, Sub};

pub(crate) use floats::{floats, scale_levels};
use pulp::{Simd, bytemuck};
pub(crate) use steps::Steps;

mod floats;
mod steps;

/// One float per lane, in `U` vectors; several vectors hide the latency of each operation.
///
/// Aligned to cache lines, since the vectors of `pulp` are not.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Lanes<S: Simd, const U: usize> {
    simd: S,
    vectors: [S::f32s; U],
}

/// One boolean per lane.
#[derive(Clone, Copy)]
pub(crate) struct Mask<S: Simd, const U: usize> {
    simd: S,
    vectors: [S::m32s; U],
}

/// 1.5 * 2^23. Adding it to a float of magnitude below 2^22 rounds to an integer, ties to even,
/// which is then in the low bits of the mantissa.
const ROUND: f32 = 12_582_912.0;

/// 2^23, whose bits are the exponent of [`ROUND`] alone.
const EXPONENT: f32 = 8_388_608.0;

/// Mask of the mantissa bits.
const MANTISSA: u32 = 0x7f_ffff;

impl<S: Simd, const U: usize> Lanes<S, U> {
    /// Number of lanes.
    pub const COUNT: usize = U * S::F32_LANES;

    /// Broadcasts a float to all lanes.
    #[inline(always)]
    pub fn splat(simd: S, value: f32) -> Self {
        Self { simd, vectors: [simd.splat_f32s(value); U] }
    }

    /// Computes a float for each lane.
    #[inline(always)]
    pub fn from_fn(simd: S, value: impl Fn(usize) -> f32) -> Self {
        let mut lanes = Self::splat(simd, 0.0);
        for (i, lane) in lanes.as_mut().iter_mut().enumerate() {
            *lane = value(i);
        }
        lanes
    }

    /// Transposes element `i` of group `k` to lane `k` of vector `i`. Excess lanes repeat the last
    /// group.
    #[inline(always)]
    pub fn transpose<const N: usize>(simd: S, groups: &[[f32; N]]) -> [Self; N] {
        Self::transpose_from(
            simd,
            #[inline(always)]
            |k| groups.get(k).or(groups.last()),
        )
    }

    /// Transposes like [`Self::transpose`] with a lookup function for the groups. Excess lanes are
    /// 0.
    #[inline(always)]
    pub fn transpose_from<'a, const N: usize>(
        simd: S,
        group: impl Fn(usize) -> Option<&'a [f32; N]>,
    ) -> [Self; N] {
        let mut lanes = [Self::splat(simd, 0.0); N];
        for k in 0..Self::COUNT {
            if let Some(group) = group(k) {
                for (lanes, &value) in lanes.iter_mut().zip(group) {
                    lanes.as_mut()[k] = value;
                }
            }
        }
        lanes
    }

    /// Returns the floats in lane order.
    #[inline(always)]
    pub fn as_slice(&self) -> &[f32] {
        bytemuck::cast_slice(&self.vectors)
    }

    /// Stores the first lanes, as many as fit in `out`.
    #[inline(always)]
    pub fn store(&self, out: &mut [f32]) {
        for (out, &value) in out.iter_mut().zip(self.as_slice()) {
            *out = value;
        }
    }

    #[inline(always)]
    fn as_mut(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(&mut self.vectors)
    }

    /// Broadcasts a float to all lanes.
    #[inline(always)]
    pub fn constant(self, value: f32) -> Self {
        Self::splat(self.simd, value)
    }

    #[inline(always)]
    fn map(self, f: impl Fn(S, S::f32s) -> S::f32s) -> Self {
        let Self { simd, mut vectors } = self;
        for vector in &mut vectors {
            *vector = f(simd, *vector);
        }
        Self { simd, vectors }
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(S, S::f32s, S::f32s) -> S::f32s) -> Self {
        let Self { simd, mut vectors } = self;
        for (vector, &other) in vectors.iter_mut().zip(&other.vectors) {
            *vector = f(simd, *vector, other);
        }
        Self { simd, vectors }
    }

    #[inline(always)]
    fn compare(self, other: Self, f: impl Fn(S, S::f32s, S::f32s) -> S::m32s) -> Mask<S, U> {
        let simd = self.simd;
        let mut vectors = [f(simd, self.vectors[0], other.vectors[0]); U];
        for (u, mask) in vectors.iter_mut().enumerate().skip(1) {
            *mask = f(simd, self.vectors[u], other.vectors[u]);
        }
        Mask { simd, vectors }
    }

    /// Square root.
    #[inline(always)]
    pub fn sqrt(self) -> Self {
        self.map(
            #[inline(always)]
            |simd, v| simd.sqrt_f32s(v),
        )
    }

    /// Absolute value.
    #[inline(always)]
    pub fn abs(self) -> Self {
        self.map(
            #[inline(always)]
            |simd, v| simd.abs_f32s(v),
        )
    }

    /// Negation, including the sign of zero.
    #[inline(always)]
    pub fn neg(self) -> Self {
        self.map(
            #[inline(always)]
            |simd, v| simd.neg_f32s(v),
        )
    }

    /// Lanes where `self < other`. Comparisons with NaN are false.
    #[inline(always)]
    pub fn less(self, other: Self) -> Mask<S, U> {
        self.compare(
            other,
            #[inline(always)]
            |simd, a, b| simd.less_than_f32s(a, b),
        )
    }

    /// Lanes where `self > other`.
    #[inline(always)]
    pub fn greater(self, other: Self) -> Mask<S, U> {
        other.less(self)
    }

    /// Lanes where both are equal.
    #[inline(always)]
    pub fn equal(self, other: Self) -> Mask<S, U> {
        self.compare(
            other,
            #[inline(always)]
            |simd, a, b| simd.equal_f32s(a, b),
        )
    }

    /// Rounds to the nearest integer like `search::nearest`, clamped to `low..=high`.
    #[inline(always)]
    pub fn nearest(self, low: f32, high: f32) -> Self {
        // Between 2^23 and 2^24 there is no NaN and no zero, which min and max treat differently on
        // different processors.
        let rounded = (self + self.constant(ROUND)).low_bits(MANTISSA);
        let (low, high) = (self.constant(ROUND + low), self.constant(ROUND + high));
        let limited = rounded.zip(
            low,
            #[inline(always)]
            |simd, a, b| simd.max_f32s(a, b),
        );
        limited.zip(
            high,
            #[inline(always)]
            |simd, a, b| simd.min_f32s(a, b),
        ) - self.constant(ROUND)
    }

    /// Rounds like [`Self::nearest`]; requires magnitudes below 2^22.
    #[inline(always)]
    pub fn nearest_in_range(self, low: f32, high: f32) -> Self {
        let round = self.constant(ROUND);
        let limited = (self + round).zip(
            self.constant(ROUND + low),
            #[inline(always)]
            |simd, a, b| simd.max_f32s(a, b),
        );
        limited.zip(
            self.constant(ROUND + high),
            #[inline(always)]
            |simd, a, b| simd.min_f32s(a, b),
        ) - round
    }

    /// Rounds to the nearest integer, at least `low`; requires magnitudes below 2^22.
    #[inline(always)]
    pub fn nearest_from(self, low: f32) -> Self {
        let (round, low) = (self.constant(ROUND), self.constant(ROUND + low));
        let rounded = self + round;
        rounded.zip(
            low,
            #[inline(always)]
            |simd, a, b| simd.max_f32s(a, b),
        ) - round
    }

    /// Rounds to the nearest integer, ties away from zero; 0 for magnitudes of at least 2^22 and
    /// for NaN.
    #[inline(always)]
    pub fn round_half_away(self) -> Self {
        let (zero, one, half) = (self.constant(0.0), self.constant(1.0), self.constant(0.5));
        let even = (self + self.constant(ROUND)) - self.constant(ROUND);
        let rest = self - even;
        let up = rest.equal(half) & self.greater(zero);
        let down = rest.equal(half.neg()) & self.less(zero);
        let away = up.select(even + one, down.select(even - one, even));
        self.abs().less(self.constant(4_194_304.0)).select(away, zero)
    }

    /// Rounds like [`Self::round_half_away`]; requires magnitudes below 2^22.
    #[inline(always)]
    pub fn round_half_away_in_range(self) -> Self {
        // The largest float below 0.5: the sum reaches the next integer from exactly one half on.
        let magnitude = self.abs() + self.constant(0.5f32.next_down());
        let floor = magnitude.floor_in_range(4_194_304.0);
        self.less(self.constant(0.0)).select(floor.neg(), floor)
    }

    /// Floor, at most `high`; requires numbers from 0 to 2^22.
    #[inline(always)]
    pub fn floor_in_range(self, high: f32) -> Self {
        let nearest = (self + self.constant(ROUND)) - self.constant(ROUND);
        let floor = nearest.greater(self).select(nearest - self.constant(1.0), nearest);
        floor.zip(
            self.constant(high),
            #[inline(always)]
            |simd, a, b| simd.min_f32s(a, b),
        )
    }

    /// Floor clamped to `0..=high`; 0 for infinity and NaN.
    #[inline(always)]
    pub fn floor(self, high: f32) -> Self {
        let (zero, high) = (self.constant(0.0), self.constant(high));
        let nearest = self.nearest(0.0, 255.0);
        let floor = nearest.greater(self).select(nearest - self.constant(1.0), nearest);
        let floor = floor.less(zero).select(zero, floor);
        floor.greater(high).select(high, floor)
    }

    /// Rounds like `search::nearest`, modulo 256.
    #[inline(always)]
    pub fn nearest_byte(self) -> Self {
        (self + self.constant(ROUND)).low_bits(0xff) - self.constant(EXPONENT)
    }

    /// Masks the bits and sets the exponent of 2^23.
    #[inline(always)]
    fn low_bits(self, mask: u32) -> Self {
        self.map(
            #[inline(always)]
            |simd, v| {
                let bits = simd.and_u32s(simd.transmute_u32s_f32s(v), simd.splat_u32s(mask));
                let exponent = simd.splat_u32s(EXPONENT.to_bits());
                simd.transmute_f32s_u32s(simd.or_u32s(bits, exponent))
            },
        )
    }
}

impl<S: Simd, const U: usize> Mask<S, U> {
    /// Selects `yes` in lanes where the mask is true and `no` elsewhere.
    #[inline(always)]
    pub fn select(self, yes: Lanes<S, U>, no: Lanes<S, U>) -> Lanes<S, U> {
        let Lanes { simd, mut vectors } = no;
        for ((vector, &mask), &yes) in vectors.iter_mut().zip(&self.vectors).zip(&yes.vectors) {
            *vector = simd.select_f32s(mask, yes, *vector);
        }
        Lanes { simd, vectors }
    }

    /// Whether any lane is true.
    #[inline(always)]
    pub fn any(self) -> bool {
        let mut any = false;
        for &mask in &self.vectors {
            any |= self.simd.first_true_m32s(mask) < S::F32_LANES;
        }
        any
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(S, S::m32s, S::m32s) -> S::m32s) -> Self {
        let Self { simd, mut vectors } = self;
        for (mask, &other) in vectors.iter_mut().zip(&other.vectors) {
            *mask = f(simd, *mask, other);
        }
        Self { simd, vectors }
    }
}

macro_rules! operator {
    ($operator:ident, $method:ident, $type:ident, $function:ident) => {
        impl<S: Simd, const U: usize> $operator for $type<S, U> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                self.zip(
                    other,
                    #[inline(always)]
                    |simd, a, b| simd.$function(a, b),
                )
            }
        }
    };
}

operator!(Add, add, Lanes, add_f32s);
operator!(Sub, sub, Lanes, sub_f32s);
operator!(Mul, mul, Lanes, mul_f32s);
operator!(Div, div, Lanes, div_f32s);
operator!(BitAnd, bitand, Mask, and_m32s);
operator!(BitOr, bitor, Mask, or_m32s);

impl<S: Simd, const U: usize> Not for Mask<S, U> {
    type Output = Self;

    #[inline(always)]
    fn not(self) -> Self {
        let Self { simd, mut vectors } = self;
        for mask in &mut vectors {
            *mask = simd.not_m32s(*mask);
        }
        Self { simd, vectors }
    }
}

/// Applies `f` to consecutive floats, a whole number of vectors.
#[inline(always)]
pub(crate) fn transform<S: Simd, const N: usize>(
    simd: S,
    x: &[f32; N],
    out: &mut [f32; N],
    f: impl Fn(Lanes<S, 1>) -> Lanes<S, 1>,
) {
    const { assert!(N.is_multiple_of(S::F32_LANES)) }
    for (x, out) in S::as_simd_f32s(x).0.iter().zip(S::as_mut_simd_f32s(out).0) {
        *out = f(Lanes { simd, vectors: [*x] }).vectors[0];
    }
}

/// Multiplies by `scale`; a whole number of vectors.
#[inline(always)]
pub(crate) fn scale<S: Simd, const N: usize>(
    simd: S,
    x: &[f32; N],
    scale: f32,
    out: &mut [f32; N],
) {
    let scale = Lanes::splat(simd, scale);
    transform(
        simd,
        x,
        out,
        #[inline(always)]
        |x| x * scale,
    );
}

/// Multiplies by `scale` and adds `offset`; a whole number of vectors.
#[inline(always)]
pub(crate) fn affine<S: Simd, const N: usize>(
    simd: S,
    x: &[f32; N],
    (scale, offset): (f32, f32),
    out: &mut [f32; N],
) {
    let (scale, offset) = (Lanes::splat(simd, scale), Lanes::splat(simd, offset));
    transform(
        simd,
        x,
        out,
        #[inline(always)]
        |x| x * scale + offset,
    );
}

/// Max magnitude of finite numbers; a whole number of vectors.
#[inline(always)]
pub(crate) fn magnitude<S: Simd, const N: usize>(simd: S, x: &[f32; N]) -> f32 {
    const { assert!(N.is_multiple_of(S::F32_LANES)) }
    let mut max = simd.splat_f32s(0.0);
    for &x in S::as_simd_f32s(x).0 {
        max = simd.max_f32s(max, simd.abs_f32s(x));
    }
    simd.reduce_max_f32s(max)
}

/// Minimum and maximum of finite numbers; a whole number of vectors.
#[inline(always)]
pub(crate) fn range<S: Simd, const N: usize>(simd: S, x: &[f32; N]) -> (f32, f32) {
    const { assert!(N.is_multiple_of(S::F32_LANES)) }
    let x = S::as_simd_f32s(x).0;
    let (mut min, mut max) = (x[0], x[0]);
    for &x in &x[1..] {
        (min, max) = (simd.min_f32s(min, x), simd.max_f32s(max, x));
    }
    (simd.reduce_min_f32s(min), simd.reduce_max_f32s(max))
}

/// Low 8 bits of integers below 2^22 in magnitude.
#[inline(always)]
pub(crate) fn bytes<const N: usize>(integers: &[f32; N]) -> [u8; N] {
    let mut bytes = [0; N];
    for (byte, v) in bytes.iter_mut().zip(integers) {
        *byte = (v + ROUND).to_bits() as u8;
    }
    bytes
}

/// Stores the low 8 bits of integers below 2^22 in magnitude. The length is known only at run time,
/// so the compiler keeps a vectorized loop.
#[inline(always)]
pub(crate) fn store_bytes(integers: &[f32], bytes: &mut [u8]) {
    for (byte, v) in bytes.iter_mut().zip(integers) {
        *byte = (v + ROUND).to_bits() as u8;
    }
}

/// Sum from left to right.
#[inline(always)]
pub(crate) fn sum<S: Simd, const U: usize>(x: &[Lanes<S, U>]) -> Lanes<S, U> {
    let mut sum = x[0].constant(0.0);
    for &x in x {
        sum = sum + x;
    }
    sum
}

/// Sum of squares from left to right.
#[inline(always)]
pub(crate) fn sum_squares<S: Simd, const U: usize>(x: &[Lanes<S, U>]) -> Lanes<S, U> {
    let mut sum = x[0].constant(0.0);
    for &x in x {
        sum = sum + x * x;
    }
    sum
}

/// Applies `f` to each vector. Always inlined, unlike `array::map`: a function that is not inlined
/// lacks the instruction set of its caller.
#[inline(always)]
pub(crate) fn map<S: Simd, const U: usize, const N: usize>(
    x: &[Lanes<S, U>; N],
    f: impl Fn(Lanes<S, U>) -> Lanes<S, U>,
) -> [Lanes<S, U>; N] {
    let mut mapped = *x;
    for x in &mut mapped {
        *x = f(*x);
    }
    mapped
}
