//! Room on the disk, found before the work and not in the middle of it.

use std::fs::File;
use std::io;
use std::path::Path;

use gguf::Error;
use gguf::units::bytes_apart;

use super::unfinished::directory;

/// Refuses work whose outputs are larger than what is free: for outputs that are not all begun
/// before the first is filled. `outputs` are their paths and how many bytes are still to be
/// written of each. What cannot be found out is no reason to refuse.
///
/// # Errors
/// [`Error::Environment`], with how much is needed and how much is free.
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
            return Err(Error::environment("write", path, too_little(needed, free)));
        }
    }
    Ok(())
}

fn too_little(needed: u64, free: u64) -> io::Error {
    let [needed, free] = bytes_apart(needed, free);
    let message = format!("it takes {needed} more on the disk, and {free} are free");
    io::Error::new(io::ErrorKind::StorageFull, message)
}

/// Gives a file its length. Reserves the space of what is added where the file system can, and
/// elsewhere looks whether there is enough.
pub(super) fn set_len(file: &File, path: &Path, len: u64) -> io::Result<()> {
    let added = len.saturating_sub(file.metadata()?.len());
    if added > 0 && !reserve(file, path, len, added)? {
        match free(directory(path)) {
            Some(free) if free < added => return Err(too_little(added, free)),
            _ => {}
        }
    }
    file.set_len(len)
}

/// Reserves the space, or says that this file system has no way to.
#[cfg(target_os = "linux")]
fn reserve(file: &File, path: &Path, len: u64, added: u64) -> io::Result<bool> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::{Errno, retry_on_intr};
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, len)) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(false),
        Err(Errno::NOSPC) => Err(match free(directory(path)) {
            Some(free) if free < added => too_little(added, free),
            _ => Errno::NOSPC.into(),
        }),
        Err(fault) => Err(fault.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(_: &File, _: &Path, _: u64, _: u64) -> io::Result<bool> {
    Ok(false)
}

/// Which file system a target is on, by number.
#[cfg(unix)]
fn device(target: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    Some(directory(target).metadata().ok()?.dev())
}

#[cfg(not(unix))]
fn device(_: &Path) -> Option<u64> {
    None
}

/// Bytes that we may still write to the file system of a directory.
#[cfg(unix)]
fn free(directory: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(directory).ok()?;
    // A part of the disk is for root. And some file systems cannot say how large they are.
    let is_root = rustix::process::geteuid().is_root();
    let blocks = if is_root { found.f_bfree } else { found.f_bavail };
    (found.f_blocks > 0).then(|| blocks.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn free(_: &Path) -> Option<u64> {
    None
}
