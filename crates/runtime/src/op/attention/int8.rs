//! Products of queries with keys, and of weights with values, in INT8: for caches in Q8_0, by AVX-512 with VNNI.

use std::arch::x86_64::{__m512, __m512i, _CMP_NLT_UQ};

use pulp::{NullaryFnOnce, cast};

use super::{BlockProducts, KEYS, Sum};
use crate::avx512::V4Vnni;
use crate::exp::exp;

/// Elements per block of Q8_0.
const LEN: usize = 32;

/// Bytes per block of Q8_0: an FP16 scale and levels.
const BYTES: usize = 2 + LEN;

/// Groups of four elements per block of Q8_0.
const QUADS: usize = LEN / 4;

/// Bit patterns of positive FP16 numbers are below that of infinity.
const INFINITY: u16 = 0x7c00;

/// Added to a float below 2^23, it rounds the float to an integer in its low bits.
const ROUNDING: f32 = 8_388_608.0;

/// Smallest maximum of weights that is not taken for zero: its reciprocal is finite.
const SMALLEST: f32 = 1e-30;

/// Queries whose sums fit into registers.
const TOGETHER: usize = 4;

/// Vectors of 16 floats that hold a number per key.
const PARTS: usize = KEYS / 16;

/// Queries in INT8, and a block of keys and values.
pub(super) struct Int8 {
    simd: V4Vnni,
    queries: Queries,
    keys: Keys,
    values: Values,
}

impl Int8 {
    /// Returns the queries, multiplied by `scale`, for keys that are differences from `origin`.
    pub fn new(
        simd: V4Vnni,
        queries: &[&[f32]],
        scale: f32,
        origin: &[f32],
        value_len: usize,
    ) -> Self {
        Self {
            simd,
            queries: simd.vectorize(Quantize { queries, scale, origin }),
            keys: Keys::new(origin.len() / LEN),
            values: Values::new(value_len / LEN),
        }
    }
}

impl BlockProducts for Int8 {
    /// Reads rows of Q8_0 whose scales are finite. Products of others belong to F32, so that NaN is not lost.
    fn read(&mut self, keys: &[u8], values: &[u8]) -> bool {
        self.simd.vectorize(Read { to: self, keys, values })
    }

    fn multiply(&self, scores: &mut [f32]) {
        self.simd.vectorize(Scores { of: self, scores });
    }

    fn add_scores(&self, sum: &mut Sum, scores: &mut [f32; KEYS], values: &mut [f32]) {
        self.simd.vectorize(Softmax { simd: self.simd, sum, scores, values });
    }

    fn add_weighted(&self, weights: &[f32], out: &mut [f32]) {
        self.simd.vectorize(Weighted { of: self, weights, out });
    }
}

/// [`Int8::read`].
struct Read<'r> {
    to: &'r mut Int8,
    keys: &'r [u8],
    values: &'r [u8],
}

impl NullaryFnOnce for Read<'_> {
    type Output = bool;

    #[inline(always)]
    fn call(self) -> bool {
        let Int8 { simd, keys, values, .. } = self.to;
        let is_finite =
            keys.scales.read(*simd, self.keys) && values.scales.read(*simd, self.values);
        if is_finite {
            keys.read(*simd, self.keys);
            values.read(self.values);
        }
        is_finite
    }
}

/// Queries with a scale per [`LEN`] elements.
struct Queries {
    /// Blocks per query.
    blocks: usize,
    /// Four levels each.
    levels: Vec<i32>,
    scales: Vec<f32>,
    /// -128 times the sum of the levels of each block, since levels of keys are raised by 128.
    corrections: Vec<i32>,
    /// Product of each query with the origin of the keys.
    offsets: Vec<f32>,
}

/// Rounds queries.
struct Quantize<'r> {
    queries: &'r [&'r [f32]],
    scale: f32,
    origin: &'r [f32],
}

