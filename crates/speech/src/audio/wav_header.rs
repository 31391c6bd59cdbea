//! Header of a WAV stream. Programs that write to a pipe do not know the length of the audio data, and RF64 files
//! (EBU Tech 3306) have it in a chunk of their own. Decoders expect it in the header of the `data` chunk.

use std::io::{self, Read};

/// Maximum length of the chunks before the audio data: text, cue points, cover pictures.
const MAX_HEADER: usize = 16 << 20;

/// Length of a chunk that extends to the end of the file.
const UNKNOWN: u32 = u32::MAX;

/// Reads a WAV header from the start of `input`, up to the audio data, and sets its lengths as symphonia expects them:
/// [`UNKNOWN`] for the whole file, and the number of bytes that follow for audio data without a length. Input in another
/// format is returned as read. `byte_len` is the length of the input in bytes.
///
/// # Errors
/// If the input cannot be read.
pub(super) fn read(input: &mut impl Read, byte_len: u64) -> io::Result<Vec<u8>> {
    let mut header = Vec::new();
    if !append(input, 12, &mut header)? || !is_wav(&header) {
        return Ok(header);
    }
    // Length of the audio data in a `ds64` chunk, and bytes per frame.
    let (mut long, mut frame) = (None, 1);
    loop {
        let start = header.len();
        if !append(input, 8, &mut header)? {
            return Ok(header);
        }
        let len = u32_at(&header, start + 4);
        if header[start..].starts_with(b"data") {
            let data = start as u64 + 8;
            header[..4].copy_from_slice(b"RIFF");
            header[4..8].copy_from_slice(&UNKNOWN.to_le_bytes());
            let available = byte_len.saturating_sub(data);
            let len = data_len(len, long, available / frame * frame);
            header[start + 4..].copy_from_slice(&len.to_le_bytes());
            return Ok(header);
        }
        let body = len as usize + (len as usize & 1);
        if header.len() + body > MAX_HEADER || !append(input, body, &mut header)? {
            return Ok(header);
        }
        if header[start..].starts_with(b"fmt ") && body >= 14 {
            frame = u64::from(u32_at(&header, start + 20) & 0xffff).max(1);
        }
        if header[start..].starts_with(b"ds64") && body >= 16 {
            long = Some(
                u64::from(u32_at(&header, start + 16))
                    | u64::from(u32_at(&header, start + 20)) << 32,
            );
            header[start..start + 4].copy_from_slice(b"JUNK");
        }
    }
}

fn is_wav(header: &[u8]) -> bool {
    [b"RIFF", b"RF64", b"BW64"].iter().any(|id| header.starts_with(*id))
        && header[8..].starts_with(b"WAVE")
}

/// Returns the length of the audio data in bytes. `available` is the number of bytes that follow, in whole frames.
fn data_len(stated: u32, long: Option<u64>, available: u64) -> u32 {
    let len = match (stated, long) {
        (UNKNOWN, Some(long)) => long,
        // ffmpeg writes the largest unsigned length to a pipe, other programs zero.
        (UNKNOWN | 0, _) => available,
        // The largest signed length, or up to a header or a block less: SoX and arecord.
        (0x7fff_0000..=0x7fff_ffff, _) if available < stated.into() => available,
        _ => stated.into(),
    };
    u32::try_from(len).unwrap_or(UNKNOWN)
}

/// Appends `len` bytes; returns `false` if the input ends before.
fn append(input: &mut impl Read, len: usize, out: &mut Vec<u8>) -> io::Result<bool> {
    Ok(input.take(len as u64).read_to_end(out)? == len)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    u32::from_le_bytes(bytes.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a header with these chunks before `data`, and 4 bytes of audio data.
    fn wav(id: &[u8; 4], riff: u32, chunks: &[(&[u8; 4], &[u8])], data: u32) -> Vec<u8> {
        let mut bytes = [&id[..], &riff.to_le_bytes(), b"WAVE"].concat();
        for (id, body) in chunks {
            bytes.extend([&id[..], &(body.len() as u32).to_le_bytes(), body].concat());
            bytes.resize(bytes.len().next_multiple_of(2), 0);
        }
        bytes.extend([&b"data"[..], &data.to_le_bytes(), &[1, 2, 3, 4]].concat());
        bytes
    }

    /// Returns the length of the audio data, and the rest of the input.
    fn parsed(bytes: &[u8]) -> (u32, Vec<u8>) {
        let mut input = bytes;
        let header = read(&mut input, bytes.len() as u64).unwrap();
        assert!(header.starts_with(b"RIFF\xff\xff\xff\xffWAVE"), "{header:?}");
        (u32_at(&header, header.len() - 4), input.to_vec())
    }

    #[test]
    fn unknown_lengths_extend_to_the_end() {
        let format = |frame: u8| [&[0; 12][..], &[frame, 0, 16, 0]].concat();
        for data in [4, 0, UNKNOWN, 0x7fff_ffff, 0x7fff_f000] {
            for riff in [0, 4, UNKNOWN] {
                let bytes = wav(b"RIFF", riff, &[(b"fmt ", &format(2)), (b"LIST", b"odd")], data);
                assert_eq!(parsed(&bytes), (4, vec![1, 2, 3, 4]), "{data} {riff}");
            }
        }
        let cut = |data| parsed(&wav(b"RIFF", 0, &[(b"fmt ", &format(3))], data)).0;
        assert_eq!(cut(0), 3, "whole frames");
        assert_eq!(cut(400), 400, "a truncated file keeps its length");
        let bytes = wav(b"RIFF", 0, &[], 0);
        assert_eq!(parsed(&bytes[..bytes.len() - 4]).0, 0, "nothing follows");
    }

    #[test]
    fn rf64_has_its_length_in_a_chunk() {
        let ds64 = |data: u64| [&[9; 8], &data.to_le_bytes()[..], &[0; 12]].concat();
        let len =
            |data: u64, stated| parsed(&wav(b"RF64", UNKNOWN, &[(b"ds64", &ds64(data))], stated)).0;
        assert_eq!(len(4, UNKNOWN), 4);
        assert_eq!(len(4, 2), 2);
        assert_eq!(len(5 << 30, UNKNOWN), UNKNOWN);
    }

    #[test]
    fn other_input_is_unchanged() {
        let riff = wav(b"RIFF", 36, &[], 4);
        for input in
            [&b""[..], b"RIFF", b"ID3\x04rest of a file", &riff[..16], b"RIFF\0\0\0\0AVI LIST"]
        {
            let mut rest = input;
            let header = read(&mut rest, input.len() as u64).unwrap();
            assert_eq!([&header, rest].concat(), input);
        }
        // A length beyond the input is not allocated.
        let lie = [&b"RIFF\0\0\0\0WAVELIST"[..], &u32::MAX.to_le_bytes(), b"x"].concat();
        let mut rest = &lie[..];
        assert_eq!([&read(&mut rest, lie.len() as u64).unwrap(), rest].concat(), lie);
    }
}
