//! Blocks as integers, for products that multiply integers and scale their sums.
//!
//! ```text
//! x = d * s[g] * (q - ZERO) - dmin * m[g]       g: index of x / GROUP
//! ```
//!
//! A type of which all integers fit is an [`Integers`]; [`visit`] finds it by tensor type.

use gguf::TensorType;

mod codebooks;
mod k;
mod lookup;
mod single;
mod ternary;

pub use lookup::Lookup;

/// A block without what packs it. Only the first `LEN` levels mean something, and as many scales and
/// minima as there are groups among them.
#[repr(align(32))]
pub struct Unpacked {
    /// The integers `q`: 0 to `TOP`, or bytes with a sign.
    pub levels: [u8; 256],
    /// The scales `s` of the groups, -128 to 127; 1 where a type has none.
    pub scales: [i16; 16],
    /// The minima `m` of the groups, 0 to 255; 1 where a type has only `dmin`.
    pub minimums: [i16; 16],
    /// `d` and `dmin` as halves, of types with [`Integers::HALVES`].
    pub halves: [u16; 2],
    /// The scale of the block.
    pub d: f32,
    /// The scale of its minima.
    pub dmin: f32,
}

impl Unpacked {
    /// All levels 0.
    pub const EMPTY: Self = Self {
        levels: [0; 256],
        scales: [1; 16],
        minimums: [1; 16],
        halves: [0; 2],
        d: 0.0,
        dmin: 0.0,
    };

    /// `d` and `dmin`, as they are stored and as floats.
    #[inline(always)]
    fn put_halves(&mut self, halves: [u16; 2]) {
        self.halves = halves;
        (self.d, self.dmin) = (half(halves[0]), half(halves[1]));
    }
}

/// The bytes of a block.
pub trait Block: Copy + 'static {
    /// The blocks that bytes are, without what is left over.
    fn all(bytes: &[u8]) -> &[Self];

    /// The bytes of a block.
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
pub trait Integers: 'static {
    /// The bytes of a block.
    type Block: Block;
    /// The tensor type that consists of these blocks.
    const TYPE: TensorType;
    /// Weights of a block: 32 or 256.
    const LEN: usize;
    /// Bytes of a block.
    const BYTES: usize = size_of::<Self::Block>();
    /// Weights that share an integer scale: 16 or 32.
    const GROUP: usize;
    /// The greatest level; `None` if levels are bytes with a sign.
    const TOP: Option<u8>;
    /// Whether a byte with a sign may be -128, which has no magnitude in a byte.
    const FULL: bool = false;
    /// The level of weight 0, where there are no minima.
    const ZERO: u8;
    /// Whether there are minima.
    const MINIMUMS: bool;
    /// The byte of a block where `d` stands as a half, and `dmin` after it if there are minima; then
    /// [`Unpacked::halves`] are given. Halves of several blocks are decoded together faster than one
    /// by one.
    const HALVES: Option<usize> = None;
    /// Whether the half of the minima is `-dmin`, because the type adds them.
    const ADDED: bool = false;

    /// Whether [`Integers::unpack_paired`] takes less work than [`Integers::unpack`].
    const PAIRED: bool = false;

    /// Unpacks a block. `out` is [`Unpacked::EMPTY`] or what the same type left there.
    fn unpack<L: Lookup>(lookup: L, block: &Self::Block, out: &mut Unpacked);

    /// Unpacks a block of eight groups of 32 whose levels come as those of [`Integers::unpack_two`]: of the
    /// first group and the fifth, the second and the sixth, and so on.
    #[inline(always)]
    fn unpack_paired<L: Lookup>(lookup: L, block: &Self::Block, out: &mut Unpacked) {
        Self::unpack(lookup, block, out);
    }

    /// The levels of two blocks of 32: the first 16 of both, and the last 16 of both. So vectors with
    /// something of each block come out where one block would have to be turned first.
    #[inline(always)]
    fn unpack_two<L: Lookup>(lookup: L, two: [&Self::Block; 2]) -> [[u8; 32]; 2] {
        let [a, b] = two.map(
            #[inline(always)]
            |block| {
                let mut out = Unpacked::EMPTY;
                Self::unpack(lookup, block, &mut out);
                out.levels
            },
        );
        [0, 16].map(
            #[inline(always)]
            |at| {
                let half = |levels: &[u8; 256]| std::array::from_fn(|i| levels[at + i]);
                side_by_side(&half(&a), &half(&b))
            },
        )
    }
}

/// What is done with a format.
pub trait Visitor {
    /// What comes out.
    type Output;

    /// Does it.
    fn visit<F: Integers>(self) -> Self::Output;
}