impl NullaryFnOnce for Quantize<'_> {
    type Output = Queries;

    #[inline(always)]
    fn call(self) -> Queries {
        let Self { queries, scale, origin } = self;
        let blocks = queries.first().map_or(0, |query| query.len() / LEN);
        let (mut levels, mut scales, mut corrections) = (Vec::new(), Vec::new(), Vec::new());
        for block in queries.iter().flat_map(|query| query.as_chunks::<LEN>().0) {
            let max = block.iter().fold(0.0f32, |max, x| max.max(x.abs()));
            let inverse = if max > SMALLEST { 127.0 / max } else { 0.0 };
            let rounded = block.map(|x| (x * inverse).round_ties_even() as i8);
            levels.extend(rounded.as_chunks().0.iter().map(|four| {
                i32::from_le_bytes(four.map(|level| level as u8))
            }));
            // NaN and infinity reach the scores.
            scales.push(scale * block.iter().fold(max, |max, x| max + 0.0 * x) / 127.0);
            corrections.push(-128 * rounded.iter().map(|level| i32::from(*level)).sum::<i32>());
        }
        let offset = |query: &&[f32]| {
            let products = query.iter().zip(origin).map(|(x, origin)| x * origin);
            scale * products.sum::<f32>()
        };
        let offsets = queries.iter().map(offset).collect();
        Queries { blocks, levels, scales, corrections, offsets }
    }
}

/// Scales of rows of blocks of Q8_0: of the first block of all rows, then of the second one.
struct Scales(Vec<[f32; 16]>);

impl Scales {
    fn new(blocks: usize) -> Self {
        Self(vec![[0.0; 16]; blocks * PARTS])
    }

    /// Reads the scales. Returns whether they are positive and finite.
    #[inline(always)]
    fn read(&mut self, simd: V4Vnni, rows: &[u8]) -> bool {
        let blocks = self.0.len() / PARTS;
        let mut largest = 0;
        for (block, out) in self.0.chunks_exact_mut(PARTS).enumerate() {
            let mut halves = [0; KEYS];
            let rows = rows.as_chunks::<BYTES>().0.iter().skip(block).step_by(blocks);
            for (half, row) in halves.iter_mut().zip(rows) {
                *half = u16::from_le_bytes([row[0], row[1]]);
                largest = largest.max(*half);
            }
            for (out, halves) in out.iter_mut().zip(halves.as_chunks::<16>().0) {
                *out = cast(simd.avx512f._mm512_cvtph_ps(cast(*halves)));
            }
        }
        largest < INFINITY
    }
}

/// A block of keys.
struct Keys {
    scales: Scales,
    /// Levels plus 128: of each four elements those of 16 keys after the other, in [`PARTS`].
    levels: Vec<[[u8; 4]; 16]>,
}

impl Keys {
    fn new(blocks: usize) -> Self {
        Self { scales: Scales::new(blocks), levels: vec![[[0; 4]; 16]; blocks * QUADS * PARTS] }
    }

    #[inline(always)]
    fn read(&mut self, simd: V4Vnni, rows: &[u8]) {
        let rows = rows.as_chunks::<BYTES>().0;
        let count = self.scales.0.len() / PARTS;
        let parts = self.levels.as_chunks_mut::<PARTS>().0.as_chunks_mut::<QUADS>().0;
        for (number, out) in parts.iter_mut().enumerate() {
            for part in 0..PARTS {
                let row = |key: usize| rows.get((16 * part + key) * count + number);
                let levels = |key: usize| row(key).map_or([0; LEN], |row| *levels_of(row));
                // So that the parts of the result are in the order of the keys.
                let pair = |i: usize| {
                    let key = if i < 4 { i } else { i + 4 };
                    cast([levels(key), levels(key + 4)])
                };
                let columns = transpose(simd, std::array::from_fn(pair));
                for (out, column) in out.iter_mut().zip(columns) {
                    let raised = simd.avx512f._mm512_set1_epi8(i8::MIN);
                    out[part] = cast(simd.avx512f._mm512_xor_si512(column, raised));
                }
            }
        }
    }
}

/// Returns the levels of a block.
#[inline(always)]
fn levels_of(block: &[u8; BYTES]) -> &[u8; LEN] {
    match block.split_last_chunk::<LEN>() {
        Some((_, levels)) => levels,
        None => &[0; LEN],
    }
}

