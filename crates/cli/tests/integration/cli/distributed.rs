//! Distributed conversion and evaluation, and evaluation of checkpoints.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::evaluation::text;
use crate::cli::support::{Dir, MODEL, fails, json, succeeds};

/// Runs a command in `count` parts. Returns their files.
fn in_parts(dir: &Dir, words: &[&str], count: usize, name: &str) -> Vec<String> {
    let run = |number: usize| {
        let (part, path) =
            (format!("{number}/{count}"), dir.path(&format!("{name}-{number}.part")));
        succeeds(&[words, &["--part", &part, "-o", &path]].concat());
        path
    };
    (1..=count).map(run).collect()
}

fn merged(parts: &[String], more: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    succeeds(&[&["eval-merge"], &parts[..], more].concat())
}

#[test]
fn merged_conversion_equals_a_single_run() {
    let dir = Dir::new();
    let (whole, out, merged) = (dir.path("whole.gguf"), dir.path("p.gguf"), dir.path("m.gguf"));
    succeeds(&["convert", MODEL, "--outtype", "q4_k_m", "-o", &whole]);
    for part in ["3/3", "1/3", "2/3"] {
        succeeds(&["convert", MODEL, "--outtype", "q4_k_m", "-o", &out, "--part", part]);
    }
    let first = dir.path("p-00001-of-00003.gguf");
    succeeds(&["merge", &first, &merged]);
    assert!(fs::read(&merged).unwrap() == fs::read(&whole).unwrap());
    // A part of another conversion is refused.
    let other = ["convert", MODEL, "--outtype", "q8_0", "-o", &out, "--part", "2/3", "--force"];
    succeeds(&other);
    fails(&["merge", &first, &dir.path("x.gguf")], 1, &["part"]);
}

#[test]
fn merged_results_equal_a_single_run() {
    let dir = Dir::new();
    let (model, small, text) = (dir.f16(), dir.path("q4_0.gguf"), text());
    succeeds(&["quantize", &model, &small, "Q4_0"]);
    // Seven chunks in three parts.
    let flags = ["-f", &text, "-c", "64", "--chunks", "7"];
    let commands: [(&str, Vec<&str>); 3] = [
        ("perplexity", [&["perplexity", &model, &small], &flags[..]].concat()),
        ("strided", [&["perplexity", &small, "--stride", "24"], &flags[..]].concat()),
        (
            "divergence",
            [&["divergence", "-r", &model, &small, &model, "--worst", "9"], &flags[..]].concat(),
        ),
    ];
    for (name, words) in &commands {
        let mut parts = in_parts(&dir, words, 3, name);
        parts.rotate_left(1);
        assert_eq!(merged(&parts, &[]), succeeds(words), "{name}");
        let with_json = [&words[..], &["--json"]].concat();
        assert_eq!(merged(&parts, &["--json"]), succeeds(&with_json), "{name}");
        fails(&["eval-merge", &parts[0], "-o", "x"], 2, &["in no part"]);
    }
    let whole = dir.path("whole.part");
    succeeds(&[&["perplexity", &model, "-o", &whole], &flags[..]].concat());
    let plain = succeeds(&[&["perplexity", &model], &flags[..]].concat());
    assert_eq!(merged(std::slice::from_ref(&whole), &[]), plain);
    fails(&["eval-merge", &whole, "-o", "x"], 2, &["-o applies to importance matrices only"]);
}

#[test]
fn merged_imatrix_equals_a_single_run() {
    let dir = Dir::new();
    let (model, text) = (dir.f16(), text());
    let words = ["imatrix", &model, "-f", &text, "-c", "64", "--chunks", "5", "--chunk", "1"];
    let (whole, of_parts) = (dir.path("whole.gguf"), dir.path("of-parts.gguf"));
    let output_text = succeeds(&[&words[..], &["-o", &whole]].concat());
    let parts = in_parts(&dir, &words, 2, "imatrix");
    assert_eq!(merged(&parts, &["-o", &of_parts]), output_text);
    assert!(fs::read(&of_parts).unwrap() == fs::read(&whole).unwrap());
    merged(&parts, &["-o", &dir.path("of-parts.dat")]);
    fails(&["eval-merge", &parts[0], &parts[1]], 2, &["use -o"]);
    fails(&["eval-merge", &parts[0], &parts[1], "-o", &of_parts], 2, &["exists already"]);
    fails(
        &[&words[..], &["-o", "x", "--part", "1/9"]].concat(),
        2,
        &["less than the number of parts"],
    );
}

