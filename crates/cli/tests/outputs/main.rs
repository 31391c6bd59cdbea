//! Files are precious: what every writing command does to those that are there, whatever happens.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod faults;
mod limits;
mod refusals;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tracer;
#[path = "../whisper/mod.rs"]
mod whisper;
mod writers;
