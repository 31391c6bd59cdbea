//! HTML reports, pictures, and tables in Markdown.

use gguf_report::{MemoryRow, ModelReport, model_page};
pub use gguf_report::{
    card_markdown, divergence_markdown, file_card_markdown, graph_svg, quality_markdown,
    quality_page,
};
use gguf_store::Model;
use gguf_tokenizer::template::Renderer;

use crate::memory::{MemoryOptions, estimate};
use crate::{Error, Files, Progress, redact};

/// Context sizes in tokens for which a report estimates memory, besides the context size of the model.
const CONTEXTS: [u64; 4] = [2048, 8192, 32_768, 131_072];

/// Files of a model, and the name that the user gave them.
#[derive(Clone, Copy)]
pub struct NamedFiles<'f> {
    /// Path or URL.
    pub source: &'f str,
    /// The files.
    pub files: &'f Files,
}

/// Returns the HTML page of one or several models, with the quantization errors relative to `reference` if there is one.
/// A damaged model is shown as far as it can be read. `renderer` checks chat templates, and `version` names the program.
///
/// # Errors
/// If a header cannot be read, or data is missing that must be compared with the reference; if chat templates cannot be
/// checked; if `progress` stopped the work.
pub fn html(
    models: &[NamedFiles],
    reference: Option<NamedFiles>,
    renderer: &Renderer,
    version: &str,
    progress: &dyn Progress,
) -> Result<String, Error> {
    let opened = |named: &NamedFiles| {
        let model = named.files.model();
        model.or_else(|error| named.files.damaged_model().map(|(model, _)| model).ok_or(error))
    };
    let original = match &reference {
        Some(reference) => Some((opened(reference)?, redact(reference.source))),
        None => None,
    };
    let load = |named: &NamedFiles| {
        let model = opened(named)?;
        Ok((redact(named.source), memory(&model), model, named.files.findings(renderer)?))
    };
    let loaded = models.iter().map(load).collect::<Result<Vec<_>, Error>>()?;
    let reports: Vec<_> = loaded
        .iter()
        .map(|(source, memory, model, findings)| ModelReport {
            source,
            model,
            findings,
            memory: memory.clone(),
            reference: original.as_ref().map(|(model, source)| (model, &**source)),
        })
        .collect();
    model_page(&reports, version, progress)
}

/// Estimates the memory of a model at several context sizes; nothing for a model without a graph.
fn memory(model: &Model) -> Vec<MemoryRow> {
    let of_context = |context: Option<u64>| {
        let estimate =
            estimate(model, &MemoryOptions { context, batch: 512, ..MemoryOptions::default() });
        let estimate = estimate.ok()?;
        Some(MemoryRow {
            context: estimate.context,
            weights: estimate.weights,
            cache: estimate.cache,
            compute_buffer: estimate.compute_buffer,
        })
    };
    let Some(trained) = of_context(None) else { return Vec::new() };
    let smaller = CONTEXTS.into_iter().filter(|context| *context < trained.context);
    let mut rows: Vec<_> = smaller.filter_map(|context| of_context(Some(context))).collect();
    rows.push(trained);
    rows
}
