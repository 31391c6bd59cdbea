//! Answers and conversations on a pseudo-terminal.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use nix::pty::{Winsize, openpty};

use super::session::Session;

/// Time within which an expected text comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program on a pseudo-terminal, its controlling terminal, with all three streams.
struct Terminal {
    child: Child,
    keys: File,
    shown: Receiver<Vec<u8>>,
    text: String,
}

impl Terminal {
    fn start(session: &Session, columns: u16, words: &[&str]) -> Self {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let ends = openpty(Some(&size), None).unwrap();
        // Without a controlling terminal, Ctrl-C outside of raw mode is lost.
        let mut command = Command::new("setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_gguf")]).args(words);
        command.current_dir(session.path("")).env("TERM", "xterm-256color");
        let stream = || -> OwnedFd { ends.slave.try_clone().unwrap() };
        command.env_remove("NO_COLOR").stdin(stream()).stdout(stream()).stderr(stream());
        let child = command.spawn().unwrap();
        drop((command, ends.slave));
        let keys = File::from(ends.master);
        let mut output = keys.try_clone().unwrap();
        let (send, shown) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // On Linux, a closed slave is a read error.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                if send.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keys, shown, text: String::new() }
    }

    fn type_in(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for a text after what was waited for before, and returns everything up to it.
    #[track_caller]
    fn wait_for(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.text.find(text) {
                return self.text.drain(..at + text.len()).collect();
            }
            match self.shown.recv_timeout(PATIENCE) {
                Ok(bytes) => self.text += &String::from_utf8_lossy(&bytes),
                Err(_) => panic!("`{text}` did not come after: {:?}", self.text),
            }
        }
    }

    /// Waits for the end, and returns all that came after the text that was waited for.
    #[track_caller]
    fn end(mut self) -> (ExitStatus, String) {
        loop {
            match self.shown.recv_timeout(PATIENCE) {
                Ok(bytes) => self.text += &String::from_utf8_lossy(&bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("no end after: {:?}", self.text),
            }
        }
        (self.child.wait().unwrap(), std::mem::take(&mut self.text))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a model with a chat template, `chat.gguf`.
fn chat_model(session: &Session) {
    let template = "{% for m in messages %}{{ m.content }} {% endfor %}";
    fs::write(session.path("chat.jinja"), template).unwrap();
    let edit = ["edit", "m.gguf", "--chat-template-file", "chat.jinja", "-o", "chat.gguf"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
    assert!(command.args(edit).current_dir(session.path("")).status().unwrap().success());
}

/// The prompt takes long enough for a bar; the answer is on the screen when the program ends.
#[test]
fn an_answer_is_not_erased() {
    let session = Session::new();
    let prompt = "In the beginning God created the heaven and the earth. ".repeat(400);
    fs::write(session.path("prompt.txt"), prompt).unwrap();
    let words = [
        "generate",
        "m.gguf",
        "-f",
        "prompt.txt",
        "-n",
        "40",
        "--temp",
        "0",
        "--ignore-eos",
        "--precision",
        "exact",
        "--instructions",
        "scalar",
    ];
    let answer = Command::new(env!("CARGO_BIN_EXE_gguf"))
        .args(words)
        .current_dir(session.path(""))
        .output()
        .unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let answer = String::from_utf8(answer.stdout).unwrap();
    for columns in [80, 120] {
        let (status, shown) = Terminal::start(&session, columns, &words).end();
        assert!(status.success());
        assert!(shown.contains("prompt ") && shown.contains(" tokens"), "no bar: {shown:?}");
        // Nothing that is drawn after the bar deletes a line.
        let last = shown.rsplit("\u{1b}[2K").next().unwrap().replace('\r', "");
        assert!(last.contains(answer.trim_end()), "{last:?} lacks {answer:?}");
    }
}

#[test]
fn a_conversation_has_commands() {
    let session = Session::new();
    chat_model(&session);
    let options = ["-n", "6", "--temp", "0", "--ignore-eos", "-v"];
    let mut chat = Terminal::start(&session, 80, &[&["chat", "chat.gguf"], &options[..]].concat());
    assert!(chat.wait_for("/help lists the commands").contains("Chat with"));
    chat.wait_for("> ");
    chat.type_in("/help\r");
    chat.wait_for("/regenerate");
    chat.wait_for("> ");
    chat.type_in("In the beginning\r");
    chat.wait_for("answer 6 tokens");
    chat.wait_for("> ");
    chat.type_in("/regenerate\r");
    chat.wait_for("answer 6 tokens");
    chat.wait_for("> ");
    // A message of two lines; the arrow recalls it.
    chat.type_in("\"\"\"And God\r");
    chat.wait_for("... ");
    chat.type_in("said\"\"\"\r");
    chat.wait_for("answer 6 tokens");
    chat.wait_for("> ");
    chat.type_in("/save talk.json\r");
    chat.wait_for("Saved talk.json");
    chat.wait_for("> ");
    // Ctrl-C twice, the second before the line is edited again.
    chat.type_in("\u{3}");
    chat.wait_for("press Ctrl-C again");
    chat.type_in("\u{3}");
    let (status, _) = chat.end();
    assert!(status.success());
    let saved = fs::read_to_string(session.path("talk.json")).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
    let roles: Vec<_> = saved.as_array().unwrap().iter().map(|one| one["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    assert_eq!(saved[2]["content"], "And God\nsaid");
}

/// `generate` without a prompt is a conversation too, and one whose context is full goes on.
#[test]
fn a_full_context_drops_the_oldest_messages() {
    let session = Session::new();
    chat_model(&session);
    let words = ["generate", "chat.gguf", "-c", "60", "-n", "20", "--temp", "0", "--ignore-eos"];
    let mut chat = Terminal::start(&session, 80, &words);
    chat.wait_for("> ");
    for _ in 0..3 {
        chat.type_in("In the beginning was the word\r");
        chat.wait_for("\u{1b}[K> ");
    }
    chat.type_in("And the word was with God\r");
    chat.wait_for("dropped the oldest");
    chat.wait_for("\u{1b}[K> ");
    chat.type_in("/bye\r");
    let (status, _) = chat.end();
    assert!(status.success());
}
