//! Formats of Python: `%`, `str.format` and the specifications of its fields.

pub mod braces;
pub mod percent;
mod specification;