#[test]
fn parts_of_other_runs_are_refused() {
    let dir = Dir::new();
    let (model, small, text) = (dir.f16(), dir.path("q4_0.gguf"), text());
    succeeds(&["quantize", &model, &small, "Q4_0"]);
    let other_text = dir.path("other.txt");
    fs::write(&other_text, fs::read_to_string(&text).unwrap().replace("License", "Lizence"))
        .unwrap();
    let part = |name: &str, words: &[&str]| {
        let path = dir.path(name);
        succeeds(&[words, &["-c", "64", "-o", &path]].concat());
        path
    };
    let (text, other) = (text.as_str(), other_text.as_str());
    let one = part("one", &["perplexity", &model, "-f", text, "--chunks", "4", "--part", "1/2"]);
    let more = ["-f", text, "--chunks", "4", "--part", "2/2"];
    let ways: [(&str, Vec<&str>, &str); 6] = [
        (
            "text",
            vec!["perplexity", &model, "-f", other, "--chunks", "4", "--part", "2/2"],
            "the text of",
        ),
        ("model", [&["perplexity", &small], &more[..]].concat(), "the model"),
        ("models", [&["perplexity", &model, &small], &more[..]].concat(), "the number of models"),
        (
            "cut",
            vec!["perplexity", &model, "-f", text, "--chunks", "6", "--part", "2/2"],
            "the cut of the text",
        ),
        (
            "sums",
            [&["perplexity", &model, "--precision", "fast"], &more[..]].concat(),
            "the arithmetic",
        ),
        ("kind", [&["divergence", "-r", &small, &model], &more[..]].concat(), "the command"),
    ];
    for (name, words, what) in &ways {
        let other = part(name, words);
        fails(&["eval-merge", &one, &other], 2, &[what, &one, &other]);
        // Nor is such a part resumed.
        let again = [&words[..], &["-c", "64", "--resume", "-o", &one]].concat();
        let bytes = fs::read(&one).unwrap();
        fails(&again, 2, &[if *name == "cut" { what } else { "another share" }, &one]);
        assert!(fs::read(&one).unwrap() == bytes, "{name}");
        let whole = again.iter().map(|word| if *word == "2/2" { "1/2" } else { word });
        let whole: Vec<&str> = whole.collect();
        // More models may be appended.
        match *name {
            "models" => drop(succeeds(&whole)),
            _ => fails(&whole, 2, &[what, &one]),
        }
        fs::write(&one, bytes).unwrap();
    }
    let words = ["perplexity", &model, "-c", "64"];
    fails(&[&words[..], &more, &["-o", &one]].concat(), 2, &["one exists already"]);
    fails(&[&words[..], &more, &["-o", &one, "--resume"]].concat(), 2, &["another share"]);
    fails(&[&words[..], &more].concat(), 2, &["--output"]);
    fails(&[&words[..], &more[..4], &["--part", "3/2", "-o", "x"]].concat(), 2, &["I/N"]);
    fails(&["eval-merge", &one, &one], 2, &["in another part"]);
    fails(&["eval-merge", &model], 1, &["f16.gguf", "is not a part of an evaluation"]);
    // Resuming a complete part is immediate.
    let first = ["-f", text, "--chunks", "4", "--part", "1/2", "-o", &one, "--resume"];
    let bytes = fs::read(&one).unwrap();
    succeeds(&[&words[..], &first].concat());
    assert!(fs::read(&one).unwrap() == bytes);
}

#[test]
fn checkpoints_are_evaluated() {
    let dir = Dir::new();
    let (model, text, scratch) =
        (dir.path("auto.gguf"), text(), PathBuf::from(dir.path("scratch")));
    fs::create_dir(&scratch).unwrap();
    succeeds(&["convert", MODEL, "-o", &model]);
    let flags = ["-f", &text, "-c", "64", "--chunks", "2"];
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
        let output = command.env("TMPDIR", &scratch).args(words).args(flags).output().unwrap();
        // No temporary files remain.
        assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
        output
    };
    let shown = |words: &[&str]| String::from_utf8(run(words).stdout).unwrap();
    let of_file = shown(&["perplexity", &model]);
    assert!(of_file.contains("64 tokens evaluated in 2 chunks"), "{of_file}");
    assert_eq!(shown(&["perplexity", MODEL]), of_file.replace(&model, MODEL));
    let found = json(&shown(&["divergence", "-r", MODEL, &model, "--json"]));
    assert_eq!((&found["models"][0]["max_kld"], &found["reference"]), (&0.0.into(), &MODEL.into()));
    let (a, b) = (dir.path("a.imatrix"), dir.path("b.imatrix"));
    shown(&["imatrix", MODEL, "-o", &a]);
    shown(&["imatrix", &model, "-o", &b]);
    assert!(fs::read(a).unwrap() == fs::read(b).unwrap());
    // Also after a failure.
    let output = run(&["divergence", "-r", MODEL, &text]);
    assert_eq!(output.status.code(), Some(1));
    // A directory with one GGUF stands for that GGUF.
    let both = PathBuf::from(dir.path("both"));
    fs::create_dir(&both).unwrap();
    for entry in fs::read_dir(MODEL).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, both.join(path.file_name().unwrap())).unwrap();
    }
    let inside = both.join("q8_0.gguf");
    succeeds(&["quantize", &model, inside.to_str().unwrap(), "Q8_0"]);
    let word = |path: &Path| path.to_str().unwrap().to_owned();
    let of_folder = shown(&["perplexity", &word(&both)]);
    assert_eq!(
        of_folder.replace(&word(&both), ""),
        shown(&["perplexity", &word(&inside)]).replace(&word(&inside), "")
    );
    assert!(!of_folder.contains(of_file.strip_prefix(&model).unwrap()));
}
