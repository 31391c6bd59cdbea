//! Blocks unpacked to integers, for integer dot products whose sums are then scaled.
//!
//! ```text
//! x = d * s[g] * (q - ZERO) - dmin * m[g]       g: index of x / GROUP
//! ```
//!
//! Types that fit this formula implement [`IntegerBlock`]; [`visit`] dispatches on the tensor type.

use gguf::TensorType;

mod block32;
mod byte_simd;
mod codebooks;
mod k_quants;
mod ternary;

pub use byte_simd::ByteSimd;

/// An unpacked block. Only the first `LEN` levels are valid, and one scale and one minimum per
/// group.
#[repr(align(32))]
pub struct UnpackedBlock {
    /// Quantized values `q`: 0 to `MAX_LEVEL`, or signed bytes.
    pub levels: [u8; 256],
    /// Group scales `s`, -128 to 127; 1 if the type has none.
    pub scales: [i16; 16],
    /// Group minimums `m`, 0 to 255; 1 if the type has only `dmin`.
    pub minimums: [i16; 16],
    /// `d` and `dmin` in FP16, for types with [`IntegerBlock::F16_OFFSET`].
    pub f16_scales: [u16; 2],
    /// Block scale.
    pub d: f32,
    /// Block scale of the minimums.
    pub dmin: f32,
}

impl UnpackedBlock {
    /// A block whose levels are all 0.
    pub const EMPTY: Self = Self {
        levels: [0; 256],
        scales: [1; 16],
        minimums: [1; 16],
        f16_scales: [0; 2],
        d: 0.0,
        dmin: 0.0,
    };

    /// Stores `d` and `dmin` in FP16 and as floats.
    #[inline(always)]
    fn set_f16_scales(&mut self, f16_scales: [u16; 2]) {
        self.f16_scales = f16_scales;
        (self.d, self.dmin) = (f16_to_f32(f16_scales[0]), f16_to_f32(f16_scales[1]));
    }
}

/// The bytes of a block.
pub trait Block: Copy + 'static {
    /// Splits bytes into blocks and ignores the remainder.
    fn all(bytes: &[u8]) -> &[Self];

    /// Returns the bytes of a block.
    fn bytes(&self) -> &[u8];
}

impl<const N: usize> Block for [u8; N] {
    #[inline(always)]
    fn all(bytes: &[u8]) -> &[Self] {
        bytes.as_chunks().0
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// A block format whose weights are integers times scales.
pub trait IntegerBlock: 'static {
    /// Bytes of one block.
    type Block: Block;
    /// Tensor type of the format.
    const TYPE: TensorType;
    /// Number of weights per block: 32 or 256.
    const LEN: usize;
    /// Number of bytes per block.
    const BYTES: usize = size_of::<Self::Block>();
    /// Number of weights that share an integer scale: 16 or 32.
    const GROUP: usize;
    /// Max level; `None` if levels are signed bytes.
    const MAX_LEVEL: Option<u8>;
    /// Greatest magnitude of signed levels.
    const MAX_MAGNITUDE: u8 = 128;
    /// Level of weight 0, for types without minimums.
    const ZERO: u8;
    /// Whether the type has minimums.
    const MINIMUMS: bool;
    /// Whether each scale times a level fits a byte: as 0 to 255 for types with minimums, for others the level below
    /// `ZERO`, `s * (ZERO - q)`, as -128 to 127.
    const SCALED_LEVELS_FIT: bool = false;
    /// Byte offset of the FP16 `d`, followed by `dmin` if the type has minimums; `unpack` then sets
    /// [`UnpackedBlock::f16_scales`]. Converting the scales of several blocks together is faster
    /// than one at a time.
    const F16_OFFSET: Option<usize> = None;
    /// Whether `d` is a power of two.
    const POWER_OF_TWO: bool = false;
    /// Whether the stored FP16 minimum is `-dmin`, because the type adds its minimum.
    const NEGATED_MIN: bool = false;

    /// Whether [`IntegerBlock::unpack_paired`] is faster than [`IntegerBlock::unpack`].
    const HAS_PAIRED: bool = false;

    /// Unpacks a block. `out` is [`UnpackedBlock::EMPTY`] or the result of an earlier call for the
    /// same type.
    fn unpack<L: ByteSimd>(simd: L, block: &Self::Block, out: &mut UnpackedBlock);

    /// Unpacks a block of eight groups of 32 in the order of [`IntegerBlock::unpack_two`]: groups 0
    /// and 4, then 1 and 5, and so on.
    #[inline(always)]
    fn unpack_paired<L: ByteSimd>(simd: L, block: &Self::Block, out: &mut UnpackedBlock) {
        Self::unpack(simd, block, out);
    }

    /// Unpacks the levels of two blocks of 32: the first 16 of both, then the last 16 of both. This
    /// yields vectors that hold part of each block without a permutation.
    #[inline(always)]
    fn unpack_two<L: ByteSimd>(simd: L, two: [&Self::Block; 2]) -> [[u8; 32]; 2] {
        let [a, b] = two.map(
            #[inline(always)]
            |block| {
                let mut out = UnpackedBlock::EMPTY;
                Self::unpack(simd, block, &mut out);
                out.levels
            },
        );
        [0, 16].map(
            #[inline(always)]
            |at| {
                let half = |levels: &[u8; 256]| std::array::from_fn(|i| levels[at + i]);
                concat(&half(&a), &half(&b))
            },
        )
    }
}

/// Generic operation over block formats.
pub trait Visitor {
    /// Result of the operation.
    type Output;

