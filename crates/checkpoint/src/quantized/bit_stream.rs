//! Bit streams in 32-bit words.

/// Unpacks values of `bits` bits from a stream of words, which values may straddle.
pub(super) fn unpack(mut words: impl Iterator<Item = u32>, bits: u32) -> impl Iterator<Item = u8> {
    let (mut stream, mut available) = (0u64, 0);
    std::iter::from_fn(move || {
        if available < bits {
            stream |= u64::from(words.next()?) << available;
            available += 32;
        }
        let number = stream & ((1 << bits) - 1);
        stream >>= bits;
        available -= bits;
        Some(number as u8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_straddle_words() {
        // The last value has two bits in the first word.
        let numbers = [1u8, 2, 3, 4, 5, 6, 7, 0, 1, 2, 6];
        let stream =
            numbers.iter().enumerate().fold(0, |bits, (i, n)| bits | u64::from(*n) << (3 * i));
        let words = [stream as u32, (stream >> 32) as u32];
        assert!(unpack(words.into_iter(), 3).take(11).eq(numbers));
    }
}
