//! A file behind a URL, read by ranges.
//!
//! What a server may answer to a request for a range is RFC 9110, sections 13 to 15; what servers
//! do answer is more, and each of those answers is an arm of [`RangeReader::part`].

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gguf_store::FIRST_WINDOW;
use url::Url;

use crate::client::{Answer, Client, Counted, text};
use crate::error::{Error, Fault};
use crate::location::shown;
use crate::retry::retry;
use crate::version::Version;

/// The most that one request asks for: each piece of a large read has tries of its own.
const PIECE: usize = 64 << 20;

/// The most that is read and dropped where a server sends whole files only.
const MOST_SKIPPED: u64 = 64 << 20;

/// A file on a web server. Its first bytes, which came with its length, are kept.
#[derive(Debug)]
pub(crate) struct HttpFile {
    reader: RangeReader,
    version: Version,
    head: Vec<u8>,
    /// Its address, as messages have it.
    name: PathBuf,
}

/// Where the file stands.
#[derive(Debug)]
struct RangeReader {
    client: Arc<Client>,
    url: Url,
    /// Where the last redirect led to. Such addresses are often signed for some minutes only.
    landed: Mutex<Option<Url>>,
    /// The commit of the hub that the file was found in.
    commit: OnceLock<String>,
}

impl HttpFile {
    /// Asks for the first bytes, and so for the length.
    pub fn open(client: Arc<Client>, url: Url) -> Result<Self, Error> {
        let reader = RangeReader { client, url, landed: Mutex::default(), commit: OnceLock::new() };
        let mut head = vec![0; FIRST_WINDOW as usize];
        let (mut done, mut version) = (0, None);
        let opened =
            retry(&reader.client.options, || reader.part(&mut version, &mut head, 0, &mut done));
        let version = opened.and_then(|()| {
            head.truncate(done);
            if head.starts_with(b"version https://git-lfs") {
                return Err(Fault::NotTheFile(
                    "this is a Git LFS pointer, not the file it stands for; on Hugging Face, \
                     write /resolve/ instead of /raw/ in the URL",
                ));
            }
            version.ok_or_else(|| Fault::Answer("it does not say how long the file is".into()))
        });
        match version {
            Ok(version) => {
                let name = shown(&reader.url).into();
                Ok(Self { reader, version, head, name })
            }
            Err(fault) => Err(reader.client.error(&reader.url, fault)),
        }
    }

    /// The commit of the hub that the file was found in, if it is on the hub.
    pub fn commit(&self) -> Option<&str> {
        let commit = self.reader.commit.get().map(String::as_str);
        commit.filter(|commit| commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit()))
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), Fault> {
        let kept = usize::try_from(offset).ok().and_then(|start| self.head.get(start..));
        let kept = kept.unwrap_or_default();
        let kept = &kept[..kept.len().min(buffer.len())];
        let (front, rest) = buffer.split_at_mut(kept.len());
        front.copy_from_slice(kept);
        let mut offset = offset + kept.len() as u64;
        for piece in rest.chunks_mut(PIECE) {
            let (mut done, mut version) = (0, Some(self.version.clone()));
            retry(&self.reader.client.options, || {
                self.reader.part(&mut version, piece, offset, &mut done)
            })?;
            offset += piece.len() as u64;
        }
        Ok(())
    }
}

