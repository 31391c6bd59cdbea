//! Search of the lowest-cost neighbour of a cell: the innermost loop of the IQ1, IQ2 and IQ3
//! encoders.
//!
//! The vector versions compare eight or sixteen grid points at a time. Each lane adds the costs of
//! its point in the order of the coordinates, as the scalar code does, so all sums are
//! bit-identical. Of equal sums the first wins.

#[cfg(target_arch = "x86_64")]
use std::any::Any;

use pulp::Simd;
#[cfg(target_arch = "x86_64")]
use pulp::x86::{V3, V4};

/// Cost of each level at each coordinate: one table per coordinate, with 4 levels for octets (the
/// last is unused) and 8 for quartets.
pub(crate) type Costs = [f32; 32];

/// Codes of grid points that are compared together. The last chunk is padded with the first point
/// of the list, which never beats itself.
pub(crate) type CodeChunk = [u16; 16];

/// Returns the code of the point with the smallest sum of costs, the first of equals. If all sums
/// overflow, returns the first point; llama.cpp's encoder aborts there.
#[inline(always)]
pub(super) fn argmin<S: Simd, const DIM: usize>(simd: S, near: &[CodeChunk], costs: &Costs) -> u16 {
    // The compiler resolves this downcast.
    #[cfg(target_arch = "x86_64")]
    {
        let simd: &dyn Any = &simd;
        if let Some(&simd) = simd.downcast_ref::<V4>() {
            return argmin_avx512::<DIM>(simd, near, costs);
        }
        if let Some(&simd) = simd.downcast_ref::<V3>() {
            return argmin_avx2::<DIM>(simd, near, costs);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = simd;
    argmin_scalar::<DIM>(near, costs)
}

#[inline]
fn argmin_scalar<const DIM: usize>(near: &[CodeChunk], costs: &Costs) -> u16 {
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

/// AVX-512 version of [`argmin_scalar`]. Tracks the index of each lane's minimum only for lists of
/// more than sixteen.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn argmin_avx512<const DIM: usize>(simd: V4, near: &[CodeChunk], costs: &Costs) -> u16 {
    const { assert!(DIM == 8 || DIM == 4) }
    let levels = costs.len() / DIM;
    let mut tables = [pulp::cast(simd.splat_f32s(0.0)); DIM];
    for (table, costs) in tables.iter_mut().zip(costs.chunks_exact(levels)) {
        // The permutation uses more index bits than one level has, so the table is repeated.
        let c = |l| costs[l % levels];
        let eight = [c(0), c(1), c(2), c(3), c(4), c(5), c(6), c(7)];
        *table = pulp::cast([eight, eight]);
    }
    let sums = |codes: &CodeChunk| {
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

/// AVX2 version of [`argmin_scalar`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn argmin_avx2<const DIM: usize>(simd: V3, near: &[CodeChunk], costs: &Costs) -> u16 {
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
    // `phminposuw` finds the minimum of eight 16-bit numbers; lists are far shorter than 65536.
    let [low, high]: [pulp::u32x4; 2] = pulp::cast(found);
    let found = simd.sse4_1._mm_packus_epi32(pulp::cast(low), pulp::cast(high));
    let [first, ..]: [u16; 8] = pulp::cast(simd.sse4_1._mm_minpos_epu16(found));
    near.get(usize::from(first)).copied().unwrap_or(near[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    type Version = fn(&[CodeChunk], &Costs) -> u16;

    /// The versions that this processor supports.
    fn versions<const DIM: usize>() -> Vec<Version> {
        let versions: Vec<Version> =
            vec![|near, costs| argmin::<_, DIM>(pulp::Scalar, near, costs), argmin_scalar::<DIM>];
        #[cfg(target_arch = "x86_64")]
        let versions = {
            let mut versions = versions;
            if V3::try_new().is_some() {
                versions.push(|near, costs| argmin::<_, DIM>(V3::try_new().unwrap(), near, costs));
            }
            if V4::try_new().is_some() {
                versions.push(|near, costs| argmin::<_, DIM>(V4::try_new().unwrap(), near, costs));
            }
            versions
        };
        versions
    }

    #[test]
    fn first_of_equal_costs_wins() {
        let mut near = [[7; 16]];
        (near[0][1], near[0][2]) = (3, 5);
        for argmin in versions::<4>() {
            assert_eq!(argmin(&near, &[1.0; 32]), 7);
            assert_eq!(argmin(&near, &[f32::NAN; 32]), 7);
        }
    }

    /// Few distinct costs, so that many sums are equal, with some NaN and infinity.
    #[test]
    fn versions_agree() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize
        };
        const COSTS: [f32; 8] = [0.0, -0.0, 1.0, 1.0, 0.1, 2.5, f32::INFINITY, f32::NAN];
        for _ in 0..2000 {
            let of = random() % 8 + 1;
            let costs = std::array::from_fn(|_| COSTS[random() % of]);
            let octets: Vec<CodeChunk> = (0..random() % 5 + 1)
                .map(|_| std::array::from_fn(|_| (random() & random() << 1) as u16 & 0xaaaa))
                .collect();
            for argmin in versions::<8>() {
                assert_eq!(argmin(&octets, &costs), argmin_scalar::<8>(&octets, &costs));
            }
            let quartets: Vec<CodeChunk> = (0..random() % 3 + 1)
                .map(|_| std::array::from_fn(|_| random() as u16 & 0xfff))
                .collect();
            for argmin in versions::<4>() {
                assert_eq!(argmin(&quartets, &costs), argmin_scalar::<4>(&quartets, &costs));
            }
        }
    }
}
