//! Kernels for AVX2.
#![expect(clippy::needless_range_loop, reason = "tokens and blocks count through several arrays")]

use std::arch::x86_64::{__m128i, __m256, __m256i};
use std::marker::PhantomData;

use gguf_quant::integers::{Integers, Unpacked, Visitor};
use pulp::x86::V3;
use pulp::{NullaryFnOnce, cast};

use super::ROWS;
use super::rounded::Rounded;
use super::tile::{DEPTH, Tile};
use super::{FEW, Kernels, blocks};

/// Finds the kernels of a type.
pub(super) struct Find(pub V3);

impl Visitor for Find {
    type Output = Box<dyn Kernels>;

    fn visit<F: Integers>(self) -> Self::Output {
        Box::new(Avx2::<F>(self.0, PhantomData))
    }
}

struct Avx2<F>(V3, PhantomData<fn() -> F>);

impl<F: Integers> Kernels for Avx2<F> {
    fn len(&self) -> usize {
        F::LEN
    }

    fn group(&self) -> usize {
        F::GROUP
    }

    fn wide(&self) -> bool {
        F::TOP.is_none()
    }

    fn rows(&self, weights: &[u8], x: &Rounded, out: &mut [f32]) {
        self.0.vectorize(Rows::<F> { simd: self.0, weights, x, out, of: PhantomData });
    }

    fn tile(&self, weights: &[u8], x: &Rounded, out: &mut [[f32; ROWS]]) {
        self.0.vectorize(Tiles::<F> { simd: self.0, weights, x, out, of: PhantomData });
    }
}

// Not closures: what is not inlined into `vectorize` would not be compiled for AVX2.

struct Rows<'r, F> {
    simd: V3,
    weights: &'r [u8],
    x: &'r Rounded,
    out: &'r mut [f32],
    of: PhantomData<fn() -> F>,
}

impl<F: Integers> NullaryFnOnce for Rows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd, weights, x, out, .. } = self;
        match x.rows {
            1 => rows::<F, 1>(simd, weights, x, out),
            _ => rows::<F, FEW>(simd, weights, x, out),
        }
    }
}

struct Tiles<'r, F> {
    simd: V3,
    weights: &'r [u8],
    x: &'r Rounded,
    out: &'r mut [[f32; ROWS]],
    of: PhantomData<fn() -> F>,
}

impl<F: Integers> NullaryFnOnce for Tiles<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        tile::<F>(self.simd, self.weights, self.x, self.out);
    }
}

/// Rows of weights with up to `T` rows of activations: of fewer, the last stands in for the others.
#[inline(always)]
fn rows<F: Integers, const T: usize>(simd: V3, weights: &[u8], x: &Rounded, out: &mut [f32]) {
    let row_bytes = blocks::<F>(x) * F::BYTES;
    for (weights, out) in weights.chunks_exact(row_bytes).zip(out.chunks_exact_mut(x.rows)) {
        let made: [f32; T] = if F::LEN == 32 {
            small::<F, T>(simd, weights, x)
        } else {
            large::<F, T>(simd, weights, x)
        };
        out.copy_from_slice(&made[..out.len()]);
    }
}

