//! Repair of a damaged or unfinished copy of a remote file: only damaged ranges are fetched, where they can be known.
//!
//! The server states the SHA-256 of the whole file, not of its parts. So what is most likely damaged is fetched first, and
//! the digest decides whether more is needed: the missing end, then runs of zeros, which unfinished downloads leave, then
//! all blocks.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use gguf_store::digest::hex;
use gguf_store::{AtomicFile, Overwrite, Progress, Source};
use sha2::{Digest, Sha256};

use crate::client::Client;
use crate::error::Error;
use crate::http::HttpFile;
use crate::hub;
use crate::location::{Location, Repository};
use crate::options::RemoteOptions;
use crate::select::select;

/// Bytes per request and per read.
const BLOCK: u64 = 8 << 20;

/// Minimum length of a run of zeros that may be a hole: file systems and download programs leave whole pages.
const HOLE: u64 = 4096;

impl RepairReport {
    /// Whether a comparison is certain: the server states a digest, or the lengths differ.
    pub fn is_certain(&self) -> bool {
        self.sha256.is_some() || self.len != self.local_len
    }
}

/// Where a repaired file goes.
#[derive(Clone, Copy)]
pub enum RepairTo<'p> {
    /// Nowhere: the file is only compared.
    Nowhere,
    /// To another file, or over the damaged one, when it is complete.
    File(&'p Path, &'p Overwrite),
    /// Into the damaged file.
    InPlace,
}

/// Result of a comparison or repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairReport {
    /// Location of the remote file.
    pub location: String,
    /// Whether the local file was equal.
    pub was_equal: bool,
    /// SHA-256 that the server states.
    pub sha256: Option<String>,
    /// Length of the remote file in bytes.
    pub len: u64,
    /// Length of the local file in bytes, before a repair.
    pub local_len: u64,
    /// Ranges whose bytes were wrong or missing, as far as a repair fetched them.
    pub repaired: Vec<Range<u64>>,
    /// Bytes transferred.
    pub transferred: u64,
}

/// Compares a local file with a remote one, and repairs it.
///
/// `location` is a file on the hub or a web server; a repository without a file means the file of the same name in it.
///
/// # Errors
/// Errors of the server and the disk; `download-damaged` if the repaired file does not have the stated digest.
pub fn repair(
    path: &Path,
    location: &Location,
    to: RepairTo<'_>,
    options: RemoteOptions,
    progress: &dyn Progress,
) -> Result<RepairReport, Error> {
    let client = Arc::new(Client::new(options)?);
    let (url, location) = match location {
        Location::Http(url) => (url.clone(), crate::location::redact_url(url)),
        Location::Hub(repository) => {
            let file = find(&client, repository, path)?;
            let url = hub::file_url(&client, &repository.name, &repository.revision, &file);
            (url, Repository { file: Some(file), ..repository.clone() }.to_string())
        }
        _ => {
            let what = "a file is repaired from the Hub or a web server only";
            let help = "name hf:org/repo or an https:// address";
            return Err(gguf::Error::request("request-invalid", what, help).into());
        }
    };
    let remote = HttpFile::open(client.clone(), url.clone())?;
    let is_digest = |tag: &&str| tag.len() == 64 && tag.bytes().all(|byte| byte.is_ascii_hexdigit());
    let sha256 = remote.etag().filter(is_digest).map(str::to_lowercase);
    let len = remote.byte_len();
    let local = File::open(path).map_err(|fault| gguf::Error::environment("open", path, fault))?;
    let local_len = local.metadata().map_err(|fault| gguf::Error::read(path, fault))?.len();
    let copy = Copy { path, to: Target::Local(&local) };
    let (digest, holes) = copy.scan(local_len.min(len), progress)?;
    let was_equal = local_len == len && sha256.as_ref() == Some(&digest);
    let mut report = RepairReport {
        location,
        was_equal,
        sha256,
        len,
        local_len,
        repaired: Vec::new(),
        transferred: 0,
    };
    let unfinished = match to {
        RepairTo::Nowhere => None,
        _ if was_equal => None,
        RepairTo::InPlace => {
            drop(local);
            let file = File::options().read(true).write(true).open(path);
            let file = file.map_err(|fault| gguf::Error::environment("write", path, fault))?;
            file.set_len(len).map_err(|fault| gguf::Error::environment("write", path, fault))?;
            let copy = Copy { path, to: Target::Local(&file) };
            copy.repair(&remote, &holes, &mut report, progress)?;
            file.sync_all().map_err(|fault| gguf::Error::environment("write", path, fault))?;
            None
        }
        RepairTo::File(target, overwrite) => {
            let output = AtomicFile::create(target, overwrite)?;
            output.set_len(len)?;
            let source = Copy { path, to: Target::Local(&local) };
            progress.begin("copying", local_len.min(len));
            source.blocks(0..local_len.min(len), progress, |bytes, at| output.write_at(bytes, at))?;
            let copy = Copy { path: target, to: Target::Output(&output) };
            copy.repair(&remote, &holes, &mut report, progress)?;
            Some(output)
        }
    };
    report.transferred = client.transferred.bytes();
    if let Some(output) = unfinished {
        output.commit()?;
    }
    Ok(report)
}

