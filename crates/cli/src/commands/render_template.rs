//! Process that renders chat templates for other commands.

use gguf_tokenizer::template::Renderer;

use crate::failure::Failure;
use crate::launch;

/// Hidden command that starts the process; only gguf itself uses it.
pub const COMMAND: &str = "render-template";

/// Serves one rendering request within resource limits.
pub fn run() -> Result<(), Failure> {
    Renderer::serve(std::io::stdin(), std::io::stdout())
        .map_err(|fault| Failure::Input(format!("cannot render the template: {fault}")))
}

/// Returns a renderer that runs templates, which are untrusted code, in a separate process of this program.
pub fn renderer() -> Result<Renderer, Failure> {
    let launch = launch::command()?;
    let words = launch.words.iter().cloned().chain([COMMAND.into()]);
    Ok(Renderer::process(&launch.file, words))
}
