//! Synthetic recordings and their mel spectrograms.

use std::f64::consts::TAU;
use std::fs;
use std::path::{Path, PathBuf};

use gguf_speech::{MelSpectrogram, RATE, Recording};

/// Returns a decaying chirp from 300 Hz, rising by 2000 Hz per second, as 16-bit samples.
fn chirp(rate: u32, seconds: f64) -> Vec<i16> {
    let at = |i: u32| {
        let time = f64::from(i) / f64::from(rate);
        let cycles = 300.0 * time + 1000.0 * time * time;
        (8000.0 * (TAU * cycles).sin() * (-time).exp()).round() as i16
    };
    (0..(f64::from(rate) * seconds) as u32).map(at).collect()
}

/// Returns a 16-bit WAV file with the same samples in each channel.
fn wav(rate: u32, channels: u16, samples: &[i16]) -> Vec<u8> {
    let data: Vec<u8> = samples
        .iter()
        .flat_map(|sample| std::iter::repeat_n(sample.to_le_bytes(), channels.into()))
        .flatten()
        .collect();
    let len = data.len() as u32;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + len).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16u32.to_le_bytes());
    file.extend(1u16.to_le_bytes());
    file.extend(channels.to_le_bytes());
    file.extend(rate.to_le_bytes());
    file.extend((rate * u32::from(channels) * 2).to_le_bytes());
    file.extend((channels * 2).to_le_bytes());
    file.extend(16u16.to_le_bytes());
    file.extend(b"data");
    file.extend(len.to_le_bytes());
    file.extend(data);
    file
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn read(path: &Path) -> Result<Vec<f32>, gguf::Error> {
    let mut recording = Recording::open(path)?;
    let mut samples = Vec::new();
    while recording.read(&mut samples)? {}
    Ok(samples)
}

fn spectrogram(path: &Path, bands: usize) -> MelSpectrogram {
    MelSpectrogram::open(path, bands, &mut |_| Ok(())).unwrap()
}

#[test]
fn channels_are_averaged_without_loss() {
    let folder = tempfile::tempdir().unwrap();
    let samples = chirp(16000, 1.0);
    for channels in [1, 2, 6] {
        let path = write(folder.path(), "a.wav", &wav(16000, channels, &samples));
        let found = read(&path).unwrap();
        assert_eq!(found.len(), samples.len());
        let errors = found.iter().zip(&samples).map(|(a, b)| (a - f32::from(*b) / 32768.0).abs());
        assert!(errors.fold(0.0, f32::max) < 1e-6, "{channels}");
    }
}

/// Programs that write WAV to a pipe do not know its length.
#[test]
fn unknown_lengths_extend_to_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let samples = chirp(16000, 1.01);
    let file = wav(16000, 2, &samples);
    let expected = read(&write(folder.path(), "a.wav", &file)).unwrap();
    assert_eq!(expected.len(), samples.len());
    for (riff, data) in [(0, 0), (u32::MAX, u32::MAX), (0x7fff_ffff, 0x7fff_ffff), (36, 0)] {
        let mut file = file.clone();
        file[4..8].copy_from_slice(&u32::to_le_bytes(riff));
        file[40..44].copy_from_slice(&u32::to_le_bytes(data));
        // A frame that is cut off is dropped.
        file.push(1);
        let found = read(&write(folder.path(), "b.wav", &file)).unwrap();
        assert_eq!(found, expected, "{riff} {data}");
    }
}

#[cfg(unix)]
#[test]
fn pipes_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = wav(16000, 1, &chirp(16000, 1.0));
    let expected = read(&write(folder.path(), "a.wav", &file)).unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::write(pipe, file).unwrap()
    });
    assert_eq!(read(&pipe).unwrap(), expected);
    writer.join().unwrap();
}

#[test]
fn sample_rates_are_converted() {
    let folder = tempfile::tempdir().unwrap();
    let expected: Vec<f32> = chirp(16000, 1.0).iter().map(|x| f32::from(*x) / 32768.0).collect();
    for rate in [8000, 44100, 48000] {
        let path = write(folder.path(), "a.wav", &wav(rate, 1, &chirp(rate, 1.0)));
        let found = read(&path).unwrap();
        assert_eq!(found.len(), RATE);
        let middle = 1000..15000;
        let error = middle.map(|i| (found[i] - expected[i]).abs()).fold(0.0, f32::max);
        assert!(error < 2e-3, "{rate}: {error}");
    }
}

