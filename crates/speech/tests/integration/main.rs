//! Integration tests of gguf-speech.

mod audio;
