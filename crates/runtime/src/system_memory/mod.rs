//! Memory of the machine and of this process, as the system tells it.

#[cfg(not(windows))]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(not(windows))]
pub(crate) use linux::{available, peak, total};
#[cfg(windows)]
pub(crate) use windows::{available, peak, total};
