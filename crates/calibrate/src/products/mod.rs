//! Sums of products over tokens, in INT8.
//!
//! Each column is rounded to INT8 with one scale per group of tokens. The products are summed exactly,
//! so the results are the same on every processor.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod vnni;

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use gguf_runtime::V4Vnni;
#[cfg(target_arch = "x86_64")]
use pulp::NullaryFnOnce;
#[cfg(target_arch = "x86_64")]
use pulp::x86::V3;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Number of columns per strip.
pub(crate) const STRIP: usize = 16;

/// Number of columns of the left operand that are multiplied together.
pub(crate) const BATCH: usize = 8;

/// Number of tokens with a common scale. Sums of so many products are exact in F32, too.
const GROUP: usize = 256;

/// Greatest magnitude of a rounded number.
const MAX: f32 = 127.0;

/// Adding this number rounds a small one to an integer, in the low bits.
const ROUNDING: f32 = 1.5 * (1 << 23) as f32;

/// One or several tokens of a strip.
pub(crate) trait Unit: Copy + Default + Send + Sync {
    /// Number of tokens.
    const TOKENS: usize;

    /// Stores a number.
    fn set(&mut self, token: usize, column: usize, value: i8);
}

/// Sums of products of INT8 numbers by certain instructions.
pub(crate) trait Kernel<U: Unit> {
    /// Adds to `sums` the products of one of the parts of `BATCH` columns of `a` by all columns of `b`.
    fn add_products(
        &self,
        a: (&[U], &Columns),
        part: usize,
        b: (&[U], &Columns),
        sums: &mut [[f32; STRIP]; BATCH],
    );
}

/// Values of some tokens, rounded to INT8.
pub(crate) enum Rounded {
    /// For VNNI.
    #[cfg(target_arch = "x86_64")]
    Bytes(V4Vnni, Tokens<Bytes>),
    /// For AVX2.
    #[cfg(target_arch = "x86_64")]
    Pairs(V3, Tokens<avx2::Pairs>),
    /// For other processors.
    Floats(Tokens<Floats>),
}

impl Rounded {
    /// Rounds rows of `width` numbers.
    pub fn new(rows: &[f32], width: usize) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(vnni) = V4Vnni::try_new() {
            return Self::Bytes(vnni, Tokens::new(rows, width));
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = V3::try_new() {
            return Self::Pairs(avx2, Tokens::new(rows, width));
        }
        Self::Floats(Tokens::new(rows, width))
    }

    /// `out[i][j] += sum over tokens of self[i] b[j]`; with `lower`, only the strips up to the
    /// diagonal.
    pub fn add_products(&self, b: &Self, lower: bool, out: &mut [f32]) {
        match (self, b) {
            #[cfg(target_arch = "x86_64")]
            (Self::Bytes(vnni, a), Self::Bytes(_, b)) => {
                a.add_products(b, lower, out, |strip| vnni.vectorize(Run(*vnni, strip)));
            }
            #[cfg(target_arch = "x86_64")]
            (Self::Pairs(avx2, a), Self::Pairs(_, b)) => {
                a.add_products(b, lower, out, |strip| avx2.vectorize(Run(*avx2, strip)));
            }
            (Self::Floats(a), Self::Floats(b)) => {
                a.add_products(b, lower, out, |strip| Arch::new().dispatch(InFloats(strip)));
            }
            // The processor does not change.
            #[cfg(target_arch = "x86_64")]
            _ => {}
        }
    }
}

/// Values of some tokens, rounded to INT8.
pub(crate) struct Tokens<U> {
    /// Number of columns.
    width: usize,
    groups: Vec<Group<U>>,
}

/// Up to [`GROUP`] tokens, in strips.
struct Group<U> {
    /// Units of each strip, one strip after the other.
    units: Vec<U>,
    strips: Vec<Columns>,
}

/// The columns of a strip.
pub(crate) struct Columns {
    /// Scale of each column; NaN for a column with NaN or infinity.
    pub scales: [f32; STRIP],
    /// Sum of the rounded numbers of each column.
    pub totals: [i32; STRIP],
}

