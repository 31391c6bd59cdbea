//! Families, each on a tiny checkpoint whose numbers are known: keys, names, and where every
//! element goes.

mod classes;
#[path = "../tiny/decoder.rs"]
mod decoder;
mod encoders;
mod folders;
mod gpt;
#[path = "../tiny/modules.rs"]
mod modules;
mod native;
mod refused;
mod sidecars;
mod states;
#[path = "../tiny/mod.rs"]
mod tiny;
mod windows;

use gguf::{Bytes, Gguf};
use serde_json::{Value, json};

/// A number, text or truth value of the metadata.
fn key(bytes: &Bytes, key: &str) -> Value {
    let model = Gguf::read(bytes).unwrap();
    let value = model.metadata().get(key).unwrap_or_else(|| panic!("no key {key}"));
    match value {
        gguf::Value::Bool(flag) => json!(flag),
        gguf::Value::F32(number) => json!(number),
        gguf::Value::String(_) => json!(value.as_str().unwrap()),
        _ => json!(value.to_i64().unwrap()),
    }
}

/// The rows of a matrix with `columns` columns.
fn rows(values: &[f32], columns: usize) -> Vec<Vec<f32>> {
    values.chunks_exact(columns).map(<[f32]>::to_vec).collect()
}

/// These rows, one after the other.
fn picked(values: &[f32], columns: usize, which: &[usize]) -> Vec<f32> {
    let rows = rows(values, columns);
    which.iter().flat_map(|&row| rows[row].clone()).collect()
}
