//! A file behind a URL, read with HTTP range requests.
//!
//! RFC 9110, sections 13 to 15, specifies the responses to a range request. [`RangeReader::fetch`]
//! handles these and the deviations of real servers.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gguf::FIRST_READ;
use url::Url;

use crate::client::{Client, CountedBody, FinalResponse, text};
use crate::error::{Error, Fault};
use crate::location::redact_url;
use crate::retry::retry;
use crate::version::Version;

/// Maximum number of bytes per request; each piece of a large read is retried separately.
const PIECE: usize = 64 << 20;

/// Maximum number of bytes to read and discard if the server does not support range requests.
const MAX_SKIPPED: u64 = 64 << 20;

/// A file on a web server. Caches the first bytes, which arrive with the length.
#[derive(Debug)]
pub(crate) struct HttpFile {
    reader: RangeReader,
    version: Version,
    head: Vec<u8>,
    /// URL as redact_url in messages.
    name: PathBuf,
}

/// Sends range requests for one file.
#[derive(Debug)]
struct RangeReader {
    client: Arc<Client>,
    url: Url,
    /// Final URL of the last redirect, often signed and valid for minutes only.
    redirected: Mutex<Option<Url>>,
    /// Commit of the file on the hub.
    commit: OnceLock<String>,
}

impl HttpFile {
    /// Requests the first bytes, which also gives the length.
    pub fn open(client: Arc<Client>, url: Url) -> Result<Self, Error> {
        let reader =
            RangeReader { client, url, redirected: Mutex::default(), commit: OnceLock::new() };
        let mut head = vec![0; FIRST_READ as usize];
        let (mut done, mut version) = (0, None);
        let opened =
            retry(&reader.client.options, || reader.fetch(&mut version, &mut head, 0, &mut done));
        let version = opened.and_then(|()| {
            head.truncate(done);
            if head.starts_with(b"version https://git-lfs") {
                return Err(Fault::NotTheFile(
                    "this is a Git LFS pointer, not the file itself; on Hugging Face, \
                                     use /resolve/ instead of /raw/ in the URL",
                ));
            }
            version
                .ok_or_else(|| Fault::Response("it does not state the length of the file".into()))
        });
        match version {
            Ok(version) => {
                let name = redact_url(&reader.url).into();
                Ok(Self { reader, version, head, name })
            }
            Err(fault) => Err(reader.client.error(&reader.url, fault)),
        }
    }

    /// Returns the commit of the file, if it is on the hub.
    pub fn commit(&self) -> Option<&str> {
        let commit = self.reader.commit.get().map(String::as_str);
        commit.filter(|commit| commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit()))
    }

    /// Returns the ETag of the content without quotes; on the hub, the SHA-256 of a large file.
    pub fn etag(&self) -> Option<&str> {
        self.version.etag()
    }

    /// Returns the ETag that the hub states, without quotes: the SHA-256 of a large file, the Git blob id of a small one.
    /// The ETag of another server, to which the hub may redirect, is not a digest of the file.
    pub fn hub_etag(&self) -> Option<&str> {
        let redirected = self.reader.redirected.lock().unwrap_or_else(PoisonError::into_inner);
        let url = redirected.as_ref().unwrap_or(&self.reader.url);
        self.version.hub_etag(self.reader.client.at_endpoint(url))
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), Fault> {
        let cached = usize::try_from(offset).ok().and_then(|start| self.head.get(start..));
        let cached = cached.unwrap_or_default();
        let cached = &cached[..cached.len().min(buffer.len())];
        let (front, rest) = buffer.split_at_mut(cached.len());
        front.copy_from_slice(cached);
        let mut offset = offset + cached.len() as u64;
        let client = &self.reader.client;
        let _waiting = client.transferred.begin_read();
        for piece in rest.chunks_mut(PIECE) {
            let (mut done, mut version) = (0, Some(self.version.clone()));
            let mut failures = 0;
            retry(&client.options, || {
                let fetched = self.reader.fetch(&mut version, piece, offset, &mut done);
                if let Err(fault) = &fetched {
                    failures += 1;
                    client.transferred.failed(failures, client.options.attempts, fault);
                }
                fetched
            })?;
            offset += piece.len() as u64;
        }
        Ok(())
    }
}

impl gguf_store::Source for HttpFile {
    /// Returns `None` if the server sends neither a strong ETag nor a date, so that two versions of
    /// the same length cannot be distinguished.
    fn identity(&self) -> Option<String> {
        self.version.identity(&self.reader.url)
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.name)
    }

    fn byte_len(&self) -> u64 {
        self.version.len
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
        let fail = |source| gguf::Error::read(&self.name, source);
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.version.len) {
            return Err(fail(ErrorKind::UnexpectedEof.into()));
        }
        self.read(buffer, offset).map_err(|fault| fail(std::io::Error::other(fault)))
    }
}

