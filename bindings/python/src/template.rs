//! Chat templates. They are untrusted code and are rendered in a sandboxed process.

use gguf::Error;
use gguf_tokenizer::template::{Context, Renderer, TemplateSource as Template};
use pyo3::prelude::*;
use serde_json::Value as Json;

use crate::error::{raise, request};
use crate::model::Source;
use crate::task::{TaskOptions, run};

/// Returns the renderer: a child process that runs this package.
pub fn renderer(py: Python<'_>) -> PyResult<Renderer> {
    let program: String = py.import("sys")?.getattr("executable")?.extract()?;
    Ok(Renderer::process(program, ["-m", "gguf_kit", "render-template"]))
}

/// Renders a conversation. `messages`, `tools` and `variables` are JSON.
#[pyfunction]
#[pyo3(signature = (source, messages, name, tools, add_generation_prompt, variables))]
pub fn apply_chat_template(
    py: Python<'_>,
    source: Source,
    messages: &str,
    name: Option<String>,
    tools: &str,
    add_generation_prompt: bool,
    variables: &str,
) -> PyResult<String> {
    let json = |text: &str| {
        let parsed = serde_json::from_str::<Json>(text);
        parsed.map_err(|error| request("request-invalid", error.to_string()))
    };
    let mut context = Context::new(json(messages)?);
    context.tools = json(tools)?;
    context.add_generation_prompt = add_generation_prompt;
    if let Json::Object(variables) = json(variables)? {
        context.variables = variables;
    }
    let (opened, renderer) = (source.open(py)?, renderer(py)?);
    let metadata = opened.model().metadata();
    let template = Template::from_metadata(metadata, name.as_deref())
        .map_err(|error| raise(Error::from(error)))?
        .ok_or_else(|| request("name-not-found", "the model has no such chat template"))?;
    run(py, &TaskOptions::default(), |_| renderer.render(&template, &context).map_err(Error::from))
}
