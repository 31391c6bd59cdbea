//! Alphabet of byte-level BPE: one visible character per byte.
//!
//! Bytes that are visible in Latin-1 map to themselves; the other 68 bytes map to the characters from
//! U+0100 on, in order.

/// Returns true for bytes that are visible in Latin-1.
const fn is_visible(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)
}

/// Character of each byte.
const CHARS: [char; 256] = {
    let mut chars = ['\0'; 256];
    let (mut byte, mut others) = (0, 0x100);
    while byte < 0x100 {
        let mut code = byte as u32;
        if !is_visible(byte as u8) {
            code = others;
            others += 1;
        }
        // Code points this small are never surrogates.
        if let Some(char) = char::from_u32(code) {
            chars[byte] = char;
        }
        byte += 1;
    }
    chars
};

/// Byte of each character below U+0144, if any.
const BYTES: [Option<u8>; 0x144] = {
    let mut bytes = [None; 0x144];
    let mut byte = 0;
    while byte < 0x100 {
        bytes[CHARS[byte] as usize] = Some(byte as u8);
        byte += 1;
    }
    bytes
};

/// Returns the byte of a character; `None` for characters outside of the alphabet.
pub fn byte_of(char: char) -> Option<u8> {
    BYTES.get(char as usize).copied().flatten()
}

/// Returns the character of a byte.
pub fn char_of(byte: u8) -> char {
    CHARS[usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_covers_every_byte_once() {
        let mut bytes: Vec<u8> = ('\0'..'\u{200}').filter_map(byte_of).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert!((0..=255).all(|byte| byte_of(char_of(byte)) == Some(byte)));
        let known = [('!', b'!'), ('\u{e9}', 0xe9), ('\u{120}', b' '), ('\u{10a}', b'\n')];
        assert!(known.iter().all(|&(char, byte)| byte_of(char) == Some(byte)));
        assert_eq!((char_of(0x7f), char_of(0xad)), ('\u{121}', '\u{143}'));
    }
}
