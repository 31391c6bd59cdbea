//! Help, completions, manual pages and the version.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use regex::Regex;

use crate::cli::support::{Dir, fails, succeeds};

#[test]
fn help_covers_commands_and_topics() {
    assert_eq!(succeeds(&["help"]), succeeds(&["--help"]));
    assert_eq!(succeeds(&["help", "convert"]), succeeds(&["convert", "--help"]));
    assert_eq!(succeeds(&["help", "lora", "merge"]), succeeds(&["lora", "merge", "--help"]));
    let types = succeeds(&["help", "types"]);
    assert!(
        types.contains("\nQ4_K                 4.5000   256 weights in 144 bytes\n"),
        "{types}"
    );
    let presets = succeeds(&["help", "quantization"]);
    assert!(presets.contains("  15  Q4_K_M    4.58 GB at 8B"), "{presets}");
    let codes = succeeds(&["help", "exit-codes"]);
    assert!(
        codes.contains("    2  invalid usage (including an existing output without --force)\n"),
        "{codes}"
    );
    assert!(succeeds(&["help", "locations"]).contains("hf:org/repo@revision"));
    assert!(succeeds(&["help", "environment"]).contains("HF_TOKEN"));
    fails(&["help", "typs"], 2, &["unknown command or topic `typs`; did you mean types?"]);
    fails(&["help", "quantise"], 2, &["did you mean quantize?"]);
    fails(&["help", "lora", "merg"], 2, &["did you mean merge?"]);
    fails(&["help", "inspect", "x"], 2, &["no subcommands"]);
}

#[test]
fn completions_are_valid_scripts() {
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
    // Checked with bash; other shells may be missing.
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

/// Regression: the hidden command was completed by zsh, bash and PowerShell.
#[test]
fn completions_omit_hidden_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = succeeds(&["completions", shell]);
        assert!(script.contains("chat-template") && !script.contains("render-template"), "{shell}");
    }
}

/// Regression: parse errors ignored `--color`.
#[test]
fn parse_errors_honor_color() {
    let output_text = |words: &[&str], variable: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        let output = command.args(words).env(variable, "1").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    for words in [&["quantise"][..], &["inspect", "--no-such-flag"], &["inspect"]] {
        let with = |flag: &str, variable| output_text(&[&[flag], words].concat(), variable);
        assert!(with("--color=always", "NO_COLOR").contains("\u{1b}["), "{words:?}");
        assert!(with("--color=always", "X").contains("\u{1b}["), "{words:?}");
        assert!(!with("--color=never", "CLICOLOR_FORCE").contains('\u{1b}'), "{words:?}");
        assert!(!with("--color=auto", "X").contains('\u{1b}'), "{words:?}");
        assert!(!output_text(words, "NO_COLOR").contains('\u{1b}'), "{words:?}");
    }
}

/// Regression: advice followed the message after a semicolon.
#[test]
fn errors_have_advice_on_a_separate_line() {
    let dir = Dir::new();
    let (f16, bad) = (dir.f16(), dir.path("bad.gguf"));
    std::fs::write(&bad, "<!DOCTYPE html><html>").unwrap();
    fails(&["quantize", &f16, &bad, "q8_0"], 2, &["exists already\n  help: name another output"]);
    fails(&["inspect", &bad], 1, &["\n  help: "]);
    fails(&["hash", &bad, &f16], 1, &["\n  help: "]);
}

/// Regression: messages named temporary files that users never see.
#[cfg(unix)]
#[test]
fn temporary_directories_are_not_mentioned() {
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
    // Larger than 5 kB and 4 MB: the unpacked checkpoint, and its conversion.
    for blocks in ["10", "10000"] {
        let output_text = run(&format!("ulimit -f {blocks}; gguf demo"), &place);
        let (before, after) = output_text.split_once(&format!("in {place}: ")).expect(&output_text);
        assert!(!before.contains(".tmp") && !after.contains(".tmp"), "{output_text}");
    }
}

/// Includes the commit if built in a git tree.
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
fn quiet_suppresses_all_but_errors() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    let run = |words: &[&str]| {
        let output = crate::cli::support::gguf(words);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let words = ["quantize", &f16, &out, "q8_0", "--tensor-type", "q_proj=q4_0"];
    let (_, output_text) = run(&words);
    assert!(
        output_text.contains("wrote ") && output_text.contains("matches no tensor name"),
        "{output_text}"
    );
    assert_eq!(run(&[&words[..], &["--force", "--quiet"]].concat()), (Some(0), String::new()));
    let (code, output_text) = run(&[&["-q"], &words[..]].concat());
    assert!(code == Some(2) && output_text.contains("exists already"), "{output_text}");
}
