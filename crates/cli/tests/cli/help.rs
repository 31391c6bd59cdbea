//! Help, completions, manual pages and the version.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use regex::Regex;

use crate::support::{Dir, fails, succeeds};

#[test]
fn help_is_of_commands_and_topics() {
    assert_eq!(succeeds(&["help"]), succeeds(&["--help"]));
    assert_eq!(succeeds(&["help", "convert"]), succeeds(&["convert", "--help"]));
    assert_eq!(succeeds(&["help", "lora", "merge"]), succeeds(&["lora", "merge", "--help"]));
    let types = succeeds(&["help", "types"]);
    assert!(
        types.contains("\nQ4_K                 4.5000   256 weights in 144 bytes\n"),
        "{types}"
    );
    let mixes = succeeds(&["help", "mixes"]);
    assert!(mixes.contains("  15  Q4_K_M    4.58 GB at 8B"), "{mixes}");
    let codes = succeeds(&["help", "exit-codes"]);
    assert!(codes.contains("    2  wrong usage (also an output that exists)\n"), "{codes}");
    assert!(succeeds(&["help", "locations"]).contains("hf:org/repo@revision"));
    assert!(succeeds(&["help", "environment"]).contains("HF_TOKEN"));
    fails(&["help", "mixs"], 2, &["no command or topic `mixs`; did you mean mixes?"]);
    fails(&["help", "quantise"], 2, &["did you mean quantize?"]);
    fails(&["help", "lora", "merg"], 2, &["did you mean merge?"]);
    fails(&["help", "inspect", "x"], 2, &["no commands of its own"]);
}

#[test]
fn completions_are_scripts_of_their_shells() {
    for (shell, begins) in [
        ("bash", "_gguf() {"),
        ("zsh", "#compdef gguf"),
        ("fish", "# Print an optspec for argparse"),
        ("powershell", "\nusing namespace System.Management.Automation"),
    ] {
        let script = succeeds(&["completions", shell]);
        assert!(script.starts_with(begins), "{shell}: {}", &script[..100]);
        for word in ["convert-endian", "chat-template", "split-max-size"] {
            assert!(script.contains(word), "{shell} has no {word}");
        }
    }
    // What bash makes of it; the others are not everywhere.
    let script = succeeds(&["completions", "bash"]) + "\ncomplete -p gguf\n";
    let Ok(mut bash) = Command::new("bash").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    else {
        return;
    };
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = bash.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("-F _gguf"), "{output:?}");
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = Dir::new();
    let pages = dir.path("man/man1");
    succeeds(&["man", &pages]);
    let page = |name: &str| std::fs::read_to_string(format!("{pages}/{name}")).unwrap();
    assert!(page("gguf.1").contains(".TH gguf 1"));
    assert!(page("gguf-convert.1").contains("split\\-max\\-size"));
    assert!(page("gguf-lora-merge.1").contains("ADAPTER"));
    assert!(!Path::new(&format!("{pages}/gguf-render-template.1")).exists());
    std::fs::remove_file(format!("{pages}/gguf.1")).unwrap();
    fails(&["man", &pages], 2, &["exists already", "--force"]);
    assert!(!Path::new(&format!("{pages}/gguf.1")).exists());
    succeeds(&["man", &pages, "--force"]);
    assert!(page("gguf.1").contains(".TH gguf 1"));
}

/// A process that only `gguf` itself starts was among the words of zsh, bash and PowerShell.
#[test]
fn completions_have_no_hidden_words() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = succeeds(&["completions", shell]);
        assert!(script.contains("chat-template") && !script.contains("render-template"), "{shell}");
    }
}

/// What is wrong with the words themselves was in the colours of a terminal or in none, whatever was asked for.
#[test]
fn colours_are_obeyed_by_wrong_words_too() {
    let said = |words: &[&str], variable: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        let output = command.args(words).env(variable, "1").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    for words in [&["quantise"][..], &["inspect", "--no-such-flag"], &["inspect"]] {
        let with = |flag: &str, variable| said(&[&[flag], words].concat(), variable);
        assert!(with("--color=always", "NO_COLOR").contains("\u{1b}["), "{words:?}");
        assert!(with("--color=always", "X").contains("\u{1b}["), "{words:?}");
        assert!(!with("--color=never", "CLICOLOR_FORCE").contains('\u{1b}'), "{words:?}");
        assert!(!with("--color=auto", "X").contains('\u{1b}'), "{words:?}");
        assert!(!said(words, "NO_COLOR").contains('\u{1b}'), "{words:?}");
    }
}

/// What to do next stood behind a semicolon.
#[test]
fn errors_have_their_help_on_a_line_of_its_own() {
    let dir = Dir::new();
    let (f16, bad) = (dir.f16(), dir.path("bad.gguf"));
    std::fs::write(&bad, "<!DOCTYPE html><html>").unwrap();
    fails(&["quantize", &f16, &bad, "q8_0"], 2, &["exists already\n  help: name another output"]);
    fails(&["inspect", &bad], 1, &["\n  help: "]);
    fails(&["hash", &bad, &f16], 1, &["\n  help: "]);
}

/// Messages named files in a temporary directory that nobody ever sees.
#[cfg(unix)]
#[test]
fn a_temporary_directory_is_named_by_its_place() {
    let run = |words: &str, place: &str| {
        let program = env!("CARGO_BIN_EXE_gguf");
        let mut shell = Command::new("sh");
        let output = shell.args(["-c", &words.replace("gguf", program)]).env("TMPDIR", place);
        let output = output.output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let missing = "error: cannot use a temporary directory in /missing/there: no such directory; \
                   TMPDIR names another\n";
    assert_eq!(run("gguf demo", "/missing/there"), missing);
    let dir = Dir::new();
    let place = dir.path("");
    // Files over 5 kB, and over 4 MB: the checkpoint that is unpacked, and a model made of it.
    for blocks in ["10", "10000"] {
        let said = run(&format!("ulimit -f {blocks}; gguf demo"), &place);
        let (before, after) = said.split_once(&format!("in {place}: ")).expect(&said);
        assert!(!before.contains(".tmp") && !after.contains(".tmp"), "{said}");
    }
}

/// With the commit where the program was built in a git tree.
#[test]
fn the_version_names_the_commit() {
    let version = succeeds(&["--version"]);
    let form = r"^gguf \d+\.\d+\.\d+(?: \(([0-9a-f]{7,}) \d{4}-\d\d-\d\d\))?\n$";
    let found = Regex::new(form).unwrap().captures(&version);
    let commit = found.unwrap_or_else(|| panic!("{version}")).get(1);
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        let output = git.args(words).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    let tracked = git(&["ls-files", "--error-unmatch", "Cargo.toml"]).is_some();
    assert_eq!(commit.is_some(), tracked, "{version}");
    if let (Some(commit), Some(head)) = (commit, git(&["rev-parse", "HEAD"])) {
        assert!(head.starts_with(commit.as_str()), "{version}: {head}");
    }
}

#[test]
fn quiet_leaves_out_all_but_errors() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    let run = |words: &[&str]| {
        let output = crate::support::gguf(words);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let words = ["quantize", &f16, &out, "q8_0", "--tensor-type", "q_proj=q4_0"];
    let (_, said) = run(&words);
    assert!(said.contains("wrote ") && said.contains("matches no tensor name"), "{said}");
    assert_eq!(run(&[&words[..], &["--force", "--quiet"]].concat()), (Some(0), String::new()));
    let (code, said) = run(&[&["-q"], &words[..]].concat());
    assert!(code == Some(2) && said.contains("exists already"), "{said}");
}
