//! The binary as a user meets it: one file per group of commands.

mod chat_template;
mod check;
mod chores;
mod commands;
mod lora;
mod quantize;
mod support;
mod tokenize;
mod unsafe_code;
mod verify;
