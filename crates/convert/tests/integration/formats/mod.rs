//! Checkpoint formats: values read from them, and errors about damaged files.

mod builders;
mod pytorch;
mod quantized;
mod single_file;
