//! Hub on the loopback interface: every repository has the small trained model, as a checkpoint or, by its
//! name, as a GGUF.

use std::fs;
use std::sync::OnceLock;

use super::fixtures::base;
use crate::server::{Reply, Server};
use crate::upload_hub;

/// Returns its URL.
pub fn address() -> String {
    static HUB: OnceLock<Server> = OnceLock::new();
    HUB.get_or_init(start).url("")
}

fn start() -> Server {
    Server::start(|request| {
        if let Some(reply) = upload_hub::answer(request) {
            return reply;
        }
        let file = |name: &str| match name.ends_with(".gguf") {
            true => fs::read(base().join("q4.gguf")),
            false => fs::read(base().join("checkpoint").join(name)),
        };
        if request.path.starts_with("/api/") {
            let names: Vec<String> = match request.path.contains("-GGUF") {
                true => ["model-Q4_K_XL.gguf", "model-Q4_K_M.gguf"].map(String::from).into(),
                false => fs::read_dir(base().join("checkpoint"))
                    .unwrap()
                    .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                    .collect(),
            };
            let entry = |name: String| format!(r#"{{"type":"file","path":"{name}"}}"#);
            let listing: Vec<_> = names.into_iter().map(entry).collect();
            return Reply::whole(format!("[{}]", listing.join(",")).as_bytes());
        }
        match file(request.path.rsplit('/').next().unwrap()) {
            // The ETag is the digest of the file.
            Ok(bytes) => Reply::range(request, &bytes)
                .header("ETag", format!("\"{}\"", gguf_store::digest::sha256(&bytes)))
                .header("X-Repo-Commit", "c".repeat(40)),
            Err(_) => Reply::status(404),
        }
    })
}
