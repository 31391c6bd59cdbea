//! Downloads from a registry of Ollama models.

use gguf_remote::{OllamaName, OllamaStore, RemoteOptions};
use gguf_store::digest::sha256;
use serde_json::json;
use tempfile::TempDir;

use crate::server::{Reply, Server};

const GGUF: &[u8] = b"GGUF and more";
const PARAMS: &[u8] = b"{}";

/// Serves a model whose GGUF is `sent`; its manifest states the digest of [`GGUF`].
fn registry(sent: &'static [u8]) -> Server {
    let layer = |kind: &str, bytes: &[u8]| {
        json!({ "mediaType": format!("application/vnd.ollama.image.{kind}"),
            "digest": format!("sha256:{}", sha256(bytes)), "size": bytes.len() })
    };
    let manifest = json!({ "schemaVersion": 2, "layers": [layer("model", GGUF), layer("params", PARAMS)],
        "config": layer("config", PARAMS) });
    let manifest = manifest.to_string();
    Server::start(move |request| match request.path.as_str() {
        "/v2/library/m/manifests/q8" => Reply::whole(manifest.as_bytes()),
        path if path == format!("/v2/library/m/blobs/sha256:{}", sha256(GGUF)) => {
            Reply::range(request, sent)
        }
        path if path == format!("/v2/library/m/blobs/sha256:{}", sha256(PARAMS)) => {
            Reply::range(request, PARAMS)
        }
        _ => Reply::status(404),
    })
}

#[test]
fn models_are_pulled_with_their_digests() {
    let (directory, server) = (TempDir::new().unwrap(), registry(GGUF));
    let store = OllamaStore::at(directory.path().join("models"));
    let name = OllamaName::parse(&format!("127.0.0.1:{}/library/m:q8", server.port)).unwrap();
    let pull = || store.pull(&name, RemoteOptions::default(), &());
    let path = pull().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), GGUF);
    assert_eq!(store.model(&name).unwrap(), path);
    // Only the manifest is fetched again.
    let before = server.requests().len();
    pull().unwrap();
    assert_eq!(server.requests().len(), before + 1);

    let server = registry(b"GGUF and less");
    let store = OllamaStore::at(directory.path().join("damaged"));
    let name = OllamaName::parse(&format!("127.0.0.1:{}/library/m:q8", server.port)).unwrap();
    let error = store.pull(&name, RemoteOptions::default(), &()).unwrap_err();
    assert_eq!(gguf::Error::from(error).code(), "download-damaged");
    assert!(store.models().is_empty());
}