/// Returns the columns of 16 rows of 8 numbers. Each operand has two rows: 0 and 4, 1 and 5, 2 and 6, 3 and 7, 8 and 12, ...
#[inline(always)]
fn transpose(simd: V4Vnni, rows: [__m512i; QUADS]) -> [__m512i; QUADS] {
    let f = simd.avx512f;
    let four = |[a, b, c, d]: [__m512i; 4]| {
        let (low, high) = (f._mm512_unpacklo_epi32(a, b), f._mm512_unpackhi_epi32(a, b));
        let (low2, high2) = (f._mm512_unpacklo_epi32(c, d), f._mm512_unpackhi_epi32(c, d));
        [
            f._mm512_unpacklo_epi64(low, low2),
            f._mm512_unpackhi_epi64(low, low2),
            f._mm512_unpacklo_epi64(high, high2),
            f._mm512_unpackhi_epi64(high, high2),
        ]
    };
    let [a, b, c, d, e, g, h, i] = rows;
    let (low, high) = (four([a, b, c, d]), four([e, g, h, i]));
    std::array::from_fn(|column| match column {
        0..4 => f._mm512_shuffle_i64x2::<0x88>(low[column], high[column]),
        _ => f._mm512_shuffle_i64x2::<0xdd>(low[column - 4], high[column - 4]),
    })
}

/// A block of values.
struct Values {
    scales: Scales,
    /// Levels of four values for each of 16 elements: of the first block of all values, then of the second one.
    levels: Vec<[[u8; 4]; 16]>,
}

impl Values {
    fn new(blocks: usize) -> Self {
        Self { scales: Scales::new(blocks), levels: vec![[[0; 4]; 16]; blocks * KEYS / 4 * LEN / 16] }
    }

    #[inline(always)]
    fn read(&mut self, rows: &[u8]) {
        let rows = rows.as_chunks::<BYTES>().0;
        let count = self.scales.0.len() / PARTS;
        for (number, out) in self.levels.chunks_exact_mut(KEYS / 4 * LEN / 16).enumerate() {
            for (four, out) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let row = |i| rows.get((4 * four + i) * count + number).unwrap_or(&[0; BYTES]);
                let [a, b, c, d] = [row(0), row(1), row(2), row(3)];
                let [a, b, c, d] = [a, b, c, d].map(levels_of);
                let out: &mut [[u8; 4]] = out.as_flattened_mut();
                for (i, out) in out.iter_mut().enumerate().take(LEN) {
                    *out = [a[i], b[i], c[i], d[i]];
                }
            }
        }
    }
}

struct Scores<'r> {
    of: &'r Int8,
    scores: &'r mut [f32],
}

impl NullaryFnOnce for Scores<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Int8 { simd, queries, keys, .. } = self.of;
        let mut first = 0;
        let (together, rest) = self.scores.as_chunks_mut().0.as_chunks_mut::<TOGETHER>();
        for out in together {
            multiply(*simd, queries, first, keys, out);
            first += TOGETHER;
        }
        for out in rest {
            multiply(*simd, queries, first, keys, std::array::from_mut(out));
            first += 1;
        }
    }
}

/// Multiplies `Q` queries by keys.
#[inline(always)]
fn multiply<const Q: usize>(
    simd: V4Vnni,
    queries: &Queries,
    first: usize,
    keys: &Keys,
    out: &mut [[f32; KEYS]; Q],
) {
    let f = simd.avx512f;
    let mut scores: [[__m512; PARTS]; Q] =
        std::array::from_fn(|q| [f._mm512_set1_ps(queries.offsets[first + q]); PARTS]);
    let blocks = keys.levels.as_chunks::<PARTS>().0.as_chunks::<QUADS>().0;
    let scales = keys.scales.0.as_chunks::<PARTS>().0;
    for (block, (levels, scales)) in blocks.iter().zip(scales).enumerate() {
        let place: [usize; Q] = std::array::from_fn(|q| (first + q) * queries.blocks + block);
        let words: [&[i32; QUADS]; Q] =
            std::array::from_fn(|q| &queries.levels.as_chunks().0[place[q]]);
        let mut sums =
            place.map(|place| [f._mm512_set1_epi32(queries.corrections[place]); PARTS]);
        for (quad, levels) in levels.iter().enumerate() {
            let levels = levels.map(cast);
            for (sums, words) in sums.iter_mut().zip(words) {
                let word = f._mm512_set1_epi32(words[quad]);
                for (sum, levels) in sums.iter_mut().zip(levels) {
                    *sum = simd.add_bytes(*sum, levels, word);
                }
            }
        }
        for ((scores, sums), place) in scores.iter_mut().zip(sums).zip(place) {
            let scale = f._mm512_set1_ps(queries.scales[place]);
            for ((score, sum), of_key) in scores.iter_mut().zip(sums).zip(scales) {
                let scale = f._mm512_mul_ps(scale, cast(*of_key));
                *score = f._mm512_fmadd_ps(f._mm512_cvtepi32_ps(sum), scale, *score);
            }
        }
    }
    for (out, scores) in out.iter_mut().zip(scores) {
        *out = cast(scores);
    }
}

