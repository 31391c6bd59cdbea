//! Element-wise loops that several kernels share.

use pulp::{Arch, Simd, WithSimd};

use super::parallel::each_row;
use crate::value::Value;

/// Applies a function to all elements.
pub(super) fn map(x: &Value, out: &mut Value, function: impl Fn(f32) -> f32 + Sync) {
    let arch = Arch::new();
    each_row(out, |row, out| arch.dispatch(Map { x: x.row(row), function: &function, out }));
}

/// Applies a function to all pairs of elements.
pub(super) fn zip(
    a: &Value,
    b: &Value,
    out: &mut Value,
    function: impl Fn(f32, f32) -> f32 + Sync,
) {
    let arch = Arch::new();
    each_row(out, |row, out| {
        arch.dispatch(Zip { a: a.row(row), b: b.row(row), function: &function, out });
    });
}

struct Map<'r, F> {
    x: &'r [f32],
    function: &'r F,
    out: &'r mut [f32],
}

impl<F: Fn(f32) -> f32> WithSimd for Map<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (out, x) in self.out.iter_mut().zip(self.x) {
            *out = (self.function)(*x);
        }
    }
}

struct Zip<'r, F> {
    a: &'r [f32],
    b: &'r [f32],
    function: &'r F,
    out: &'r mut [f32],
}

impl<F: Fn(f32, f32) -> f32> WithSimd for Zip<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for ((out, a), b) in self.out.iter_mut().zip(self.a).zip(self.b) {
            *out = (self.function)(*a, *b);
        }
    }
}

/// Multiplies each of as many equal groups of a row as there are factors.
pub(super) fn scale_groups(x: &[f32], factors: &[f32], out: &mut [f32]) {
    let len = x.len() / factors.len().max(1);
    let groups = out.chunks_exact_mut(len).zip(x.chunks_exact(len));
    for ((out, x), factor) in groups.zip(factors) {
        out.iter_mut().zip(x).for_each(|(out, x)| *out = x * factor);
    }
}

/// Adds a row to each row.
pub(super) fn add_to_rows(row: Option<&[f32]>, out: &mut Value) {
    let Some(row) = row else { return };
    each_row(out, |_, out| out.iter_mut().zip(row).for_each(|(out, x)| *out += x));
}
