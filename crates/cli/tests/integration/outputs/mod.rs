//! Output files under failures: every writing command against refused, failing, partial and interrupted system calls.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod faults;
mod limits;
mod refusals;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tracer;
mod writers;