struct Softmax<'r> {
    simd: V4Vnni,
    sum: &'r mut Sum,
    scores: &'r mut [f32; KEYS],
    values: &'r mut [f32],
}

impl NullaryFnOnce for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { simd, sum, scores, values } = self;
        let f = simd.avx512f;
        let parts: [__m512; PARTS] = cast(*scores);
        let [a, b, c, d] = parts;
        // A maximum with NaN is the second operand.
        let max = f._mm512_max_ps(a, f._mm512_set1_ps(sum.max));
        let max = f._mm512_max_ps(d, f._mm512_max_ps(c, f._mm512_max_ps(b, max)));
        let max = f._mm512_reduce_max_ps(max);
        if max > sum.max {
            let factor = exp(sum.max - max);
            sum.weights *= factor;
            values.iter_mut().for_each(|value| *value *= factor);
            sum.max = max;
        }
        let max = f._mm512_set1_ps(max);
        let weights = parts.map(|part| exp_below(simd, part, max));
        let [a, b, c, d] = weights;
        let weight = f._mm512_add_ps(f._mm512_add_ps(a, b), f._mm512_add_ps(c, d));
        sum.weights += f._mm512_reduce_add_ps(weight);
        *scores = cast(weights);
    }
}

/// Coefficients of 2^x between 0 and 1, with a relative error of 1e-7.
const POWERS: [f32; 6] =
    [0.999_999_94, 0.693_153_1, 0.240_153_61, 0.055_826_318, 0.008_989_341, 0.001_877_576_3];

/// Returns e^(x - max) of numbers that are not larger than `max`, with an error of 2e-7 and one for the rounding of the
/// difference; 0 where it is below the smallest normal number.
#[inline(always)]
fn exp_below(simd: V4Vnni, x: __m512, max: __m512) -> __m512 {
    let f = simd.avx512f;
    let x = f._mm512_mul_ps(f._mm512_sub_ps(x, max), f._mm512_set1_ps(std::f32::consts::LOG2_E));
    // The part after the largest integer below.
    let rest = simd.avx512dq._mm512_reduce_ps::<1>(x);
    let [a, b, c, d, e, g] = POWERS.map(|power| f._mm512_set1_ps(power));
    let power = f._mm512_fmadd_ps(g, rest, e);
    let power = f._mm512_fmadd_ps(power, rest, d);
    let power = f._mm512_fmadd_ps(power, rest, c);
    let power = f._mm512_fmadd_ps(power, rest, b);
    let power = f._mm512_fmadd_ps(power, rest, a);
    let smallest = f._mm512_set1_ps(-126.0);
    let stays = f._mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, smallest);
    f._mm512_maskz_scalef_ps(stays, power, x)
}

struct Weighted<'r> {
    of: &'r Int8,
    weights: &'r [f32],
    out: &'r mut [f32],
}

impl NullaryFnOnce for Weighted<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Int8 { simd, values, .. } = self.of;
        let len = values.scales.0.len() / PARTS * LEN;
        let (together, rest) = self.weights.as_chunks().0.as_chunks::<TOGETHER>();
        let (many, few) = self.out.split_at_mut(together.len() * TOGETHER * len);
        for (weights, out) in together.iter().zip(many.chunks_exact_mut(TOGETHER * len)) {
            add_weighted(*simd, weights, values, out);
        }
        for (weights, out) in rest.iter().zip(few.chunks_exact_mut(len)) {
            add_weighted(*simd, std::array::from_ref(weights), values, out);
        }
    }
}