impl gguf_store::Source for HttpFile {
    /// `None` if the server says nothing by which two versions of the same length could be told
    /// apart: neither a strong ETag nor a date.
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
    /// Fills `buffer` with the bytes from `offset` on, of which the first `done` are there
    /// already, or as much of it as the file has. After a fault, `done` says how far it came.
    ///
    /// `version` is what the file must be; if nothing, what it turns out to be.
    fn part(
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
        // An encoding, such as gzip, would make offsets mean something else.
        let mut headers = vec![("Range", range.as_str()), ("Accept-Encoding", "identity")];
        let condition = version.as_ref().and_then(Version::condition);
        headers.extend(condition.map(|tag| ("If-Range", tag)));
        let Answer { response, digest, .. } =
            self.get(&headers, end - start + start.min(MOST_SKIPPED))?;
        let (parts, body) = response.into_parts();
        let (status, headers) = (parts.status.as_u16(), parts.headers);

        if let Some(encoding) = text(&headers, "Content-Encoding")
            && !encoding.eq_ignore_ascii_case("identity")
        {
            return Err(Fault::Answer("the file is sent in an encoding".into()));
        }
        if text(&headers, "Content-Type").is_some_and(|mime| mime.starts_with("text/html")) {
            return Err(Fault::NotTheFile(
                "the server sends a web page, not a file; use the address of the download \
                 itself (on Hugging Face, /resolve/ instead of /blob/)",
            ));
        }
        let length = text(&headers, "Content-Length").and_then(|n| n.trim().parse::<u64>().ok());
        let content_range = text(&headers, "Content-Range").map(str::trim).unwrap_or_default();
        let total = match status {
            206 => content_range.rsplit_once('/').and_then(|(_, total)| total.parse().ok()),
            // A range of an empty file cannot be satisfied.
            416 if content_range == "bytes */0" => Some(0),
            416 => return Err(Fault::Answer(format!("bytes {start} on are not there"))),
            200 => length,
            _ => return Err(Fault::Answer(format!("HTTP status {status}"))),
        };
        let len = match version {
            Some(known) => {
                known.expect(&headers, total, digest.as_deref())?;
                known.len
            }
            None => {
                let unknown = || Fault::Answer("it does not say how long the file is".into());
                let len = total.ok_or_else(unknown)?;
                *version = Some(Version::of(&headers, len, digest.as_deref()));
                len
            }
        };
        let end = end.min(len);
        if start == end {
            return Ok(());
        }

        let mut body = Counted::new(body, &self.client.transferred);
        let broken = |error: std::io::Error| Fault::Connection(error.to_string());
        if status == 206 {
            let stated = format!("bytes {start}-{}/{len}", end - 1);
            if content_range != stated {
                let got = content_range.escape_debug();
                return Err(Fault::Answer(format!("`{got}` instead of `{stated}`")));
            }
            if length.is_some_and(|length| length != end - start) {
                return Err(Fault::Answer("its length is not that of the range".into()));
            }
        } else if start > MOST_SKIPPED {
            return Err(Fault::NoRanges(start));
        } else {
            let skipped = std::io::copy(&mut body.by_ref().take(start), &mut std::io::sink());
            if skipped.map_err(broken)? < start {
                return Err(Fault::Connection("the body ended early".into()));
            }
        }
        let wanted = (end - offset) as usize;
        while *done < wanted {
            match body.read(&mut buffer[*done..wanted]).map_err(broken)? {
                0 => return Err(Fault::Connection("the body ended early".into())),
                read => *done += read,
            }
        }
        // The end of the body lets the connection be used again.
        if status == 206 && matches!(body.read(&mut [0]), Ok(1..)) {
            return Err(Fault::Answer("it is longer than it says".into()));
        }
        Ok(())
    }

    /// Sends the request to where the last one ended, or else from the start.
    fn get(&self, headers: &[(&str, &str)], bytes: u64) -> Result<Answer, Fault> {
        let landed = || self.landed.lock().unwrap_or_else(PoisonError::into_inner);
        let shortcut = landed().clone();
        let answer = match shortcut.map(|url| self.client.get(&url, headers, bytes)) {
            // A signature that ended is no reason to give up.
            None | Some(Err(Fault::Status { .. })) => self.client.get(&self.url, headers, bytes),
            Some(answer) => answer,
        };
        let answer = answer?;
        if let Some(commit) = &answer.commit {
            // The first one counts: another is another version, whose bytes are refused.
            let _ = self.commit.set(commit.clone());
        }
        *landed() = (answer.url != self.url).then(|| answer.url.clone());
        Ok(answer)
    }
}
