//! Runs every command shown in the README, the docs and the help texts, in a directory with fixtures for the files
//! that it names. One table lists the commands that cannot run, with the reason.

mod fixtures;
mod hub;
mod sandbox;
mod scripts;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sandbox::Place;
use scripts::Script;

/// Commands that are not run: page, beginning of the line, and reason.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("README.md", "cargo run --release", "a build; `gguf demo` is run as an example of its help"),
    ("README.md", "cargo nextest", "this is it"),
    ("README.md", "cargo install", "a release build"),
    ("docs/platforms.md", "rustup target", "downloads"),
    ("docs/platforms.md", "cargo build", "a build for another system"),
    ("docs/platforms.md", "pip install", "wants a package registry"),
    ("docs/platforms.md", "RUSTFLAGS=", "a build for another system"),
    ("docs/performance.md", "cargo bench", "a build, and minutes of measuring"),
    ("docs/performance.md", "pip install", "wants a package registry"),
    ("docs/performance.md", "python interop/", "wants those packages"),
    ("docs/performance.md", "npm ", "wants a browser, and a trained model"),
];

/// Replacements for values that do not apply to the small models.
const REPLACEMENTS: &[(&str, &str)] = &[
    ("15043 3186", "1043 318"),
    ("--ids 50258", "--ids 257"),
    ("<|im_end|>", "</s>"),
    ("KEY VALUE", "general.file_type 1"),
    ("KEY=VALUE", "general.name=VALUE"),
    // Few tokens are enough.
    ("calibration-text model-f16.gguf -o", "calibration-text model-f16.gguf --tokens 512 -o"),
    ("--tokens 30000", "--tokens 512"),
    ("--calibrate self", "--calibrate self --calibrate-tokens 512 --calibrate-ctx 64"),
    ("qwen-32b.gguf", "model.gguf"),
    ("qwen-0.5b.gguf", "q4_0.gguf"),
    // The test hub has only checkpoints, and shards are in the directory itself.
    ("view hf:org/repo:Q4_K_M", "view model-q4_k_m.gguf"),
    ("merge parts/ ", "merge model-00001-of-00003.gguf "),
];

/// Commands with an exit code other than 0.
const CODES: &[(&str, i32)] = &[("gguf diff model-f16.gguf model-q4_k_m.gguf", 1)];

/// Runs a script in its own directory.
fn run(script: &Script) -> Result<(), String> {
    let expected = CODES.iter().find(|(line, _)| *line == script.text).map_or(0, |row| row.1);
    let text = REPLACEMENTS
        .iter()
        .fold(script.text.clone(), |text, (shown, taken)| text.replace(shown, taken));
    let output = Place::new(&text)?.run(&text);
    if output.status.code() == Some(expected) {
        return Ok(());
    }
    Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// Runs scripts in parallel, slow ones first.
fn run_all(mut scripts: Vec<Script>) {
    scripts.sort_by_key(|script| !script.text.contains("gguf quality"));
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = || {
        while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(fault) = run(script) {
                let Script { place, text } = script;
                faults.lock().unwrap().push(format!("{place}: {text}\n{fault}"));
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(worker)));
    });
    let faults = faults.into_inner().unwrap();
    assert!(
        faults.is_empty(),
        "{} of {} failed:\n{}",
        faults.len(),
        scripts.len(),
        faults.join("\n")
    );
}

#[test]
fn commands_in_documentation_run() {
    let mut scripts = scripts::blocks();
    for (page, line, why) in NOT_RUN {
        let mut found = false;
        for script in scripts.iter_mut().filter(|script| script.place == *page) {
            let (out, retained): (Vec<_>, Vec<_>) =
                script.text.lines().partition(|one| one.trim_start().starts_with(line));
            found |= !out.is_empty();
            script.text = retained.join("\n");
        }
        assert!(found, "{page} does not show `{line}` ({why}) any more");
    }
    scripts.retain(|script| !script.text.trim().is_empty());
    assert!(scripts.len() > 15, "{} are too few: the blocks look different now", scripts.len());
    run_all(scripts);
}

#[test]
fn examples_of_help_run() {
    let scripts = scripts::examples();
    assert!(scripts.len() > 100, "{} are too few: help looks different now", scripts.len());
    run_all(scripts);
}

/// Runs both columns of the table of equivalent commands.
#[test]
fn equivalent_commands_run() {
    let scripts = scripts::equivalent_commands();
    assert!(scripts.len() > 30, "{} are too few: the table looks different now", scripts.len());
    run_all(scripts);
}

/// The output shown in documentation is the actual output.
#[test]
fn shown_output_is_actual_output() {
    let shown = scripts::shown();
    assert!(!shown.is_empty());
    for (script, expected) in shown {
        let output = Place::new(&script.text).unwrap().run(&script.text);
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed, expected, "{}: {}", script.place, script.text);
    }
}
