//! Checkpoint formats: what is read of them, value by value, and what is said about broken ones.

mod bare;
mod files;
mod pytorch;
mod quantized;
