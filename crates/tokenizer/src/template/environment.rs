//! The Jinja environment of `transformers`: its whitespace rules, functions and filters.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind};
use minijinja_contrib::pycompat;

use super::{bounds, json};

/// What a template says when it calls `raise_exception`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// An environment without templates.
pub fn like_transformers() -> Environment<'static> {
    let mut environment = Environment::new();
    // Errors otherwise keep a copy of the template and of all variables.
    environment.set_debug(false);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_syntax(whitespace());
    environment.set_unknown_method_callback(|state, value, method, arguments| {
        if method == "format" {
            bounds::bounded_format(value)?;
        }
        pycompat::unknown_method_callback(state, value, method, arguments)
    });
    bounds::bound_filters(&mut environment);
    environment.add_filter("tojson", json::tojson);
    environment.add_test("iterable", is_iterable);
    environment.add_test("sequence", is_sequence);
    environment.add_function("raise_exception", raise_exception);
    environment.remove_global("debug");
    environment
}

/// A line break after a tag is dropped, and so is white space before a tag that begins a line.
fn whitespace() -> SyntaxConfig {
    let mut builder = SyntaxConfig::builder();
    builder.trim_blocks(true).lstrip_blocks(true);
    // Only delimiters can be invalid, and they are the default ones.
    builder.build().unwrap_or_default()
}

/// Other than the engine's own test, false for `none`.
fn is_iterable(value: &Value) -> bool {
    !value.is_none() && value.try_iter().is_ok()
}

/// Other than the engine's own test, true for all that has a length and elements: in Python also
/// texts and objects.
fn is_sequence(value: &Value) -> bool {
    use ValueKind::{Map, Seq, String, Undefined};
    matches!(value.kind(), Seq | String | Map | Undefined)
}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let message = message.to_string();
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Refusal(message)))
}
