//! A branch of a repository, and commits to it.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gguf_store::digest::hex;
use gguf_store::{Existing, ReadFile, Source};
use serde::Deserialize;
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::Digest;
use url::Url;

use super::request::NO_TOKEN;
use super::{MAX_REGULAR, Visibility, exists, failed};
use crate::client::Client;
use crate::error::{Error, Fault};
use crate::hub::{self, Entry};
use crate::location::Repository;
use crate::retry::pause;

/// Bytes at the start of a file that the hub looks at.
const SAMPLE: u64 = 512;

/// Files per request about upload modes, as in huggingface_hub.
const MODES_BATCH: usize = 256;

/// Maximum bytes of the text files of a commit, which are sent in one request.
const MAX_REGULAR_TOTAL: u64 = 100 << 20;

/// Maximum number of attempts to commit while other commits move the branch.
const MAX_ATTEMPTS: u32 = 5;

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

/// A file to be added.
pub(super) struct Addition<'f> {
    /// Path in the repository.
    pub name: &'f str,
    pub file: &'f ReadFile,
    pub sha256: String,
    /// Id as a git blob, of files that are small enough.
    blob: Option<String>,
}

impl<'f> Addition<'f> {
    /// Reads a small file for its id.
    pub fn new(name: &'f str, file: &'f ReadFile, sha256: String) -> Result<Self, gguf::Error> {
        let mut addition = Self { name, file, sha256, blob: None };
        if file.byte_len() <= MAX_REGULAR {
            let mut hasher = Sha1::new();
            hasher.update(format!("blob {}\0", file.byte_len()));
            hasher.update(addition.start(file.byte_len())?);
            addition.blob = Some(hex(&hasher.finalize()));
        }
        Ok(addition)
    }

    /// Reads up to `count` bytes at the start.
    fn start(&self, count: u64) -> Result<Vec<u8>, gguf::Error> {
        let mut bytes = vec![0; self.file.byte_len().min(count) as usize];
        self.file.read_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    fn is_same(&self, entry: &Entry) -> bool {
        match &entry.lfs {
            Some(large) => large.oid == self.sha256,
            None => self.blob.as_ref() == Some(&entry.oid),
        }
    }
}

/// Form of a file that the hub asks for.
pub(super) struct Mode {
    /// Whether it goes to the storage of large files.
    pub is_large: bool,
    /// Whether the repository excludes it.
    pub is_ignored: bool,
}

/// A branch and its files.
pub(super) struct Branch {
    pub client: Arc<Client>,
    pub repository: Repository,
    /// Commit whose files are `entries`; `None` if there is no commit yet.
    head: Option<String>,
    /// Files by path.
    pub entries: HashMap<String, Entry>,
}

impl Branch {
    /// Lists a branch, and creates it or its repository first if `create` says so.
    pub fn open(
        client: Arc<Client>,
        repository: &Repository,
        create: Option<Visibility>,
    ) -> Result<Self, gguf::Error> {
        if client.options.hf_token.is_none() {
            let what = format!("no token for {} is set", redacted(&client));
            return Err(gguf::Error::request("token-missing", what, NO_TOKEN));
        }
        let repository = Repository { file: None, ..repository.clone() };
        let mut branch = Self { client, repository, head: None, entries: HashMap::new() };
        match (branch.refresh(), create) {
            (Err(Fault::Status { status: 404, .. }), Some(visibility)) => {
                branch.create(visibility).and_then(|()| branch.refresh())
            }
            (listed, _) => listed,
        }
        .map_err(|fault| branch.failed(fault))?;
        Ok(branch)
    }

    pub fn failed(&self, fault: Fault) -> gguf::Error {
        failed(&self.repository, fault)
    }

    fn url<'s>(&'s self, rest: impl IntoIterator<Item = &'s str>) -> Url {
        hub::api_url(&self.client, &self.repository.name, rest)
    }

