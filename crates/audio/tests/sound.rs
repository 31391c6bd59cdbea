//! Recordings made by a formula, and their spectrograms.

use std::f64::consts::TAU;
use std::fs;
use std::path::{Path, PathBuf};

use gguf_audio::{RATE, Recording, Spectrogram};

/// A tone that rises from 300 to 2300 Hz in a second, in 16 bits.
fn rising(rate: u32, seconds: f64) -> Vec<i16> {
    let at = |i: u32| {
        let time = f64::from(i) / f64::from(rate);
        let turns = 300.0 * time + 1000.0 * time * time;
        (8000.0 * (TAU * turns).sin() * (-time).exp()).round() as i16
    };
    (0..(f64::from(rate) * seconds) as u32).map(at).collect()
}

/// A WAV file of 16 bits, with the same sound in so many channels.
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

fn written(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
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

fn spectrogram(path: &Path, bands: usize) -> Spectrogram {
    Spectrogram::open(path, bands, &mut |_| Ok(())).unwrap()
}

#[test]
fn channels_are_averaged_and_bits_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let samples = rising(16000, 1.0);
    for channels in [1, 2, 6] {
        let path = written(folder.path(), "a.wav", &wav(16000, channels, &samples));
        let found = read(&path).unwrap();
        assert_eq!(found.len(), samples.len());
        let far = found.iter().zip(&samples).map(|(a, b)| (a - f32::from(*b) / 32768.0).abs());
        assert!(far.fold(0.0, f32::max) < 1e-6, "{channels}");
    }
}

#[test]
fn all_rates_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let same: Vec<f32> = rising(16000, 1.0).iter().map(|x| f32::from(*x) / 32768.0).collect();
    for rate in [8000, 44100, 48000] {
        let path = written(folder.path(), "a.wav", &wav(rate, 1, &rising(rate, 1.0)));
        let found = read(&path).unwrap();
        assert_eq!(found.len(), RATE);
        let middle = 1000..15000;
        let far = middle.map(|i| (found[i] - same[i]).abs()).fold(0.0, f32::max);
        assert!(far < 2e-3, "{rate}: {far}");
    }
}

/// Of the sound of `rising` in 16,000 samples per second, made by `testdata/spectrogram.py`.
const REFERENCE: &str = include_str!("../testdata/spectrogram.csv");

#[test]
fn spectrograms_are_those_of_transformers() {
    let folder = tempfile::tempdir().unwrap();
    for (name, seconds) in [("short", 1.0), ("long", 31.005)] {
        let path = written(folder.path(), "a.wav", &wav(16000, 1, &rising(16000, seconds)));
        for bands in [80, 128] {
            let mut found = spectrogram(&path, bands);
            assert_eq!(found.frames(), (seconds * 100.0) as usize);
            // From window to window, as it is used.
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
            // Behind what is heard there is nothing.
            let frames = found.frames().max(3000);
            assert!(rows[frames * bands..].iter().all(|number| *number == 0.0));
            assert!(rows[(frames - 1) * bands..frames * bands].iter().all(|number| *number != 0.0));
        }
    }
}

#[test]
fn windows_go_forward() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "a.wav", &wav(16000, 1, &rising(16000, 1.0)));
    let mut found = spectrogram(&path, 80);
    let whole = found.window(0, 100).unwrap();
    assert_eq!(found.window(40, 60).unwrap(), whole[40 * 80..]);
    assert_eq!(found.window(39, 60).unwrap_err().code(), "audio-invalid");
    // Frames that nobody asked for are passed by.
    let mut found = spectrogram(&path, 80);
    assert_eq!(found.window(70, 30).unwrap(), whole[70 * 80..]);
}

#[test]
fn what_is_no_sound_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let code = |name: &str, bytes: &[u8]| {
        let path = written(folder.path(), name, bytes);
        let error = read(&path).unwrap_err();
        assert_eq!(error.fault(), gguf::Fault::Input, "{error}");
        assert!(error.to_string().contains(name), "{error}");
        error.code()
    };
    assert_eq!(code("empty.wav", b""), "audio-empty");
    assert_eq!(code("text.wav", b"This is a text, and no sound at all."), "audio-unsupported");
    assert_eq!(code("zeros.mp3", &[0; 100_000]), "audio-unsupported");
    assert_eq!(code("silent.wav", &wav(16000, 1, &[])), "audio-empty");
    let whole = wav(16000, 1, &rising(16000, 1.0));
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
fn work_ends_when_nobody_listens() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "a.wav", &wav(8000, 1, &rising(8000, 65.0)));
    let mut told = 0;
    let opened = Spectrogram::open(&path, 80, &mut |samples| {
        told += samples;
        Err(gguf::Error::Interrupted)
    });
    assert!(matches!(opened, Err(gguf::Error::Interrupted)));
    assert!((480_000..600_000).contains(&told), "{told}");
}

/// Files of half a second of the same sound, made by `testdata/recordings.py`.
const FORMS: [(&str, &[u8]); 3] = [
    ("rising.flac", include_bytes!("../testdata/rising.flac")),
    ("rising.mp3", include_bytes!("../testdata/rising.mp3")),
    ("rising.ogg", include_bytes!("../testdata/rising.ogg")),
];

#[test]
fn other_forms_are_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let same: Vec<f32> = rising(16000, 0.5).iter().map(|x| f32::from(*x) / 32768.0).collect();
    for (name, bytes) in FORMS {
        let found = read(&written(folder.path(), name, bytes)).unwrap();
        // Without what encoders add before and after.
        assert_eq!(found.len(), same.len(), "{name}");
        let square = |x: &[f32]| x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
        let apart: Vec<f32> = found.iter().zip(&same).map(|(a, b)| a - b).collect();
        let far = (square(&apart) / square(&same)).sqrt();
        let most = if name.ends_with("flac") { 0.0 } else { 0.1 };
        assert!(far <= most, "{name}: {far}");
        // What a file is called does not matter.
        let found_again = read(&written(folder.path(), "sound.dat", bytes)).unwrap();
        assert_eq!(found_again, found);
    }
}

#[test]
fn damage_is_an_error_or_is_heard() {
    let folder = tempfile::tempdir().unwrap();
    let whole = wav(8000, 2, &rising(8000, 0.1));
    let forms = FORMS.iter().copied().chain([("rising.wav", whole.as_slice())]);
    for (name, bytes) in forms {
        let mut chance = 1u64;
        for _ in 0..300 {
            let mut changed = bytes.to_vec();
            let mut next = |below: usize| {
                chance = chance.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (chance >> 33) as usize % below
            };
            for _ in 0..1 + next(4) {
                let at = next(changed.len());
                changed[at] = next(256) as u8;
            }
            changed.truncate(1 + next(2 * bytes.len()));
            let path = written(folder.path(), name, &changed);
            match read(&path) {
                Ok(samples) => assert!(samples.iter().all(|sample| sample.is_finite())),
                Err(error) => assert_eq!(error.fault(), gguf::Fault::Input, "{error}"),
            }
        }
    }
}

#[test]
fn cut_files_say_so_where_they_can() {
    let folder = tempfile::tempdir().unwrap();
    let (name, bytes) = FORMS[0];
    let path = written(folder.path(), name, &bytes[..bytes.len() / 2]);
    assert_eq!(read(&path).err().map(|error| error.code()), Some("audio-truncated"), "{name}");
    let (name, bytes) = FORMS[1];
    let path = written(folder.path(), name, &bytes[..bytes.len() / 2]);
    assert_eq!(read(&path).err().map(|error| error.code()), Some("audio-truncated"), "{name}");
}
