//! Terminal session, compared with a stored transcript.

use std::process::Command;

/// Small trained model.
pub const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");

/// Terminal session in a directory: `$ gguf` and its arguments, standard output, standard error with `!` before
/// each line, and the exit code if not 0.
pub struct Session {
    dir: tempfile::TempDir,
    text: String,
}

impl Session {
    /// Creates a directory with `m.gguf` (F16) and `q4.gguf` (Q4_K_M) of the small trained model.
    pub fn new() -> Self {
        let mut session = Self { dir: tempfile::tempdir().unwrap(), text: String::new() };
        session.run(&format!("convert '{MODEL}' -o m.gguf --outtype f16"));
        session.run("quantize m.gguf q4.gguf Q4_K_M");
        assert!(!session.text.contains("[exit code"), "{}", session.text);
        session.text.clear();
        session
    }

    /// Returns the path of a file in the directory.
    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    /// Runs a command; arguments are separated by spaces, except in `'...'`.
    pub fn run(&mut self, line: &str) -> &mut Self {
        self.run_in(&[], line)
    }

    /// Runs a command with variables in its environment.
    pub fn run_in(&mut self, variables: &[(&str, &str)], line: &str) -> &mut Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
        for (number, part) in line.split('\'').enumerate() {
            if number % 2 == 1 {
                command.arg(part);
            } else {
                command.args(part.split_whitespace());
            }
        }
        command.current_dir(self.dir.path());
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        let output = command.output().unwrap();
        self.text += &format!("$ gguf {line}\n{}", String::from_utf8_lossy(&output.stdout));
        for line in String::from_utf8_lossy(&output.stderr).lines() {
            self.text += &format!("! {line}\n");
        }
        match output.status.code() {
            Some(0) => {}
            code => self.text += &format!("[exit code {}]\n", code.unwrap()),
        }
        self.text += "\n";
        self
    }

    /// Returns the standard output of a command, without adding it to the transcript.
    pub fn output(&mut self, line: &str) -> String {
        let before = std::mem::take(&mut self.text);
        self.run(line);
        let text = std::mem::replace(&mut self.text, before);
        text.split_once('\n').unwrap().1.to_owned()
    }

    /// Compares the session with a transcript.
    #[track_caller]
    pub fn assert_matches(&self, name: &str) {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../snapshots");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.add_filter(r"in \d+\.\d s", "in [time]");
        settings
            .add_filter(r"(?m)^estimated time: \d+ s on \d+ threads?", "estimated time: [time]");
        settings.add_filter(&escape_dots(MODEL), "[model]");
        settings.add_filter(r"127\.0\.0\.1:\d+", "[server]");
        settings.bind(|| insta::assert_snapshot!(name, self.text.trim_end()));
    }
}

fn escape_dots(text: &str) -> String {
    text.replace('.', r"\.")
}
