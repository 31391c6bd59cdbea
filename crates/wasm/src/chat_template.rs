//! Chat templates, which are untrusted: each is rendered in an instance of its own.

use std::cell::RefCell;
use std::time::{Duration, SystemTime};

use gguf::{Error, Finding, Metadata};
use gguf_tokenizer::template::{Context, Engine, Renderer, TemplateSource};
use js_sys::{Function, Uint8Array};
use serde_json::{Map, Value as Json};
use wasm_bindgen::prelude::{JsCast, JsValue, wasm_bindgen};

use crate::error::Thrown;

thread_local! {
    static SANDBOX: RefCell<Option<Function>> = const { RefCell::new(None) };
    /// Request, then the response.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Sets the function that passes a request to [`serve`] of a new instance of this module, and returns the response.
#[wasm_bindgen(js_name = setSandbox)]
pub fn set_sandbox(sandbox: Function) {
    SANDBOX.set(Some(sandbox));
}

/// Returns the address of a buffer of this length for a request to [`serve`]. The functions of the sandbox have only
/// numbers as arguments and results, so that an instance without the glue code of `wasm-bindgen` can be called.
#[wasm_bindgen(js_name = requestBuffer)]
pub fn request_buffer(len: usize) -> *mut u8 {
    BUFFER.with_borrow_mut(|buffer| {
        *buffer = vec![0; len];
        buffer.as_mut_ptr()
    })
}

/// Serves the request in the buffer, in an instance that does nothing else. Returns the address of the response.
#[wasm_bindgen]
pub fn serve() -> *const u8 {
    let request = BUFFER.take();
    let mut response = Vec::new();
    // An incomplete response tells the caller that the request failed.
    let _ = Renderer::serve(&request[..], &mut response);
    BUFFER.with_borrow_mut(|buffer| {
        *buffer = response;
        buffer.as_ptr()
    })
}

/// Returns the length of the response.
#[wasm_bindgen(js_name = responseLength)]
pub fn response_len() -> usize {
    BUFFER.with_borrow(Vec::len)
}

/// Returns the renderer for all templates.
pub fn renderer() -> Renderer {
    Renderer::instance(|request| {
        let sandbox = SANDBOX.with_borrow(Clone::clone)?;
        let response = sandbox.call1(&JsValue::NULL, &Uint8Array::from(request)).ok()?;
        Some(response.dyn_into::<Uint8Array>().ok()?.to_vec())
    })
}

/// Returns the text of a template.
pub fn text(metadata: &Metadata, name: Option<&str>) -> Result<Option<String>, Thrown> {
    let key = key(name);
    let Some(value) = metadata.get(&key) else { return Ok(None) };
    let text = value.as_str().ok_or(gguf_tokenizer::template::Error::NotText(key))?;
    Ok(Some(text.to_owned()))
}

/// Renders a conversation.
pub fn render(
    metadata: &Metadata,
    name: Option<&str>,
    llama_cpp: bool,
    variables: &str,
    now: f64,
) -> Result<String, Thrown> {
    let source = TemplateSource::from_metadata(metadata, name)?.ok_or_else(|| missing(name))?;
    let engine = if llama_cpp { Engine::LlamaCpp } else { Engine::Transformers };
    let source = source.with_engine(engine, metadata);
    let variables: Map<String, Json> = serde_json::from_str(variables).map_err(|_| invalid())?;
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now as u64);
    let context = Context { variables, now, ..Context::new(Json::Null) };
    Ok(renderer().render(&source, &context)?)
}

fn key(name: Option<&str>) -> String {
    name.map_or(TemplateSource::KEY.to_owned(), |name| format!("{}.{name}", TemplateSource::KEY))
}

fn missing(name: Option<&str>) -> Error {
    let finding = Finding::error("template-missing", "the model has no such chat template");
    finding
        .key(key(name))
        .help("name a template of the model, or set the one of the original model")
        .into()
}

fn invalid() -> Error {
    let what = "the conversation is nested deeper than 128 levels, or has text that is not Unicode";
    Error::request("input", what, "correct the conversation")
}
