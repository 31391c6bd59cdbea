//! Syntax of llama.cpp's templates: `common/jinja/lexer.cpp` and `parser.cpp`.

mod expression;
mod lexer;
mod parser;
mod statement;
pub mod tree;

pub use parser::parse;
