//! Writes the spectrogram of a recording: `spectrogram FILE BANDS OUT`. OUT gets F32 in little-endian
//! order, a row of bands for each frame of 10 ms, filled up to whole windows of 30 s.

use std::error::Error;
use std::path::Path;

use gguf_audio::Spectrogram;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, bands, out] = words.as_slice() else {
        return Err("usage: spectrogram FILE BANDS OUT".into());
    };
    let mut sound = Spectrogram::open(Path::new(file), bands.parse()?, &mut |_| Ok(()))?;
    let mut bytes = Vec::new();
    for first in (0..sound.frames()).step_by(3000) {
        let window = sound.window(first, 3000)?;
        bytes.extend(window.iter().flat_map(|number| number.to_le_bytes()));
    }
    std::fs::write(out, bytes)?;
    Ok(())
}
