//! Models of the Hub that are downloaded once, beside a mock hub.

use std::fs;

use gguf_remote::{HubCache, Location, RemoteOptions, Repository};
use gguf_store::digest::sha256;

use crate::server::{Reply, Server};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn file(number: u8) -> Vec<u8> {
    (0..300_000u32).map(|i| (i * 7 + u32::from(number)) as u8).collect()
}

/// A hub with a model in two shards, and one in a folder. `stated` returns the ETag of a file.
fn hub(stated: fn(&[u8]) -> String) -> Server {
    Server::start(move |request| {
        let content = match request.path.split('?').next().unwrap() {
            "/api/models/org/repo/tree/main" => {
                return Reply::whole(
                    br#"[{"type":"file","path":"m-Q8_0-00001-of-00002.gguf"},
                        {"type":"file","path":"m-Q8_0-00002-of-00002.gguf"},
                        {"type":"file","path":"q4/m-Q4_0.gguf"}]"#,
                );
            }
            path if path.ends_with("/m-Q8_0-00001-of-00002.gguf") => file(1),
            path if path.ends_with("/m-Q8_0-00002-of-00002.gguf") => file(2),
            path if path.ends_with("/q4/m-Q4_0.gguf") => file(3),
            _ => return Reply::status(404),
        };
        let tag = format!("\"{}\"", stated(&content));
        Reply::range(request, &content).header("X-Repo-Commit", COMMIT).header("ETag", tag)
    })
}

fn repository(word: &str) -> Repository {
    match Location::parse(word).unwrap() {
        Location::Hub(repository) => repository,
        other => panic!("{other:?}"),
    }
}

fn options(hub: &Server) -> RemoteOptions {
    RemoteOptions { hf_endpoint: hub.url(""), attempts: 1, ..RemoteOptions::default() }
}

#[test]
fn models_are_downloaded_once() {
    let hub = hub(sha256);
    let dir = tempfile::tempdir().unwrap();
    let cache = HubCache::at(dir.path().to_owned());
    let model = |word: &str| cache.model(&repository(word), options(&hub), &());
    let path = model("hf:org/repo:Q8_0").unwrap();
    let folder = dir.path().join("models--org--repo");
    assert_eq!(path, folder.join("snapshots").join(COMMIT).join("m-Q8_0-00001-of-00002.gguf"));
    assert_eq!(fs::read(&path).unwrap(), file(1));
    let second = path.with_file_name("m-Q8_0-00002-of-00002.gguf");
    assert_eq!(fs::read(second).unwrap(), file(2));
    let nested = model("hf:org/repo:Q4_0").unwrap();
    assert!(nested.ends_with("q4/m-Q4_0.gguf"), "{nested:?}");
    assert_eq!(fs::read(&nested).unwrap(), file(3));
    // The layout of huggingface_hub.
    assert_eq!(fs::read_to_string(folder.join("refs/main")).unwrap(), COMMIT);
    let blob = folder.join("blobs").join(sha256(&file(1)));
    assert!(gguf_store::is_same_file(&path, &blob));
    #[cfg(unix)]
    assert!(fs::read_link(&nested).unwrap().to_str().unwrap().starts_with("../../../blobs/"));
    // The second time only the revision is asked for.
    let before = hub.requests().len();
    assert_eq!(model("hf:org/repo:Q8_0").unwrap(), path);
    let bytes: Vec<_> = hub.requests()[before..].iter().map(|request| request.range()).collect();
    assert!(bytes.len() <= 3, "{bytes:?}");
    assert_eq!(cache.files().len(), 3);
    // Without a connection, what is stored is enough.
    let nobody =
        RemoteOptions { hf_endpoint: "http://127.0.0.1:9".into(), attempts: 1, ..options(&hub) };
    assert_eq!(cache.model(&repository("hf:org/repo:Q8_0"), nobody.clone(), &()).unwrap(), path);
    assert!(cache.model(&repository("hf:org/other"), nobody, &()).is_err());
}

#[test]
fn interrupted_downloads_continue_and_damaged_ones_are_refused() {
    let right = hub(sha256);
    let dir = tempfile::tempdir().unwrap();
    let cache = HubCache::at(dir.path().to_owned());
    let blobs = dir.path().join("models--org--repo/blobs");
    fs::create_dir_all(&blobs).unwrap();
    let part = blobs.join(format!("{}.incomplete", sha256(&file(3))));
    fs::write(&part, &file(3)[..200_000]).unwrap();
    let path = cache.model(&repository("hf:org/repo:Q4_0"), options(&right), &()).unwrap();
    assert_eq!(fs::read(path).unwrap(), file(3));
    assert!(!part.exists());
    let ranges: Vec<_> = right.requests().iter().filter_map(|request| request.range()).collect();
    assert!(ranges.iter().skip(1).all(|(start, _)| *start >= 200_000), "{ranges:?}");

    let wrong = hub(|content| sha256(&content[1..]));
    let dir = tempfile::tempdir().unwrap();
    let cache = HubCache::at(dir.path().to_owned());
    let error = cache.model(&repository("hf:org/repo:Q4_0"), options(&wrong), &()).unwrap_err();
    assert!(error.to_string().contains("was damaged on its way"), "{error}");
    assert_eq!(cache.files(), []);
}

#[test]
fn removed_models_free_their_blobs() {
    let hub = hub(sha256);
    let dir = tempfile::tempdir().unwrap();
    let cache = HubCache::at(dir.path().to_owned());
    cache.model(&repository("hf:org/repo:Q4_0"), options(&hub), &()).unwrap();
    let files = cache.files();
    assert_eq!(
        (files[0].repository.as_str(), files[0].file.as_str()),
        ("org/repo", "q4/m-Q4_0.gguf")
    );
    assert_eq!(cache.remove(&files).unwrap(), 300_000);
    assert_eq!(cache.files(), []);
    assert_eq!(fs::read_dir(dir.path().join("models--org--repo/blobs")).unwrap().count(), 0);
}

#[test]
fn revisions_cannot_leave_the_cache() {
    let hub = hub(sha256);
    let dir = tempfile::tempdir().unwrap();
    let cache = HubCache::at(dir.path().join("inner"));
    let repository = Repository {
        name: "org/repo".into(),
        file: Some("q4/m-Q4_0.gguf".into()),
        revision: "../../../../x".into(),
    };
    assert!(cache.model(&repository, options(&hub), &()).is_err());
    assert!(!dir.path().join("x").exists());
}
