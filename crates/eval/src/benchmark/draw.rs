//! Which questions are drawn: those that `llama-perplexity` draws. Its generator is `std::mt19937` with the
//! seed 1; how numbers up to a limit are made of it is that of each function there.

use rand_mt::Mt;

fn generator() -> Mt {
    Mt::new(1)
}

/// As for HellaSwag: `std::uniform_int_distribution` of libstdc++ since GCC 11 (other libraries make
/// other numbers), and what is drawn leaves a gap that closes.
pub(super) fn uniform<T>(mut all: Vec<T>, count: usize) -> Vec<T> {
    let mut generator = generator();
    (0..count.min(all.len())).map(|_| all.remove(below(&mut generator, all.len()))).collect()
}

/// A number below a limit, each as likely as the others (Lemire, arXiv 1805.10941).
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

/// As for the others: a product in F32, and the last one takes the place of what is drawn.
pub(super) fn scaled<T>(mut all: Vec<T>, count: usize) -> Vec<T> {
    let mut generator = generator();
    let share = 1.0 / 4_294_967_296.0f32;
    let count = count.min(all.len());
    let draw = |_| {
        let place = (share * generator.next_u32() as f32 * all.len() as f32) as usize;
        // The greatest numbers are rounded to one beyond all.
        all.swap_remove(place.min(all.len() - 1))
    };
    (0..count).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the functions of llama.cpp, compiled with GCC 12, draw of the numbers below 1000.
    #[test]
    fn numbers_are_those_of_llama_cpp() {
        assert_eq!(uniform((0..1000).collect(), 8), [417, 997, 719, 931, 0, 128, 302, 999]);
        assert_eq!(scaled((0..1000).collect(), 8), [417, 996, 718, 929, 0, 127, 300, 992]);
        // Of this limit many numbers are thrown away.
        let mut generator = generator();
        let found = [(); 4].map(|()| below(&mut generator, 3_000_000_000));
        assert_eq!(found, [1_251_065_995, 2_991_554_424, 2_160_973_467, 2_797_672_083]);
        assert_eq!(uniform(vec![1, 2, 3], 9).len(), 3);
    }
}
