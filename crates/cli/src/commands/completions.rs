//! `gguf completions`: shell completions.

use std::io::Write;

use clap_complete::Shell;

use crate::failure::Failure;

/// Generate shell completions.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    gguf completions bash > ~/.local/share/bash-completion/completions/gguf\n  \
    gguf completions zsh > ~/.zfunc/_gguf        # with ~/.zfunc in fpath\n  \
    gguf completions fish > ~/.config/fish/completions/gguf.fish\n  \
    gguf completions powershell >> $PROFILE")]
pub struct Args {
    /// Shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    // The generator does not report a closed pipe, so it writes to memory first.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command(), "gguf", &mut script);
    Ok(std::io::stdout().lock().write_all(&script)?)
}
