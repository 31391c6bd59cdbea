//! Architecture `jina-bert-v3`.

pub(crate) mod schema;
