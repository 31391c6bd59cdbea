//! Tiny KJV Llama 4M: a Llama model of 4.2 million parameters as a Hugging Face checkpoint, embedded for `gguf demo`.
//!
//! The weights are those of `testdata/Tiny-KJV-Llama-4M`, rounded to four bits of mantissa: half the size in the binary.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::ZlibDecoder;

/// Directory name of the checkpoint.
pub const NAME: &str = "Tiny-KJV-Llama-4M";

macro_rules! file {
    ($name:literal) => {
        (
            $name,
            include_bytes!(concat!("../../../../testdata/Tiny-KJV-Llama-4M/", $name)).as_slice(),
        )
    };
}

/// Name and content of each file except the weights.
const FILES: [(&str, &[u8]); 5] = [
    file!("config.json"),
    file!("generation_config.json"),
    file!("README.md"),
    file!("tokenizer.model"),
    file!("tokenizer_config.json"),
];

/// Name of the file of weights.
const WEIGHTS: &str = "model.safetensors";

/// Compressed weights: the header of the safetensors file, the high bytes of all F16 values, their low bytes.
const COMPRESSED: &[u8] = include_bytes!("weights.zlib");

/// Writes the checkpoint into a directory, which exists.
///
/// # Errors
/// If a file cannot be written.
pub fn unpack(dir: &Path) -> io::Result<()> {
    for (name, bytes) in FILES {
        fs::write(dir.join(name), bytes)?;
    }
    fs::write(dir.join(WEIGHTS), weights()?)
}

/// Returns the content of the file of weights.
fn weights() -> io::Result<Vec<u8>> {
    let mut file = Vec::new();
    ZlibDecoder::new(COMPRESSED).read_to_end(&mut file)?;
    let values = file.split_off(header_len(&file));
    let (high, low) = values.split_at(values.len() / 2);
    file.extend(low.iter().zip(high).flat_map(|(low, high)| [*low, *high]));
    Ok(file)
}

/// Returns the length of the header of a safetensors file.
fn header_len(file: &[u8]) -> usize {
    let len = file.first_chunk().map_or(0, |len| u64::from_le_bytes(*len));
    file.len().min(8 + len as usize)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    /// Rounds an F16 value to four bits of mantissa, ties to even.
    fn rounded(bits: u16) -> u16 {
        const DROPPED: u32 = 10 - 4;
        let (sign, size) = (bits & 0x8000, bits & 0x7fff);
        let half = (1 << (DROPPED - 1)) - 1 + (size >> DROPPED & 1);
        sign | (size + half) >> DROPPED << DROPPED
    }

    /// `UPDATE=1` writes the compressed weights.
    #[test]
    fn weights_are_those_of_the_test_data_rounded() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let mut expected = fs::read(root.join("../../testdata").join(NAME).join(WEIGHTS)).unwrap();
        let values = expected.split_off(header_len(&expected));
        let values = values.chunks(2).map(|x| rounded(u16::from_le_bytes([x[0], x[1]])));
        let values: Vec<u16> = values.collect();
        if std::env::var_os("UPDATE").is_some() {
            let file = fs::File::create(root.join("src/demo_model/weights.zlib")).unwrap();
            let mut encoder = ZlibEncoder::new(file, Compression::best());
            let plane = |shift: u32| values.iter().map(move |x| (x >> shift) as u8);
            encoder.write_all(&expected).unwrap();
            encoder.write_all(&plane(8).collect::<Vec<_>>()).unwrap();
            encoder.write_all(&plane(0).collect::<Vec<_>>()).unwrap();
            encoder.finish().unwrap();
            return;
        }
        expected.extend(values.iter().flat_map(|x| x.to_le_bytes()));
        assert!(weights().unwrap() == expected, "run the test with UPDATE=1");
    }
}
