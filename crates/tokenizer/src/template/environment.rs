//! Jinja environment of `transformers`: whitespace rules, functions and filters.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind};
use minijinja_contrib::pycompat;

use super::{json, sandbox};

/// Error of `raise_exception`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RaisedException(pub String);

/// Creates an environment without templates.
pub fn transformers_environment() -> Environment<'static> {
    let mut environment = Environment::new();
    // Otherwise errors hold a copy of the template and of all variables.
    environment.set_debug(false);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_syntax(whitespace());
    environment.set_unknown_method_callback(|state, value, method, arguments| {
        if method == "format" {
            sandbox::bounded_format(value)?;
        }
        pycompat::unknown_method_callback(state, value, method, arguments)
    });
    sandbox::bound_filters(&mut environment);
    environment.add_filter("tojson", json::tojson);
    environment.add_test("iterable", is_iterable);
    environment.add_test("sequence", is_sequence);
    environment.add_function("raise_exception", raise_exception);
    environment.remove_global("debug");
    environment
}

/// Returns the whitespace rules: drop the line break after a block tag, and white space before a
/// tag that begins a line.
fn whitespace() -> SyntaxConfig {
    let mut builder = SyntaxConfig::builder();
    builder.trim_blocks(true).lstrip_blocks(true);
    // Only delimiters can be invalid, and these are the defaults.
    builder.build().unwrap_or_default()
}

/// Implements the test `iterable`; unlike the engine's, false for `none`.
fn is_iterable(value: &Value) -> bool {
    !value.is_none() && value.try_iter().is_ok()
}

/// Implements the test `sequence`; unlike the engine's, true for everything with a length and
/// elements: in Python also strings and mappings.
fn is_sequence(value: &Value) -> bool {
    use ValueKind::{Map, Seq, String, Undefined};
    matches!(value.kind(), Seq | String | Map | Undefined)
}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let message = message.to_string();
    Err(Error::new(ErrorKind::InvalidOperation, message.clone())
        .with_source(RaisedException(message)))
}