/// A row of blocks of 256.
#[inline(always)]
fn large<F: Integers, const T: usize>(simd: V3, weights: &[u8], x: &Rounded) -> [f32; T] {
    let mut unpacked = Unpacked::EMPTY;
    let mut made = [0.0; T];
    for (b, block) in weights.chunks_exact(F::BYTES).enumerate() {
        prefetch(simd, block);
        F::unpack(simd, block, &mut unpacked);
        let scales_of = halves::<F>(simd, &unpacked.scales);
        for t in 0..T {
            let row = t.min(x.rows - 1);
            let levels: &[i8; 256] = x.levels(row, 256 * b, 256).first_chunk().expect("256");
            let sums = x.sums(row, 256 * b, 256);
            let pairs = unpacked.levels.as_chunks::<32>().0.iter().zip(levels.as_chunks().0);
            let mut of_levels = simd.avx._mm256_setzero_si256();
            for (n, (weights, levels)) in pairs.enumerate() {
                let scale = scale::<F>(simd, &scales_of, n);
                let products = multiply::<F>(simd, weights, levels);
                let scaled = simd.avx2._mm256_madd_epi16(products, scale);
                of_levels = simd.avx2._mm256_add_epi32(of_levels, scaled);
            }
            let mut of_minimums = simd.avx._mm256_setzero_si256();
            if F::MINIMUMS || F::ZERO != 0 {
                let m = if F::MINIMUMS { &unpacked.minimums } else { &unpacked.scales };
                of_minimums = if F::GROUP == 16 {
                    let sums: [i16; 16] = *sums.first_chunk().expect("there are 16 groups");
                    simd.avx2._mm256_madd_epi16(cast(*m), cast(sums))
                } else {
                    let sums: [i16; 8] = *sums.first_chunk().expect("there are 8 groups");
                    let m: [i16; 8] = *m.first_chunk().expect("there are 16");
                    let products: __m128i = simd.sse2._mm_madd_epi16(cast(m), cast(sums));
                    simd.avx._mm256_zextsi128_si256(products)
                };
            }
            let (of_levels, of_minimums) = sum_two(simd, of_levels, of_minimums);
            let d = x.scales(row, 256 * b, 256)[0];
            if F::MINIMUMS {
                made[t] += unpacked.d * d * of_levels as f32;
                made[t] -= unpacked.dmin * d * of_minimums as f32;
            } else {
                let of_levels = of_levels - i32::from(F::ZERO) * of_minimums;
                made[t] += unpacked.d * d * of_levels as f32;
            }
        }
    }
    made
}

