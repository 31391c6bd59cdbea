//! Memory of the machine, as Windows tells it.
#![allow(unsafe_code)]

use std::mem::size_of;

use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

/// Returns the memory of the machine in bytes; `None` if the system does not tell it.
pub(crate) fn total() -> Option<u64> {
    status().map(|status| status.ullTotalPhys)
}

/// Returns the available memory in bytes; `None` if the system does not tell it.
pub(crate) fn available() -> Option<u64> {
    status().map(|status| status.ullAvailPhys)
}

/// Returns the peak memory of this process in bytes; `None` if the system does not tell it.
pub(crate) fn peak() -> Option<u64> {
    let size = size_of::<PROCESS_MEMORY_COUNTERS>() as u32;
    let mut counters = PROCESS_MEMORY_COUNTERS { cb: size, ..Default::default() };
    // SAFETY: the handle of the current process needs no closing, and the function writes at most
    // `size` bytes to the structure.
    let is_known = unsafe { K32GetProcessMemoryInfo(GetCurrentProcess(), &mut counters, size) };
    (is_known != 0).then_some(counters.PeakWorkingSetSize as u64)
}

fn status() -> Option<MEMORYSTATUSEX> {
    let size = size_of::<MEMORYSTATUSEX>() as u32;
    let mut status = MEMORYSTATUSEX { dwLength: size, ..Default::default() };
    // SAFETY: the structure states its own size, as the function requires.
    let is_known = unsafe { GlobalMemoryStatusEx(&mut status) };
    (is_known != 0).then_some(status)
}