/// Features that `transformers` computes of `chirp` at 16 kHz, from `testdata/spectrogram.py`.
const REFERENCE: &str = include_str!("../../testdata/spectrogram.csv");

#[test]
fn spectrograms_match_transformers() {
    let folder = tempfile::tempdir().unwrap();
    for (name, seconds) in [("short", 1.0), ("long", 31.005)] {
        let path = write(folder.path(), "a.wav", &wav(16000, 1, &chirp(16000, seconds)));
        for bands in [80, 128] {
            let mut found = spectrogram(&path, bands);
            assert_eq!(found.frames(), (seconds * 100.0) as usize);
            // Reads window by window, as the transcriber does.
            let mut rows = found.window(0, 50).unwrap();
            rows.extend(found.window(50, 3050).unwrap());
            let mut compared = 0;
            for line in REFERENCE.lines().skip(1) {
                let fields: Vec<&str> = line.split(',').collect();
                if fields[0] != name || fields[1] != bands.to_string() {
                    continue;
                }
                let number = |field: usize| fields[field].parse::<usize>().unwrap();
                let found = rows[number(2) * bands + number(3)];
                let expected: f32 = fields[4].parse().unwrap();
                assert!((found - expected).abs() < 1e-4, "{line}: {found}");
                compared += 1;
            }
            assert!(compared > 200, "{compared}");
            // Frames after the recording are 0.
            let frames = found.frames().max(3000);
            assert!(rows[frames * bands..].iter().all(|number| *number == 0.0));
            assert!(rows[(frames - 1) * bands..frames * bands].iter().all(|number| *number != 0.0));
        }
    }
}

#[test]
fn windows_must_advance() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.wav", &wav(16000, 1, &chirp(16000, 1.0)));
    let mut found = spectrogram(&path, 80);
    let whole = found.window(0, 100).unwrap();
    assert_eq!(found.window(40, 60).unwrap(), whole[40 * 80..]);
    assert_eq!(found.window(39, 60).unwrap_err().code(), "audio-invalid");
    // Frames before the window are skipped.
    let mut found = spectrogram(&path, 80);
    assert_eq!(found.window(70, 30).unwrap(), whole[70 * 80..]);
}

#[test]
fn files_without_audio_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let code = |name: &str, bytes: &[u8]| {
        let path = write(folder.path(), name, bytes);
        let error = read(&path).unwrap_err();
        assert_eq!(error.fault(), gguf::Fault::Input, "{error}");
        assert!(error.to_string().contains(name), "{error}");
        error.code()
    };
    assert_eq!(code("empty.wav", b""), "audio-empty");
    assert_eq!(code("text.wav", b"This is a text, not an audio file..."), "audio-unsupported");
    assert_eq!(code("zeros.mp3", &[0; 100_000]), "audio-unsupported");
    assert_eq!(code("silent.wav", &wav(16000, 1, &[])), "audio-empty");
    let whole = wav(16000, 1, &chirp(16000, 1.0));
    assert_eq!(code("cut.wav", &whole[..whole.len() / 2]), "audio-truncated");
    assert_eq!(code("cut.wav", &whole[..50]), "audio-truncated");
    assert_eq!(code("head.wav", &whole[..20]), "audio-unsupported");
    assert_eq!(code("slow.wav", &wav(10, 1, &[1; 100])), "audio-unsupported");

    let missing = Recording::open(&folder.path().join("none.wav")).err().unwrap();
    assert_eq!(missing.fault(), gguf::Fault::Environment);
    let directory = Recording::open(folder.path()).err().unwrap();
    assert_eq!(directory.fault(), gguf::Fault::Environment);
}

#[test]
fn opening_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.wav", &wav(8000, 1, &chirp(8000, 65.0)));
    let mut reported = 0;
    let opened = MelSpectrogram::open(&path, 80, &mut |samples| {
        reported += samples;
        Err(gguf::Error::Interrupted)
    });
    assert!(matches!(opened, Err(gguf::Error::Interrupted)));
    assert!((480_000..600_000).contains(&reported), "{reported}");
}

