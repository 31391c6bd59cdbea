//! Chat templates as llama.cpp renders them: its own engine (`common/jinja`), and what `common/chat.cpp` does with a
//! conversation before and after.
//!
//! The engine accepts most of jinja2's syntax, but its values are others: a string is its bytes, lists can change,
//! numbers are floats, members of undefined values are undefined, macros see the variables of their callers, and
//! filters and methods exist for certain types only. So it has its own syntax tree and values; steps, errors and
//! limits are those of the engine of jinja2. `docs/chat-templates.md` lists the differences, a test each.
//!
//! `syntax` reads a template, `interpreter` runs it with `value`s and `builtins`, `capabilities` finds out what it can
//! do, and `chat` renders conversations.

mod builtins;
mod capabilities;
mod chat;
mod interpreter;
mod machine;
mod result;
mod scope;
mod syntax;
mod value;

pub use capabilities::Options;
pub use chat::{Conversation, Settings, Template};
