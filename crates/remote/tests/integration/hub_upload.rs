//! Uploads to a repository of the hub.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gguf_remote::{
    HfToken, Location, RemoteOptions, Repository, UploadFile, UploadOptions, UploadReport,
    UploadState, Visibility, prepare_upload, upload,
};
use gguf_store::{Existing, Progress};
use tempfile::TempDir;

use crate::mock_hub::{MockHub, TOKEN};

fn repository(word: &str) -> Repository {
    match Location::parse(word).unwrap() {
        Location::Hub(repository) => repository,
        other => panic!("{other:?}"),
    }
}

fn remote(hub: &MockHub) -> RemoteOptions {
    RemoteOptions {
        hf_endpoint: hub.hub.url(""),
        hf_token: Some(HfToken(TOKEN.into())),
        attempts: 2,
        backoff: Duration::from_millis(1),
        ..RemoteOptions::default()
    }
}

/// Returns the bytes of a model that takes five parts, the last one short.
fn model() -> Vec<u8> {
    (0..4321u32).map(|i| (i % 251) as u8).collect()
}

/// Writes a model, a text and an empty file to a directory, and names them.
fn files(directory: &TempDir) -> Vec<UploadFile> {
    let write = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name.replace('/', "-"));
        std::fs::write(&path, bytes).unwrap();
        UploadFile { path, name: name.into() }
    };
    vec![
        write("sub/m.gguf", &model()),
        write("README.md", b"# Model\n"),
        write("empty", b""),
        write("small.gguf", b"GGUF text"),
    ]
}

fn push(
    hub: &MockHub,
    files: &[UploadFile],
    options: &UploadOptions,
) -> Result<UploadReport, gguf::Error> {
    upload(&repository("hf:me/repo"), files, options, remote(hub), &())
}

fn states(report: &UploadReport) -> Vec<UploadState> {
    report.files.iter().map(|file| file.state).collect()
}

fn replace() -> UploadOptions {
    UploadOptions { existing: Existing::Replace, ..UploadOptions::default() }
}

fn records(directory: &Path) -> UploadOptions {
    UploadOptions { records: Some(directory.to_owned()), ..UploadOptions::default() }
}

