//! Integration tests of the schema.

mod schema;
