//! Temporary directories in which shell commands run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::{fixtures, hub};

/// Program under test.
pub const GGUF: &str = env!("CARGO_BIN_EXE_gguf");

/// Runs `gguf` with a width at which help is not wrapped.
pub fn gguf(words: &str) -> Output {
    Command::new(GGUF).args(words.split_whitespace()).env("COLUMNS", "1000").output().unwrap()
}

/// Stops the viewer after some seconds, and opens no browser; stores a model before it is removed.
const SHOWN_FOR_A_WHILE: &str = r#"
gguf() {
    case " $* " in
        *" --export "*) command gguf "$@" ;;
        " view "*" --no-open "*) timeout 4 gguf "$@" || [ $? = 124 ] ;;
        " rm hf:"*) command gguf pull "$2:Q4_K_M"; command gguf "$@" ;;
        " view "*) timeout 3 gguf "$@" --no-open || [ $? = 124 ] ;;
        *) command gguf "$@" ;;
    esac
}
"#;

/// Runs a shell script in a directory, which is also the home directory.
pub fn shell(script: &str, directory: &Path, variables: &[(&str, &str)]) -> Output {
    let ours = Path::new(GGUF).parent().unwrap().display();
    // Compatibility links come first; the rest is for `cmp` and the like.
    let path = format!("{0}/.local/bin:{ours}:/usr/local/bin:/usr/bin:/bin", directory.display());
    let mut command = Command::new("bash");
    let script = format!("{SHOWN_FOR_A_WHILE}{script}");
    command.args(["-euo", "pipefail", "-c", &script]).current_dir(directory).env_clear();
    command.env("PATH", path).env("HOME", directory).envs(variables.iter().copied());
    command.env("HF_ENDPOINT", hub::address()).env("HF_TOKEN", "hf_secret");
    // Second of two array tasks.
    command.env("SLURM_ARRAY_TASK_ID", "2").env("SLURM_ARRAY_TASK_COUNT", "2");
    command.env("PROFILE", "profile.ps1");
    // Answers prompts, and serves as a chat message.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program without a prompt may have exited.
    let _ = child.stdin.take().unwrap().write_all(b"YES\n");
    child.wait_with_output().unwrap()
}

/// Temporary directory.
pub struct Place(tempfile::TempDir);

impl Place {
    /// Creates a directory with a fixture for each file that the script reads.
    pub fn new(script: &str) -> Result<Self, String> {
        let place = Self(tempfile::tempdir().unwrap());
        fixtures::create(script, place.0.path()).map(|()| place)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn run(&self, script: &str) -> Output {
        shell(script, self.0.path(), &[])
    }
}
