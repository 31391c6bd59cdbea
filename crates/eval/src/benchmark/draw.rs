//! Random selection of questions as in `llama-perplexity`, which uses `std::mt19937` with the seed 1 and different ways to
//! derive bounded numbers.

use rand_mt::Mt;

fn generator() -> Mt {
    Mt::new(1)
}

/// Draws as for HellaSwag: with `std::uniform_int_distribution` of libstdc++ since GCC 11, removing drawn elements.
pub(super) fn uniform<T>(mut all: Vec<T>, count: usize) -> Vec<T> {
    let mut generator = generator();
    (0..count.min(all.len())).map(|_| all.remove(below(&mut generator, all.len()))).collect()
}

/// Returns a uniform number below a limit (Lemire, arXiv 1805.10941).
fn below(generator: &mut Mt, limit: usize) -> usize {
    let limit = limit as u32;
    let mut product = u64::from(generator.next_u32()) * u64::from(limit);
    if (product as u32) < limit {
        let least = limit.wrapping_neg() % limit;
        while (product as u32) < least {
            product = u64::from(generator.next_u32()) * u64::from(limit);
        }
    }
    (product >> 32) as usize
}

/// Draws as for the other benchmarks: with an F32 product, replacing drawn elements by the last one.
pub(super) fn scaled<T>(mut all: Vec<T>, count: usize) -> Vec<T> {
    let mut generator = generator();
    let share = 1.0 / 4_294_967_296.0f32;
    let count = count.min(all.len());
    let draw = |_| {
        let place = (share * generator.next_u32() as f32 * all.len() as f32) as usize;
        // The greatest numbers are rounded up to the length.
        all.swap_remove(place.min(all.len() - 1))
    };
    (0..count).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that llama.cpp's functions, compiled with GCC 12, draw from those below 1000.
    #[test]
    fn draws_match_llama_cpp() {
        assert_eq!(uniform((0..1000).collect(), 8), [417, 997, 719, 931, 0, 128, 302, 999]);
        assert_eq!(scaled((0..1000).collect(), 8), [417, 996, 718, 929, 0, 127, 300, 992]);
        // This limit causes many rejections.
        let mut generator = generator();
        let found = [(); 4].map(|()| below(&mut generator, 3_000_000_000));
        assert_eq!(found, [1_251_065_995, 2_991_554_424, 2_160_973_467, 2_797_672_083]);
        assert_eq!(uniform(vec![1, 2, 3], 9).len(), 3);
    }
}
