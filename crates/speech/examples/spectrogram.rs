//! Writes the mel spectrogram of a recording: `spectrogram FILE BANDS OUT`. OUT is little-endian F32 in C order,
//! `[frames, bands]`, with frames of 10 ms padded to whole windows of 30 s.

use std::error::Error;
use std::path::Path;

use gguf_speech::MelSpectrogram;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, bands, out] = words.as_slice() else {
        return Err("usage: spectrogram FILE BANDS OUT".into());
    };
    let mut spectrogram = MelSpectrogram::open(Path::new(file), bands.parse()?, &mut |_| Ok(()))?;
    let mut bytes = Vec::new();
    for first in (0..spectrogram.frames()).step_by(3000) {
        let window = spectrogram.window(first, 3000)?;
        bytes.extend(window.iter().flat_map(|value| value.to_le_bytes()));
    }
    std::fs::write(out, bytes)?;
    Ok(())
}
