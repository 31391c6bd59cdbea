//! What errors say: snapshots of messages, and errors provoked by every flag of every command.

mod judged;
mod provoked;
mod wrong_files;
