//! The choice among the points near a cell: the innermost loop of the IQ1, IQ2 and IQ3 encoders.
//!
//! Points are compared eight or sixteen at a time. Each lane adds the costs of its point's levels in
//! the order of the coordinates, as the scalar code does, so that all sums are the same to the bit,
//! and of equal sums the first wins.

#[cfg(target_arch = "x86_64")]
use std::any::Any;

use pulp::Simd;
#[cfg(target_arch = "x86_64")]
use pulp::x86::{V3, V4};

/// What each level would cost at each coordinate: a table for each of the coordinates, of 4 levels
/// in octets (the last is not used) and of 8 in quartets.
pub(crate) type Costs = [f32; 32];

/// Codes of points that are compared together. The last of a list are filled up with its first
/// point, which, being equal, never wins over itself.
pub(crate) type Sixteen = [u16; 16];

/// The code of the point with the smallest sum of costs, the first of equals. If all sums are beyond
/// the range of numbers it is the first point; llama.cpp's encoder stops there.
#[inline(always)]
pub(super) fn cheapest<S: Simd, const DIM: usize>(simd: S, near: &[Sixteen], costs: &Costs) -> u16 {
    // The compiler knows which it is.
    #[cfg(target_arch = "x86_64")]
    {
        let simd: &dyn Any = &simd;
        if let Some(&simd) = simd.downcast_ref::<V4>() {
            return by_sixteen::<DIM>(simd, near, costs);
        }
        if let Some(&simd) = simd.downcast_ref::<V3>() {
            return by_eight::<DIM>(simd, near, costs);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = simd;
    one_by_one::<DIM>(near, costs)
}

#[inline]
fn one_by_one<const DIM: usize>(near: &[Sixteen], costs: &Costs) -> u16 {
    let levels = costs.len() / DIM;
    let near = near.as_flattened();
    let (mut best, mut found) = (f32::MAX, near[0]);
    for &code in near {
        let mut sum = 0.0;
        for (i, costs) in costs.chunks_exact(levels).enumerate() {
            let bits = levels.ilog2() as usize;
            sum += costs[usize::from(code) >> (bits * i) & (levels - 1)];
        }
        if sum < best {
            (best, found) = (sum, code);
        }
    }
    found
}

/// As [`one_by_one`]. Only for lists of more than sixteen it keeps where each lane found its best.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn by_sixteen<const DIM: usize>(simd: V4, near: &[Sixteen], costs: &Costs) -> u16 {
    const { assert!(DIM == 8 || DIM == 4) }
    let levels = costs.len() / DIM;
    let mut tables = [pulp::cast(simd.splat_f32s(0.0)); DIM];
    for (table, costs) in tables.iter_mut().zip(costs.chunks_exact(levels)) {
        // Codes index a table with more bits than those of one level, so it stands several times.
        let c = |l| costs[l % levels];
        let eight = [c(0), c(1), c(2), c(3), c(4), c(5), c(6), c(7)];
        *table = pulp::cast([eight, eight]);
    }
    let sums = |codes: &Sixteen| {
        let mut codes = simd.avx512f._mm512_cvtepu16_epi32(pulp::cast(*codes));
        let mut sums = simd.splat_f32s(0.0);
        for (i, &table) in tables.iter().enumerate() {
            let (cost, next) = match DIM {
                8 => (
                    simd.avx512f._mm512_permutevar_ps(table, codes),
                    simd.avx512f._mm512_srli_epi32::<2>(codes),
                ),
                _ => (
                    simd.avx512f._mm512_permutexvar_ps(codes, table),
                    simd.avx512f._mm512_srli_epi32::<3>(codes),
                ),
            };
            let cost = pulp::cast(cost);
            sums = if i == 0 { cost } else { simd.add_f32s(sums, cost) };
            codes = next;
        }
        sums
    };
    let none = simd.splat_f32s(f32::MAX);
    let first = sums(&near[0]);
    let mut best = simd.select_f32s(simd.less_than_f32s(first, none), first, none);
    if near.len() == 1 {
        let least = simd.splat_f32s(simd.reduce_min_f32s(best));
        let lane = simd.equal_f32s(best, least).0.trailing_zeros();
        return near[0][lane as usize % 16];
    }
    let mut here: pulp::u32x16 =
        pulp::cast([0u32, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    let mut found = here;
    for codes in &near[1..] {
        let sum = sums(codes);
        here = simd.add_u32s(here, simd.splat_u32s(16));
        let better = simd.less_than_f32s(sum, best);
        best = simd.select_f32s(better, sum, best);
        found = simd.select_u32s(better, here, found);
    }
    let least = simd.splat_f32s(simd.reduce_min_f32s(best));
    let found = simd.select_u32s(simd.equal_f32s(best, least), found, simd.splat_u32s(u32::MAX));
    let first = simd.avx512f._mm512_reduce_min_epu32(pulp::cast(found));
    near.as_flattened().get(first as usize).copied().unwrap_or(near[0][0])
}

/// As [`by_sixteen`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn by_eight<const DIM: usize>(simd: V3, near: &[Sixteen], costs: &Costs) -> u16 {
    const { assert!(DIM == 8 || DIM == 4) }
    let levels = costs.len() / DIM;
    let mut tables = [pulp::cast(simd.splat_f32s(0.0)); DIM];
    for (table, costs) in tables.iter_mut().zip(costs.chunks_exact(levels)) {
        let c = |l| costs[l % levels];
        *table = pulp::cast([c(0), c(1), c(2), c(3), c(4), c(5), c(6), c(7)]);
    }
    let mut best = simd.splat_f32s(f32::MAX);
    let mut found = simd.splat_u32s(0);
    let mut here: pulp::u32x8 = pulp::cast([0u32, 1, 2, 3, 4, 5, 6, 7]);
    let near = near.as_flattened();
    for codes in near.as_chunks::<8>().0 {
        let mut codes = simd.avx2._mm256_cvtepu16_epi32(pulp::cast(*codes));
        let mut sums = simd.splat_f32s(0.0);
        for (i, &table) in tables.iter().enumerate() {
            let (cost, next) = match DIM {
                8 => (
                    simd.avx._mm256_permutevar_ps(table, codes),
                    simd.avx2._mm256_srli_epi32::<2>(codes),
                ),
                _ => (
                    simd.avx2._mm256_permutevar8x32_ps(table, codes),
                    simd.avx2._mm256_srli_epi32::<3>(codes),
                ),
            };
            let cost = pulp::cast(cost);
            sums = if i == 0 { cost } else { simd.add_f32s(sums, cost) };
            codes = next;
        }
        let better = simd.less_than_f32s(sums, best);
        best = simd.select_f32s(better, sums, best);
        found = simd.select_u32s(better, here, found);
        here = simd.add_u32s(here, simd.splat_u32s(8));
    }
    let least = simd.splat_f32s(simd.reduce_min_f32s(best));
    let none = simd.splat_u32s(u32::from(u16::MAX));
    let found = simd.select_u32s(simd.equal_f32s(best, least), found, none);
    // There is an instruction for the least of eight 16-bit numbers. Lists are far shorter than that.
    let [low, high]: [pulp::u32x4; 2] = pulp::cast(found);
    let found = simd.sse4_1._mm_packus_epi32(pulp::cast(low), pulp::cast(high));
    let [first, ..]: [u16; 8] = pulp::cast(simd.sse4_1._mm_minpos_epu16(found));
    near.get(usize::from(first)).copied().unwrap_or(near[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    type Way = fn(&[Sixteen], &Costs) -> u16;

    /// Those that this processor has.
    fn ways<const DIM: usize>() -> Vec<Way> {
        let ways: Vec<Way> =
            vec![|near, costs| cheapest::<_, DIM>(pulp::Scalar, near, costs), one_by_one::<DIM>];
        #[cfg(target_arch = "x86_64")]
        let ways = {
            let mut ways = ways;
            if V3::try_new().is_some() {
                ways.push(|near, costs| cheapest::<_, DIM>(V3::try_new().unwrap(), near, costs));
            }
            if V4::try_new().is_some() {
                ways.push(|near, costs| cheapest::<_, DIM>(V4::try_new().unwrap(), near, costs));
            }
            ways
        };
        ways
    }

    #[test]
    fn first_of_equals_is_cheapest() {
        let mut near = [[7; 16]];
        (near[0][1], near[0][2]) = (3, 5);
        for cheapest in ways::<4>() {
            assert_eq!(cheapest(&near, &[1.0; 32]), 7);
            assert_eq!(cheapest(&near, &[f32::NAN; 32]), 7);
        }
    }

    /// Few different costs, so that many sums are equal, and some that are no numbers.
    #[test]
    fn all_ways_choose_the_same() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize
        };
        const COSTS: [f32; 8] = [0.0, -0.0, 1.0, 1.0, 0.1, 2.5, f32::INFINITY, f32::NAN];
        for _ in 0..2000 {
            let of = random() % 8 + 1;
            let costs = std::array::from_fn(|_| COSTS[random() % of]);
            let octets: Vec<Sixteen> = (0..random() % 5 + 1)
                .map(|_| std::array::from_fn(|_| (random() & random() << 1) as u16 & 0xaaaa))
                .collect();
            for cheapest in ways::<8>() {
                assert_eq!(cheapest(&octets, &costs), one_by_one::<8>(&octets, &costs));
            }
            let quartets: Vec<Sixteen> = (0..random() % 3 + 1)
                .map(|_| std::array::from_fn(|_| random() as u16 & 0xfff))
                .collect();
            for cheapest in ways::<4>() {
                assert_eq!(cheapest(&quartets, &costs), one_by_one::<4>(&quartets, &costs));
            }
        }
    }
}