/// Returns the path in a repository: that of the location, the only one with the name of the local file, or the only model.
fn find(client: &Client, repository: &Repository, path: &Path) -> Result<String, Error> {
    if repository.file.is_some() {
        return hub::find(client, repository);
    }
    let names = hub::list(client, repository)?;
    let own = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let same: Vec<_> = names.iter().filter(|name| name.rsplit('/').next() == Some(own)).collect();
    match same[..] {
        [only] => Ok(only.clone()),
        _ => select(format!("hf:{}@{}", repository.name, repository.revision), names, ""),
    }
}

/// A local copy of the remote file.
struct Copy<'c> {
    path: &'c Path,
    to: Target<'c>,
}

enum Target<'t> {
    Local(&'t File),
    Output(&'t AtomicFile),
}

impl Copy<'_> {
    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
        let failed = |fault| gguf::Error::read(self.path, fault);
        match &self.to {
            Target::Local(file) => {
                let mut file = *file;
                file.seek(SeekFrom::Start(offset)).map_err(failed)?;
                file.read_exact(buffer).map_err(failed)
            }
            Target::Output(output) => match output.read_at(buffer, offset)? == buffer.len() {
                true => Ok(()),
                false => Err(failed(std::io::ErrorKind::UnexpectedEof.into())),
            },
        }
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<(), gguf::Error> {
        let failed = |fault| gguf::Error::environment("write", self.path, fault);
        match &self.to {
            Target::Local(file) => {
                let mut file = *file;
                file.seek(SeekFrom::Start(offset)).map_err(failed)?;
                file.write_all(bytes).map_err(failed)
            }
            Target::Output(output) => output.write_at(bytes, offset),
        }
    }

    /// Reads a range in blocks.
    fn blocks(
        &self,
        range: Range<u64>,
        progress: &dyn Progress,
        mut each: impl FnMut(&[u8], u64) -> Result<(), gguf::Error>,
    ) -> Result<(), gguf::Error> {
        let mut buffer = Vec::new();
        for start in range.clone().step_by(BLOCK as usize) {
            buffer.resize(BLOCK.min(range.end - start) as usize, 0);
            self.read(&mut buffer, start)?;
            each(&buffer, start)?;
            progress.step(buffer.len() as u64)?;
        }
        Ok(())
    }

    /// Returns the SHA-256 of the first `len` bytes, and the runs of zeros of at least [`HOLE`] bytes at multiples of it.
    fn scan(
        &self,
        len: u64,
        progress: &dyn Progress,
    ) -> Result<(String, Vec<Range<u64>>), gguf::Error> {
        progress.begin("hashing", len);
        let (mut hasher, mut holes) = (Sha256::new(), Vec::<Range<u64>>::new());
        self.blocks(0..len, progress, |bytes, start| {
            hasher.update(bytes);
            for (page, offset) in bytes.chunks(HOLE as usize).zip((start..).step_by(HOLE as usize)) {
                if page.len() as u64 == HOLE && page.iter().all(|byte| *byte == 0) {
                    match holes.last_mut() {
                        Some(last) if last.end == offset => last.end += HOLE,
                        _ => holes.push(offset..offset + HOLE),
                    }
                }
            }
            Ok(())
        })?;
        Ok((hex(&hasher.finalize()), holes))
    }

    /// Fetches what is missing or wrong until the digest is right.
    fn repair(
        &self,
        remote: &HttpFile,
        holes: &[Range<u64>],
        report: &mut RepairReport,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let (len, missing) = (report.len, report.local_len.min(report.len)..report.len);
        let is_whole = |report: &RepairReport| -> Result<bool, gguf::Error> {
            let Some(expected) = &report.sha256 else { return Ok(false) };
            Ok(self.scan(len, progress)?.0 == *expected)
        };
        if !missing.is_empty() {
            self.fetch(remote, std::slice::from_ref(&missing), true, report, progress)?;
            if is_whole(report)? {
                return Ok(());
            }
        }
        if report.sha256.is_some() && !holes.is_empty() {
            self.fetch(remote, holes, false, report, progress)?;
            if is_whole(report)? {
                return Ok(());
            }
        }
        let rest = 0..missing.start;
        self.fetch(remote, std::slice::from_ref(&rest), false, report, progress)?;
        if report.sha256.is_some() && !is_whole(report)? {
            let what = "the repaired file does not have the SHA-256 that the server states";
            return Err(gguf::Error::request("download-damaged", what, "download it again").into());
        }
        Ok(())
    }

    /// Fetches ranges, and writes the blocks that differ or, with `all`, every block.
    fn fetch(
        &self,
        remote: &HttpFile,
        ranges: &[Range<u64>],
        all: bool,
        report: &mut RepairReport,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let total = ranges.iter().map(|range| range.end - range.start).sum();
        progress.begin("fetching", total);
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for range in ranges {
            for start in range.clone().step_by(BLOCK as usize) {
                let count = BLOCK.min(range.end - start) as usize;
                theirs.resize(count, 0);
                ours.resize(count, 0);
                remote.read_at(&mut theirs, start)?;
                self.read(&mut ours, start)?;
                if all || theirs != ours {
                    self.write(&theirs, start)?;
                    let end = start + count as u64;
                    match report.repaired.last_mut() {
                        Some(last) if last.end == start => last.end = end,
                        _ => report.repaired.push(start..end),
                    }
                }
                progress.step(count as u64)?;
            }
        }
        Ok(())
    }
}