    /// Creates the repository, and the branch unless it is the main one.
    fn create(&self, visibility: Visibility) -> Result<(), Fault> {
        let exists = |fault: &Fault| matches!(fault, Fault::Status { status: 409, .. });
        let allowed = |created: Result<Value, Fault>| match created {
            Err(fault) if !exists(&fault) => Err(fault),
            _ => Ok(()),
        };
        let (organization, name) = self.repository.name.split_once('/').unwrap_or_default();
        let mut request = json!({ "name": name, "organization": organization, "type": "model" });
        if visibility == Visibility::Private {
            request["visibility"] = "private".into();
        }
        let mut url = self.client.endpoint.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["api", "repos", "create"]);
        }
        allowed(self.client.post(&url, &JSON, request.to_string().as_bytes(), true))?;
        if self.repository.revision != "main" {
            let url = self.url(["branch", &self.repository.revision]);
            allowed(self.client.post(&url, &JSON, b"{}", true))?;
        }
        Ok(())
    }

    /// Lists the files at the present commit of the branch.
    fn refresh(&mut self) -> Result<(), Fault> {
        let url = self.url(["revision", &self.repository.revision]);
        let info: Info = self.client.get_json(&url)?;
        let commit =
            info.sha.filter(|sha| sha.len() == 40 && sha.bytes().all(|b| b.is_ascii_hexdigit()));
        let revision = commit.as_deref().unwrap_or(&self.repository.revision);
        let entries = hub::entries(&self.client, &self.repository.name, revision);
        let entries = entries.map_err(|error| match error {
            Error::Remote { fault, .. } => fault,
            other => Fault::Response(other.to_string()),
        })?;
        self.entries = entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect();
        self.head = commit;
        Ok(())
    }

    /// Returns the address of the page of a commit.
    pub fn commit_url(&self, commit: &str) -> String {
        let mut url = self.client.endpoint.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(self.repository.name.split('/')).extend(["commit", commit]);
        }
        url.into()
    }

    /// Whether the branch has a file with these bytes.
    pub fn has(&self, addition: &Addition<'_>) -> bool {
        self.entries.get(addition.name).is_some_and(|entry| addition.is_same(entry))
    }

    /// Fails if a file must not be replaced.
    pub fn compare(
        &self,
        additions: &[Addition<'_>],
        existing: Existing,
    ) -> Result<(), gguf::Error> {
        let differs = |addition: &&Addition<'_>| {
            self.entries.contains_key(addition.name) && !self.has(addition)
        };
        match additions.iter().find(differs) {
            Some(addition) if existing == Existing::Refuse => {
                Err(exists(&self.repository, addition.name))
            }
            _ => Ok(()),
        }
    }

    /// Asks how the hub wants the files.
    pub fn modes(&self, additions: &[&Addition<'_>]) -> Result<HashMap<String, Mode>, gguf::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct File {
            path: String,
            upload_mode: String,
            #[serde(default)]
            should_ignore: bool,
        }
        #[derive(Deserialize)]
        struct Answer {
            files: Vec<File>,
        }
        let url = self.url(["preupload", &self.repository.revision]);
        let mut modes = HashMap::new();
        for batch in additions.chunks(MODES_BATCH) {
            let file = |addition: &&Addition<'_>| {
                let sample = BASE64_STANDARD.encode(addition.start(SAMPLE)?);
                let (path, size) = (addition.name, addition.file.byte_len());
                Ok(json!({ "path": path, "sample": sample, "size": size }))
            };
            let files: Vec<_> = batch.iter().map(file).collect::<Result<_, gguf::Error>>()?;
            let request = json!({ "files": files }).to_string();
            let answer = self.client.post(&url, &JSON, request.as_bytes(), true);
            let answer: Answer = answer.map_err(|fault| self.failed(fault))?;
            modes.extend(answer.files.into_iter().map(|file| {
                let mode =
                    Mode { is_large: file.upload_mode == "lfs", is_ignored: file.should_ignore };
                (file.path, mode)
            }));
        }
        Ok(modes)
    }

    /// Commits the additions at the indices `left`; returns the new commit, or `None` if there is nothing to commit.
    pub fn commit(
        &mut self,
        additions: &[Addition<'_>],
        left: &[usize],
        is_large: &[bool],
        message: &str,
        existing: Existing,
    ) -> Result<Option<String>, gguf::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Answer {
            commit_oid: String,
        }
        if left.is_empty() {
            return Ok(None);
        }
        let files = lines(additions, left, is_large)?;
        let headers = [("Content-Type", "application/x-ndjson")];
        let mut attempt = 1;
        loop {
            let mut header = json!({ "summary": message, "description": "" });
            if let Some(head) = &self.head {
                header["parentCommit"] = head.as_str().into();
            }
            let header = json!({ "key": "header", "value": header });
            let url = self.url(["commit", &self.repository.revision]);
            let text = format!("{header}\n{files}");
            let fault = match self.client.post_once(&url, &headers, text.as_bytes(), true) {
                Ok(Answer { commit_oid }) => return Ok(Some(commit_oid)),
                Err(fault) => fault,
            };
            let moved = matches!(fault, Fault::Status { status: 409 | 412, .. });
            if attempt == MAX_ATTEMPTS || !(moved || fault.is_transient()) {
                return Err(self.failed(fault));
            }
            pause(&self.client.options, attempt, fault).map_err(|fault| self.failed(fault))?;
            attempt += 1;
            // Whether the commit was made, and what another one changed, is seen in the branch.
            self.refresh().map_err(|fault| self.failed(fault))?;
            if left.iter().all(|i| self.has(&additions[*i])) {
                return Ok(self.head.clone());
            }
            self.compare(additions, existing)?;
        }
    }
}

#[derive(Deserialize)]
struct Info {
    sha: Option<String>,
}

/// Returns the lines of a commit: text files with their bytes, large files by their digest.
fn lines(
    additions: &[Addition<'_>],
    left: &[usize],
    is_large: &[bool],
) -> Result<String, gguf::Error> {
    let (mut lines, mut total) = (String::new(), 0);
    for i in left {
        let (addition, len) = (&additions[*i], additions[*i].file.byte_len());
        let line = if is_large[*i] {
            json!({ "key": "lfsFile", "value": {
                "path": addition.name, "algo": "sha256", "oid": addition.sha256, "size": len,
            }})
        } else {
            total += len;
            if total > MAX_REGULAR_TOTAL {
                let what = "the text files have more than 100 MiB together";
                let help = "upload them in several runs";
                return Err(gguf::Error::request("upload-refused", what, help));
            }
            let content = BASE64_STANDARD.encode(addition.start(len)?);
            json!({ "key": "file", "value": {
                "content": content, "path": addition.name, "encoding": "base64",
            }})
        };
        lines += &line.to_string();
        lines.push('\n');
    }
    Ok(lines)
}

/// Returns the host of the hub, for messages.
fn redacted(client: &Client) -> &str {
    client.endpoint.host_str().unwrap_or("the hub")
}
