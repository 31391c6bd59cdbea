//! Narrow terminals, colors, and closed pipes.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use nix::pty::{Winsize, openpty};

use super::session::Session;

/// Returns the output of `gguf` on a terminal of this width.
fn on_terminal(session: &Session, columns: u16, words: &[&str]) -> String {
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let ends = openpty(Some(&size), None).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
    command.args(words).current_dir(session.path("")).env("TERM", "xterm-256color");
    command.env_remove("NO_COLOR").stdin(Stdio::null()).stdout(ends.slave).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // Closes the slave, so that reading ends with the program.
    drop(command);
    let mut text = Vec::new();
    // On Linux, a closed slave is a read error.
    let _ = File::from(ends.master).read_to_end(&mut text);
    child.wait().unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn lines_fit_the_terminal() {
    let session = Session::new();
    let commands: [&[&str]; 12] = [
        &["inspect", "q4.gguf"],
        &["inspect", "q4.gguf", "--all"],
        &["inspect", "q4.gguf", "--values", "blk.0.attn_q.weight"],
        &["inspect", "q4.gguf", "--memory", "--devices", "2"],
        &["check", "m.gguf", "q4.gguf"],
        &["check", "-v", "m.gguf"],
        &["diff", "m.gguf", "q4.gguf"],
        &["quantize", "m.gguf", "out.gguf", "Q4_K_M", "--dry-run"],
        &["edit", "m.gguf", "--set", "general.name=Another name", "--dry-run"],
        &["bench", "q4.gguf", "-p", "8", "-n", "2", "-r", "1"],
        &["help", "quantization"],
        &["name", "q4.gguf"],
    ];
    for columns in [40, 80, 140] {
        for words in commands {
            // Preformatted.
            if columns == 40 && words[0] == "help" {
                continue;
            }
            let text = on_terminal(&session, columns, words);
            assert!(!text.trim().is_empty(), "{words:?} printed nothing");
            for line in text.lines() {
                let width = console::measure_text_width(line.trim_end());
                assert!(width <= columns.into(), "{words:?} at {columns}: {width} in {line:?}");
            }
        }
    }
}

#[test]
fn colors_follow_terminal_flag_and_environment() {
    let session = Session::new();
    let coloured = |text: &str| text.contains("\u{1b}[");
    assert!(coloured(&on_terminal(&session, 80, &["diff", "m.gguf", "q4.gguf"])));
    assert!(!coloured(&on_terminal(&session, 80, &["diff", "m.gguf", "q4.gguf", "--color=never"])));
    let piped = |words: &[&str], name: &str, value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
        command.args(["diff", "m.gguf", "q4.gguf"]).args(words).current_dir(session.path(""));
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env(name, value);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(!coloured(&piped(&[], "X", "")));
    assert!(coloured(&piped(&["--color", "always"], "X", "")));
    assert!(coloured(&piped(&[], "CLICOLOR_FORCE", "1")));
    assert!(!coloured(&piped(&["--color", "never"], "CLICOLOR_FORCE", "1")));
}

#[test]
fn closed_pipes_are_not_errors() {
    let session = Session::new();
    let commands: [&[&str]; 5] = [
        &["inspect", "m.gguf", "--all", "--arrays"],
        &["inspect", "m.gguf", "--json", "--arrays"],
        &["diff", "m.gguf", "q4.gguf"],
        &["quantize", "m.gguf", "x.gguf", "Q8_0", "--dry-run"],
        &["hash", "m.gguf", "m.gguf", "m.gguf"],
    ];
    for words in commands {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
        command.args(words).current_dir(session.path(""));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let done = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&done.stderr), "", "{words:?}");
        // `diff` has exit code 1 for differences.
        assert!(matches!(done.status.code(), Some(0 | 1)), "{words:?}: {:?}", done.status);
    }
}
