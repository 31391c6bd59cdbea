//! Row by row of weights: for few tokens.
#![expect(clippy::needless_range_loop, reason = "tokens and rows count through several arrays")]

use std::arch::x86_64::{__m128i, __m256, __m256i};
use std::marker::PhantomData;

use gguf_quant::integers::{Integers, Lookup, Unpacked};
use pulp::x86::V3;
use pulp::{NullaryFnOnce, cast};

use super::super::rounded::{PIECE, Rounded};
use super::super::{FEW, blocks};
use crate::simd::V3Halves;

/// Sums of products, of which an instruction set that has more than AVX2 makes its own.
pub(in super::super) trait Dots: Copy {
    /// What blocks are unpacked by.
    type Lookup: Lookup;
    /// Where the scale of each weight is found.
    type Places: Copy;
    /// A sum in parts.
    type Parts: Copy;

    /// The instructions of AVX2.
    fn simd(self) -> V3Halves;

    fn lookup(self) -> Self::Lookup;

    fn zero(self) -> Self::Parts;

    fn places<F: Integers>(self) -> Self::Places;

    /// The products of a block of 256 with `T` rows of activations, times the scales of their groups.
    fn scaled<F: Integers, const T: usize>(
        self,
        places: Self::Places,
        weights: &Unpacked,
        x: [&[i8; 256]; T],
    ) -> [Self::Parts; T];

    /// The products of 32 weights, in eight parts.
    fn eighths<F: Integers>(self, weights: &[u8; 32], x: &[i8; 32]) -> __m256i;

    /// A sum less another.
    fn less(self, sum: Self::Parts, other: __m256i) -> Self::Parts;

    /// Eight sums.
    fn sum_eight(self, sums: &[Self::Parts; 8]) -> __m256i;
}

/// Rows of weights with a few rows of activations. No closure: what is not inlined into `vectorize` would
/// not be compiled for its instructions.
pub(in super::super) struct Rows<'r, F, D> {
    pub dots: D,
    pub weights: &'r [u8],
    pub x: &'r Rounded,
    pub out: &'r mut [f32],
    pub of: PhantomData<fn() -> F>,
}

impl<F: Integers, D: Dots> NullaryFnOnce for Rows<'_, F, D> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { dots, weights, x, out, .. } = self;
        match x.rows {
            1 => rows::<F, D, 1>(dots, weights, x, out),
            _ => rows::<F, D, FEW>(dots, weights, x, out),
        }
    }
}

/// Rows of weights with up to `T` rows of activations: of fewer, the last stands in for the others.
#[inline(always)]
fn rows<F: Integers, D: Dots, const T: usize>(
    dots: D,
    weights: &[u8],
    x: &Rounded,
    out: &mut [f32],
) {
    let row_bytes = blocks::<F>(x) * F::BYTES;
    if F::LEN == 256 {
        let mut eight = Eight::<D, T>::new(dots);
        for (weights, out) in weights.chunks_exact(row_bytes).zip(out.chunks_exact_mut(x.rows)) {
            let made = large::<F, D, T>(dots, weights, x, &mut eight);
            out.copy_from_slice(&made[..x.rows]);
        }
        return;
    }
    for (weights, out) in weights.chunks_exact(row_bytes).zip(out.chunks_exact_mut(x.rows)) {
        let made = small::<F, D, T>(dots, weights, x);
        out.copy_from_slice(&made[..x.rows]);
    }
}

/// Sums of eight blocks of 256 with `T` rows of activations, still spread over vectors.
struct Eight<D: Dots, const T: usize> {
    of_levels: [[D::Parts; 8]; T],
    /// Of groups of 16.
    of_minimums: [[__m256i; 8]; T],
    /// Of groups of 32, which are half as many.
    of_few_minimums: [[__m128i; 8]; T],
    x_d: [[f32; 8]; T],
    scales: Scales,
}