    /// Runs the operation for format `F`.
    fn visit<F: IntegerBlock>(self) -> Self::Output;
}

/// Runs `visitor` for the format of a type; `None` if the type has no [`IntegerBlock`].
pub fn visit<V: Visitor>(ty: TensorType, visitor: V) -> Option<V::Output> {
    Some(match ty {
        TensorType::Q4_0 => visitor.visit::<block32::Q4_0>(),
        TensorType::Q4_1 => visitor.visit::<block32::Q4_1>(),
        TensorType::Q5_0 => visitor.visit::<block32::Q5_0>(),
        TensorType::Q5_1 => visitor.visit::<block32::Q5_1>(),
        TensorType::Q8_0 => visitor.visit::<block32::Q8_0>(),
        TensorType::IQ4_NL => visitor.visit::<block32::IQ4NL>(),
        TensorType::MXFP4 => visitor.visit::<block32::MXFP4>(),
        TensorType::Q2_K => visitor.visit::<k_quants::Q2K>(),
        TensorType::Q3_K => visitor.visit::<k_quants::Q3K>(),
        TensorType::Q4_K => visitor.visit::<k_quants::Q4K>(),
        TensorType::Q5_K => visitor.visit::<k_quants::Q5K>(),
        TensorType::Q6_K => visitor.visit::<k_quants::Q6K>(),
        TensorType::IQ4_XS => visitor.visit::<k_quants::IQ4XS>(),
        TensorType::TQ1_0 => visitor.visit::<ternary::TQ1_0>(),
        TensorType::TQ2_0 => visitor.visit::<ternary::TQ2_0>(),
        TensorType::IQ1_S => visitor.visit::<codebooks::IQ1S>(),
        TensorType::IQ1_M => visitor.visit::<codebooks::IQ1M>(),
        TensorType::IQ2_XXS => visitor.visit::<codebooks::IQ2XXS>(),
        TensorType::IQ2_XS => visitor.visit::<codebooks::IQ2XS>(),
        TensorType::IQ2_S => visitor.visit::<codebooks::IQ2S>(),
        TensorType::IQ3_XXS => visitor.visit::<codebooks::IQ3XXS>(),
        TensorType::IQ3_S => visitor.visit::<codebooks::IQ3S>(),
        _ => return None,
    })
}

/// Returns the `N` bytes at offset `AT`.
#[inline(always)]
fn part<const AT: usize, const N: usize, const BYTES: usize>(block: &[u8; BYTES]) -> &[u8; N] {
    const { assert!(AT + N <= BYTES) }
    block[AT..].first_chunk().expect("the field fits, as the compile-time check showed")
}

/// Concatenates two halves of a vector.
#[inline(always)]
fn concat(a: &[u8; 16], b: &[u8; 16]) -> [u8; 32] {
    pulp::cast([*a, *b])
}

/// Reads 16 bits at offset `AT`.
#[inline(always)]
fn bits_at<const AT: usize, const BYTES: usize>(block: &[u8; BYTES]) -> u16 {
    u16::from_le_bytes(*part::<AT, 2, _>(block))
}

/// Reads an FP16 number at offset `AT`.
#[inline(always)]
fn f16_at<const AT: usize, const BYTES: usize>(block: &[u8; BYTES]) -> f32 {
    f16_to_f32(bits_at::<AT, _>(block))
}

/// Converts FP16 to F32 without a branch or a call, so that loops vectorize, and without F32
/// denormals, which are slow on many processors.
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    let (magnitude, sign) = (u32::from(bits & 0x7fff), u32::from(bits & 0x8000) << 16);
    let small = (magnitude as i32 as f32 * (1.0 / (1 << 24) as f32)).to_bits();
    let normal = (magnitude << 13) + (112 << 23);
    let endless = if magnitude >= 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits((if magnitude < 0x400 { small } else { normal }) | endless | sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f16_conversion_matches_half() {
        for bits in 0..=u16::MAX {
            let wanted = half::f16::from_bits(bits).to_f32();
            let found = f16_to_f32(bits);
            assert!(found == wanted || found.is_nan() && wanted.is_nan(), "{bits:x}");
            assert_eq!(found.is_sign_negative(), wanted.is_sign_negative(), "{bits:x}");
        }
    }

    /// Unpacks a block with other instructions and compares.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn same<F: IntegerBlock, L: ByteSimd>(simd: L, block: &F::Block, found: &UnpackedBlock) {
        let mut other = UnpackedBlock::EMPTY;
        F::unpack(simd, block, &mut other);
        assert_eq!(found.levels[..F::LEN], other.levels[..F::LEN]);
        assert_eq!((found.scales, found.minimums), (other.scales, other.minimums));
    }

