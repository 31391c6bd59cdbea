//! Free disk space, checked before the work begins.

use std::fs::File;
use std::io;
use std::path::Path;

use gguf::Error;
use gguf::units::distinct_sizes;

use super::unfinished::directory;
use crate::file_id::FileId;

/// Refuses work whose outputs exceed the free space, for outputs that are filled before all are
/// created. `outputs` are their paths and the number of bytes still to be written. Unknown free
/// space is not an error.
///
/// # Errors
/// [`Error::Environment`] with the required and the free space.
pub fn require_space<'p>(outputs: impl IntoIterator<Item = (&'p Path, u64)>) -> Result<(), Error> {
    let mut needs: Vec<(u64, &Path, u64)> = Vec::new();
    for (path, bytes) in outputs {
        let Some(device) = device(path) else { continue };
        match needs.iter_mut().find(|(other, ..)| *other == device) {
            Some((_, _, needed)) => *needed = needed.saturating_add(bytes),
            None => needs.push((device, path, bytes)),
        }
    }
    for (_, path, needed) in needs {
        if let Some(free) = free(directory(path)).filter(|free| *free < needed) {
            return Err(Error::environment("write", path, not_enough_space(needed, free)));
        }
    }
    Ok(())
}

fn not_enough_space(needed: u64, free: u64) -> io::Error {
    let [needed, free] = distinct_sizes(needed, free);
    let message = format!("{needed} more are required on the disk, and {free} are free");
    io::Error::new(io::ErrorKind::StorageFull, message)
}

/// Sets the length of a file. Reserves the added space where the file system can, and otherwise
/// checks the free space.
pub(super) fn set_len(file: &File, path: &Path, len: u64) -> io::Result<()> {
    let added = len.saturating_sub(file.metadata()?.len());
    if added > 0 && !reserve(file, path, len, added)? {
        match free(directory(path)) {
            Some(free) if free < added => return Err(not_enough_space(added, free)),
            _ => {}
        }
    }
    file.set_len(len)
}

/// Reserves the space; returns `false` if the file system cannot.
#[cfg(target_os = "linux")]
fn reserve(file: &File, path: &Path, len: u64, added: u64) -> io::Result<bool> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::{Errno, retry_on_intr};
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, len)) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(false),
        Err(Errno::NOSPC) => Err(match free(directory(path)) {
            Some(free) if free < added => not_enough_space(added, free),
            _ => Errno::NOSPC.into(),
        }),
        Err(fault) => Err(fault.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(_: &File, _: &Path, _: u64, _: u64) -> io::Result<bool> {
    Ok(false)
}

/// Returns the number of the file system that a target is on.
fn device(target: &Path) -> Option<u64> {
    Some(FileId::at(directory(target)).ok()?.device)
}

/// Returns the number of bytes that this process may still write to the file system of a directory.
#[cfg(unix)]
fn free(directory: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(directory).ok()?;
    // A part of the disk is reserved for root. Some file systems do not report their size.
    let is_root = rustix::process::geteuid().is_root();
    let blocks = if is_root { found.f_bfree } else { found.f_bavail };
    (found.f_blocks > 0).then(|| blocks.saturating_mul(found.f_frsize))
}

/// Returns the number of bytes that this user may still write to the volume of a directory.
#[cfg(windows)]
fn free(directory: &Path) -> Option<u64> {
    fs4::available_space(directory).ok()
}
