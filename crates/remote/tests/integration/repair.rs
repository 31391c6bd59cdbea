//! Damaged and unfinished copies of remote files.

use std::fs;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use gguf_remote::{
    CopyReport, CopyState, Error, HfToken, Location, RemoteDigest, RemoteOptions, RepairOptions,
    compare, repair,
};
use gguf_store::digest::{hex, sha256};
use gguf_store::{Existing, LocalFile, Overwrite, Progress};
use sha1::{Digest, Sha1};

use crate::server::{Reply, Server};

const MIB: usize = 1 << 20;

/// Bytes that the first request transfers.
const HEAD: u64 = 256 << 10;

/// Bytes of the samples, the first of which is in the head.
const SAMPLES: u64 = 7 * 4096;

/// Returns a file without zeros.
fn file(len: usize, seed: u32) -> Vec<u8> {
    let byte = |i: u32| (i.wrapping_add(seed).wrapping_mul(2_654_435_761) >> 13) as u8 | 1;
    (0..len as u32).map(byte).collect()
}

/// A hub whose repositories have one file, `m.gguf`, with this ETag.
fn hub(content: Vec<u8>, etag: Option<String>) -> Server {
    Server::start(move |request| {
        if request.path.starts_with("/api/") {
            return Reply::whole(br#"[{"type":"file","path":"m.gguf"}]"#);
        }
        let reply = Reply::range(request, &content);
        match &etag {
            Some(etag) => reply.header("ETag", format!("\"{etag}\"")),
            None => reply,
        }
    })
}

/// A hub that states the SHA-256 of the file.
fn honest(content: &[u8]) -> Server {
    hub(content.to_vec(), Some(sha256(content)))
}

struct Local {
    dir: tempfile::TempDir,
    path: PathBuf,
}

impl Local {
    fn new(content: &[u8]) -> Self {
        Self::named("m.gguf", content)
    }

    fn named(name: &str, content: &[u8]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        Self { dir, path }
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    fn compare(&self, hub: &Server) -> CopyReport {
        compare(&self.path, &location("hf:org/repo"), options(hub), &()).unwrap()
    }

    fn repair(&self, hub: &Server, how: &RepairOptions) -> Result<CopyReport, Error> {
        repair(&self.path, &location("hf:org/repo"), how, options(hub), &())
    }

    /// Repairs in place, and checks the content.
    #[track_caller]
    fn becomes(&self, content: &[u8], hub: &Server) -> CopyReport {
        let report = self.repair(hub, &RepairOptions::default()).unwrap();
        assert!(self.bytes() == content);
        assert_eq!(fs::read_dir(self.dir.path()).unwrap().count(), 1);
        report
    }
}

/// Returns a list of one range.
fn only(range: Range<u64>) -> Vec<Range<u64>> {
    vec![range]
}

fn location(word: &str) -> Location {
    Location::parse(word).unwrap()
}

fn options(hub: &Server) -> RemoteOptions {
    RemoteOptions { hf_endpoint: hub.url(""), attempts: 1, ..RemoteOptions::default() }
}

fn code(result: Result<CopyReport, Error>) -> &'static str {
    gguf::Error::from(result.unwrap_err()).code()
}

#[test]
fn equal_files_transfer_the_head_only() {
    let content = file(MIB, 0);
    let (hub, local) = (honest(&content), Local::new(&content));
    let expected = CopyReport {
        location: "hf:org/repo:m.gguf".into(),
        state: CopyState::Equal,
        digest: Some(RemoteDigest::Sha256(sha256(&content))),
        local_digest: Some(RemoteDigest::Sha256(sha256(&content))),
        len: MIB as u64,
        local_len: MIB as u64,
        repaired: Vec::new(),
        transferred: HEAD + listing(),
    };
    assert_eq!(local.compare(&hub), expected);
    assert_eq!(expected.finding(), None);
    let target = local.dir.path().join("out.gguf");
    let copy = RepairOptions { output: Some(target.clone()), ..RepairOptions::default() };
    assert_eq!(local.repair(&hub, &copy).unwrap(), expected);
    assert!(!target.exists());
    assert_eq!(local.becomes(&content, &hub), expected);
}

/// Returns the length of the listing of [`hub`].
fn listing() -> u64 {
    br#"[{"type":"file","path":"m.gguf"}]"#.len() as u64
}

#[test]
fn truncated_files_get_their_end() {
    let content = file(3 * MIB, 0);
    let (hub, len) = (honest(&content), 2 * MIB + 5);
    let local = Local::new(&content[..len]);
    let compared = local.compare(&hub);
    assert_eq!((compared.state, compared.local_digest.clone()), (CopyState::Damaged, None));
    let finding = compared.finding().unwrap();
    let message = "it has 2097157 bytes, hf:org/repo:m.gguf has 3145728";
    assert_eq!((finding.code, &*finding.message), ("copy-damaged", message));
    let report = local.becomes(&content, &hub);
    assert_eq!(report.repaired, only(len as u64..3 * MIB as u64));
    assert_eq!(report.transferred, listing() + HEAD + SAMPLES + (MIB - 5) as u64);
    // Nothing is there, or a part of a header.
    for len in [0, 10] {
        let local = Local::new(&content[..len]);
        let report = local.becomes(&content, &hub);
        assert_eq!(report.repaired, only(len as u64..3 * MIB as u64));
        assert_eq!(report.transferred, listing() + (3 * MIB) as u64);
    }
}

#[test]
fn holes_are_filled_without_fetching_the_rest() {
    let content = file(24 * MIB, 0);
    let hub = honest(&content);
    // The hole begins and ends within a page.
    let hole = 9 * MIB + 100..11 * MIB + 50;
    let mut damaged = content.clone();
    damaged[hole.clone()].fill(0);
    let local = Local::new(&damaged);
    let report = local.becomes(&content, &hub);
    assert_eq!(report.repaired, only(hole.start as u64..hole.end as u64));
    assert_eq!(report.transferred, listing() + HEAD + SAMPLES + (2 * MIB + 4096) as u64);
    // Several connections of a download leave several holes, and no end.
    damaged.truncate(23 * MIB);
    damaged[MIB..2 * MIB].fill(0);
    let local = Local::new(&damaged);
    let report = local.becomes(&content, &hub);
    let range = |from: usize, to: usize| from as u64..to as u64;
    let expected = [range(MIB, 2 * MIB), range(hole.start, hole.end), range(23 * MIB, 24 * MIB)];
    assert_eq!(report.repaired, expected);
    assert!(report.transferred < (5 * MIB) as u64, "{}", report.transferred);
    assert_eq!((report.local_len, report.len), (23 << 20, 24 << 20));
}

#[test]
fn changed_bytes_are_found_by_fetching_everything_once() {
    let content = file(2 * MIB, 0);
    let hub = honest(&content);
    let mut damaged = content.clone();
    damaged[MIB + 77_777] ^= 0x40;
    let local = Local::new(&damaged);
    let finding = local.compare(&hub).finding().unwrap();
    let (ours, theirs) = (sha256(&damaged), sha256(&content));
    let message = format!("its SHA-256 is {ours}, that of hf:org/repo:m.gguf is {theirs}");
    assert_eq!((finding.code, &*finding.message), ("copy-damaged", &*message));
    let report = local.becomes(&content, &hub);
    let at = (MIB + 77_777) as u64;
    assert_eq!(report.repaired, only(at..at + 1));
    assert_eq!(report.transferred, listing() + SAMPLES + (2 * MIB) as u64);
}

#[test]
fn bytes_after_the_end_are_removed() {
    let content = file(2 * MIB, 0);
    let local = Local::new(&[&content[..], b"more"].concat());
    let report = local.becomes(&content, &honest(&content));
    assert_eq!((report.state, report.repaired), (CopyState::Damaged, vec![]));
    assert_eq!(report.transferred, listing() + HEAD + SAMPLES);
}

#[test]
fn servers_without_a_digest_are_compared_byte_by_byte() {
    let content = file(2 * MIB, 0);
    // A 64-digit ETag of a server that is not the hub is not a SHA-256.
    for etag in [None, Some(sha256(b"other"))] {
        let server = hub(content.clone(), etag);
        let url = location(&server.url("/m.gguf"));
        let nowhere =
            RemoteOptions { hf_endpoint: "http://127.0.0.1:9".into(), ..options(&server) };
        let mut damaged = content.clone();
        damaged[MIB + 77_777] = 1;
        for local in [&content, &damaged].map(|bytes| Local::new(bytes)) {
            let compared = compare(&local.path, &url, nowhere.clone(), &()).unwrap();
            assert_eq!((compared.state, compared.digest.clone()), (CopyState::Unknown, None));
            assert_eq!(compared.finding().unwrap().code, "copy-unverified");
            assert_eq!(compared.location, server.url("/m.gguf"));
            let was_equal = local.bytes() == content;
            let how = RepairOptions::default();
            let report = repair(&local.path, &url, &how, nowhere.clone(), &()).unwrap();
            assert!(local.bytes() == content);
            assert_eq!(report.repaired.len(), usize::from(!was_equal));
        }
        let local = Local::new(&content[..MIB]);
        let compared = compare(&local.path, &url, nowhere.clone(), &()).unwrap();
        assert_eq!(compared.state, CopyState::Damaged);
    }
}

#[test]
fn small_files_of_the_hub_have_git_blob_ids() {
    let content = file(5000, 0);
    let id = Sha1::digest([b"blob 5000\0", &content[..]].concat());
    let hub = hub(content.clone(), Some(hex(&id)));
    assert_eq!(Local::new(&content).compare(&hub).state, CopyState::Equal);
    let mut damaged = content.clone();
    damaged[4999] = 0;
    let report = Local::new(&damaged).becomes(&content, &hub);
    assert_eq!(report.repaired, only(4999..5000));
    assert_eq!(report.digest, Some(RemoteDigest::GitBlob(hex(&id))));
}

#[test]
fn wrong_bytes_of_a_server_change_nothing() {
    let content = file(3 * MIB, 0);
    let mut served = content.clone();
    served[2 * MIB + 9] ^= 1;
    let hub = hub(served, Some(sha256(&content)));
    let mut flipped = content.clone();
    flipped[MIB + 9] ^= 1;
    let mut hole = content.clone();
    hole[2 * MIB..2 * MIB + 50_000].fill(0);
    let too_long = [&flipped[..], b"more"].concat();
    for damaged in [&flipped, &hole, &too_long, &content[..2 * MIB].to_vec()] {
        let local = Local::new(damaged);
        assert_eq!(code(local.repair(&hub, &RepairOptions::default())), "download-damaged");
        assert!(local.bytes() == *damaged);
        let target = local.dir.path().join("out.gguf");
        fs::write(&target, b"precious").unwrap();
        let how = RepairOptions {
            output: Some(target.clone()),
            overwrite: Overwrite::new(Existing::Replace),
            ..RepairOptions::default()
        };
        assert_eq!(code(local.repair(&hub, &how)), "download-damaged");
        assert_eq!(fs::read(&target).unwrap(), b"precious");
        assert_eq!(fs::read_dir(local.dir.path()).unwrap().count(), 2);
    }
}

#[test]
fn repaired_files_can_be_written_elsewhere() {
    let content = file(MIB, 0);
    let (hub, local) = (honest(&content), Local::new(&content[..MIB / 2]));
    let target = local.dir.path().join("out.gguf");
    let how = RepairOptions { output: Some(target.clone()), ..RepairOptions::default() };
    let report = local.repair(&hub, &how).unwrap();
    assert_eq!(report.repaired, only(MIB as u64 / 2..MIB as u64));
    assert!(fs::read(&target).unwrap() == content);
    assert!(local.bytes() == content[..MIB / 2]);
    assert_eq!(code(local.repair(&hub, &how)), "output-exists");
}

/// Cancels the work after a number of bytes were fetched.
struct Cancel {
    left: AtomicU64,
    is_fetching: AtomicU64,
}

impl Progress for Cancel {
    fn begin(&self, what: &str, _: u64) {
        self.is_fetching.store(u64::from(what == "fetching"), Ordering::Relaxed);
    }

    fn advance(&self, bytes: u64) -> ControlFlow<()> {
        let bytes = bytes * self.is_fetching.load(Ordering::Relaxed);
        let left = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        if left.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

#[test]
fn interrupted_repairs_continue() {
    let content = file(24 * MIB, 0);
    let (hub, local) = (honest(&content), Local::new(&content[..MIB]));
    let cancel = Cancel { left: (9 << 20).into(), is_fetching: 0.into() };
    let how = RepairOptions::default();
    let stopped = repair(&local.path, &location("hf:org/repo"), &how, options(&hub), &cancel);
    assert!(matches!(stopped, Err(Error::Local(gguf::Error::Interrupted))));
    // Two blocks of 8 MiB.
    assert!(local.bytes() == content[..17 * MIB]);
    let report = local.becomes(&content, &hub);
    assert_eq!(report.repaired, only(17 << 20..24 << 20));
    assert_eq!(report.transferred, listing() + HEAD + SAMPLES + (7 << 20));
}

#[test]
fn broken_connections_leave_right_bytes() {
    let content = file(24 * MIB, 0);
    let (served, etag) = (content.clone(), format!("\"{}\"", sha256(&content)));
    let hub = Server::start(move |request| {
        let reply = Reply::range(request, &served).header("ETag", etag.as_str());
        match request.range() {
            Some((start, _)) if start >= 10 * MIB => reply.truncate(1000),
            _ => reply,
        }
    });
    let local = Local::new(&content[..3 * MIB]);
    let to = location("hf:org/repo/m.gguf");
    let result = repair(&local.path, &to, &RepairOptions::default(), options(&hub), &());
    assert_eq!(code(result), "environment");
    assert!(local.bytes() == content[..11 * MIB]);
}

#[test]
fn other_files_are_not_overwritten() {
    let content = file(2 * MIB, 0);
    let hub = honest(&content);
    // Another type of the same model: the header is equal, the weights are not.
    let mut other = file(2 * MIB, 12_345);
    other[..HEAD as usize].copy_from_slice(&content[..HEAD as usize]);
    for other in [other.clone(), other[..MIB].to_vec(), [&other[..], &other].concat()] {
        let local = Local::new(&other);
        let finding = local.compare(&hub).finding().unwrap();
        assert_eq!(finding.code, "copy-other");
        assert!(finding.message.starts_with("this is another file than hf:org/repo:m.gguf: "));
        assert_eq!(code(local.repair(&hub, &RepairOptions::default())), "copy-other");
        assert!(local.bytes() == other);
        let how = RepairOptions { accept_other: true, ..RepairOptions::default() };
        local.repair(&hub, &how).unwrap();
        assert!(local.bytes() == content);
    }
    // A destroyed header is damage.
    let mut damaged = content.clone();
    damaged[..HEAD as usize].copy_from_slice(&file(HEAD as usize, 12_345));
    Local::new(&damaged).becomes(&content, &hub);
}

#[test]
fn digests_and_tokens_stay_with_the_hub() {
    let content = file(MIB, 0);
    // The storage has an ETag of its own, which looks like a SHA-256.
    let served = content.clone();
    let storage = Server::start(move |request| {
        Reply::range(request, &served).header("ETag", format!("\"{}\"", sha256(b"of the storage")))
    });
    let redirect = |digest: Option<String>| {
        let target = format!("http://localhost:{}/blob?Signature=x", storage.port);
        Server::start(move |_| {
            let reply = Reply::status(302).header("Location", target.as_str());
            match &digest {
                Some(digest) => reply.header("X-Linked-ETag", format!("\"{digest}\"")),
                None => reply,
            }
        })
    };
    for stated in [Some(sha256(&content)), None] {
        let hub = redirect(stated.clone());
        let options =
            RemoteOptions { hf_token: Some(HfToken("hf_secret".into())), ..options(&hub) };
        let local = Local::new(&content[..MIB - 1]);
        let to = location("hf:org/repo/m.gguf");
        let report = repair(&local.path, &to, &RepairOptions::default(), options, &()).unwrap();
        assert!(local.bytes() == content);
        assert_eq!(report.digest, stated.map(RemoteDigest::Sha256));
        assert_eq!(hub.requests()[0].header("Authorization"), Some("Bearer hf_secret"));
    }
    let requests = storage.requests();
    assert!(requests.iter().all(|request| request.header("Authorization").is_none()));
}

#[test]
fn repositories_have_the_file_of_the_same_name_or_digest() {
    let hub = Server::start(|request| {
        let content = match request.path.rsplit('/').next().unwrap() {
            "a.gguf" => file(MIB, 1),
            "b.gguf" => file(MIB, 2),
            _ => {
                let digest = sha256(&file(MIB, 1));
                let listing = format!(
                    r#"[{{"type":"file","path":"q/a.gguf","lfs":{{"oid":"{digest}"}}}},
                        {{"type":"file","path":"b.gguf"}}]"#
                );
                return Reply::whole(listing.as_bytes());
            }
        };
        Reply::range(request, &content).header("ETag", format!("\"{}\"", sha256(&content)))
    });
    let digest = sha256(&file(MIB, 1));
    let blob = format!("sha256-{digest}");
    for (name, seed) in [("a.gguf", 1), ("b.gguf", 2), (&*digest, 1), (&*blob, 1)] {
        let content = file(MIB, seed);
        Local::named(name, &content[..MIB - 1]).becomes(&content, &hub);
    }
    let local = Local::named("c.gguf", &file(MIB, 1));
    let result = local.repair(&hub, &RepairOptions::default());
    let message = result.unwrap_err().to_string();
    assert!(
        message.contains("a.gguf, b.gguf") || message.contains("b.gguf, q/a.gguf"),
        "{message}"
    );
    // A part of the path selects among the others.
    let content = file(MIB, 1);
    let local = Local::named("c.gguf", &content[..MIB - 1]);
    let selected = |word: &str| {
        repair(&local.path, &location(word), &RepairOptions::default(), options(&hub), &())
    };
    assert_eq!(code(selected("hf:org/repo:b")), "copy-other");
    assert_eq!(selected("hf:org/repo:a").unwrap().location, "hf:org/repo:q/a.gguf");
    assert!(local.bytes() == content);
    // A store keeps other content out of its files.
    let name = sha256(b"another file");
    let local = Local::named(&name, &file(MIB, 1)[..MIB - 1]);
    let to = location("hf:org/repo:q/a.gguf");
    let how = RepairOptions { accept_other: true, ..RepairOptions::default() };
    assert_eq!(code(repair(&local.path, &to, &how, options(&hub), &())), "edit-refused");
    assert!(local.bytes() == file(MIB, 1)[..MIB - 1]);
}

#[test]
fn open_files_are_not_repaired_in_place() {
    let content = file(MIB, 0);
    let (hub, local) = (honest(&content), Local::new(&content[..MIB - 1]));
    let reader = LocalFile::open(&local.path).unwrap();
    let error = local.repair(&hub, &RepairOptions::default()).unwrap_err().to_string();
    assert!(error.starts_with("cannot repair ") && error.contains("has it open"), "{error}");
    drop(reader);
    local.becomes(&content, &hub);
    let result = compare(&local.path, &location("b.gguf"), options(&hub), &());
    assert_eq!(code(result), "location-invalid");
}