    /// Unpacks a block in paired order and compares.
    fn compare_unpack_paired<F: IntegerBlock>(block: &F::Block, levels: &[u8; 256]) {
        let mut found = UnpackedBlock::EMPTY;
        F::unpack_paired(pulp::Scalar, block, &mut found);
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            let mut other = UnpackedBlock::EMPTY;
            F::unpack_paired(simd, block, &mut other);
            assert_eq!((found.levels, found.scales), (other.levels, other.scales));
        }
        for (n, found) in found.levels.as_chunks::<16>().0.iter().enumerate() {
            let (pair, half, second) = (n / 4, n / 2 % 2, n % 2);
            let from = 32 * (pair + 4 * second) + 16 * half;
            assert_eq!(*found, levels[from..][..16], "{}", F::TYPE);
        }
    }

    /// Unpacks a block together with its byte-reversed copy and compares.
    fn compare_unpack_two<F: IntegerBlock>(block: &F::Block) {
        let mut other = F::Block::bytes(block).to_vec();
        other.reverse();
        let two = [block, &F::Block::all(&other)[0]];
        let found = F::unpack_two(pulp::Scalar, two);
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            assert_eq!(F::unpack_two(simd, two), found);
        }
        for (at, block) in two.into_iter().enumerate() {
            let mut alone = UnpackedBlock::EMPTY;
            F::unpack(pulp::Scalar, block, &mut alone);
            for (half, found) in found.iter().enumerate() {
                assert_eq!(found[16 * at..][..16], alone.levels[16 * half..][..16], "{}", F::TYPE);
            }
        }
    }

    /// Compares every weight of random blocks with the decoder.
    struct Compare;

    impl Visitor for Compare {
        type Output = ();

        fn visit<F: IntegerBlock>(self) {
            let mut state = 1u64;
            for number in 0..200 {
                let mut block: Vec<u8> = (0..F::BYTES)
                    .map(|_| {
                        state = state
                            .wrapping_mul(6364136223846793005)
                            .wrapping_add(1442695040888963407);
                        (state >> 56) as u8
                    })
                    .collect();
                if F::TYPE == TensorType::MXFP4 {
                    block[0] = 100 + number % 50;
                }
                let mut weights = vec![0.0; F::LEN];
                crate::decode_row(F::TYPE, &block, &mut weights).unwrap();
                if weights.iter().any(|x| !x.is_finite()) {
                    continue;
                }
                let mut found = UnpackedBlock::EMPTY;
                let block = &F::Block::all(&block)[0];
                F::unpack(pulp::Scalar, block, &mut found);
                #[cfg(target_arch = "x86_64")]
                if let Some(simd) = pulp::x86::V3::try_new() {
                    same::<F, _>(simd, block, &found);
                }
                #[cfg(target_arch = "x86_64")]
                if let Some(simd) = pulp::x86::V4::try_new() {
                    same::<F, _>(simd, block, &found);
                }
                #[cfg(target_arch = "aarch64")]
                if let Some(simd) = pulp::aarch64::Neon::try_new() {
                    same::<F, _>(simd, block, &found);
                }
                assert!(
                    !F::POWER_OF_TWO || found.d.log2().fract() == 0.0,
                    "{}: {}",
                    F::TYPE,
                    found.d
                );
                if F::F16_OFFSET.is_some() {
                    assert_eq!(found.f16_scales.map(f16_to_f32), [found.d, found.dmin]);
                }
                if F::LEN == 32 {
                    compare_unpack_two::<F>(block);
                }
                if F::HAS_PAIRED {
                    compare_unpack_paired::<F>(block, &found.levels);
                }
                for (i, x) in weights.iter().enumerate() {
                    let (level, g) = (found.levels[i], i / F::GROUP);
                    let level = match F::MAX_LEVEL {
                        Some(top) => {
                            assert!(level <= top, "{}", F::TYPE);
                            i32::from(level) - i32::from(F::ZERO)
                        }
                        None => {
                            assert!(
                                (level as i8).unsigned_abs() <= F::MAX_MAGNITUDE,
                                "{}",
                                F::TYPE
                            );
                            i32::from(level as i8)
                        }
                    };
                    if F::SCALED_LEVELS_FIT {
                        let scaled = level * i32::from(found.scales[g]);
                        let range = if F::MINIMUMS { 0..=255 } else { -127..=128 };
                        assert!(range.contains(&scaled), "{}: {scaled}", F::TYPE);
                    }
                    let (s, m) = (f32::from(found.scales[g]), f32::from(found.minimums[g]));
                    let min = if F::MINIMUMS { found.dmin * m } else { 0.0 };
                    let y = found.d * s * level as f32 - min;
                    let scale = (found.d * s * level as f32).abs() + min.abs();
                    assert!((x - y).abs() <= scale * 1e-6, "{}: {i}: {x} {y}", F::TYPE);
                }
            }
        }
    }

    #[test]
    fn unpacked_blocks_match_the_decoder() {
        let types = TensorType::all().filter(|ty| visit(*ty, Compare).is_some());
        assert_eq!(types.count(), 22);
    }
}