/// Does something with the format of a type; `None` if its weights are no integers with scales.
pub fn visit<V: Visitor>(ty: TensorType, visitor: V) -> Option<V::Output> {
    Some(match ty {
        TensorType::Q4_0 => visitor.visit::<single::Q4_0>(),
        TensorType::Q4_1 => visitor.visit::<single::Q4_1>(),
        TensorType::Q5_0 => visitor.visit::<single::Q5_0>(),
        TensorType::Q5_1 => visitor.visit::<single::Q5_1>(),
        TensorType::Q8_0 => visitor.visit::<single::Q8_0>(),
        TensorType::IQ4_NL => visitor.visit::<single::IQ4NL>(),
        TensorType::MXFP4 => visitor.visit::<single::MXFP4>(),
        TensorType::Q2_K => visitor.visit::<k::Q2K>(),
        TensorType::Q3_K => visitor.visit::<k::Q3K>(),
        TensorType::Q4_K => visitor.visit::<k::Q4K>(),
        TensorType::Q5_K => visitor.visit::<k::Q5K>(),
        TensorType::Q6_K => visitor.visit::<k::Q6K>(),
        TensorType::IQ4_XS => visitor.visit::<k::IQ4XS>(),
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

/// The `N` bytes at `AT`.
#[inline(always)]
fn part<const AT: usize, const N: usize, const BYTES: usize>(block: &[u8; BYTES]) -> &[u8; N] {
    const { assert!(AT + N <= BYTES) }
    block[AT..].first_chunk().expect("the field was checked to fit when this was compiled")
}

/// Two halves of a vector.
#[inline(always)]
fn side_by_side(a: &[u8; 16], b: &[u8; 16]) -> [u8; 32] {
    pulp::cast([*a, *b])
}

/// The 16 bits at `AT`.
#[inline(always)]
fn bits_at<const AT: usize, const BYTES: usize>(block: &[u8; BYTES]) -> u16 {
    u16::from_le_bytes(*part::<AT, 2, _>(block))
}

/// The half-precision float at `AT`.
#[inline(always)]
fn half_at<const AT: usize, const BYTES: usize>(block: &[u8; BYTES]) -> f32 {
    half(bits_at::<AT, _>(block))
}

/// A half-precision float, without a branch or a call, so that loops of it become vectors; and
/// without numbers below the normal ones of single precision, which processors are slow with.
#[inline(always)]
pub fn half(bits: u16) -> f32 {
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
    fn halves_are_those_of_the_standard() {
        for bits in 0..=u16::MAX {
            let wanted = half::f16::from_bits(bits).to_f32();
            let found = half(bits);
            assert!(found == wanted || found.is_nan() && wanted.is_nan(), "{bits:x}");
            assert_eq!(found.is_sign_negative(), wanted.is_sign_negative(), "{bits:x}");
        }
    }

    /// Unpacks a block by other instructions.
    #[cfg(target_arch = "x86_64")]
    fn same<F: Integers, L: Lookup>(lookup: L, block: &F::Block, found: &Unpacked) {
        let mut other = Unpacked::EMPTY;
        F::unpack(lookup, block, &mut other);
        assert_eq!(found.levels[..F::LEN], other.levels[..F::LEN]);
        assert_eq!((found.scales, found.minimums), (other.scales, other.minimums));
    }

    /// Unpacks the same levels in the order of pairs.
    fn same_paired<F: Integers>(block: &F::Block, levels: &[u8; 256]) {
        let mut found = Unpacked::EMPTY;
        F::unpack_paired(pulp::Scalar, block, &mut found);
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            let mut other = Unpacked::EMPTY;
            F::unpack_paired(simd, block, &mut other);
            assert_eq!((found.levels, found.scales), (other.levels, other.scales));
        }
        for (n, found) in found.levels.as_chunks::<16>().0.iter().enumerate() {
            let (pair, half, second) = (n / 4, n / 2 % 2, n % 2);
            let from = 32 * (pair + 4 * second) + 16 * half;
            assert_eq!(*found, levels[from..][..16], "{}", F::TYPE);
        }
    }

    /// Unpacks a block beside itself with its bytes turned round.
    fn same_two<F: Integers>(block: &F::Block) {
        let mut other = F::Block::bytes(block).to_vec();
        other.reverse();
        let two = [block, &F::Block::all(&other)[0]];
        let found = F::unpack_two(pulp::Scalar, two);
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            assert_eq!(F::unpack_two(simd, two), found);
        }
        for (at, block) in two.into_iter().enumerate() {
            let mut alone = Unpacked::EMPTY;
            F::unpack(pulp::Scalar, block, &mut alone);
            for (half, found) in found.iter().enumerate() {
                assert_eq!(found[16 * at..][..16], alone.levels[16 * half..][..16], "{}", F::TYPE);
            }
        }
    }

    /// Every weight of random blocks, beside that of the decoder.
    struct Compare;

    impl Visitor for Compare {
        type Output = ();

        fn visit<F: Integers>(self) {
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
                let mut found = Unpacked::EMPTY;
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
                if F::HALVES.is_some() {
                    assert_eq!(found.halves.map(half), [found.d, found.dmin]);
                }
                if F::LEN == 32 {
                    same_two::<F>(block);
                }
                if F::PAIRED {
                    same_paired::<F>(block, &found.levels);
                }
                for (i, x) in weights.iter().enumerate() {
                    let (level, g) = (found.levels[i], i / F::GROUP);
                    let level = match F::TOP {
                        Some(top) => {
                            assert!(level <= top, "{}", F::TYPE);
                            i32::from(level) - i32::from(F::ZERO)
                        }
                        None => i32::from(level as i8),
                    };
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
    fn levels_and_scales_are_those_of_the_weights() {
        let types = TensorType::all().filter(|ty| visit(*ty, Compare).is_some());
        assert_eq!(types.count(), 22);
    }
}
