//! The binary as a user meets it: one file per group of commands.

mod chat_template;
mod chores;
mod commands;
mod hostile_templates;
mod lora;
mod one_writer;
mod quantize;
mod support;
mod tokenize;
mod verify;
