//! Every command that README, docs and help texts show is run, in a directory with stand-ins for the files
//! that it names. What cannot be run is in one table, with the reason.
#![cfg(unix)]

mod hub;
#[allow(dead_code)] // Other tests want more of it.
#[path = "../../../legacy/tests/integration/builder.rs"]
mod old_files;
mod place;
#[allow(dead_code)] // Other tests want more of it.
#[path = "../../../remote/tests/integration/server.rs"]
mod server;
mod stand_ins;
mod texts;
#[path = "../whisper/mod.rs"]
mod whisper;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use place::Place;
use texts::Script;

/// What is shown and not run: where, how its line begins, and why.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("README.md", "cargo run --release", "a build; `gguf demo` is run as an example of its help"),
    ("README.md", "cargo test", "this is it"),
    ("README.md", "cargo install", "a release build"),
    ("packaging/README.md", "packaging/archive.sh", "a release build"),
    ("packaging/README.md", "packaging/deb.sh", "takes that release build"),
    ("docs/performance.md", "cargo bench", "a build, and minutes of measuring"),
    ("docs/performance.md", "pip install", "wants a package registry"),
    ("docs/performance.md", "python interop/", "wants those packages"),
    ("docs/performance.md", "npm ", "wants a browser, and a trained model"),
];

/// What means nothing to the small models that stand in, and what is taken instead.
const TAKEN: &[(&str, &str)] = &[
    ("15043 3186", "1043 318"),
    ("--ids 50258", "--ids 257"),
    ("<|im_end|>", "</s>"),
    ("KEY VALUE", "general.file_type 1"),
    ("KEY=VALUE", "general.name=VALUE"),
    // The hub of these tests has checkpoints only, and shards stand in the directory itself.
    ("view hf:org/repo:Q4_K_M", "view model-q4_k_m.gguf"),
    ("merge parts/ ", "merge model-00001-of-00003.gguf "),
];

/// Commands that say by their exit code what they found.
const CODES: &[(&str, i32)] = &[("gguf diff model-f16.gguf model-q4_k_m.gguf", 1)];

/// Runs a script in a place of its own; or says what went wrong.
fn run(script: &Script) -> Result<(), String> {
    let wanted = CODES.iter().find(|(line, _)| *line == script.text).map_or(0, |row| row.1);
    let text =
        TAKEN.iter().fold(script.text.clone(), |text, (shown, taken)| text.replace(shown, taken));
    let output = Place::new(&text)?.run(&text);
    if output.status.code() == Some(wanted) {
        return Ok(());
    }
    Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// Runs scripts side by side, those that take longest first.
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
fn commands_of_the_pages_run() {
    let mut scripts = texts::blocks();
    for (page, line, why) in NOT_RUN {
        let mut found = false;
        for script in scripts.iter_mut().filter(|script| script.place == *page) {
            let (out, kept): (Vec<_>, Vec<_>) =
                script.text.lines().partition(|one| one.trim_start().starts_with(line));
            found |= !out.is_empty();
            script.text = kept.join("\n");
        }
        assert!(found, "{page} does not show `{line}` ({why}) any more");
    }
    scripts.retain(|script| !script.text.trim().is_empty());
    assert!(scripts.len() > 15, "{} are too few: the blocks look different now", scripts.len());
    run_all(scripts);
}

#[test]
fn examples_of_help_run() {
    let scripts = texts::examples();
    assert!(scripts.len() > 100, "{} are too few: help looks different now", scripts.len());
    run_all(scripts);
}

/// What others' commands are called here: both sides of the table.
#[test]
fn old_names_and_new_run() {
    let scripts = texts::old_and_new();
    assert!(scripts.len() > 30, "{} are too few: the table looks different now", scripts.len());
    run_all(scripts);
}

/// What the pages show below a command is what it prints.
#[test]
fn what_is_shown_is_printed() {
    let shown = texts::shown();
    assert!(!shown.is_empty());
    for (script, wanted) in shown {
        let output = Place::new(&script.text).unwrap().run(&script.text);
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed, wanted, "{}: {}", script.place, script.text);
    }
}
