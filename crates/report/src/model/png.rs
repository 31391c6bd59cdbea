//! PNG pictures of a diverging colormap, as data URLs.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Palette index of zero, of NaN, and the distance of the ends from zero.
const ZERO: u8 = 127;
const NAN: u8 = 255;

/// Colors of negative values, positive values and NaN. Zero is transparent, so that the pictures suit light and dark
/// pages.
const NEGATIVE: [u8; 3] = [0x25, 0x63, 0xeb];
const POSITIVE: [u8; 3] = [0xd9, 0x48, 0x0f];
const NOT_A_NUMBER: [u8; 3] = [0xc0, 0x26, 0xd3];

/// Returns a data URL of a picture of `values` in rows of `width`, with full color at `range` and beyond. `None` is
/// transparent.
pub fn data_url(values: &[Option<f32>], width: usize, range: f32) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(picture(values, width, range)))
}

fn picture(values: &[Option<f32>], width: usize, range: f32) -> Vec<u8> {
    let index = |value: &Option<f32>| match value {
        None => ZERO,
        Some(value) if value.is_nan() => NAN,
        Some(value) => {
            let share = f64::from(*value) / f64::from(range.max(f32::MIN_POSITIVE));
            (f64::from(ZERO) + share.clamp(-1.0, 1.0) * f64::from(ZERO)).round() as u8
        }
    };
    // Every line begins with its filter: none.
    let lines: Vec<u8> = values
        .chunks(width.max(1))
        .flat_map(|line| std::iter::once(0).chain(line.iter().map(index)))
        .collect();
    let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    let mut header = [size(width), size(values.len() / width.max(1))].concat();
    // Eight bits per pixel of a palette, not interlaced.
    header.extend([8, 3, 0, 0, 0]);
    let (mut palette, mut alpha) = (Vec::new(), Vec::new());
    for i in 0..=254 {
        palette.extend(if i < ZERO { NEGATIVE } else { POSITIVE });
        alpha.push((u16::from(i.abs_diff(ZERO)) * 255 / u16::from(ZERO)) as u8);
    }
    palette.extend(NOT_A_NUMBER);
    alpha.push(255);
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut out, b"IHDR", &header);
    chunk(&mut out, b"PLTE", &palette);
    chunk(&mut out, b"tRNS", &alpha);
    chunk(&mut out, b"IDAT", &compressed(&lines));
    chunk(&mut out, b"IEND", &[]);
    out
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes all bytes")
}

fn chunk(out: &mut Vec<u8>, name: &[u8; 4], content: &[u8]) {
    out.extend((content.len() as u32).to_be_bytes());
    let start = out.len();
    out.extend(name);
    out.extend(content);
    let sum = crc32fast::hash(&out[start..]);
    out.extend(sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn pixels_are_shares_of_the_range() {
        let values = [Some(-2.0), Some(0.0), Some(1.0), None, Some(f32::NAN), Some(f32::INFINITY)];
        let png = picture(&values, 3, 2.0);
        assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
        assert_eq!(png[16..29], [0, 0, 0, 3, 0, 0, 0, 2, 8, 3, 0, 0, 0]);
        let at = png.windows(4).position(|name| name == b"IDAT").unwrap() + 4;
        let mut lines = Vec::new();
        flate2::read::ZlibDecoder::new(&png[at..]).read_to_end(&mut lines).unwrap();
        // The filter of each line, and its pixels: -1, 0, 0.5 and zero, NaN, 1 of the range.
        assert_eq!(lines, [0, 0, 127, 191, 0, 127, 255, 254]);
    }
}