impl<D: Dots, const T: usize> Eight<D, T> {
    #[inline(always)]
    fn new(dots: D) -> Self {
        let simd = dots.simd();
        Self {
            of_levels: [[dots.zero(); 8]; T],
            of_minimums: [[simd.avx._mm256_setzero_si256(); 8]; T],
            of_few_minimums: [[simd.sse2._mm_setzero_si128(); 8]; T],
            x_d: [[0.0; 8]; T],
            scales: Scales::EMPTY,
        }
    }
}

/// A row of blocks of 256, eight at a time.
#[inline(always)]
fn large<F: Integers, D: Dots, const T: usize>(
    dots: D,
    weights: &[u8],
    x: &Rounded,
    eight: &mut Eight<D, T>,
) -> [f32; T] {
    let simd = dots.simd();
    let mut made = [0.0; T];
    let (of_32, of_16) = (x.blocks::<8>(), x.blocks::<16>());
    let places = dots.places::<F>();
    for (n, blocks) in weights.chunks(8 * F::BYTES).enumerate() {
        for (b, block) in blocks.chunks_exact(F::BYTES).enumerate() {
            prefetch(simd, block);
            let mut unpacked = Unpacked::EMPTY;
            F::unpack(dots.lookup(), block, &mut unpacked);
            eight.scales.put::<F>(b, &unpacked);
            let mut levels = [&[0; 256]; T];
            for t in 0..T {
                levels[t] = &of_32.levels[(8 * n + b) * x.rows + t.min(x.rows - 1)];
            }
            let sums = dots.scaled::<F, T>(places, &unpacked, levels);
            for t in 0..T {
                let at = (8 * n + b) * x.rows + t.min(x.rows - 1);
                let mut sum = sums[t];
                if F::MINIMUMS && F::GROUP == 32 {
                    let few = times_eight(simd, &unpacked.minimums, &of_32.sums[at]);
                    eight.of_few_minimums[t][b] = few;
                } else if F::MINIMUMS {
                    let (m, sums) = (cast(unpacked.minimums), cast(of_16.sums[at]));
                    eight.of_minimums[t][b] = simd.avx2._mm256_madd_epi16(m, sums);
                } else if F::ZERO != 0 {
                    let of_zeros = if F::GROUP == 32 {
                        let few = times_eight(simd, &unpacked.scales, &of_32.sums[at]);
                        simd.avx._mm256_zextsi128_si256(few)
                    } else {
                        let (s, sums) = (cast(unpacked.scales), cast(of_16.sums[at]));
                        simd.avx2._mm256_madd_epi16(s, sums)
                    };
                    sum = dots.less(sum, times_zero::<F>(simd, of_zeros));
                }
                eight.of_levels[t][b] = sum;
                eight.x_d[t][b] = of_32.scales[at];
            }
        }
        let [d, dmin] = eight.scales.floats::<F>(simd);
        for t in 0..T {
            let of_levels = dots.sum_eight(&eight.of_levels[t]);
            let of_minimums = match (F::MINIMUMS, F::GROUP) {
                (false, _) => simd.avx._mm256_setzero_si256(),
                (true, 32) => sum_eight_halves(simd, cast(eight.of_few_minimums[t])),
                (true, _) => sum_eight(simd, &eight.of_minimums[t]),
            };
            let parts = parts::<F>(simd, of_levels, of_minimums, d, dmin, cast(eight.x_d[t]));
            let parts: [f32; 8] = cast(parts);
            parts[..blocks.len() / F::BYTES].iter().for_each(|part| made[t] += part);
        }
    }
    made
}

/// The first eight numbers times others.
#[inline(always)]
fn times_eight(simd: V3Halves, factors: &[i16; 16], others: &[i16; 8]) -> __m128i {
    let factors: [i16; 8] = *factors.first_chunk().expect("there are 16");
    simd.sse2._mm_madd_epi16(cast(factors), cast(*others))
}

/// What levels count that are 0 at `ZERO`, of the sums of their activations.
#[inline(always)]
fn times_zero<F: Integers>(simd: V3Halves, sums: __m256i) -> __m256i {
    let zero = simd.avx._mm256_set1_epi32(i32::from(F::ZERO));
    simd.avx2._mm256_mullo_epi32(sums, zero)
}

