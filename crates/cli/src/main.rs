//! The program `gguf`.

use std::process::ExitCode;

use gguf_cli::Launch;

fn main() -> ExitCode {
    let launch = std::env::current_exe().ok().map(|file| Launch { file, words: Vec::new() });
    gguf_cli::run(std::env::args_os().collect(), launch).into()
}
