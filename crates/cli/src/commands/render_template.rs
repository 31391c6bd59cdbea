//! The process in which other commands render chat templates.

use gguf_tokenizer::template::Renderer;

use crate::failure::Failure;
use crate::launch;

/// The word by which the process is started: no command, since only `gguf` itself says it.
pub const WORD: &str = "render-template";

/// Answers a request for a rendering, within its limits.
pub fn run() -> Result<(), Failure> {
    Renderer::serve(std::io::stdin(), std::io::stdout())
        .map_err(|fault| Failure::Input(format!("the request cannot be answered: {fault}")))
}

/// Whoever renders templates of models, which are programs of somebody else: this command, in a
/// process of its own.
pub fn renderer() -> Result<Renderer, Failure> {
    let launch = launch::again()?;
    let words = launch.words.iter().cloned().chain([WORD.into()]);
    Ok(Renderer::process(&launch.file, words))
}