#[test]
fn files_become_one_commit() {
    let (hub, directory) = (MockHub::start(), TempDir::new().unwrap());
    let total = AtomicU64::new(0);
    let progress = |bytes| {
        total.fetch_add(bytes, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    let progress: &dyn Progress = &progress;
    let files = files(&directory);
    let options = UploadOptions::default();
    let report =
        upload(&repository("hf:me/repo"), &files, &options, remote(&hub), progress).unwrap();
    assert_eq!(report.commit.as_deref(), Some(&*format!("{:040x}", 2)));
    assert_eq!(states(&report), [UploadState::Sent; 4]);
    let state = hub.state();
    assert_eq!(state.commits, ["Upload 4 files"]);
    assert_eq!(state.files["sub/m.gguf"], (model(), true));
    assert_eq!(state.files["README.md"], (b"# Model\n".to_vec(), false));
    assert_eq!(state.files["empty"], (vec![], false));
    // A model is large, whatever the hub says about its first bytes.
    assert_eq!(state.files["small.gguf"], (b"GGUF text".to_vec(), true));
    drop(state);
    // Every byte is hashed once, and those of large files are sent.
    assert_eq!(total.into_inner(), (4321 + 8 + 9) + (4321 + 9));
    // The storage asserts that it never sees the token; the hub needs it for all but the signed address.
    assert_eq!(hub.sent().len(), 6);
    for request in hub.hub.requests() {
        let expected = (!request.path.starts_with("/complete/")).then_some("Bearer hf_secret");
        assert_eq!(request.header("Authorization"), expected, "{}", request.path);
    }
}

#[test]
fn equal_files_are_not_committed_again() {
    let (hub, directory) = (MockHub::start(), TempDir::new().unwrap());
    let files = files(&directory);
    push(&hub, &files, &UploadOptions::default()).unwrap();
    let sent = hub.sent().len();
    let report = push(&hub, &files, &UploadOptions::default()).unwrap();
    assert_eq!(report.commit, None);
    assert_eq!(states(&report), [UploadState::Unchanged; 4]);
    assert_eq!((hub.sent().len(), hub.state().commits.len()), (sent, 1));
    // The same bytes under another name are committed and not sent.
    let again = [UploadFile { name: "copy.gguf".into(), ..files[0].clone() }];
    let report = push(&hub, &again, &UploadOptions::default()).unwrap();
    assert_eq!(states(&report), [UploadState::Stored]);
    assert_eq!((hub.sent().len(), hub.state().commits.len()), (sent, 2));
    assert_eq!(hub.state().files["copy.gguf"].0, model());
}

#[test]
fn files_that_differ_are_replaced_on_request_only() {
    let (hub, directory) = (MockHub::start(), TempDir::new().unwrap());
    let files = files(&directory);
    // Of another length, and of the same.
    for other in [b"# Other model\n".to_vec(), b"# Modem\n".to_vec()] {
        hub.state().files.insert("README.md".into(), (other.clone(), false));
        let error = push(&hub, &files, &UploadOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), "hf:me/repo:README.md exists already");
        assert_eq!(hub.state().files["README.md"].0, other);
    }
    assert!(hub.sent().is_empty());
    let names = ["README.md".to_owned()];
    let prepared =
        |options| prepare_upload(&repository("hf:me/repo"), &names, &options, remote(&hub));
    assert!(matches!(prepared(UploadOptions::default()), Err(gguf::Error::Exists(_))));
    prepared(replace()).unwrap();
    push(&hub, &files, &replace()).unwrap();
    assert_eq!(hub.state().files["README.md"].0, b"# Model\n");
}

#[test]
fn interrupted_uploads_send_only_the_rest() {
    let (hub, directory) = (MockHub::start(), TempDir::new().unwrap());
    let (files, options) = (files(&directory), records(&directory.path().join("records")));
    let parts =
        |from: usize| hub.sent()[from..].iter().filter(|path| path.contains("/part/")).count();
    hub.state().takes = Some(2);
    let error = push(&hub, &files[..1], &options).unwrap_err().to_string();
    assert!(error.contains("the storage of the hub refuses the bytes"), "{error}");
    assert!(hub.state().commits.is_empty());
    let first = hub.sent().len();
    hub.state().takes = None;
    push(&hub, &files[..1], &options).unwrap();
    assert_eq!(parts(first), 3, "{:?}", hub.sent());
    assert_eq!(hub.state().files["sub/m.gguf"].0, model());
    // The record is gone, and was readable by its owner only.
    assert_eq!(std::fs::read_dir(directory.path().join("records")).unwrap().count(), 0);
}

#[test]
fn expired_addresses_start_over() {
    let (hub, directory) = (MockHub::start(), TempDir::new().unwrap());
    let (files, options) = (files(&directory), records(&directory.path().join("records")));
    hub.state().takes = Some(2);
    push(&hub, &files[..1], &options).unwrap_err();
    (hub.state().takes, hub.state().expired) = (None, 1);
    push(&hub, &files[..1], &options).unwrap();
    assert_eq!(hub.state().files["sub/m.gguf"].0, model());
}

#[cfg(unix)]
#[test]
fn records_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let (hub, directory) = (MockHub::start(), TempDir::new().unwrap());
    let folder = directory.path().join("records");
    hub.state().takes = Some(2);
    push(&hub, &files(&directory)[..1], &records(&folder)).unwrap_err();
    let record = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
    assert_eq!(record.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn cancelled_uploads_stop() {
    let (hub, directory) = (MockHub::start(), TempDir::new().unwrap());
    let seen = AtomicU64::new(0);
    let progress = |bytes| match seen.fetch_add(bytes, Ordering::Relaxed) {
        before if before > 4321 + 1500 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let progress: &dyn Progress = &progress;
    let (files, options) = (files(&directory), UploadOptions::default());
    let result = upload(&repository("hf:me/repo"), &files[..1], &options, remote(&hub), progress);
    assert!(matches!(result, Err(gguf::Error::Interrupted)), "{result:?}");
    assert!(hub.state().commits.is_empty());
}

#[test]
fn bytes_that_arrive_damaged_are_not_committed() {
    let (hub, directory) = (MockHub::start(), TempDir::new().unwrap());
    let files = files(&directory);
    hub.state().damages = true;
    // In parts, and as a whole.
    for file in [&files[0], &files[3]] {
        let error = push(&hub, std::slice::from_ref(file), &UploadOptions::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("the bytes that arrived are not those of the file"), "{error}");
    }
    assert!(hub.state().commits.is_empty() && hub.state().files.is_empty());
}

#[test]
fn concurrent_commits_are_kept() {
    let (hub, directory) = (MockHub::start(), TempDir::new().unwrap());
    let files = files(&directory);
    hub.state().others = vec![("other.txt".into(), b"x".to_vec())];
    push(&hub, &files, &UploadOptions::default()).unwrap();
    assert_eq!(hub.state().commits, ["another client", "Upload 4 files"]);
    assert_eq!(hub.state().files.len(), 5);
    // Another client commits a file of the same name.
    let hub = MockHub::start();
    hub.state().others = vec![("README.md".into(), b"x".to_vec())];
    let error = push(&hub, &files, &UploadOptions::default()).unwrap_err();
    assert!(matches!(error, gguf::Error::Exists(_)), "{error}");
    assert_eq!(hub.state().files["README.md"].0, b"x");
}

#[test]
fn repositories_and_branches_are_created_on_request() {
    let (hub, directory) = (MockHub::start(), TempDir::new().unwrap());
    let files = files(&directory);
    hub.state().exists = false;
    let error = push(&hub, &files, &UploadOptions::default()).unwrap_err().to_string();
    assert!(
        error.contains("Repository not found; the repository or branch does not exist"),
        "{error}"
    );
    assert!(error.contains("--create"), "{error}");
    let private = UploadOptions { create: Some(Visibility::Private), ..UploadOptions::default() };
    push(&hub, &files, &private).unwrap();
    let expected = serde_json::json!(
        { "name": "repo", "organization": "me", "type": "model", "visibility": "private" });
    assert_eq!(hub.state().created, Some(expected));
    let branch = repository("hf:me/repo@v1");
    let public = UploadOptions { create: Some(Visibility::Public), ..replace() };
    upload(&branch, &files, &public, remote(&hub), &()).unwrap();
    assert_eq!(hub.state().branches, ["v1"]);
}

#[test]
fn refusals_say_what_to_do() {
    let (hub, directory) = (MockHub::start(), TempDir::new().unwrap());
    let files = files(&directory);
    let refused = |status: u16| {
        hub.state().refusals = vec![status; 9];
        push(&hub, &files[1..2], &UploadOptions::default()).unwrap_err().to_string()
    };
    for (status, advice) in [
        (403, "the token may not write to this repository"),
        (409, "the repository has changed meanwhile; try again"),
        (413, "upload fewer at once"),
        (422, "the hub refuses the request"),
        (429, "the server is busy or failing (HTTP status 429); try again later"),
        (500, "the server is busy or failing (HTTP status 500); try again later"),
    ] {
        let error = refused(status);
        assert!(
            error.starts_with("cannot write to hf:me/repo: ") && error.contains(advice),
            "{error}"
        );
    }
    hub.state().refusals.clear();
    let with = |token: Option<&str>| {
        let token = token.map(|token| HfToken(token.into()));
        let remote = RemoteOptions { hf_token: token, ..remote(&hub) };
        let options = UploadOptions::default();
        upload(&repository("hf:me/repo"), &files, &options, remote, &()).unwrap_err()
    };
    let before = hub.hub.requests().len();
    let error = with(None);
    assert_eq!(error.code(), "token-missing");
    assert!(error.finding().unwrap().help.contains("HF_TOKEN"));
    assert_eq!(hub.hub.requests().len(), before, "nothing is asked without a token");
    let error = with(Some("hf_old")).to_string();
    assert!(error.contains("the token is unknown or expired"), "{error}");
}

#[test]
fn names_within_the_repository_are_required() {
    let hub = MockHub::start();
    for name in ["../a.gguf", "/a.gguf", "a\\b.gguf", ".git/config", ""] {
        let file = UploadFile { path: "x".into(), name: name.into() };
        let error = push(&hub, &[file], &UploadOptions::default()).unwrap_err();
        assert_eq!(error.code(), "upload-refused", "{name}");
    }
    let file = UploadFile { path: "x".into(), name: "a".into() };
    let error = push(&hub, &[file.clone(), file], &UploadOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "two files would be `a` in the repository");
    assert!(hub.hub.requests().is_empty());
}
