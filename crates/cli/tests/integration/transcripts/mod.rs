//! Whole transcripts of what commands print, as snapshots in `../snapshots`, one per group of commands.
//! `INSTA_UPDATE=always cargo test -p gguf-cli --test integration transcripts` regenerates them; read the difference.

#[cfg(target_os = "linux")]
mod conversation;
mod reading;
pub mod session;
#[cfg(target_os = "linux")]
mod terminal;
mod writing;
