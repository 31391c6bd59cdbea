//! Rotation of heads before they are stored in few bits.

/// Multiplies each part of a head whose length is a power of two, as long as possible, by the Hadamard matrix of that size
/// divided by the square root of the size. That matrix is symmetric and orthogonal: scalar products do not change, and a
/// second rotation returns the head. Large elements are spread over the whole part.
pub(crate) fn rotate(head: &mut [f32]) {
    let size = 1 << head.len().trailing_zeros().min(16);
    let factor = 1.0 / (size as f32).sqrt();
    for part in head.chunks_exact_mut(size) {
        let mut half = 1;
        while half < size {
            for pair in part.chunks_exact_mut(2 * half) {
                let (a, b) = pair.split_at_mut(half);
                for (a, b) in a.iter_mut().zip(b) {
                    (*a, *b) = (*a + *b, *a - *b);
                }
            }
            half *= 2;
        }
        part.iter_mut().for_each(|x| *x *= factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_keeps_products_and_is_its_own_inverse() {
        for len in [32, 96, 128, 192, 576] {
            let head = |seed: usize| (0..len).map(move |i| ((i * seed) % 23) as f32 - 11.0);
            let (a, b): (Vec<f32>, Vec<f32>) = (head(7).collect(), head(5).collect());
            let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            let (mut c, mut d) = (a.clone(), b.clone());
            rotate(&mut c);
            rotate(&mut d);
            assert!((product(&a, &b) - product(&c, &d)).abs() < 1e-6 * product(&a, &a), "{len}");
            rotate(&mut c);
            assert!(a.iter().zip(&c).all(|(a, c)| (a - c).abs() < 1e-5 * 11.0), "{len}");
        }
        // A single large element is spread over all others.
        let mut spike = vec![0.0; 64];
        spike[5] = 8.0;
        rotate(&mut spike);
        assert!(spike.iter().all(|x| x.abs() == 1.0), "{spike:?}");
    }
}
