//! Engine for the templates of jinja2, as `transformers` sets it up: an immutable sandbox with
//! `trim_blocks`, `lstrip_blocks`, loop controls, `{% generation %}`, `raise_exception`,
//! `strftime_now` and its own `tojson`.
//!
//! Values, operators, filters and methods have the semantics of Python, so that a prompt is the one
//! that `transformers` renders. Integers have at most 127 bits; `lipsum` and tags that load other
//! templates fail. Every step costs from a budget, and so does the length of every text and list
//! before it is allocated.

mod access;
mod arguments;
mod budget;
mod error;
mod filters;
mod format;
mod globals;
mod interpreter;
mod machine;
mod markup;
mod methods;
mod operators;
mod strftime;
mod syntax;
mod tests;
mod value;

pub use budget::Budget;
pub use error::{Error, ErrorKind};
pub use interpreter::{Options, render};
pub use strftime::strftime;
pub use syntax::parse;
pub use syntax::tree::Tree;
