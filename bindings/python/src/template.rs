//! Chat templates, which are programs of somebody else: a process of its own renders each.

use gguf::Error;
use gguf_tokenizer::template::{Context, Renderer, Source as Template};
use pyo3::prelude::*;
use serde_json::Value as Json;

use crate::error::{raise, request};
use crate::model::Source;
use crate::work::{How, run};

/// Whoever renders: the command of this package, in a process of its own.
pub fn renderer(py: Python<'_>) -> PyResult<Renderer> {
    let program: String = py.import("sys")?.getattr("executable")?.extract()?;
    Ok(Renderer::process(program, ["-m", "gguf_kit", "render-template"]))
}

/// The text that a template makes of a conversation; messages, tools and variables as JSON.
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
        parsed.map_err(|fault| request("request-invalid", fault.to_string()))
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
        .map_err(|fault| raise(Error::from(fault)))?
        .ok_or_else(|| request("name-not-found", "the model has no such chat template"))?;
    run(py, &How::default(), |_| renderer.render(&template, &context).map_err(Error::from))
}