/// Scales, those of each half of 128 weights in both halves of a vector; all of them in the first one
/// if there are eight.
#[inline(always)]
fn halves<F: Integers>(simd: V3, scales: &[i16; 16]) -> [__m256i; 2] {
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
const SCALES_OF_16: [[u8; 32]; 4] = {
    let mut places = [[0; 32]; 4];
    let mut n = 0;
    while n < 4 {
        let mut i = 0;
        while i < 32 {
            places[n][i] = (4 * n + i / 16 * 2 + i % 2) as u8;
            i += 1;
        }
        n += 1;
    }
    places
};

/// The scales of the weights from `32 n` on, for sums of two.
#[inline(always)]
fn scale<F: Integers>(simd: V3, scales: &[__m256i; 2], n: usize) -> __m256i {
    let (half, places) = match F::GROUP {
        32 => (0, &SCALES_OF_32[n]),
        _ => (n / 4, &SCALES_OF_16[n % 4]),
    };
    simd.avx2._mm256_shuffle_epi8(scales[half], cast(*places))
}

/// A row of blocks of 32, eight at a time.
#[inline(always)]
fn small<F: Integers, const T: usize>(simd: V3, weights: &[u8], x: &Rounded) -> [f32; T] {
    let mut made = [0.0; T];
    let mut column = 0;
    let mut eights = weights.chunks_exact(8 * F::BYTES);
    for weights in &mut eights {
        prefetch(simd, weights);
        let mut levels: [&[[i8; 32]; 8]; T] = [&[[0; 32]; 8]; T];
        for (t, levels) in levels.iter_mut().enumerate() {
            let row = x.levels(t.min(x.rows - 1), column, 256).as_chunks().0;
            *levels = row.first_chunk().expect("256 are eight blocks");
        }
        let (products, d, dmin) = eight::<F, T>(simd, weights, levels);
        for t in 0..T {
            let row = t.min(x.rows - 1);
            let x_d = *x.scales(row, column, 256).first_chunk().expect("256 are eight blocks");
            let sums = *x.sums(row, column, 256).first_chunk().expect("256 are eight blocks");
            let (parts, less) = scale_eight::<F>(simd, products[t], d, dmin, x_d, sums);
            for b in 0..8 {
                made[t] += parts[b];
                if F::MINIMUMS {
                    made[t] -= less[b];
                }
            }
        }
        column += 256;
    }
    let rest = eights.remainder();
    if !rest.is_empty() {
        let count = rest.len() / F::BYTES;
        const { assert!(F::LEN == 256 || F::BYTES <= 40, "room for eight blocks of 32") }
        let mut weights = [0; 8 * 40];
        weights[..rest.len()].copy_from_slice(rest);
        let mut padded = [[[0; 32]; 8]; T];
        for (t, padded) in padded.iter_mut().enumerate() {
            let levels = x.levels(t.min(x.rows - 1), column, 32 * count);
            padded[..count].copy_from_slice(levels.as_chunks().0);
        }
        let mut levels: [&[[i8; 32]; 8]; T] = [&[[0; 32]; 8]; T];
        for (levels, padded) in levels.iter_mut().zip(&padded) {
            *levels = padded;
        }
        let (products, d, dmin) = eight::<F, T>(simd, &weights, levels);
        for t in 0..T {
            let row = t.min(x.rows - 1);
            let (mut x_d, mut sums) = ([0.0; 8], [0; 8]);
            x_d[..count].copy_from_slice(x.scales(row, column, 32 * count));
            sums[..count].copy_from_slice(x.sums(row, column, 32 * count));
            let (parts, less) = scale_eight::<F>(simd, products[t], d, dmin, x_d, sums);
            for b in 0..count {
                made[t] += parts[b];
                if F::MINIMUMS {
                    made[t] -= less[b];
                }
            }
        }
    }
    made
}

/// The sums of the products of eight blocks of 32 with activations, and the scales of the blocks.
#[inline(always)]
fn eight<F: Integers, const T: usize>(
    simd: V3,
    weights: &[u8],
    levels: [&[[i8; 32]; 8]; T],
) -> ([__m256i; T], __m256, __m256) {
    let mut products = [[simd.avx._mm256_setzero_si256(); 8]; T];
    let mut halves = [[0; 8]; 2];
    let mut scales = [[0.0; 8]; 2];
    let weights = &weights[..8 * F::BYTES];
    for b in 0..8 {
        let mut unpacked = Unpacked::EMPTY;
        F::unpack(simd, &weights[b * F::BYTES..(b + 1) * F::BYTES], &mut unpacked);
        (halves[0][b], halves[1][b]) = (unpacked.halves[0], unpacked.halves[1]);
        if !F::HALVES {
            (scales[0][b], scales[1][b]) = (unpacked.d, unpacked.dmin);
        }
        let weights = unpacked.levels.first_chunk().expect("32 are fewer than 256");
        for t in 0..T {
            let product = multiply::<F>(simd, weights, &levels[t][b]);
            let ones = simd.avx._mm256_set1_epi16(1);
            products[t][b] = simd.avx2._mm256_madd_epi16(product, ones);
        }
    }
    let mut sums = [simd.avx._mm256_setzero_si256(); T];
    for t in 0..T {
        sums[t] = sum_eight(simd, products[t]);
    }
    if F::HALVES {
        (sums, eight_halves(simd, halves[0]), eight_halves(simd, halves[1]))
    } else {
        (sums, cast(scales[0]), cast(scales[1]))
    }
}

/// What each of eight blocks adds, and what it takes away.
#[inline(always)]
fn scale_eight<F: Integers>(
    simd: V3,
    of_levels: __m256i,
    d: __m256,
    dmin: __m256,
    x_d: [f32; 8],
    sums: [i16; 8],
) -> ([f32; 8], [f32; 8]) {
    let x_d = cast(x_d);
    let of_minimums = simd.avx2._mm256_cvtepi16_epi32(cast(sums));
    let mut of_levels = of_levels;
    if !F::MINIMUMS && F::ZERO != 0 {
        let zero = simd.avx._mm256_set1_epi32(i32::from(F::ZERO));
        let less = simd.avx2._mm256_mullo_epi32(of_minimums, zero);
        of_levels = simd.avx2._mm256_sub_epi32(of_levels, less);
    }
    let d = simd.avx._mm256_mul_ps(d, x_d);
    let parts = simd.avx._mm256_mul_ps(d, simd.avx._mm256_cvtepi32_ps(of_levels));
    let dmin = simd.avx._mm256_mul_ps(dmin, x_d);
    let less = simd.avx._mm256_mul_ps(dmin, simd.avx._mm256_cvtepi32_ps(of_minimums));
    (cast(parts), cast(less))
}

/// Eight halves, as [`gguf_quant::integers::half`] decodes them.
#[inline(always)]
fn eight_halves(simd: V3, bits: [u16; 8]) -> __m256 {
    let (avx, avx2) = (simd.avx, simd.avx2);
    let bits = avx2._mm256_cvtepu16_epi32(cast(bits));
    let magnitude = avx2._mm256_and_si256(bits, avx._mm256_set1_epi32(0x7fff));
    let sign = avx2._mm256_slli_epi32::<16>(avx2._mm256_sub_epi32(bits, magnitude));
    let unit = avx._mm256_set1_ps(1.0 / (1 << 24) as f32);
    let small = avx._mm256_mul_ps(avx._mm256_cvtepi32_ps(magnitude), unit);
    let normal = avx2._mm256_slli_epi32::<13>(magnitude);
    let normal = avx2._mm256_add_epi32(normal, avx._mm256_set1_epi32(112 << 23));
    let is_small = avx2._mm256_cmpgt_epi32(avx._mm256_set1_epi32(0x400), magnitude);
    let made = avx2._mm256_blendv_epi8(normal, cast(small), is_small);
    let is_endless = avx2._mm256_cmpgt_epi32(magnitude, avx._mm256_set1_epi32(0x7bff));
    let endless = avx2._mm256_and_si256(is_endless, avx._mm256_set1_epi32(0x7f80_0000));
    cast(avx2._mm256_or_si256(avx2._mm256_or_si256(made, endless), sign))
}

/// Weights and activations, two products added at a time.
#[inline(always)]
fn multiply<F: Integers>(simd: V3, weights: &[u8; 32], levels: &[i8; 32]) -> __m256i {
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
fn prefetch(simd: V3, weights: &[u8]) {
    const AHEAD: usize = 3072;
    for line in (0..weights.len()).step_by(64) {
        let at = weights.as_ptr().wrapping_add(AHEAD + line);
        simd.sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
}

#[inline(always)]
fn sum_two(simd: V3, a: __m256i, b: __m256i) -> (i32, i32) {
    let pairs = simd.avx2._mm256_hadd_epi32(a, b);
    let pairs = simd.avx2._mm256_hadd_epi32(pairs, pairs);
    let low = simd.avx._mm256_castsi256_si128(pairs);
    let sums = simd.sse2._mm_add_epi32(low, simd.avx2._mm256_extracti128_si256::<1>(pairs));
    let [a, b, ..]: [i32; 4] = cast(sums);
    (a, b)
}

/// The sum of each of eight vectors.
#[inline(always)]
fn sum_eight(simd: V3, v: [__m256i; 8]) -> __m256i {
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

/// Tokens that a kernel of tiles takes at once.
const TOKENS: usize = 4;

#[inline(always)]
fn tile<F: Integers>(simd: V3, weights: &[u8], x: &Rounded, out: &mut [[f32; ROWS]]) {
    let blocks = blocks::<F>(x);
    let at_once = DEPTH / F::LEN;
    let mut tile = Box::new(Tile::EMPTY);
    let mut first = 0;
    while first < blocks {
        let count = at_once.min(blocks - first);
        tile.unpack::<F, _>(simd, weights, blocks * F::BYTES, first, count);
        let part = Part { x, tile: &tile, first, count };
        let (all, rest) = out.as_chunks_mut::<TOKENS>();
        for (i, out) in all.iter_mut().enumerate() {
            part.multiply::<F, TOKENS>(simd, TOKENS * i, out);
        }
        let done = TOKENS * all.len();
        for (i, out) in rest.iter_mut().enumerate() {
            part.multiply::<F, 1>(simd, done + i, std::array::from_mut(out));
        }
        first += count;
    }
}

/// Some blocks of all rows, unpacked.
struct Part<'t> {
    x: &'t Rounded,
    tile: &'t Tile,
    /// The first block.
    first: usize,
    /// Blocks.
    count: usize,
}

/// For half of the rows each, `T` tokens.
type Sums<const T: usize> = [[__m256i; T]; 2];

impl Part<'_> {
    /// Adds the products with the tokens from `token` on.
    #[inline(always)]
    fn multiply<F: Integers, const T: usize>(
        &self,
        simd: V3,
        token: usize,
        out: &mut [[f32; ROWS]; T],
    ) {
        let blocks = self.x.width / F::LEN;
        debug_assert!(self.first + self.count <= blocks);
        let (from, len) = (self.first * F::LEN, self.count * F::LEN);
        let (mut d, mut sums): ([&[f32]; T], [&[i16]; T]) = ([&[]; T], [&[]; T]);
        for t in 0..T {
            d[t] = self.x.scales(token + t, from, len);
            sums[t] = self.x.sums(token + t, from, len);
        }
        if F::TOP.is_some() {
            let mut x: [&[[i8; 32]]; T] = [&[]; T];
            for t in 0..T {
                x[t] = self.x.levels(token + t, from, len).as_chunks().0;
            }
            if F::LEN == 256 {
                let mut made = [[simd.avx._mm256_setzero_si256(); T]; 2];
                for n in 0..8 {
                    narrow::<F, T>(simd, self.tile, n, x, &mut made);
                }
                self.put::<F, T>(simd, 0, made, d, sums, out);
            } else {
                for n in 0..self.count {
                    let mut made = [[simd.avx._mm256_setzero_si256(); T]; 2];
                    narrow::<F, T>(simd, self.tile, n, x, &mut made);
                    self.put::<F, T>(simd, n, made, d, sums, out);
                }
            }
        } else {
            let mut x: [&[[i16; 32]]; T] = [&[]; T];
            for t in 0..T {
                x[t] = self.x.wide(token + t, from, len).as_chunks().0;
            }
            if F::LEN == 256 {
                let mut made = [[simd.avx._mm256_setzero_si256(); T]; 2];
                for n in 0..8 {
                    wide::<T>(simd, self.tile, n, x, &mut made);
                }
                self.put::<F, T>(simd, 0, made, d, sums, out);
            } else {
                for n in 0..self.count {
                    let mut made = [[simd.avx._mm256_setzero_si256(); T]; 2];
                    wide::<T>(simd, self.tile, n, x, &mut made);
                    self.put::<F, T>(simd, n, made, d, sums, out);
                }
            }
        }
    }

    /// Scales the sums of a block, and adds them.
    #[inline(always)]
    fn put<F: Integers, const T: usize>(
        &self,
        simd: V3,
        block: usize,
        of_levels: Sums<T>,
        d: [&[f32]; T],
        sums: [&[i16]; T],
        out: &mut [[f32; ROWS]; T],
    ) {
        for t in 0..T {
            let x_d = simd.avx._mm256_set1_ps(d[t][block]);
            let halves: &mut [[f32; 8]; 2] = cast_halves(&mut out[t]);
            for half in 0..2 {
                let of_levels = of_levels[half][t];
                let mut of_minimums = simd.avx._mm256_setzero_si256();
                if F::MINIMUMS || F::ZERO != 0 {
                    of_minimums = self.minimums::<F>(simd, block, half, sums[t]);
                }
                let mut sum: __m256 = cast(halves[half]);
                if F::MINIMUMS {
                    sum = simd.avx._mm256_add_ps(
                        sum,
                        scaled(simd, &self.tile.d[block], half, x_d, of_levels),
                    );
                    sum = simd.avx._mm256_sub_ps(
                        sum,
                        scaled(simd, &self.tile.dmin[block], half, x_d, of_minimums),
                    );
                } else {
                    let of_levels = simd.avx2._mm256_sub_epi32(of_levels, of_minimums);
                    sum = simd.avx._mm256_add_ps(
                        sum,
                        scaled(simd, &self.tile.d[block], half, x_d, of_levels),
                    );
                }
                halves[half] = cast(sum);
            }
        }
    }

    /// What minima, or levels of 0 that are not 0, take away.
    #[inline(always)]
    fn minimums<F: Integers>(&self, simd: V3, block: usize, half: usize, sums: &[i16]) -> __m256i {
        if F::LEN == 32 {
            let factor = if F::MINIMUMS { 1 } else { i32::from(F::ZERO) };
            return simd.avx._mm256_set1_epi32(factor * i32::from(sums[block]));
        }
        let mut made = simd.avx._mm256_setzero_si256();
        let pairs = self.tile.minimums.iter().zip(sums.as_chunks::<2>().0);
        for (minimums, sums) in pairs.take(128 / F::GROUP) {
            let sums = simd.avx._mm256_set1_epi32(cast(*sums));
            let minimums = vector(minimums.as_flattened(), half);
            let product = simd.avx2._mm256_madd_epi16(minimums, sums);
            made = simd.avx2._mm256_add_epi32(made, product);
        }
        made
    }
}

/// Sums times the scales of weights and activations.
#[inline(always)]
fn scaled(simd: V3, d: &[f32; ROWS], half: usize, x_d: __m256, sums: __m256i) -> __m256 {
    let d: [f32; 8] = *d[8 * half..].first_chunk().expect("half of 16 are 8");
    let d = simd.avx._mm256_mul_ps(cast(d), x_d);
    simd.avx._mm256_mul_ps(d, simd.avx._mm256_cvtepi32_ps(sums))
}

#[inline(always)]
fn cast_halves(row: &mut [f32; ROWS]) -> &mut [[f32; 8]; 2] {
    pulp::bytemuck::cast_mut(row)
}

/// Eight pairs of 16 bits.
#[inline(always)]
fn vector(numbers: &[i16], half: usize) -> __m256i {
    let numbers: [i16; 16] = *numbers[16 * half..].first_chunk().expect("half of 32 are 16");
    cast(numbers)
}

/// Adds the products of 32 columns from `32 n` on, with levels in 8 bits: sums of 16 bits as long as
/// they hold, then with their scales in 32.
#[inline(always)]
fn narrow<F: Integers, const T: usize>(
    simd: V3,
    tile: &Tile,
    n: usize,
    x: [&[[i8; 32]]; T],
    sums: &mut Sums<T>,
) {
    let columns: &[[[u8; 4]; ROWS]; 8] =
        tile.narrow[8 * n..].first_chunk().expect("there are 8 for each 32 columns");
    // Two products of at most 127 and `TOP` each.
    let top = F::TOP.map_or(127, i32::from);
    let most = (i32::from(i16::MAX) / (2 * 127 * top)) as usize;
    let most = most.min(F::GROUP / 4).min(8);
    let most = if most >= 8 {
        8
    } else if most >= 4 {
        4
    } else {
        2
    };
    let mut first = 0;
    while first < 8 {
        let mut made = [[simd.avx._mm256_setzero_si256(); T]; 2];
        for k in first..first + most {
            let column: &[[u8; 32]; 2] = pulp::bytemuck::cast_ref(&columns[k]);
            let w: [__m256i; 2] = [cast(column[0]), cast(column[1])];
            for t in 0..T {
                let four: [i8; 4] = *x[t][n][4 * k..].first_chunk().expect("32 are 8 times 4");
                let a = simd.avx._mm256_set1_epi32(cast(four));
                for half in 0..2 {
                    let product = simd.avx2._mm256_maddubs_epi16(w[half], a);
                    made[half][t] = if k == first {
                        product
                    } else {
                        simd.avx2._mm256_add_epi16(made[half][t], product)
                    };
                }
            }
        }
        for half in 0..2 {
            let scales = if F::LEN == 32 {
                simd.avx._mm256_set1_epi16(1)
            } else {
                vector(tile.scales[(32 * n + 4 * first) / F::GROUP].as_flattened(), half)
            };
            for t in 0..T {
                let scaled = simd.avx2._mm256_madd_epi16(made[half][t], scales);
                sums[half][t] = simd.avx2._mm256_add_epi32(sums[half][t], scaled);
            }
        }
        first += most;
    }
}

/// Adds the products of 32 columns from `32 n` on, with levels in 16 bits.
#[inline(always)]
fn wide<const T: usize>(simd: V3, tile: &Tile, n: usize, x: [&[[i16; 32]]; T], sums: &mut Sums<T>) {
    let columns: &[[[i16; 2]; ROWS]; 16] =
        tile.wide[16 * n..].first_chunk().expect("there are 16 for each 32 columns");
    for (k, column) in columns.iter().enumerate() {
        let w = [vector(column.as_flattened(), 0), vector(column.as_flattened(), 1)];
        for t in 0..T {
            let two: [i16; 2] = *x[t][n][2 * k..].first_chunk().expect("32 are 16 times 2");
            let a = simd.avx._mm256_set1_epi32(cast(two));
            for half in 0..2 {
                let product = simd.avx2._mm256_madd_epi16(w[half], a);
                sums[half][t] = simd.avx2._mm256_add_epi32(sums[half][t], product);
            }
        }
    }
}
