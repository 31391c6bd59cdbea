//! The binary as a user meets it: one file per group of commands.

mod chat_template;
mod chores;
mod commands;
mod lora;
mod quantize;
mod replay;
mod support;
mod tokenize;
mod verify;
