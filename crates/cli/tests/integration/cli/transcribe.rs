//! `gguf transcribe`.

use std::fs;

use crate::cli::support::{Dir, fails, json, succeeds};
use crate::whisper;

fn whisper(dir: &Dir) -> String {
    let path = dir.path("whisper.gguf");
    fs::write(&path, whisper::model()).unwrap();
    path
}

fn sound(dir: &Dir, seconds: f32) -> String {
    let path = dir.path(&format!("{seconds}.wav"));
    fs::write(&path, whisper::sound(seconds)).unwrap();
    path
}

#[test]
fn each_audio_file_gives_a_transcript() {
    let dir = Dir::new();
    let (model, short, long) = (whisper(&dir), sound(&dir, 1.0), sound(&dir, 7.5));
    let result = succeeds(&["transcribe", &model, &short, &long, "--format", "json"]);
    let objects: Vec<_> = result.lines().map(json).collect();
    let [of_short, of_long] = &objects[..] else { panic!("{result}") };
    assert_eq!(of_short["file"], *short);
    assert_eq!(of_short["duration"], 1.0);
    assert_eq!(of_long["duration"], 7.5);
    for object in &objects {
        let language = object["language"].as_str().unwrap();
        assert!(["en", "de"].contains(&language), "{language}");
        let probability = object["language_probability"].as_f64().unwrap();
        assert!((0.5..=1.0).contains(&probability), "{probability}");
        let mut before = 0.0;
        for segment in object["segments"].as_array().unwrap() {
            let [start, end] = ["start", "end"].map(|key| segment[key].as_f64().unwrap());
            assert!(before <= start && start < end, "{segment}");
            before = end;
            let ids = segment["ids"].as_array().unwrap();
            assert!(ids.iter().all(|id| !(256..266).contains(&id.as_u64().unwrap())), "{segment}");
        }
    }
    // Results do not depend on the number of threads.
    let again = ["transcribe", &model, &short, &long, "--format", "json", "-t", "1"];
    assert_eq!(succeeds(&again), result);
}

#[test]
fn parts_are_decoded_together() {
    let dir = Dir::new();
    let (model, long, short) = (whisper(&dir), sound(&dir, 20.0), sound(&dir, 1.0));
    let result = |audio: &str, more: &[&str]| {
        json(&succeeds(&[&["transcribe", &model, audio, "--format", "json"], more].concat()))
    };
    let [two, eight] =
        ["2", "8"].map(|size| result(&long, &["--batch-size", size, "--language", "en"]));
    assert_eq!(two, eight, "parts do not depend on each other");
    let mut before = 0.0;
    for segment in two["segments"].as_array().unwrap() {
        let [start, end] = ["start", "end"].map(|key| segment[key].as_f64().unwrap());
        assert!(before <= start && start < end && end <= 20.0, "{segment}");
        before = end;
    }
    assert!(before > 15.0, "{two}");
    assert_eq!(result(&long, &["--batch-size", "8"])["duration"], 20.0);
    assert_eq!(result(&short, &["--batch-size", "8"]), result(&short, &[]));
    let plain = succeeds(&["transcribe", &model, &long, "--batch-size", "8", "-t", "1"]);
    assert!(plain.trim().len() > 10, "{plain}");
    fails(&["transcribe", &model, &long, "--batch-size", "0"], 2, &["--batch-size"]);
}

#[test]
fn beams_change_the_text_and_nothing_else() {
    let dir = Dir::new();
    let (model, long) = (whisper(&dir), sound(&dir, 20.0));
    let result = |more: &[&str]| {
        let words = ["transcribe", &model, &long, "--json", "--no-fallback", "--language", "en"];
        json(&succeeds(&[&words, more].concat()))
    };
    let five = result(&["--batch-size", "2"]);
    assert_eq!(result(&["--batch-size", "2", "--beam-size", "5"]), five, "the default");
    assert_eq!(
        result(&["--batch-size", "3", "-t", "1"]),
        five,
        "parts do not depend on each other"
    );
    let greedy = result(&["--batch-size", "2", "--beam-size", "1"]);
    assert_ne!(greedy["text"], five["text"]);
    let windows = [result(&[]), result(&["-t", "1"])];
    assert_eq!(windows[0], windows[1]);
    fails(&["transcribe", &model, &long, "--beam-size", "0"], 2, &["--beam-size"]);
    let many = ["transcribe", &model, &long, "--batch-size", "64", "--memory-limit", "600k"];
    fails(&many, 2, &["320 sequences", "lower --batch-size or --beam-size"]);
}

#[test]
fn timestamps_are_printed_on_request() {
    let dir = Dir::new();
    let (model, sound) = (whisper(&dir), sound(&dir, 7.5));
    let result = |more: &[&str]| succeeds(&[&["transcribe", &model, &sound], more].concat());
    let segments = json(&result(&["--format", "json"]))["segments"].as_array().unwrap().len();
    assert!(segments > 0);
    assert_eq!(result(&["--timestamps"]).matches(" --> ").count(), segments);
    assert_eq!(result(&["--format", "srt"]).matches(" --> ").count(), segments);
    assert!(result(&["--format", "vtt"]).starts_with("WEBVTT\n\n"));
    assert_eq!(result(&[]).matches(" --> ").count(), 0);
}

#[test]
fn outputs_are_atomic_and_overwritten_with_force_only() {
    let dir = Dir::new();
    let (model, sound, out) = (whisper(&dir), sound(&dir, 1.0), dir.path("text.srt"));
    let words = ["transcribe", &model, &sound, "--format", "srt"];
    let to_file = [&words[..], &["-o", &out]].concat();
    assert_eq!(succeeds(&to_file), "");
    assert_eq!(fs::read_to_string(&out).unwrap(), succeeds(&words));
    fails(&to_file, 2, &["text.srt exists already", "--force"]);
    succeeds(&[&to_file[..], &["--force"]].concat());
    fails(&[&words[..], &["-o", &sound, "--force"]].concat(), 2, &["1.wav"]);
}

#[test]
fn invalid_requests_are_refused() {
    let dir = Dir::new();
    let (model, sound, text) = (whisper(&dir), sound(&dir, 1.0), dir.path("text.wav"));
    fs::write(&text, "Not a sound.").unwrap();
    let missing = dir.path("none.wav");
    let code = |recording: &str, more: &[&str], code: i32, parts: &[&str]| {
        fails(&[&["transcribe", &model, recording], more].concat(), code, parts);
    };
    code(&text, &[], 1, &["text.wav", "WAV, FLAC, MP3 or Ogg Vorbis"]);
    code(&missing, &[], 3, &["none.wav"]);
    code(&sound, &["--language", "fr"], 2, &["`fr`", "it knows en, de"]);
    code(&sound, &[&sound, "--format", "vtt"], 2, &["a single audio file"]);
    let cut = dir.path("cut.wav");
    fs::write(&cut, &whisper::sound(1.0)[..9000]).unwrap();
    code(&cut, &[], 1, &["cut.wav", "of 1.0 s"]);
    fails(&["transcribe", &dir.f16(), &sound], 2, &["not a speech model", "Whisper"]);
}
