//! Bad values for every flag of every command, taken from the definition of the command line: a new flag is tested without
//! a change here.

use std::any::TypeId;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

/// Words of the standard library, of the argument parser and of other dependencies.
const FOREIGN: &[&str] = &[
    "invalid digit",
    "invalid float literal",
    "non-zero type",
    "to fit in target type",
    "cannot parse integer",
    "provided string was not",
    "os error",
    "core (probe)",
    "io:",
    "failed to lookup address",
    "failed to fill whole buffer",
    "stream did not contain valid UTF-8",
    "invalid utf-8 sequence",
    "EOF while parsing",
    "expected value at line",
    "trailing characters",
    "key must be a string",
    "relative URL without a base",
    "use '-- -",
    "panicked",
    "RUST_BACKTRACE",
    ".rs:",
];

/// A command without subcommands, and the words that name it.
pub struct Leaf {
    pub words: Vec<String>,
    pub command: clap::Command,
}

impl Leaf {
    /// Returns the words as one text.
    pub fn name(&self) -> String {
        self.words.join(" ")
    }

    /// Returns the flags that take a value and belong to this command alone.
    pub fn flags_with_values(&self) -> impl Iterator<Item = (&clap::Arg, String)> {
        self.command.get_arguments().filter_map(|arg| {
            let own = arg.get_action().takes_values() && !arg.is_global_set();
            Some((arg, format!("--{}", arg.get_long().filter(|_| own)?)))
        })
    }
}

/// Returns all commands that are shown.
pub fn leaves() -> Vec<Leaf> {
    fn visit(command: &clap::Command, words: &[String], found: &mut Vec<Leaf>) {
        let below: Vec<_> = command.get_subcommands().filter(|one| !one.is_hide_set()).collect();
        if below.is_empty() {
            found.push(Leaf { words: words.to_vec(), command: command.clone() });
        }
        for one in below {
            let name = one.get_name().to_owned();
            visit(one, &[words, &[name]].concat(), found);
        }
    }
    let mut found = Vec::new();
    visit(&gguf_cli::command(), &[], &mut found);
    assert!(found.len() > 40, "{} commands", found.len());
    found
}

/// Runs a command line in a directory, away from the files and the network of the user.
pub fn run(directory: &Path, words: &[String]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
    command.args(words).current_dir(directory).stdin(Stdio::null());
    command.env("HOME", directory).env("HF_ENDPOINT", "http://no-such-host.invalid");
    for name in ["HF_HOME", "HF_TOKEN", "FORCE_COLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.output().unwrap()
}

/// Returns what is wrong with the outcome of a command line.
pub fn faults(words: &[String], output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = format!("gguf {}", words.join(" "));
    let mut faults = Vec::new();
    for foreign in FOREIGN.iter().filter(|foreign| text.contains(**foreign)) {
        faults.push(format!("{line}\n  says `{foreign}`: {text}"));
    }
    if let Some(long) = text.lines().find(|line| line.chars().count() > 400) {
        faults.push(format!("{line}\n  has a line of {} characters: {long}", long.len()));
    }
    match output.status.code() {
        // Findings of `check`, `diff` or `verify` are printed as results.
        Some(0 | 1) if !output.stdout.is_empty() => {}
        Some(0) => {}
        Some(1..=3) if text.lines().any(|line| line.starts_with("error: ")) => {}
        code => faults.push(format!("{line}\n  has exit code {code:?}: {text}")),
    }
    faults
}

/// Runs command lines on all cores, and fails with what is wrong.
pub fn run_all(
    directory: &Path,
    lines: &[Vec<String>],
    evaluate: impl Fn(&[String], &Output) -> Vec<String> + Sync,
) {
    let (next, found) = (Mutex::new(lines.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, |cores| cores.get()) {
            scope.spawn(|| {
                loop {
                    let Some(words) = next.lock().unwrap().next() else { return };
                    let faults = evaluate(words, &run(directory, words));
                    found.lock().unwrap().extend(faults);
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{} of {}:\n{}", found.len(), lines.len(), found.join("\n"));
}

/// Whether the value of an argument is a number.
fn is_number(arg: &clap::Arg) -> bool {
    let numbers = [
        TypeId::of::<u8>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<i64>(),
        TypeId::of::<f32>(),
        TypeId::of::<f64>(),
        TypeId::of::<NonZeroU32>(),
        TypeId::of::<NonZeroU64>(),
        TypeId::of::<NonZeroUsize>(),
    ];
    numbers.iter().any(|number| arg.get_value_parser().type_id() == *number)
}

#[test]
fn bad_values_of_every_flag_are_explained() {
    let directory = tempfile::tempdir().unwrap();
    let (mut refused, mut others) = (Vec::new(), Vec::new());
    for leaf in leaves() {
        for (arg, flag) in leaf.flags_with_values() {
            for value in ["two", "-1", "99999999999999999999999", "", "[", "NaN"] {
                let line =
                    [&leaf.words[..], &["missing.gguf".to_owned(), format!("{flag}={value}")]];
                let is_bad = is_number(arg) || !arg.get_possible_values().is_empty();
                match is_bad && matches!(value, "two" | "" | "[" | "NaN") {
                    true => refused.push(line.concat()),
                    false => others.push(line.concat()),
                }
            }
        }
    }
    assert!(refused.len() > 150, "{} bad numbers and choices", refused.len());
    run_all(directory.path(), &refused, |words, output| {
        let mut faults = faults(words, output);
        let text = String::from_utf8_lossy(&output.stderr);
        let flag = words.last().unwrap().split('=').next().unwrap();
        let is_explained = text.contains(flag)
            && [": expected ", "'--help'."].iter().any(|part| text.contains(part));
        if output.status.code() != Some(2) || !is_explained {
            faults.push(format!("gguf {}\n  does not explain the value: {text}", words.join(" ")));
        }
        faults
    });
    run_all(directory.path(), &others, faults);
}

#[test]
fn unknown_flags_of_every_command_are_explained() {
    let directory = tempfile::tempdir().unwrap();
    let mut lines = Vec::new();
    for leaf in leaves() {
        for flag in ["--no-such-flag", "--n", "-Z", "-hff", "--mmprojector"] {
            let words = ["missing.gguf".to_owned(), flag.to_owned(), "x".to_owned()];
            lines.push([&leaf.words[..], &words].concat());
        }
    }
    run_all(directory.path(), &lines, |words, output| {
        let mut faults = faults(words, output);
        let text = String::from_utf8_lossy(&output.stderr);
        if output.status.code() != Some(2) || text.contains("as a value") {
            faults.push(format!("gguf {}\n  came to {}: {text}", words.join(" "), output.status));
        }
        faults
    });
}
