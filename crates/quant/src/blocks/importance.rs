//! The weights of the IQ encoders: how much the error of each number counts.

/// Importance weights make the weights: large numbers count more than small ones, but not by their
/// square, since `energy` (about the mean square around the group) is added first.
#[inline(always)]
pub(super) fn emphasize<const N: usize>(
    importance: &[f32; N],
    x: &[f32; N],
    energy: f32,
) -> [f32; N] {
    // Loops over slices become vectors; closures for single elements are not always inlined.
    let mut weights = [0.0; N];
    for (weight, (w, x)) in weights.iter_mut().zip(importance.iter().zip(x)) {
        *weight = w * (energy + x * x).sqrt();
    }
    weights
}

/// Without importance weights they are the squares.
#[inline(always)]
pub(super) fn squares<const N: usize>(x: &[f32; N]) -> [f32; N] {
    let mut squares = [0.0; N];
    for (square, x) in squares.iter_mut().zip(x) {
        *square = x * x;
    }
    squares
}