impl RangeReader {
    /// Fills `buffer` with the bytes from `offset` on, up to the end of the file. The first `done`
    /// bytes are already present; after an error, `done` is the number of bytes present.
    ///
    /// `version` is the expected version of the file; if `None`, it is set from the response.
    fn fetch(
        &self,
        version: &mut Option<Version>,
        buffer: &mut [u8],
        offset: u64,
        done: &mut usize,
    ) -> Result<(), Fault> {
        let start = offset + *done as u64;
        let mut end = offset + buffer.len() as u64;
        if let Some(version) = version {
            end = end.min(version.len);
        }
        if start == end {
            return Ok(());
        }
        let range = format!("bytes={start}-{}", end - 1);
        // A content encoding such as gzip would change the meaning of offsets.
        let mut headers = vec![("Range", range.as_str()), ("Accept-Encoding", "identity")];
        let condition = version.as_ref().and_then(Version::condition);
        headers.extend(condition.map(|tag| ("If-Range", tag)));
        let FinalResponse { response, digest, .. } =
            self.get(&headers, end - start + start.min(MAX_SKIPPED))?;
        let (parts, body) = response.into_parts();
        let (status, headers) = (parts.status.as_u16(), parts.headers);

        if let Some(encoding) = text(&headers, "Content-Encoding")
            && !encoding.eq_ignore_ascii_case("identity")
        {
            return Err(Fault::Response("the file is sent with a content encoding".into()));
        }
        if text(&headers, "Content-Type").is_some_and(|mime| mime.starts_with("text/html")) {
            return Err(Fault::NotTheFile(
                "the server sends a web page, not a file; use the download URL \
                                 (on Hugging Face, /resolve/ instead of /blob/)",
            ));
        }
        let length = text(&headers, "Content-Length").and_then(|n| n.trim().parse::<u64>().ok());
        let content_range = text(&headers, "Content-Range").map(str::trim).unwrap_or_default();
        let total = match status {
            206 => content_range.rsplit_once('/').and_then(|(_, total)| total.parse().ok()),
            // A range of an empty file is not satisfiable.
            416 if content_range == "bytes */0" => Some(0),
            416 => return Err(Fault::Response(format!("the file has no bytes from {start} on"))),
            200 => length,
            _ => return Err(Fault::Response(format!("HTTP status {status}"))),
        };
        let len = match version {
            Some(known) => {
                known.check(&headers, total, digest.as_deref())?;
                known.len
            }
            None => {
                let unknown = || Fault::Response("it does not state the length of the file".into());
                let len = total.ok_or_else(unknown)?;
                *version = Some(Version::from_headers(&headers, len, digest.as_deref()));
                len
            }
        };
        let end = end.min(len);
        if start == end {
            return Ok(());
        }

        let mut body = CountedBody::new(body, &self.client.transferred);
        let broken = |error: std::io::Error| Fault::Connection(error.to_string());
        if status == 206 {
            let stated = format!("bytes {start}-{}/{len}", end - 1);
            if content_range != stated {
                let got = content_range.escape_debug();
                return Err(Fault::Response(format!("`{got}` instead of `{stated}`")));
            }
            if length.is_some_and(|length| length != end - start) {
                return Err(Fault::Response("its length differs from that of the range".into()));
            }
        } else if start > MAX_SKIPPED {
            return Err(Fault::NoRanges(start));
        } else {
            let skipped = std::io::copy(&mut body.by_ref().take(start), &mut std::io::sink());
            if skipped.map_err(broken)? < start {
                return Err(Fault::Connection("the body ended early".into()));
            }
        }
        let requested = (end - offset) as usize;
        while *done < requested {
            match body.read(&mut buffer[*done..requested]).map_err(broken)? {
                0 => return Err(Fault::Connection("the body ended early".into())),
                read => *done += read,
            }
        }
        // Reading to the end of the body lets the connection be reused.
        if status == 206 && matches!(body.read(&mut [0]), Ok(1..)) {
            return Err(Fault::Response("it is longer than stated".into()));
        }
        Ok(())
    }

    /// Sends the request to the final URL of the last redirect, or else to the original URL.
    fn get(&self, headers: &[(&str, &str)], bytes: u64) -> Result<FinalResponse, Fault> {
        let redirected = || self.redirected.lock().unwrap_or_else(PoisonError::into_inner);
        let shortcut = redirected().clone();
        let response = match shortcut.map(|url| self.client.get(&url, headers, bytes)) {
            // The signature of the URL may have expired: ask for a new redirect.
            None | Some(Err(Fault::Status { .. })) => self.client.get(&self.url, headers, bytes),
            Some(response) => response,
        };
        let response = response?;
        if let Some(commit) = &response.commit {
            // The first commit counts: another commit is another version, which is rejected.
            let _ = self.commit.set(commit.clone());
        }
        *redirected() = (response.url != self.url).then(|| response.url.clone());
        Ok(response)
    }
}
