//! Remote models, read by HTTP range requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gguf::TensorType;
use gguf_remote::Cache;

use crate::server::{Reply, Server};
use crate::viewer::{Viewer, file, options};

/// Serves a file; returns a switch that makes all requests fail.
fn serve(bytes: Vec<u8>) -> (Server, Arc<AtomicBool>) {
    let fails = Arc::new(AtomicBool::new(false));
    let failing = fails.clone();
    let server = Server::start(move |request| match failing.load(Ordering::Relaxed) {
        true => Reply::status(404),
        false => Reply::range(request, &bytes).header("ETag", "\"one\""),
    });
    (server, fails)
}

#[test]
fn remote_data_is_fetched_on_demand_and_cached() {
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
        Viewer::with_options(options)
    };
    let viewer = with_cache();
    let traffic = |viewer: &Viewer| {
        let traffic = viewer.json("models/0/traffic");
        (traffic["fetched_bytes"].as_u64().unwrap(), traffic["requests"].as_u64().unwrap())
    };
    let model = &viewer.json("models")["models"][0];
    assert_eq!((&model["remote"], &model["editable"]), (&true.into(), &false.into()));
    let (opened, requests) = traffic(&viewer);
    assert!(opened <= 300 << 10 && requests <= 2, "{opened} {requests}");

    // The overview of a 9 MB tensor reads a part of it.
    let local = Viewer::open(&[path.to_str().unwrap()]);
    let all = viewer.get("models/0/tensor/tile?n=0&level=4");
    assert_eq!((all.header("tile-width"), all.header("tile-exact")), ("256", "false"));
    let (seen, _) = traffic(&viewer);
    assert!(seen < len, "{seen}");
    let tile = "models/0/tensor/tile?n=0&level=0&x=3&y=5";
    let expected = local.get(tile).body;
    assert!(viewer.get(tile).body == expected);
    let before = traffic(&viewer);
    assert!(
        viewer.get(tile).body == expected
            && viewer.get("models/0/tensor/tile?n=0&level=4").body == all.body
    );
    assert_eq!(traffic(&viewer), before);

    // A second viewer reads the disk cache: its only request checks the ETag.
    let again = with_cache();
    assert!(again.get(tile).body == expected);
    let (bytes, requests) = traffic(&again);
    assert!(bytes <= 256 << 10 && requests == 1, "{bytes} {requests}");
    let cache = &again.json("models/0/traffic")["cache"];
    assert_eq!(cache["disk_limit"], 100 << 20);
    assert!(cache["disk_bytes"].as_u64().unwrap() > 0);

    fails.store(true, Ordering::Relaxed);
    again.assert_error("models/0/tensor/rows?n=0&start=4095", 502, "environment");
    again.post("models/0/edit", &serde_json::json!({})).assert_error(422, "edit-refused");
}

#[test]
fn a_failing_server_is_reported_while_it_is_retried() {
    let dir = tempfile::tempdir().unwrap();
    let path =
        file(&dir.path().join("m.gguf"), &[("big.weight", &[4096, 4096][..], TensorType::Q4_K)]);
    let bytes = std::fs::read(&path).unwrap();
    let fails = Arc::new(AtomicBool::new(false));
    let failing = fails.clone();
    let server = Server::start(move |request| match failing.load(Ordering::Relaxed) {
        true => Reply::status(503),
        false => Reply::range(request, &bytes).header("ETag", "\"one\""),
    });
    let viewer = Viewer::open(&[&server.url("/m.gguf")]);
    let calm = viewer.json("models/0/traffic");
    assert!(calm["retry"].is_null() && calm["waiting_seconds"].is_null(), "{calm}");
    fails.store(true, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let read = scope.spawn(|| viewer.get("models/0/tensor/rows?n=0&start=4095").status);
        let said = (0..60).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let now = viewer.json("models/0/traffic");
            (!now["retry"].is_null()).then_some(now)
        });
        let said = said.expect("the failure is reported within three seconds");
        assert!(said["retry"]["failures"].as_u64().unwrap() >= 1, "{said}");
        assert!(said["waiting_seconds"].is_number(), "{said}");
        fails.store(false, Ordering::Relaxed);
        assert_eq!(read.join().unwrap(), 200);
    });
    let calm = viewer.json("models/0/traffic");
    assert!(calm["retry"].is_null() && calm["waiting_seconds"].is_null(), "{calm}");
}
