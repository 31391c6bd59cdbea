//! A file behind a URL, read by ranges.
//!
//! What a server may answer to a request for a range is RFC 9110, sections 13 to 15; what servers
//! do answer is more, and each of those answers is an arm of [`Shelf::part`].

use std::io::{ErrorKind, Read};
use std::sync::{Arc, Mutex, PoisonError};

use gguf::FIRST_WINDOW;
use ureq::http::HeaderMap;
use url::Url;

use crate::client::{Client, Counted, text};
use crate::error::{Error, Fault};
use crate::location::shown;
use crate::retry::retry;

/// The most that one request asks for: each piece of a large read has tries of its own.
const PIECE: usize = 64 << 20;

/// The most that is read and dropped where a server sends whole files only.
const MOST_SKIPPED: u64 = 64 << 20;

/// A file on a web server. Its first bytes, which came with its length, are kept.
#[derive(Debug)]
pub(crate) struct HttpFile {
    shelf: Shelf,
    identity: Identity,
    head: Vec<u8>,
}

/// What must not change between two requests for parts of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    len: u64,
    /// Only a strong one: a weak ETag says nothing about bytes.
    etag: Option<String>,
}

/// Where the file stands.
#[derive(Debug)]
struct Shelf {
    client: Arc<Client>,
    url: Url,
    /// Where the last redirect led to. Such addresses are often signed for some minutes only.
    landed: Mutex<Option<Url>>,
}

impl HttpFile {
    /// Asks for the first bytes, and so for the length.
    pub fn open(client: Arc<Client>, url: Url) -> Result<Self, Error> {
        let shelf = Shelf { client, url, landed: Mutex::default() };
        let mut head = vec![0; FIRST_WINDOW as usize];
        let (mut done, mut identity) = (0, None);
        let opened =
            retry(&shelf.client.options, || shelf.part(&mut identity, &mut head, 0, &mut done));
        let identity = opened.and_then(|()| {
            head.truncate(done);
            if head.starts_with(b"version https://git-lfs") {
                return Err(Fault::NotTheFile(
                    "this is a Git LFS pointer, not the file it stands for; on Hugging Face, \
                     write /resolve/ instead of /raw/ in the URL",
                ));
            }
            identity.ok_or_else(|| Fault::Answer("it does not say how long the file is".into()))
        });
        match identity {
            Ok(identity) => Ok(Self { shelf, identity, head }),
            Err(fault) => Err(shelf.client.error(&shelf.url, fault)),
        }
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), Fault> {
        let kept = usize::try_from(offset).ok().and_then(|start| self.head.get(start..));
        let kept = kept.unwrap_or_default();
        let kept = &kept[..kept.len().min(buffer.len())];
        let (front, rest) = buffer.split_at_mut(kept.len());
        front.copy_from_slice(kept);
        let mut offset = offset + kept.len() as u64;
        for piece in rest.chunks_mut(PIECE) {
            let (mut done, mut identity) = (0, Some(self.identity.clone()));
            retry(&self.shelf.client.options, || {
                self.shelf.part(&mut identity, piece, offset, &mut done)
            })?;
            offset += piece.len() as u64;
        }
        Ok(())
    }
}

impl gguf::Source for HttpFile {
    fn byte_len(&self) -> u64 {
        self.identity.len
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
        let fail =
            |source| gguf::Error::environment("read", shown(&self.shelf.url).as_ref(), source);
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.identity.len) {
            return Err(fail(ErrorKind::UnexpectedEof.into()));
        }
        self.read(buffer, offset).map_err(|fault| fail(std::io::Error::other(fault)))
    }
}

impl Shelf {
    /// Fills `buffer` with the bytes from `offset` on, of which the first `done` are there
    /// already, or as much of it as the file has. After a fault, `done` says how far it came.
    ///
    /// `identity` is what the file must be; if nothing, what it turns out to be.
    fn part(
        &self,
        identity: &mut Option<Identity>,
        buffer: &mut [u8],
        offset: u64,
        done: &mut usize,
    ) -> Result<(), Fault> {
        let start = offset + *done as u64;
        let mut end = offset + buffer.len() as u64;
        if let Some(identity) = identity {
            end = end.min(identity.len);
        }
        if start == end {
            return Ok(());
        }
        let range = format!("bytes={start}-{}", end - 1);
        // An encoding, such as gzip, would make offsets mean something else.
        let mut headers = vec![("Range", range.as_str()), ("Accept-Encoding", "identity")];
        let etag = identity.as_ref().and_then(|identity| identity.etag.clone());
        headers.extend(etag.as_deref().map(|etag| ("If-Range", etag)));
        let (status, headers, body) = self.get(&headers, end - start + start.min(MOST_SKIPPED))?;

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
        let etag = text(&headers, "ETag").filter(|etag| etag.starts_with('"'));
        let len = self.identify(identity, total, etag)?;
        let end = end.min(len);
        if start == end {
            return Ok(());
        }

        let mut body = Counted { body: body.into_reader(), transferred: &self.client.transferred };
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
    fn get(
        &self,
        headers: &[(&str, &str)],
        bytes: u64,
    ) -> Result<(u16, HeaderMap, ureq::Body), Fault> {
        let landed = || self.landed.lock().unwrap_or_else(PoisonError::into_inner);
        let shortcut = landed().clone();
        let answer = match shortcut.map(|url| self.client.get(&url, headers, bytes)) {
            // A signature that ended is no reason to give up.
            None | Some(Err(Fault::Status { .. })) => self.client.get(&self.url, headers, bytes),
            Some(answer) => answer,
        };
        let (response, url) = answer?;
        *landed() = (url != self.url).then_some(url);
        let (parts, body) = response.into_parts();
        Ok((parts.status.as_u16(), parts.headers, body))
    }

    /// Compares what an answer says about the file with what is known; returns its length.
    fn identify(
        &self,
        identity: &mut Option<Identity>,
        total: Option<u64>,
        etag: Option<&str>,
    ) -> Result<u64, Fault> {
        match identity {
            Some(known) => {
                let other_etag = etag.zip(known.etag.as_deref()).is_some_and(|(a, b)| a != b);
                // Who sends a body of unknown length has at least not denied it.
                if other_etag || total.is_some_and(|total| total != known.len) {
                    return Err(Fault::Changed);
                }
                Ok(known.len)
            }
            None => {
                let unknown = || Fault::Answer("it does not say how long the file is".into());
                let len = total.ok_or_else(unknown)?;
                *identity = Some(Identity { len, etag: etag.map(Into::into) });
                Ok(len)
            }
        }
    }
}