impl<U: Unit> Tokens<U> {
    /// Rounds rows of `width` numbers.
    pub fn new(rows: &[f32], width: usize) -> Self {
        let groups = rows.chunks(GROUP * width).map(|rows| Group::new(rows, width));
        Self { width, groups: groups.collect() }
    }

    fn add_products(
        &self,
        b: &Self,
        lower: bool,
        out: &mut [f32],
        run: impl Fn(StripProducts<'_, U>) + Sync,
    ) {
        out.par_chunks_mut(STRIP * b.width).enumerate().for_each(|(strip, out)| {
            let last = if lower { strip } else { usize::MAX };
            run(StripProducts { a: self, strip, b, last, out });
        });
    }
}

impl<U: Unit> Group<U> {
    fn new(rows: &[f32], width: usize) -> Self {
        let in_strip = (rows.len() / width).div_ceil(U::TOKENS);
        let mut units = vec![U::default(); in_strip * width.div_ceil(STRIP)];
        let strips = units.par_chunks_mut(in_strip).enumerate().map(|(number, units)| {
            let first = number * STRIP;
            let strip = first..width.min(first + STRIP);
            Arch::new().dispatch(Round { rows, width, strip, units })
        });
        let strips = strips.collect();
        Self { units, strips }
    }

    fn strip(&self, number: usize) -> (&[U], &Columns) {
        let in_strip = self.units.len() / self.strips.len();
        (&self.units[number * in_strip..][..in_strip], &self.strips[number])
    }
}

/// Rounds the tokens of a strip.
struct Round<'r, U> {
    rows: &'r [f32],
    width: usize,
    strip: Range<usize>,
    units: &'r mut [U],
}

impl<U: Unit> WithSimd for Round<'_, U> {
    type Output = Columns;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Columns {
        let Self { rows, width, strip, units } = self;
        let columns = strip.len();
        let (mut most, mut zeros) = ([0.0; STRIP], [0.0; STRIP]);
        for row in rows.chunks_exact(width) {
            let mut x = [0.0; STRIP];
            x[..columns].copy_from_slice(&row[strip.clone()]);
            let lanes = S::as_simd_f32s(&x).0.iter();
            let (most, zeros) =
                (S::as_mut_simd_f32s(&mut most).0, S::as_mut_simd_f32s(&mut zeros).0);
            for ((x, most), zero) in lanes.zip(most).zip(zeros) {
                *most = simd.max_f32s(*most, simd.abs_f32s(*x));
                // NaN after NaN or infinity.
                *zero = simd.mul_add_f32s(*x, simd.splat_f32s(0.0), *zero);
            }
        }
        let mut found = Columns { scales: [0.0; STRIP], totals: [0; STRIP] };
        let mut inverses = [0.0; STRIP];
        for column in 0..columns {
            found.scales[column] = most[column] / MAX + zeros[column];
            let scale = found.scales[column];
            inverses[column] = if scale >= f32::MIN_POSITIVE { 1.0 / scale } else { 0.0 };
        }
        for (token, row) in rows.chunks_exact(width).enumerate() {
            let mut x = [0.0; STRIP];
            x[..columns].copy_from_slice(&row[strip.clone()]);
            for (x, inverse) in
                S::as_mut_simd_f32s(&mut x).0.iter_mut().zip(S::as_simd_f32s(&inverses).0)
            {
                *x = simd.mul_add_f32s(*x, *inverse, simd.splat_f32s(ROUNDING));
            }
            let unit = &mut units[token / U::TOKENS];
            for (column, (x, total)) in x.iter().zip(&mut found.totals).enumerate() {
                let value = x.to_bits() as i8;
                *total += i32::from(value);
                unit.set(token % U::TOKENS, column, value);
            }
        }
        found
    }
}

/// Products of one strip of `a`.
pub(crate) struct StripProducts<'p, U> {
    a: &'p Tokens<U>,
    strip: usize,
    b: &'p Tokens<U>,
    /// Last strip of `b` to compute.
    last: usize,
    out: &'p mut [f32],
}

