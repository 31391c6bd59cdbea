//! Architecture `clip`.

pub(crate) mod schema;
