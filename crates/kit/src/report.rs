//! HTML reports, pictures, and tables in Markdown.

use gguf_report::model_page;
pub use gguf_report::{
    card_markdown, divergence_markdown, file_card_markdown, graph_svg, quality_markdown,
    quality_page,
};
use gguf_tokenizer::template::Renderer;

use crate::{Error, Files, Progress, redact};

/// Returns the HTML page of a model that the user named `source`. `renderer` checks its chat templates, and `version`
/// names the program.
///
/// # Errors
/// If the model breaks the format or cannot be read; if chat templates cannot be checked; if `progress` stopped the
/// work.
pub fn html(
    source: &str,
    files: &Files,
    renderer: &Renderer,
    version: &str,
    progress: &dyn Progress,
) -> Result<String, Error> {
    model_page(&redact(source), &files.model()?, &files.findings(renderer)?, version, progress)
}
