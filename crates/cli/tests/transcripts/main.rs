//! What commands print for people, whole: `tests/snapshots` has a transcript for each group of commands, so
//! that a change of words is seen in review. `INSTA_UPDATE=always cargo test -p gguf-cli --test
//! transcripts` writes them anew; read the difference.

mod look;
mod make;
#[cfg(target_os = "linux")]
mod narrow;
mod session;
