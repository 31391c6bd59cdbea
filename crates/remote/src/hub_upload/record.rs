//! Record of an interrupted upload: addresses and ETags of the parts of one file.
//!
//! The storage keeps the parts of an upload for some time, and the signed addresses are valid for hours. A later run that
//! finds the record sends only the parts that are missing. The addresses permit writing, so the file is readable by its
//! owner only.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gguf_store::digest::sha256;
use serde::{Deserialize, Serialize};

/// Maximum length of a record.
const MAX_LEN: u64 = 64 << 20;

/// Interval between updates: the maximum work that a crash can lose.
const SAVE_INTERVAL: Duration = Duration::from_secs(3);

/// State of an upload.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    /// File of the record; `None` if uploads are not recorded.
    #[serde(skip)]
    path: Option<PathBuf>,
    #[serde(skip)]
    saved: Option<Instant>,
    /// Length of each part except the last.
    pub chunk_size: u64,
    /// Address that puts the parts together.
    pub complete: String,
    /// Parts in order.
    pub parts: Vec<Part>,
}

/// A part of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Part {
    /// Address that takes it.
    pub url: String,
    /// ETag that the storage named when it took the part.
    pub etag: Option<String>,
}

impl Record {
    /// Names the record of a file in `directory`: `place` is the repository, with its server.
    pub fn new(directory: Option<&PathBuf>, place: &str, digest: &str) -> Self {
        let name = format!("{}.json", &sha256(format!("{place} {digest}").as_bytes())[..32]);
        let path = directory.map(|directory| directory.join(name));
        Self { path, saved: None, chunk_size: 0, complete: String::new(), parts: Vec::new() }
    }

    /// Takes over an earlier record with the same parts; returns whether there is one.
    pub fn resume(&mut self, chunk_size: u64, count: usize) -> bool {
        let Some(path) = &self.path else { return false };
        let is_short = path.metadata().is_ok_and(|status| status.len() <= MAX_LEN);
        let Some(bytes) = is_short.then(|| fs::read(path).ok()).flatten() else { return false };
        match serde_json::from_slice::<Self>(&bytes) {
            Ok(earlier) if (earlier.chunk_size, earlier.parts.len()) == (chunk_size, count) => {
                let path = self.path.take();
                *self = Self { path, saved: Some(Instant::now()), ..earlier };
                true
            }
            _ => false,
        }
    }

    /// Begins an upload.
    pub fn begin(&mut self, complete: &str, chunk_size: u64, urls: &[String]) {
        (self.complete, self.chunk_size) = (complete.to_owned(), chunk_size);
        self.parts = urls.iter().map(|url| Part { url: url.clone(), etag: None }).collect();
        self.saved = Some(Instant::now());
    }

    /// Records the ETag of a part, and saves the record at intervals.
    pub fn finish_part(&mut self, number: usize, etag: String) {
        self.parts[number].etag = Some(etag);
        if self.saved.is_none_or(|saved| saved.elapsed() >= SAVE_INTERVAL) {
            self.save();
        }
    }

    /// Saves the record. Errors are ignored: they cost a later run some work.
    pub fn save(&mut self) {
        self.saved = Some(Instant::now());
        let Some(path) = &self.path else { return };
        let Some(directory) = path.parent() else { return };
        let written = fs::create_dir_all(directory).and_then(|()| {
            // Private to the owner.
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            std::io::Write::write_all(&mut file, &serde_json::to_vec(self)?)?;
            Ok(file.persist(path)?)
        });
        drop(written);
    }

    /// Removes the record of a finished upload.
    pub fn remove(&self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}
