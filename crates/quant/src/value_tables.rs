//! Value tables of IQ4 and E2M1, and the 8-bit float scales of MXFP4 and NVFP4.

/// Value of each IQ4 level (`kvalues_iq4nl`).
pub(crate) const IQ4: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Twice the value of each E2M1 code, so that all are integers; the scales are halved to compensate.
pub(crate) const E2M1_DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Half of an E8M0 number: 2^(e - 128).
#[inline(always)]
pub(crate) fn e8m0_half(e: u8) -> f32 {
    let bits = match e {
        // Denormal floats.
        0 | 1 => 0x20_0000 << e,
        _ => (u32::from(e) - 1) << 23,
    };
    f32::from_bits(bits)
}

/// Half of an unsigned E4M3 number (bias 7); 0 for the NaN 0x7f, as in llama.cpp.
#[inline]
pub(crate) fn ue4m3_half(d: u8) -> f32 {
    if d == 0x7f {
        return 0.0;
    }
    let (exponent, mantissa) = (u32::from(d >> 3 & 15), u32::from(d & 7));
    match exponent {
        0 => mantissa as f32 / 1024.0,
        // Bias 7 becomes 127, minus one for the half.
        _ => f32::from_bits((exponent + 119) << 23 | mantissa << 20),
    }
}