/// Adds weighted values to `Q` rows.
#[inline(always)]
fn add_weighted<const Q: usize>(
    simd: V4Vnni,
    weights: &[[f32; KEYS]; Q],
    values: &Values,
    out: &mut [f32],
) {
    let f = simd.avx512f;
    let len = out.len() / Q;
    let blocks = values.levels.as_chunks::<2>().0.as_chunks::<{ KEYS / 4 }>().0;
    let scales = values.scales.0.as_chunks::<PARTS>().0;
    for (block, (levels, scales)) in blocks.iter().zip(scales).enumerate() {
        let rounded = weights.each_ref().map(|weights| round(simd, weights, scales));
        let mut sums = [[f._mm512_setzero_si512(); 2]; Q];
        for (quad, levels) in levels.iter().enumerate() {
            let levels = levels.map(cast);
            for (sums, (words, _)) in sums.iter_mut().zip(&rounded) {
                let word = f._mm512_set1_epi32(words[quad]);
                for (sum, levels) in sums.iter_mut().zip(levels) {
                    *sum = simd.add_bytes(*sum, word, levels);
                }
            }
        }
        for ((out, sums), (_, scale)) in out.chunks_exact_mut(len).zip(sums).zip(rounded) {
            let out = out[block * LEN..].as_chunks_mut::<16>().0;
            for (out, sum) in out.iter_mut().zip(sums) {
                let sum = f._mm512_cvtepi32_ps(sum);
                *out = cast(f._mm512_fmadd_ps(sum, f._mm512_set1_ps(scale), cast(*out)));
            }
        }
    }
}

/// Multiplies weights by the scales of values. Returns them as bytes, four in each number, and the scale of these.
#[inline(always)]
fn round(
    simd: V4Vnni,
    weights: &[f32; KEYS],
    scales: &[[f32; 16]; PARTS],
) -> ([i32; KEYS / 4], f32) {
    let f = simd.avx512f;
    let weights: [__m512; PARTS] = cast(*weights);
    let mut scaled = [f._mm512_setzero_ps(); PARTS];
    for ((scaled, weights), scales) in scaled.iter_mut().zip(weights).zip(scales) {
        *scaled = f._mm512_mul_ps(weights, cast(*scales));
    }
    let [a, b, c, d] = scaled;
    let max = f._mm512_reduce_max_ps(f._mm512_max_ps(f._mm512_max_ps(a, b), f._mm512_max_ps(c, d)));
    let inverse = f._mm512_set1_ps(if max > SMALLEST { 255.0 / max } else { 0.0 });
    let rounding = f._mm512_set1_ps(ROUNDING);
    let bytes = scaled.map(|scaled| {
        let rounded = f._mm512_castps_si512(f._mm512_fmadd_ps(scaled, inverse, rounding));
        cast::<_, [i32; 4]>(f._mm512_cvtepi32_epi8(rounded))
    });
    (cast(bytes), max / 255.0)
}

#[cfg(test)]
mod tests {
    use gguf::TensorType;

    use super::*;
    use crate::random::Random;

    /// Returns random numbers from -1 to 1.
    fn random(count: usize, seed: u64) -> Vec<f32> {
        let mut random = Random(seed);
        (0..count).map(|_| 2.0 * random.float()).collect()
    }

    /// Returns the numbers as Q8_0, and what remains of them.
    fn encoded(numbers: &[f32]) -> (Vec<u8>, Vec<f32>) {
        let (mut bytes, mut rounded) =
            (vec![0; numbers.len() / LEN * BYTES], vec![0.0; numbers.len()]);
        gguf_quant::encode_row(TensorType::Q8_0, numbers, None, &mut bytes).unwrap();
        gguf_quant::decode_row(TensorType::Q8_0, &bytes, &mut rounded).unwrap();
        (bytes, rounded)
    }