/// A row of blocks of 32, eight at a time.
#[inline(always)]
fn small<F: Integers, D: Dots, const T: usize>(dots: D, weights: &[u8], x: &Rounded) -> [f32; T] {
    let mut made = [0.0; T];
    let whole = x.width / PIECE * PIECE;
    for column in (0..whole).step_by(PIECE) {
        eight::<F, D, T>(dots, weights, x, column, 8, &mut made);
    }
    if whole < x.width {
        eight::<F, D, T>(dots, weights, x, whole, (x.width - whole) / 32, &mut made);
    }
    made
}

/// Adds the products of up to eight blocks.
#[inline(always)]
fn eight<F: Integers, D: Dots, const T: usize>(
    dots: D,
    weights: &[u8],
    x: &Rounded,
    column: usize,
    count: usize,
    made: &mut [f32; T],
) {
    let simd = dots.simd();
    let weights = &weights[column / 32 * F::BYTES..][..count * F::BYTES];
    prefetch(simd, weights);
    let mut levels: [&[[i8; 32]]; T] = [&[]; T];
    for t in 0..T {
        levels[t] = x.levels(t.min(x.rows - 1), column, 32 * count).as_chunks().0;
    }
    let mut products = [[simd.avx._mm256_setzero_si256(); 8]; T];
    let mut scales = Scales::EMPTY;
    each(
        #[inline(always)]
        |b| {
            if b >= count {
                return;
            }
            let mut unpacked = Unpacked::EMPTY;
            F::unpack(dots.lookup(), &weights[b * F::BYTES..(b + 1) * F::BYTES], &mut unpacked);
            scales.put::<F>(b, &unpacked);
            let weights = unpacked.levels.first_chunk().expect("32 are fewer than 256");
            for t in 0..T {
                products[t][b] = dots.eighths::<F>(weights, &levels[t][b]);
            }
        },
    );
    let [d, dmin] = scales.floats::<F>(simd);
    for t in 0..T {
        let mut of_levels = sum_eight(simd, &products[t]);
        let (x_d, sums) = x.eight(t.min(x.rows - 1), column);
        let of_minimums = simd.avx2._mm256_cvtepi16_epi32(cast(*sums));
        if !F::MINIMUMS && F::ZERO != 0 {
            let of_zeros = times_zero::<F>(simd, of_minimums);
            of_levels = simd.avx2._mm256_sub_epi32(of_levels, of_zeros);
        }
        let parts = parts::<F>(simd, of_levels, of_minimums, d, dmin, cast(*x_d));
        made[t] += sum_floats(simd, first(simd, parts, count));
    }
}

/// Does something for each of eight blocks. Not as a loop: then all of it stays in registers.
#[inline(always)]
fn each(mut work: impl FnMut(usize)) {
    work(0);
    work(1);
    work(2);
    work(3);
    work(4);
    work(5);
    work(6);
    work(7);
}

/// The scales of eight blocks.
struct Scales {
    halves: [[u16; 8]; 2],
    floats: [[f32; 8]; 2],
}

impl Scales {
    const EMPTY: Self = Self { halves: [[0; 8]; 2], floats: [[0.0; 8]; 2] };

    #[inline(always)]
    fn put<F: Integers>(&mut self, b: usize, block: &Unpacked) {
        if F::HALVES {
            (self.halves[0][b], self.halves[1][b]) = (block.halves[0], block.halves[1]);
        } else {
            (self.floats[0][b], self.floats[1][b]) = (block.d, block.dmin);
        }
    }

    /// `d` and `dmin` of the blocks.
    #[inline(always)]
    fn floats<F: Integers>(&self, simd: V3Halves) -> [__m256; 2] {
        let [d, dmin] = self.halves;
        if F::HALVES {
            [simd.floats(cast(d)), simd.floats(cast(dmin))]
        } else {
            [cast(self.floats[0]), cast(self.floats[1])]
        }
    }
}

