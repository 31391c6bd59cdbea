//! A hub that takes uploads: it checks digests, refuses wrong ones, and fails when a test wants it to.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gguf_store::digest::{hex, sha256};
use serde_json::{Value, json};
use sha1::{Digest, Sha1};

use crate::server::{Reply, Request, Server};

pub const TOKEN: &str = "hf_secret";

/// Length of a part of a multipart upload; shorter files are sent whole.
pub const PART: usize = 1000;

/// State of the hub and its storage.
#[derive(Default)]
pub struct State {
    /// Whether the repository exists.
    pub exists: bool,
    /// Branches besides `main`.
    pub branches: Vec<String>,
    /// Files by path, and whether they are large.
    pub files: BTreeMap<String, (Vec<u8>, bool)>,
    /// Stored objects by SHA-256.
    pub objects: HashMap<String, Vec<u8>>,
    /// Messages of all commits.
    pub commits: Vec<String>,
    /// Body of the request that created the repository.
    pub created: Option<Value>,
    /// Parts of unfinished uploads, by the number of the upload.
    parts: BTreeMap<usize, BTreeMap<usize, Vec<u8>>>,
    /// Number of addresses that the storage has given for uploads.
    uploads: usize,
    /// Uploads whose addresses have expired.
    pub expired: usize,
    /// Number of parts that the storage takes before it refuses all others.
    pub takes: Option<usize>,
    /// Whether the storage changes a byte of what it takes.
    pub damages: bool,
    /// Statuses of the next commits, instead of what is right.
    pub refusals: Vec<u16>,
    /// Files that another client commits before the next commit.
    pub others: Vec<(String, Vec<u8>)>,
}

impl State {
    fn head(&self) -> String {
        format!("{:040x}", self.commits.len() + 1)
    }
}

pub struct MockHub {
    pub hub: Server,
    pub storage: Server,
    state: Arc<Mutex<State>>,
}