    #[test]
    fn products_are_those_of_floats_but_for_rounding() {
        let Some(simd) = V4Vnni::try_new() else { return eprintln!("SKIPPED: no AVX-512 VNNI") };
        for (key_len, value_len, count, rows) in
            [(32, 32, 64, 1), (64, 64, 64, 7), (128, 96, 20, 8), (96, 128, 1, 5)]
        {
            let queries = random(rows * key_len, 1);
            let queries: Vec<&[f32]> = queries.chunks_exact(key_len).collect();
            let origin = random(key_len, 2);
            let (key_bytes, keys) = encoded(&random(count * key_len, 3));
            let (value_bytes, values) = encoded(&random(count * value_len, 4));
            let mut products = Int8::new(simd, &queries, 0.5, &origin, value_len);
            assert!(products.read(&key_bytes, &value_bytes));
            let mut scores = vec![0.0; rows * KEYS];
            products.multiply(&mut scores);
            for (query, scores) in queries.iter().zip(scores.chunks_exact(KEYS)) {
                for (key, score) in keys.chunks_exact(key_len).zip(scores) {
                    let product = |(x, (y, o)): (&f32, (&f32, &f32))| x * (y + o);
                    let expected: f32 =
                        query.iter().zip(key.iter().zip(&origin)).map(product).sum();
                    // Queries are rounded to 127 levels, and half of a level is lost at most.
                    let most = 0.5 / 127.0 * key.iter().map(|x| x.abs()).sum::<f32>();
                    assert!((2.0 * score - expected).abs() <= most, "{score} {expected} {most}");
                }
            }
            // Weights of keys that were not read are 0.
            let mut weights = vec![0.0; rows * KEYS];
            for (row, weights) in weights.chunks_exact_mut(KEYS).enumerate() {
                for (weight, x) in weights.iter_mut().zip(random(count, 5 + row as u64)) {
                    *weight = x.abs();
                }
            }
            let mut out = vec![1.0; rows * value_len];
            products.add_weighted(&weights, &mut out);
            for (weights, out) in weights.chunks_exact(KEYS).zip(out.chunks_exact(value_len)) {
                for (i, x) in out.iter().enumerate() {
                    let column = values.iter().skip(i).step_by(value_len);
                    let expected: f32 = weights.iter().zip(column).map(|(w, x)| w * x).sum();
                    // Weights times scales are rounded to 255 levels.
                    let most = count as f32 * 1.01 * 0.5 / 255.0;
                    assert!((x - 1.0 - expected).abs() <= most, "{x} {expected} {most}");
                }
            }
        }
    }

    #[test]
    fn scores_become_weights() {
        let Some(simd) = V4Vnni::try_new() else { return eprintln!("SKIPPED: no AVX-512 VNNI") };
        let products = Int8::new(simd, &[], 1.0, &[], 0);
        for scale in [0.0, 0.1, 10.0, 1000.0] {
            let mut scores: [f32; KEYS] = std::array::from_fn(|i| scale * ((i * 37 % 64) as f32 - 20.0));
            scores[5] = f32::NEG_INFINITY;
            let mut expected = scores;
            let (mut sum, mut values) = (Sum { max: 0.5, weights: 3.0 }, [2.0; 4]);
            let (mut sum_expected, mut values_expected) = (Sum { max: 0.5, weights: 3.0 }, [2.0; 4]);
            products.add_scores(&mut sum, &mut scores, &mut values);
            sum_expected.add(&mut expected, &mut values_expected);
            assert_eq!((sum.max, values), (sum_expected.max, values_expected));
            assert!((sum.weights / sum_expected.weights - 1.0).abs() < 1e-6);
            assert_eq!(scores[5], 0.0);
            for (x, y) in scores.iter().zip(expected) {
                // The difference from the maximum is rounded before the product with log2 e.
                assert!((x - y).abs() <= 1e-5 * y + 1e-37, "{x} {y}");
            }
        }
    }

    #[test]
    fn scales_that_are_not_finite_are_refused() {
        let Some(simd) = V4Vnni::try_new() else { return eprintln!("SKIPPED: no AVX-512 VNNI") };
        let (bytes, _) = encoded(&random(2 * LEN, 1));
        let query = random(LEN, 2);
        let mut products = Int8::new(simd, &[&query], 1.0, &[0.0; LEN], LEN);
        assert!(products.read(&bytes, &bytes));
        for scale in [0x7e00u16, 0x7c00, 0xfc00, 0xbc00] {
            let mut broken = bytes.clone();
            broken[BYTES..BYTES + 2].copy_from_slice(&scale.to_le_bytes());
            assert!(!products.read(&broken, &bytes) && !products.read(&bytes, &broken));
        }
    }
}