/// What each of eight blocks adds.
#[inline(always)]
fn parts<F: Integers>(
    simd: V3Halves,
    of_levels: __m256i,
    of_minimums: __m256i,
    d: __m256,
    dmin: __m256,
    x_d: __m256,
) -> __m256 {
    let d = simd.avx._mm256_mul_ps(d, x_d);
    let parts = simd.avx._mm256_mul_ps(d, simd.avx._mm256_cvtepi32_ps(of_levels));
    if !F::MINIMUMS {
        return parts;
    }
    let dmin = simd.avx._mm256_mul_ps(dmin, x_d);
    let less = simd.avx._mm256_mul_ps(dmin, simd.avx._mm256_cvtepi32_ps(of_minimums));
    simd.avx._mm256_sub_ps(parts, less)
}

/// The first of eight numbers, and zeros.
#[inline(always)]
fn first(simd: V3Halves, numbers: __m256, count: usize) -> __m256 {
    if count == 8 {
        return numbers;
    }
    let places = simd.avx._mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let wanted = simd.avx2._mm256_cmpgt_epi32(simd.avx._mm256_set1_epi32(count as i32), places);
    simd.avx._mm256_and_ps(numbers, cast(wanted))
}

/// The sum of eight numbers, in the order of the specification.
#[inline(always)]
fn sum_floats(simd: V3Halves, numbers: __m256) -> f32 {
    let low = simd.avx._mm256_castps256_ps128(numbers);
    let four = simd.sse._mm_add_ps(low, simd.avx._mm256_extractf128_ps::<1>(numbers));
    let two = simd.sse._mm_add_ps(four, simd.sse._mm_movehl_ps(four, four));
    let [a, b, ..]: [f32; 4] = cast(two);
    a + b
}

impl Dots for V3Halves {
    type Lookup = V3;
    type Places = &'static [[u8; 32]; 8];
    type Parts = __m256i;

    #[inline(always)]
    fn simd(self) -> V3Halves {
        self
    }

    #[inline(always)]
    fn lookup(self) -> V3 {
        *self
    }

    #[inline(always)]
    fn zero(self) -> __m256i {
        self.avx._mm256_setzero_si256()
    }

    #[inline(always)]
    fn places<F: Integers>(self) -> Self::Places {
        // A compiler that sees these constants makes two shuffles of each one.
        std::hint::black_box(if F::GROUP == 32 { &SCALES_OF_32 } else { &SCALES_OF_16 })
    }

    #[inline(always)]
    fn scaled<F: Integers, const T: usize>(
        self,
        places: Self::Places,
        weights: &Unpacked,
        x: [&[i8; 256]; T],
    ) -> [__m256i; T] {
        let scales = halves::<F>(self, &weights.scales);
        let mut sums = [self.zero(); T];
        for t in 0..T {
            let pairs = weights.levels.as_chunks().0.iter().zip(x[t].as_chunks().0);
            for (n, (weights, x)) in pairs.enumerate() {
                let products = multiply::<F>(self, weights, x);
                let scale = scale::<F>(self, &scales, places, n);
                let scaled = self.avx2._mm256_madd_epi16(products, scale);
                sums[t] = self.avx2._mm256_add_epi32(sums[t], scaled);
            }
        }
        sums
    }

    #[inline(always)]
    fn eighths<F: Integers>(self, weights: &[u8; 32], x: &[i8; 32]) -> __m256i {
        let products = multiply::<F>(self, weights, x);
        self.avx2._mm256_madd_epi16(products, self.avx._mm256_set1_epi16(1))
    }

    #[inline(always)]
    fn less(self, sum: __m256i, other: __m256i) -> __m256i {
        self.avx2._mm256_sub_epi32(sum, other)
    }

    #[inline(always)]
    fn sum_eight(self, sums: &[__m256i; 8]) -> __m256i {
        sum_eight(self, sums)
    }
}

