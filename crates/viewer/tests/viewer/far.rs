//! Models on a server, read by parts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gguf::TensorType;
use gguf_remote::Cache;

use crate::server::{Reply, Server};
use crate::site::{Site, file, options};

/// A file on a server that can be told to fail.
fn serve(bytes: Vec<u8>) -> (Server, Arc<AtomicBool>) {
    let fails = Arc::new(AtomicBool::new(false));
    let failing = fails.clone();
    let server = Server::start(move |request| match failing.load(Ordering::Relaxed) {
        true => Reply::status(404),
        false => Reply::part(request, &bytes).header("ETag", "\"one\""),
    });
    (server, fails)
}

#[test]
fn only_what_is_looked_at_is_fetched_and_only_once() {
    let dir = tempfile::tempdir().unwrap();
    let tensors = [("big.weight", &[4096, 4096][..], TensorType::Q4_K)];
    let path = file(&dir.path().join("m.gguf"), &tensors);
    let bytes = std::fs::read(&path).unwrap();
    let len = bytes.len() as u64;
    let (server, fails) = serve(bytes);
    let url = server.url("/m.gguf");
    let with_cache = || {
        let mut options = options(&[&url]);
        options.cache = Some(Arc::new(Cache::new(Some(dir.path().join("cache")), 100 << 20)));
        Site::with(options)
    };
    let site = with_cache();
    let traffic = |site: &Site| {
        let traffic = site.json("models/0/traffic");
        (traffic["fetched_bytes"].as_u64().unwrap(), traffic["requests"].as_u64().unwrap())
    };
    let model = &site.json("models")["models"][0];
    assert_eq!((&model["far"], &model["editable"]), (&true.into(), &false.into()));
    let (opened, requests) = traffic(&site);
    assert!(opened <= 300 << 10 && requests <= 2, "{opened} {requests}");

    // The whole picture of 9 MB costs a part of it.
    let near = Site::of(&[path.to_str().unwrap()]);
    let all = site.get("models/0/tensor/tile?n=0&level=4");
    assert_eq!((all.header("tile-width"), all.header("tile-exact")), ("256", "false"));
    let (seen, _) = traffic(&site);
    assert!(seen < len, "{seen}");
    let tile = "models/0/tensor/tile?n=0&level=0&x=3&y=5";
    let expected = near.get(tile).body;
    assert!(site.get(tile).body == expected);
    let before = traffic(&site);
    assert!(
        site.get(tile).body == expected
            && site.get("models/0/tensor/tile?n=0&level=4").body == all.body
    );
    assert_eq!(traffic(&site), before);

    // Another run has it from the disk: of the server it only asks for the version.
    let again = with_cache();
    assert!(again.get(tile).body == expected);
    let (bytes, requests) = traffic(&again);
    assert!(bytes <= 256 << 10 && requests == 1, "{bytes} {requests}");
    let cache = &again.json("models/0/traffic")["cache"];
    assert_eq!(cache["disk_limit"], 100 << 20);
    assert!(cache["disk_bytes"].as_u64().unwrap() > 0);

    fails.store(true, Ordering::Relaxed);
    again.fails("models/0/tensor/rows?n=0&start=4095", 502, "environment");
    again.post("models/0/edit", &serde_json::json!({})).is_error(422, "edit-refused");
}