impl MockHub {
    /// Starts a hub with an empty repository `me/repo`.
    pub fn start() -> Self {
        let state = Arc::new(Mutex::new(State { exists: true, ..State::default() }));
        let shared = state.clone();
        let storage = Server::start(move |request| storage(&mut shared.lock().unwrap(), request));
        let (shared, port) = (state.clone(), Arc::new(AtomicU16::new(0)));
        // Another name of the same machine is another host.
        let address = format!("http://localhost:{}", storage.port);
        let own = port.clone();
        let hub = Server::start(move |request| {
            if request.header("Authorization") != Some(&format!("Bearer {TOKEN}"))
                && !request.path.starts_with("/complete/")
            {
                return Reply::status(401)
                    .header("X-Error-Message", "Invalid username or password.");
            }
            let own = format!("http://127.0.0.1:{}", own.load(Ordering::Relaxed));
            hub(&mut shared.lock().unwrap(), request, &address, &own)
        });
        port.store(hub.port, Ordering::Relaxed);
        Self { hub, storage, state }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Returns the paths of all requests to the storage.
    pub fn sent(&self) -> Vec<String> {
        self.storage.requests().into_iter().map(|request| request.path).collect()
    }
}

fn json(value: &Value) -> Reply {
    Reply::whole(value.to_string().as_bytes())
}

fn hub(state: &mut State, request: &Request, storage: &str, own: &str) -> Reply {
    let body = || serde_json::from_slice::<Value>(&request.body).unwrap();
    let path = request.path.as_str();
    if path == "/api/repos/create" {
        if state.exists {
            return Reply::status(409);
        }
        (state.exists, state.created) = (true, Some(body()));
        return json(&json!({ "url": "https://h/me/repo" }));
    }
    if let Some(number) = path.strip_prefix("/complete/") {
        return complete(state, number.parse().unwrap(), &body());
    }
    if !state.exists {
        return Reply::status(404).header("X-Error-Message", "Repository not found");
    }
    let is_branch =
        |name: &str| name == "main" || name.len() == 40 || state.branches.iter().any(|b| b == name);
    match path.trim_start_matches("/api/models/me/repo/").split_once('/') {
        Some(("branch", name)) => {
            let name = name.to_owned();
            state.branches.push(name);
            return json(&json!({}));
        }
        Some(("revision" | "tree" | "preupload" | "commit", revision))
            if !is_branch(revision.split('?').next().unwrap()) =>
        {
            return Reply::status(404).header("X-Error-Message", "Invalid rev id");
        }
        Some(("revision", _)) => return json(&json!({ "sha": state.head() })),
        Some(("tree", _)) => {
            let entry = |(path, (bytes, large)): (&String, &(Vec<u8>, bool))| {
                let mut entry = json!({ "type": "file", "path": path, "size": bytes.len(),
                    "oid": hex(&Sha1::digest([format!("blob {}\0", bytes.len()).as_bytes(), bytes].concat())) });
                if *large {
                    entry["lfs"] = json!({ "oid": sha256(bytes), "size": bytes.len() });
                }
                entry
            };
            return json(&state.files.iter().map(entry).collect::<Vec<_>>().into());
        }
        Some(("preupload", _)) => {
            let modes = |file: &Value| {
                let sample = BASE64_STANDARD.decode(file["sample"].as_str().unwrap()).unwrap();
                let mode = if sample.contains(&0) { "lfs" } else { "regular" };
                let ignored = file["path"].as_str().unwrap().ends_with(".tmp");
                json!({ "path": file["path"], "uploadMode": mode, "shouldIgnore": ignored })
            };
            let files = body()["files"].as_array().unwrap().iter().map(modes).collect::<Vec<_>>();
            return json(&json!({ "files": files }));
        }
        Some(("commit", _)) => return commit(state, request),
        _ => {}
    }
    match path {
        "/me/repo.git/info/lfs/objects/batch" => {
            assert_eq!(request.header("Content-Type"), Some("application/vnd.git-lfs+json"));
            let (mut objects, body) = (Vec::new(), body());
            for object in body["objects"].as_array().unwrap() {
                objects.push(batch(state, object, storage, own));
            }
            json(&json!({ "objects": objects, "transfer": "multipart" }))
        }
        "/verify" => {
            let body = body();
            let found = state.objects.get(body["oid"].as_str().unwrap());
            match found.is_some_and(|bytes| bytes.len() as u64 == body["size"].as_u64().unwrap()) {
                true => json(&json!({})),
                false => Reply::status(404),
            }
        }
        _ => Reply::status(404),
    }
}

/// Names the addresses of an upload.
fn batch(state: &mut State, object: &Value, storage: &str, own: &str) -> Value {
    let (oid, size) = (object["oid"].as_str().unwrap(), object["size"].as_u64().unwrap() as usize);
    if state.objects.contains_key(oid) {
        return json!({ "oid": oid, "size": size });
    }
    let verify = json!({ "href": format!("{own}/verify") });
    if size <= PART {
        let href = format!("{storage}/whole/{oid}?Signature=x");
        return json!({ "oid": oid, "size": size,
            "actions": { "upload": { "href": href }, "verify": verify } });
    }
    state.uploads += 1;
    let number = state.uploads;
    let mut header = json!({ "chunk_size": PART.to_string() });
    for part in 1..=size.div_ceil(PART) {
        header[format!("{part:05}")] = format!("{storage}/part/{number}/{part}?Signature=x").into();
    }
    json!({ "oid": oid, "size": size, "actions": {
        "upload": { "href": format!("{own}/complete/{number}"), "header": header }, "verify": verify } })
}

fn complete(state: &mut State, number: usize, body: &Value) -> Reply {
    let parts = state.parts.remove(&number).unwrap_or_default();
    let named = body["parts"].as_array().unwrap().iter().zip(1..).all(|(part, number)| {
        let tag = parts.get(&number).map(|bytes| format!("\"{}\"", sha256(bytes)));
        part["partNumber"] == number && part["etag"].as_str() == tag.as_deref()
    });
    let bytes: Vec<u8> = parts.into_values().flatten().collect();
    if !named || sha256(&bytes) != body["oid"].as_str().unwrap() {
        return Reply::status(400).body(r#"{"error":"SHA-256 does not match"}"#);
    }
    state.objects.insert(sha256(&bytes), bytes);
    json(&json!({ "success": true }))
}

fn commit(state: &mut State, request: &Request) -> Reply {
    assert_eq!(request.header("Content-Type"), Some("application/x-ndjson"));
    if let Some(status) = state.refusals.pop() {
        return Reply::status(status).header("Retry-After", "0");
    }
    let others = std::mem::take(&mut state.others);
    if !others.is_empty() {
        state.files.extend(others.into_iter().map(|(name, bytes)| (name, (bytes, false))));
        state.commits.push("another client".into());
    }
    let text = String::from_utf8(request.body.clone()).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let header = &lines[0]["value"];
    if header["parentCommit"].as_str().is_some_and(|parent| parent != state.head()) {
        return Reply::status(412).header("X-Error-Message", "A commit has happened since");
    }
    for line in &lines[1..] {
        let value = &line["value"];
        let path = value["path"].as_str().unwrap().to_owned();
        let file = match line["key"].as_str() {
            Some("file") => {
                (BASE64_STANDARD.decode(value["content"].as_str().unwrap()).unwrap(), false)
            }
            Some("lfsFile") => match state.objects.get(value["oid"].as_str().unwrap()) {
                Some(bytes) => (bytes.clone(), true),
                None => return Reply::status(400).header("X-Error-Message", "object missing"),
            },
            other => panic!("{other:?}"),
        };
        state.files.insert(path, file);
    }
    state.commits.push(header["summary"].as_str().unwrap().into());
    json(&json!({ "commitOid": state.head(), "commitUrl": "https://h/c" }))
}

/// The storage takes what fits an address, and never sees the token.
fn storage(state: &mut State, request: &Request) -> Reply {
    assert_eq!((request.method.as_str(), request.header("Authorization")), ("PUT", None));
    let path = request.path.split('?').next().unwrap();
    let mut bytes = request.body.clone();
    if state.damages {
        bytes[0] ^= 1;
    }
    let words: Vec<_> = path.split('/').skip(1).collect();
    match words[..] {
        ["whole", _] => {
            state.objects.insert(sha256(&bytes), bytes);
            Reply::status(200)
        }
        ["part", upload, part] => {
            let (upload, part) = (upload.parse().unwrap(), part.parse().unwrap());
            if upload <= state.expired {
                return Reply::status(403);
            }
            match &mut state.takes {
                Some(0) => return Reply::status(403),
                Some(left) => *left -= 1,
                None => {}
            }
            let tag = format!("\"{}\"", sha256(&bytes));
            state.parts.entry(upload).or_default().insert(part, bytes);
            Reply::status(200).header("ETag", tag)
        }
        _ => Reply::status(404),
    }
}