/// Encodings of half a second of `chirp`, made by `testdata/recordings.py`.
const FORMATS: [(&str, &[u8]); 3] = [
    ("rising.flac", include_bytes!("../../testdata/rising.flac")),
    ("rising.mp3", include_bytes!("../../testdata/rising.mp3")),
    ("rising.ogg", include_bytes!("../../testdata/rising.ogg")),
];

#[test]
fn compressed_formats_are_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let expected: Vec<f32> = chirp(16000, 0.5).iter().map(|x| f32::from(*x) / 32768.0).collect();
    for (name, bytes) in FORMATS {
        let found = read(&write(folder.path(), name, bytes)).unwrap();
        // The padding that encoders add is removed.
        assert_eq!(found.len(), expected.len(), "{name}");
        let square = |x: &[f32]| x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
        let difference: Vec<f32> = found.iter().zip(&expected).map(|(a, b)| a - b).collect();
        let error = (square(&difference) / square(&expected)).sqrt();
        let tolerance = if name.ends_with("flac") { 0.0 } else { 0.1 };
        assert!(error <= tolerance, "{name}: {error}");
        // The file name does not matter.
        let found_again = read(&write(folder.path(), "sound.dat", bytes)).unwrap();
        assert_eq!(found_again, found);
    }
}

#[test]
fn damaged_files_give_an_error_or_finite_samples() {
    let folder = tempfile::tempdir().unwrap();
    let whole = wav(8000, 2, &chirp(8000, 0.1));
    let files = FORMATS.iter().copied().chain([("rising.wav", whole.as_slice())]);
    for (name, bytes) in files {
        let mut random = 1u64;
        for _ in 0..300 {
            let mut changed = bytes.to_vec();
            let mut next = |below: usize| {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (random >> 33) as usize % below
            };
            for _ in 0..1 + next(4) {
                let at = next(changed.len());
                changed[at] = next(256) as u8;
            }
            changed.truncate(1 + next(2 * bytes.len()));
            let path = write(folder.path(), name, &changed);
            match read(&path) {
                Ok(samples) => assert!(samples.iter().all(|sample| sample.is_finite())),
                Err(error) => assert_eq!(error.fault(), gguf::Fault::Input, "{error}"),
            }
        }
    }
}

#[test]
fn truncated_files_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let (name, bytes) = FORMATS[0];
    let path = write(folder.path(), name, &bytes[..bytes.len() / 2]);
    assert_eq!(read(&path).err().map(|error| error.code()), Some("audio-truncated"), "{name}");
    let (name, bytes) = FORMATS[1];
    let path = write(folder.path(), name, &bytes[..bytes.len() / 2]);
    assert_eq!(read(&path).err().map(|error| error.code()), Some("audio-truncated"), "{name}");
}

/// Returns a mono WAV file of 32-bit floats.
fn float_wav(samples: &[f32]) -> Vec<u8> {
    let len = (samples.len() * 4) as u32;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + len).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16u32.to_le_bytes());
    file.extend(3u16.to_le_bytes());
    file.extend(1u16.to_le_bytes());
    file.extend(16_000u32.to_le_bytes());
    file.extend(64_000u32.to_le_bytes());
    file.extend(4u16.to_le_bytes());
    file.extend(32u16.to_le_bytes());
    file.extend(b"data");
    file.extend(len.to_le_bytes());
    file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    file
}

#[test]
fn samples_that_are_no_numbers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = vec![0.25f32; 32_000];
    assert!(read(&write(folder.path(), "good.wav", &float_wav(&samples))).is_ok());
    for (sample, word) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        samples[20_000] = sample;
        let error = read(&write(folder.path(), "bad.wav", &float_wav(&samples))).unwrap_err();
        assert_eq!(error.code(), "audio-invalid");
        assert!(error.to_string().contains(&format!("a sample is {word}")), "{error}");
    }
}

/// A codebook with lookup type 2 and no values makes the decoder panic.
#[test]
fn panics_of_the_decoder_are_errors() {
    let file = include_bytes!("damaged-codebook.ogg");
    let folder = tempfile::tempdir().unwrap();
    let error = read(&write(folder.path(), "damaged.ogg", file)).unwrap_err();
    assert!(["audio-invalid", "audio-unsupported"].contains(&error.code()), "{error}");
}
