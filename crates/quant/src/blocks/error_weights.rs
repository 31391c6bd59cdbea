//! Error weights of the IQ encoders: the weight of each number's squared error.

/// Multiplies each importance weight by `sqrt(energy + x^2)`, where `energy` is about the mean
/// square around the group: large numbers count more, but less than by their square.
#[inline(always)]
pub(super) fn emphasize<const N: usize>(
    importance: &[f32; N],
    x: &[f32; N],
    energy: f32,
) -> [f32; N] {
    // Loops over slices vectorize; closures for single elements are not always inlined.
    let mut weights = [0.0; N];
    for (weight, (w, x)) in weights.iter_mut().zip(importance.iter().zip(x)) {
        *weight = w * (energy + x * x).sqrt();
    }
    weights
}

/// Error weights without importance weights: the squares of the numbers.
#[inline(always)]
pub(super) fn squares<const N: usize>(x: &[f32; N]) -> [f32; N] {
    let mut squares = [0.0; N];
    for (square, x) in squares.iter_mut().zip(x) {
        *square = x * x;
    }
    squares
}
