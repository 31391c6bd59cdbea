//! Checkpoints on the hub: small files are fetched, weights are read by range.

use gguf_remote::{Error, RemoteOptions, RepositoryFiles};

use crate::server::{Reply, Server};

fn hub() -> Server {
    Server::start(|request| match request.path.as_str() {
        "/api/models/org/repo/tree/v1?recursive=true" => Reply::whole(
            br#"[{"type":"file","path":"config.json"},{"type":"file","path":"sub/other.json"},
                {"type":"file","path":"model.safetensors"}]"#,
        ),
        "/org/repo/resolve/v1/config.json" => Reply::range(request, b"{}"),
        "/org/repo/resolve/v1/model.safetensors" => Reply::range(request, &vec![7; 10 << 20]),
        _ => Reply::status(404),
    })
}

fn options(hub: &Server) -> RemoteOptions {
    RemoteOptions { hf_endpoint: hub.url(""), attempts: 1, ..RemoteOptions::default() }
}

#[test]
fn weights_are_read_by_range() {
    let hub = hub();
    for word in ["hf:org/repo@v1".to_owned(), hub.url("/org/repo/tree/v1")] {
        let files = RepositoryFiles::list(&word, options(&hub)).unwrap();
        assert_eq!(files.repository(), "org/repo");
        assert_eq!(files.names(), ["config.json", "model.safetensors"]);
        assert_eq!(files.fetch("config.json").unwrap(), b"{}");
        let weights = files.open("model.safetensors").unwrap();
        assert_eq!(weights.byte_len(), 10 << 20);
        let named = weights.file().unwrap().to_str().unwrap();
        assert!(named.ends_with("/model.safetensors"), "{named}");
        let before = files.transferred().bytes();
        let mut bytes = [0; 3];
        for offset in [5 << 20, (5 << 20) + 1, 6 << 20] {
            weights.read_at(&mut bytes, offset).unwrap();
            assert_eq!(bytes, [7; 3]);
        }
        // Two blocks of the file, which are small because the file is.
        assert_eq!(files.transferred().bytes() - before, 2 * (256 << 10));
        assert!(weights.read_at(&mut bytes, 10 << 20).is_err());
        assert!(matches!(files.fetch("missing.json"), Err(Error::Remote { .. })));
    }
}

#[test]
fn other_locations_are_rejected() {
    let hub = hub();
    for word in ["hf:org/repo:file", "some/dir", "https://elsewhere.example/org/repo"] {
        let result = RepositoryFiles::list(word, options(&hub));
        assert!(matches!(result, Err(Error::Location { .. })), "{word}");
    }
}

#[test]
fn all_files_come_from_one_commit() {
    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
    let hub = Server::start(|request| match request.path.as_str() {
        path if path.starts_with("/api/") => Reply::whole(
            br#"[{"type":"file","path":"config.json"},{"type":"file","path":"tokenizer.json"}]"#,
        ),
        _ => Reply::range(request, b"{}").header("X-Repo-Commit", COMMIT),
    });
    let files = RepositoryFiles::list("hf:org/repo", options(&hub)).unwrap();
    files.fetch("config.json").unwrap();
    files.fetch("tokenizer.json").unwrap();
    let paths: Vec<_> = hub.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths[1], "/org/repo/resolve/main/config.json");
    assert_eq!(paths[2], format!("/org/repo/resolve/{COMMIT}/tokenizer.json"));
}

#[test]
fn fetched_files_have_a_size_limit() {
    let hub = Server::start(|request| match request.path.as_str() {
        path if path.starts_with("/api/") => Reply::whole(b"[]"),
        _ => Reply::whole(&[b' '; 300 << 10]).header("Content-Length", (250 << 20).to_string()),
    });
    let files = RepositoryFiles::list("hf:org/repo", options(&hub)).unwrap();
    for i in 0..5 {
        let message = files.fetch(&format!("{i}.json")).unwrap_err().to_string();
        assert_eq!(message.contains("too many or too large"), i == 4, "{message}");
    }
}