impl<U: Unit> StripProducts<'_, U> {
    /// Computes all products.
    #[inline(always)]
    pub fn run(self, kernel: &impl Kernel<U>) {
        let Self { a, strip, b, last, out } = self;
        let n = b.width;
        for other in 0..n.div_ceil(STRIP).min(last.saturating_add(1)) {
            let columns = other * STRIP..n.min((other + 1) * STRIP);
            for (part, out) in out.chunks_mut(BATCH * n).enumerate() {
                let mut sums = [[0.0; STRIP]; BATCH];
                for (a, b) in a.groups.iter().zip(&b.groups) {
                    kernel.add_products(a.strip(strip), part, b.strip(other), &mut sums);
                }
                for (out, sums) in out.chunks_mut(n).zip(&sums) {
                    let out = &mut out[columns.clone()];
                    out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
                }
            }
        }
    }
}

/// The products of a strip by a kernel, compiled as one function.
#[cfg(target_arch = "x86_64")]
struct Run<'r, K, U>(K, StripProducts<'r, U>);

#[cfg(target_arch = "x86_64")]
impl<K: Kernel<U>, U: Unit> NullaryFnOnce for Run<'_, K, U> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.1.run(&self.0);
    }
}

/// Four tokens of each column.
pub(crate) type Bytes = [[i8; 4]; STRIP];

impl Unit for Bytes {
    const TOKENS: usize = 4;

    fn set(&mut self, token: usize, column: usize, value: i8) {
        self[column][token] = value;
    }
}

/// One token.
pub(crate) type Floats = [f32; STRIP];

impl Unit for Floats {
    const TOKENS: usize = 1;

    fn set(&mut self, _: usize, column: usize, value: i8) {
        self[column] = f32::from(value);
    }
}

struct InFloats<'p>(StripProducts<'p, Floats>);

impl WithSimd for InFloats<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.0.run(&MultiplyAdd(simd));
    }
}

/// Products in F32.
struct MultiplyAdd<S>(S);

impl<S: Simd> Kernel<Floats> for MultiplyAdd<S> {
    #[inline(always)]
    fn add_products(
        &self,
        (a, left): (&[Floats], &Columns),
        part: usize,
        (b, right): (&[Floats], &Columns),
        sums: &mut [[f32; STRIP]; BATCH],
    ) {
        let Self(simd) = self;
        for vector in 0..STRIP / S::F32_LANES {
            let mut registers = [simd.splat_f32s(0.0); BATCH];
            for (a, b) in a.iter().zip(b) {
                let b = S::as_simd_f32s(b).0[vector];
                for (sum, a) in registers.iter_mut().zip(&a.as_chunks::<BATCH>().0[part]) {
                    *sum = simd.mul_add_f32s(simd.splat_f32s(*a), b, *sum);
                }
            }
            let right = S::as_simd_f32s(&right.scales).0[vector];
            for (i, register) in registers.into_iter().enumerate() {
                let scale = simd.mul_f32s(simd.splat_f32s(left.scales[part * BATCH + i]), right);
                let sum = &mut S::as_mut_simd_f32s(&mut sums[i]).0[vector];
                *sum = simd.mul_add_f32s(scale, register, *sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_processors_sum_alike() {
        let (width, tokens) = (37, 300);
        let rows: Vec<f32> = (0..width * tokens).map(|i| (i as f32 * 0.37).sin()).collect();
        let mut expected = vec![0.0; width * width];
        let floats = Rounded::Floats(Tokens::new(&rows, width));
        floats.add_products(&floats, false, &mut expected);
        let check = |rounded: &Rounded| {
            let mut found = vec![0.0; width * width];
            rounded.add_products(rounded, false, &mut found);
            assert_eq!(found, expected);
        };
        check(&Rounded::new(&rows, width));
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = V3::try_new() {
            check(&Rounded::Pairs(avx2, Tokens::new(&rows, width)));
        }
    }

    #[test]
    fn not_a_number_reaches_the_sums() {
        let rows = [[1.0, 2.0], [f32::NAN, 3.0]].concat();
        let rounded = Rounded::new(&rows, 2);
        let mut sums = [0.0; 4];
        rounded.add_products(&rounded, false, &mut sums);
        assert!(sums[0].is_nan() && sums[1].is_nan() && sums[2].is_nan());
        // The largest number of a column is rounded to itself.
        assert!((sums[3] - 13.0).abs() < 0.05);
    }
}
