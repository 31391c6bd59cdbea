//! `--against`: comparison of a local file with the remote file that it is a copy of, and repair.

use std::path::{Path, PathBuf};

use gguf::{Finding, Severity};
use gguf_remote::{CopyReport, CopyState, Location, RemoteDigest, RemoteOptions, RepairOptions};
use serde_json::{Value, json};

use super::Args;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{listing, terminal};

/// A comparison with a remote file.
pub struct Against {
    /// Path of the compared or repaired file.
    pub file: String,
    report: CopyReport,
    is_repaired: bool,
}

/// Compares a local file with a remote one, and repairs it with `--repair`.
pub fn compare(args: &Args, source: &str, location: &str) -> Result<Against, Failure> {
    let Location::Path(path) = Location::parse(source)? else {
        let what = format!(
            "--against compares a local file with a remote one, but {} is remote",
            gguf_kit::redact(source)
        );
        return Err(Failure::Usage(what));
    };
    let location = Location::parse(location)?;
    let (options, progress) = (RemoteOptions::from_env(), Progress::new());
    if !args.repair {
        let report = gguf_remote::compare(&path, &location, options, &progress)?;
        progress.finish();
        if report.state == CopyState::Equal {
            eprintln!("{} is equal to {}", path.display(), terminal::plain(&report.location));
        }
        return Ok(Against { file: source.to_owned(), report, is_repaired: false });
    }
    let output = args.output.as_ref().map(|output| target(output, &path));
    let overwrite = args.force.protecting([&path]);
    let repair =
        RepairOptions { output: output.clone(), overwrite, accept_other: args.force.is_given() };
    let repaired = gguf_remote::repair(&path, &location, &repair, options, &progress);
    progress.finish();
    let report = repaired.map_err(Failure::from).inspect_err(|failure| {
        if matches!(failure, Failure::Interrupted) && output.is_none() {
            terminal::note(
                "the file keeps the bytes fetched so far: repeat the command to continue",
            );
        }
    })?;
    print(&path, &report);
    let is_written = report.state != CopyState::Equal;
    let file = output.filter(|_| is_written).map_or(source.to_owned(), |output| {
        eprintln!("wrote {}", output.display());
        output.to_string_lossy().into_owned()
    });
    Ok(Against { file, report, is_repaired: true })
}

/// Returns the output file: in a directory, it gets the name of the damaged file.
fn target(output: &Path, path: &Path) -> PathBuf {
    match output.is_dir() {
        true => output.join(path.file_name().unwrap_or_default()),
        false => output.to_owned(),
    }
}

/// Prints what a repair did to standard error.
fn print(path: &Path, report: &CopyReport) {
    let location = terminal::plain(&report.location);
    let (fetched, len) = (listing::bytes(report.transferred), listing::bytes(report.len));
    let removed = removed(report);
    if report.repaired.is_empty() && removed == 0 {
        eprintln!("{} is equal to {location}; nothing to repair", path.display());
    }
    if !report.repaired.is_empty() {
        let ranges = listing::plural(report.repaired.len(), "range");
        eprintln!("repaired {ranges} ({fetched} of {len} fetched)");
    }
    for range in report.repaired.iter().filter(|_| terminal::is_verbose()) {
        let size = listing::bytes(range.end - range.start);
        eprintln!("  bytes {} to {} ({size})", range.start, range.end - 1);
    }
    if removed > 0 {
        eprintln!("removed {} after the end", listing::bytes(removed));
    }
    if report.digest.is_none() {
        terminal::note(format!("{location} states no digest with which the file can be verified"));
    }
}

/// Returns the number of bytes after the end of the remote file.
fn removed(report: &CopyReport) -> u64 {
    report.local_len.saturating_sub(report.len)
}

impl Against {
    /// Returns the finding about a file that is not an equal copy; `strict` treats warnings as errors.
    pub fn finding(&self, strict: bool) -> Option<Finding> {
        let mut finding = self.report.finding().filter(|_| !self.is_repaired)?;
        if strict {
            finding.severity = Severity::Error;
        }
        Some(finding)
    }

    pub fn to_json(&self) -> Value {
        let report = &self.report;
        let equal = match report.state {
            _ if self.is_repaired => Some(true),
            CopyState::Equal => Some(true),
            CopyState::Damaged | CopyState::Other => Some(false),
            CopyState::Unknown => None,
        };
        let range = |range: &std::ops::Range<u64>| json!({ "offset": range.start, "bytes": range.end - range.start });
        json!({
            "location": report.location,
            "sha256": report.digest.as_ref().and_then(RemoteDigest::sha256),
            "equal": equal,
            "repaired": report.repaired.iter().map(range).collect::<Vec<_>>(),
            "removed_bytes": if self.is_repaired { removed(report) } else { 0 },
            "transferred_bytes": report.transferred,
        })
    }
}
