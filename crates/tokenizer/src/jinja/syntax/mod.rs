//! Syntax of templates: tokens, and the tree that the parser makes of them.

mod expression;
mod literal;
mod parser;
mod statement;
mod token;
pub mod tree;

pub use parser::parse;
pub use token::is_space;
