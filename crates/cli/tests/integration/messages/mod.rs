//! Texts of errors: snapshots of messages, and errors provoked by every flag of every command.

mod provoked;
mod reviewed;
mod wrong_files;
