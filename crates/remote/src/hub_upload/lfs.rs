//! Large files: the batch API of Git LFS, with the transfers `basic` and `multipart` of the hub.
//!
//! The hub names an address for each file that its storage lacks: one for the whole file, or one for each part and one
//! that puts the parts together (git-lfs, docs/api/batch.md; huggingface_hub, lfs.py). The addresses are signed and need
//! no token.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::Read;

use gguf_store::{Progress, ReadFile, Source};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::record::Record;
use super::request::Body;
use crate::client::{Client, text};
use crate::error::Fault;
use crate::location::Repository;
use crate::redirect;
use crate::retry::retry;

/// Media type of the API.
const HEADERS: [(&str, &str); 2] =
    [("Accept", "application/vnd.git-lfs+json"), ("Content-Type", "application/vnd.git-lfs+json")];

/// Maximum number of files per request, as in huggingface_hub.
pub(super) const BATCH: usize = 256;

/// Maximum number of parts of a file, as in S3.
const MAX_PARTS: u64 = 10_000;

/// Bytes per read.
const CHUNK: usize = 1 << 20;

/// A file to be stored.
pub(super) struct LargeFile<'f> {
    pub file: &'f ReadFile,
    pub sha256: &'f str,
}

/// Transfer of a file that the storage asks for.
#[derive(Deserialize)]
pub(super) struct Upload {
    oid: String,
    #[serde(default)]
    actions: Option<Actions>,
    #[serde(default)]
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Actions {
    upload: Option<Action>,
    verify: Option<Action>,
}

#[derive(Deserialize)]
struct Action {
    href: String,
    #[serde(default)]
    header: HashMap<String, Value>,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    message: String,
}

/// Asks how the storage takes up to [`BATCH`] files; the answers are in the order of the files.
pub(super) fn batch(
    client: &Client,
    repository: &Repository,
    files: &[LargeFile<'_>],
) -> Result<Vec<Upload>, Fault> {
    #[derive(Deserialize)]
    struct Answer {
        objects: Vec<Upload>,
    }
    let objects: Vec<_> = files
        .iter()
        .map(|large| json!({ "oid": large.sha256, "size": large.file.byte_len() }))
        .collect();
    let request = json!({
        "operation": "upload",
        "transfers": ["basic", "multipart"],
        "objects": objects,
        "hash_algo": "sha256",
        "ref": { "name": repository.revision },
    });
    let mut url = client.endpoint.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        let (owner, name) = repository.name.split_once('/').unwrap_or_default();
        let name = format!("{name}.git");
        path.pop_if_empty().extend([owner, &name, "info", "lfs", "objects", "batch"]);
    }
    let answer: Answer = client.post(&url, &HEADERS, request.to_string().as_bytes(), true)?;
    let mut uploads: HashMap<_, _> =
        answer.objects.into_iter().map(|upload| (upload.oid.clone(), upload)).collect();
    let find = |large: &LargeFile<'_>| match uploads.remove(large.sha256) {
        Some(Upload { error: Some(refusal), .. }) => {
            let said: String = refusal.message.escape_debug().take(200).collect();
            Err(Fault::Response(format!("the hub does not take a file: {said}")))
        }
        Some(upload) => Ok(upload),
        None => {
            Err(Fault::Response("the hub does not name every file that it was asked about".into()))
        }
    };
    files.iter().map(find).collect()
}

impl Upload {
    /// Whether the storage has the file.
    pub fn is_stored(&self) -> bool {
        self.actions.as_ref().is_none_or(|actions| actions.upload.is_none())
    }
}

/// Sends a file to the storage; sends nothing if the storage has it. `record` remembers an interrupted upload.
///
/// # Errors
/// [`gguf::Error::Interrupted`] in the outer result.
pub(super) fn send(
    client: &Client,
    large: &LargeFile<'_>,
    upload: &Upload,
    mut record: Record,
    progress: &dyn Progress,
) -> Result<Result<(), Fault>, gguf::Error> {
    let Some(Actions { upload: Some(action), verify }) = &upload.actions else {
        record.remove();
        return Ok(Ok(()));
    };
    let sending =
        Sending { client, large, progress, interrupted: Cell::new(false), most: Cell::new(0) };
    let sent = match action.header.get("chunk_size") {
        Some(size) => sending.parts(action, size, &mut record),
        None => sending.whole(action),
    };
    if sending.interrupted.get() {
        return Err(gguf::Error::Interrupted);
    }
    let verified = sent.and_then(|()| match verify {
        Some(action) => {
            let body = json!({ "oid": large.sha256, "size": large.file.byte_len() }).to_string();
            let url = sending.address(&action.href)?;
            let headers = [("Content-Type", "application/json")];
            client.post::<Value>(&url, &headers, body.as_bytes(), true).map(drop).map_err(damaged)
        }
        None => Ok(()),
    });
    if verified.is_ok() {
        record.remove();
    }
    Ok(verified)
}

/// An upload in progress.
struct Sending<'s> {
    client: &'s Client,
    large: &'s LargeFile<'s>,
    progress: &'s dyn Progress,
    interrupted: Cell<bool>,
    /// Bytes that `progress` knows of.
    most: Cell<u64>,
}

