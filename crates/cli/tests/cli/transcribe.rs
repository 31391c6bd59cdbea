//! `gguf transcribe` as a user meets it.

use std::fs;

use crate::support::{Dir, fails, json, succeeds};
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
fn each_recording_gives_a_text() {
    let dir = Dir::new();
    let (model, short, long) = (whisper(&dir), sound(&dir, 1.0), sound(&dir, 7.5));
    let made = succeeds(&["transcribe", &model, &short, &long, "--format", "json"]);
    let objects: Vec<_> = made.lines().map(json).collect();
    let [of_short, of_long] = &objects[..] else { panic!("{made}") };
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
    // The same again, whatever the number of threads.
    let again = ["transcribe", &model, &short, &long, "--format", "json", "-t", "1"];
    assert_eq!(succeeds(&again), made);
}

#[test]
fn times_are_shown_where_they_are_asked_for() {
    let dir = Dir::new();
    let (model, sound) = (whisper(&dir), sound(&dir, 7.5));
    let made = |more: &[&str]| succeeds(&[&["transcribe", &model, &sound], more].concat());
    let segments = json(&made(&["--format", "json"]))["segments"].as_array().unwrap().len();
    assert!(segments > 0);
    assert_eq!(made(&["--timestamps"]).matches(" --> ").count(), segments);
    assert_eq!(made(&["--format", "srt"]).matches(" --> ").count(), segments);
    assert!(made(&["--format", "vtt"]).starts_with("WEBVTT\n\n"));
    assert_eq!(made(&[]).matches(" --> ").count(), 0);
}

#[test]
fn an_output_is_written_whole_and_replaced_by_force_only() {
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
fn what_cannot_be_done_is_said() {
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
    code(&sound, &[&sound, "--format", "vtt"], 2, &["one recording"]);
    let cut = dir.path("cut.wav");
    fs::write(&cut, &whisper::sound(1.0)[..9000]).unwrap();
    code(&cut, &[], 1, &["cut.wav", "of 1.0 s"]);
    fails(&["transcribe", &dir.f16(), &sound], 2, &["not a speech model", "Whisper"]);
}
