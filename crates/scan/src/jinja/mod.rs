//! Parser of Jinja2 templates, for reading only.
//!
//! The grammar is that of jinja2, which runs chat templates in Python: the engine that renders templates here accepts less,
//! and an attack is written for jinja2. The parser never fails: a tag that it cannot read becomes a list of its names and
//! strings, so that no part of a template escapes the audit.

mod fold;
mod lexer;
mod parser;
mod syntax;

pub use fold::Constants;
pub use parser::{Parsed, parse};
pub use syntax::{Expr, Kind, Statement, expressions, for_each, for_each_expr};
