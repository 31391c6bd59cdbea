//! Integration tests of gguf-inspect.

mod cancelled;
mod diff;
mod hash;
mod holes;
mod scan;