impl Sending<'_> {
    /// Parses an address that the hub names. It may be on another host, but not on the local network of the user.
    fn address(&self, href: &str) -> Result<Url, Fault> {
        redirect::resolve(&self.client.endpoint, href)
    }

    /// Sends the whole file in one request.
    fn whole(&self, action: &Action) -> Result<(), Fault> {
        let headers: Vec<_> = action
            .header
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
            .collect();
        let url = self.address(&action.href)?;
        self.put(&url, &headers, 0, self.large.file.byte_len()).map(drop)
    }

    /// Sends the parts that `record` lacks, and lets the hub put the parts together.
    fn parts(&self, action: &Action, size: &Value, record: &mut Record) -> Result<(), Fault> {
        let len = self.large.file.byte_len();
        let unusable = || Fault::Response("the hub names parts that do not fit the file".into());
        let size = size.as_u64().or_else(|| size.as_str()?.parse().ok()).filter(|size| *size > 0);
        let size = size.ok_or_else(unusable)?;
        let mut parts: Vec<(u64, &str)> = action
            .header
            .iter()
            .filter_map(|(number, url)| Some((number.parse().ok()?, url.as_str()?)))
            .collect();
        parts.sort_unstable();
        if parts.len() as u64 != len.div_ceil(size) || len.div_ceil(size) > MAX_PARTS {
            return Err(unusable());
        }
        let fresh: Vec<_> = parts.into_iter().map(|(_, url)| url.to_owned()).collect();
        let resumed = record.resume(size, fresh.len());
        if !resumed {
            record.begin(&action.href, size, &fresh);
        }
        match self.send_parts(record) {
            // The addresses of an earlier run are valid for some hours only.
            Err(Fault::Status { .. }) if resumed && !self.interrupted.get() => {
                record.begin(&action.href, size, &fresh);
                self.send_parts(record)
            }
            sent => sent,
        }
    }

    fn send_parts(&self, record: &mut Record) -> Result<(), Fault> {
        let len = self.large.file.byte_len();
        for number in 0..record.parts.len() {
            let start = number as u64 * record.chunk_size;
            let end = len.min(start + record.chunk_size);
            if record.parts[number].etag.is_some() {
                self.report(end);
                continue;
            }
            let url = self.address(&record.parts[number].url)?;
            let sent = self.put(&url, &[], start, end);
            let tag = sent.and_then(|headers| {
                let tag = text(&headers, "ETag").filter(|tag| !tag.is_empty()).map(str::to_owned);
                tag.ok_or_else(|| {
                    Fault::Response("the storage does not name the ETag of a part".into())
                })
            });
            match tag {
                Ok(tag) => record.finish_part(number, tag),
                Err(fault) => {
                    record.save();
                    return Err(fault);
                }
            }
        }
        record.save();
        let parts = record.parts.iter().zip(1..);
        let parts: Vec<_> = parts
            .map(|(part, number)| json!({ "partNumber": number, "etag": part.etag }))
            .collect();
        let body = json!({ "oid": self.large.sha256, "parts": parts }).to_string();
        let url = self.address(&record.complete)?;
        self.client.post::<Value>(&url, &HEADERS, body.as_bytes(), false).map(drop).map_err(damaged)
    }

    /// Puts a range of the file.
    fn put(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        start: u64,
        end: u64,
    ) -> Result<ureq::http::HeaderMap, Fault> {
        let open = || Box::new(RangeBody { sending: self, at: start, end }) as Box<dyn Read + '_>;
        let body = Body { len: end - start, open: &open };
        retry(&self.client.options, || match self.client.put_once(url, headers, &body) {
            // Not to be tried again.
            Err(_) if self.interrupted.get() => Err(Fault::Unreachable("interrupted".into())),
            sent => sent,
        })
    }

    /// Reports that the bytes up to `end` are sent. Bytes that are sent again count once.
    fn report(&self, end: u64) {
        let before = self.most.replace(self.most.get().max(end));
        if self.progress.step(end.saturating_sub(before)).is_err() {
            self.interrupted.set(true);
        }
    }
}

/// A range of the file as the body of a request.
struct RangeBody<'s> {
    sending: &'s Sending<'s>,
    at: u64,
    end: u64,
}

impl Read for RangeBody<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let count = buffer.len().min(left).min(CHUNK);
        let file = self.sending.large.file;
        file.read_at(&mut buffer[..count], self.at).map_err(std::io::Error::other)?;
        self.at += count as u64;
        self.sending.report(self.at);
        match self.sending.interrupted.get() {
            true => Err(std::io::Error::other("interrupted")),
            false => Ok(count),
        }
    }
}

/// Explains why the storage refuses a file at its end: its bytes do not have the announced SHA-256.
fn damaged(fault: Fault) -> Fault {
    match fault {
        Fault::Status { status: status @ (400 | 404 | 409 | 422), hint } => Fault::Status {
            status,
            hint: format!(
                "{hint}; the bytes that arrived are not those of the file: upload it again"
            ),
        },
        other => other,
    }
}
