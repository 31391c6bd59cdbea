//! The binary as a user meets it: one file per group of commands.

mod benchmark;
mod byte_order;
mod calibration;
mod chat_template;
mod check;
mod chores;
mod codes;
mod commands;
mod conversion;
mod divergence;
mod documents;
mod embed;
mod far;
mod files;
mod flags;
mod habits;
mod help;
mod hostile_templates;
mod judging;
mod lora;
#[allow(dead_code)] // Other tests want more of it.
#[path = "../../../legacy/tests/integration/builder.rs"]
mod old_files;
mod old_names;
mod one_writer;
mod parts;
mod quality;
mod quantize;
mod replay;
mod running;
mod sensitivity;
#[allow(dead_code)] // Other tests want more of it.
#[path = "../../../remote/tests/integration/server.rs"]
mod server;
mod support;
mod tokenize;
mod transcribe;
mod unsafe_code;
mod verify;
mod view;
#[path = "../whisper/mod.rs"]
mod whisper;
mod words;