/// Scales, those of each half of 128 weights in both halves of a vector; all of them in the first one
/// if there are eight.
#[inline(always)]
fn halves<F: Integers>(simd: V3Halves, scales: &[i16; 16]) -> [__m256i; 2] {
    let scales: __m256i = cast(*scales);
    let low = simd.avx2._mm256_permute2x128_si256::<0x00>(scales, scales);
    if F::GROUP == 32 {
        return [low; 2];
    }
    [low, simd.avx2._mm256_permute2x128_si256::<0x11>(scales, scales)]
}

/// Which bytes of the scales are those of 32 weights.
const SCALES_OF_32: [[u8; 32]; 8] = {
    let mut places = [[0; 32]; 8];
    let mut n = 0;
    while n < 8 {
        let mut i = 0;
        while i < 32 {
            places[n][i] = (2 * n + i % 2) as u8;
            i += 1;
        }
        n += 1;
    }
    places
};

/// The same with a scale for 16 of them, of half a block.
const SCALES_OF_16: [[u8; 32]; 8] = {
    let mut places = [[0; 32]; 8];
    let mut n = 0;
    while n < 8 {
        let mut i = 0;
        while i < 32 {
            places[n][i] = (4 * (n % 4) + i / 16 * 2 + i % 2) as u8;
            i += 1;
        }
        n += 1;
    }
    places
};

/// The scales of the weights from `32 n` on, for sums of two.
#[inline(always)]
fn scale<F: Integers>(
    simd: V3Halves,
    scales: &[__m256i; 2],
    places: &[[u8; 32]; 8],
    n: usize,
) -> __m256i {
    let half = if F::GROUP == 32 { 0 } else { n / 4 };
    simd.avx2._mm256_shuffle_epi8(scales[half], cast(places[n]))
}

/// Weights and activations, two products added at a time.
#[inline(always)]
fn multiply<F: Integers>(simd: V3Halves, weights: &[u8; 32], levels: &[i8; 32]) -> __m256i {
    let (weights, levels): (__m256i, __m256i) = (cast(*weights), cast(*levels));
    if F::TOP.is_some() {
        return simd.avx2._mm256_maddubs_epi16(weights, levels);
    }
    // One factor must be without a sign; -128 has a magnitude then, too.
    let magnitudes = simd.avx2._mm256_abs_epi8(weights);
    simd.avx2._mm256_maddubs_epi16(magnitudes, simd.avx2._mm256_sign_epi8(levels, weights))
}

/// Brings what comes a few blocks later nearer.
#[inline(always)]
fn prefetch(simd: V3Halves, weights: &[u8]) {
    const AHEAD: usize = 3072;
    for line in (0..weights.len()).step_by(64) {
        let at = weights.as_ptr().wrapping_add(AHEAD + line);
        simd.sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
}

/// The sum of each of eight vectors.
#[inline(always)]
fn sum_eight(simd: V3Halves, v: &[__m256i; 8]) -> __m256i {
    let add = simd.avx2;
    let pairs = [
        add._mm256_hadd_epi32(v[0], v[1]),
        add._mm256_hadd_epi32(v[2], v[3]),
        add._mm256_hadd_epi32(v[4], v[5]),
        add._mm256_hadd_epi32(v[6], v[7]),
    ];
    let low = add._mm256_hadd_epi32(pairs[0], pairs[1]);
    let high = add._mm256_hadd_epi32(pairs[2], pairs[3]);
    let a = simd.avx2._mm256_permute2x128_si256::<0x20>(low, high);
    let b = simd.avx2._mm256_permute2x128_si256::<0x31>(low, high);
    simd.avx2._mm256_add_epi32(a, b)
}

/// The sum of each of eight halves of vectors.
#[inline(always)]
fn sum_eight_halves(simd: V3Halves, v: [__m256i; 4]) -> __m256i {
    let low = simd.avx2._mm256_hadd_epi32(v[0], v[1]);
    let high = simd.avx2._mm256_hadd_epi32(v[2], v[3]);
    // Those with even numbers, then the others.
    let sums = simd.avx2._mm256_hadd_epi32(low, high);
    let order = simd.avx._mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    simd.avx2._mm256_permutevar8x32_epi32(sums, order)
}
