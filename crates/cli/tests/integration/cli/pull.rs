//! Models of the Hub in the cache of `huggingface_hub`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::cli::support::{Dir, succeeds};
use crate::server::{Reply, Server};

const COMMIT: &str = "cccccccccccccccccccccccccccccccccccccccc";

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn pulled_models_are_scanned_listed_and_removed() {
    let dir = Dir::new();
    let (f16, bad) = (dir.f16(), dir.path("bad-F16.gguf"));
    let (template, home) = (dir.path("bad.jinja"), dir.path("home"));
    std::fs::write(&template, "{{ lipsum.__globals__ }}{{ messages[0].content }}").unwrap();
    succeeds(&["edit", &f16, "--chat-template-file", &template, "-o", &bad]);
    let file = std::fs::read(&bad).unwrap();
    let hub = Server::start(move |request| match &*request.path {
        "/org/repo/resolve/main/bad-F16.gguf" => {
            let reply = Reply::range(request, &file).header("X-Repo-Commit", COMMIT);
            reply.header("ETag", "\"abc\"")
        }
        path if path.starts_with("/api/models/org/repo/") => {
            Reply::whole(br#"[{"type":"file","path":"bad-F16.gguf"}]"#)
        }
        _ => Reply::status(404),
    });
    let run = |words: &[&str], endpoint: &str| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
        command.args(words).env("HF_ENDPOINT", endpoint).env("HF_HOME", &home);
        command.env_remove("HF_HUB_CACHE").output().unwrap()
    };
    let pulled = run(&["pull", "org/repo:F16"], &hub.url(""));
    assert_eq!(pulled.status.code(), Some(0), "{}", stderr(&pulled));
    assert!(stderr(&pulled).contains("warning: "), "{}", stderr(&pulled));
    assert!(stderr(&pulled).contains("--scan"), "{}", stderr(&pulled));
    let path = stdout(&pulled);
    let stored: PathBuf = ["snapshots", COMMIT, "bad-F16.gguf"].iter().collect();
    assert!(Path::new(path.trim_end()).ends_with(stored), "{path}");
    assert!(std::fs::read(path.trim_end()).unwrap() == std::fs::read(&bad).unwrap());
    // Without a connection, the stored model is used.
    let again = run(&["pull", "hf:org/repo:F16"], "http://127.0.0.1:1");
    assert_eq!(stdout(&again), path, "{}", stderr(&again));
    let offline = |source: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
        command.args(["pull", source]).env("HF_HUB_OFFLINE", "1").env("HF_HOME", &home);
        command.env_remove("HF_HUB_CACHE").output().unwrap()
    };
    assert_eq!(stdout(&offline("hf:org/repo:F16")), path);
    assert!(stderr(&offline("hf:org/other")).contains("HF_HUB_OFFLINE"));
    assert!(stdout(&run(&["list"], "")).ends_with(" hf:org/repo:bad-F16.gguf\n"));
    assert_eq!(run(&["rm", "hf:org/repo:Q8_0"], "").status.code(), Some(2));
    assert!(stderr(&run(&["rm", "hf:org/repo:F16"], "")).starts_with("removed 1 file, "));
    assert_eq!(stdout(&run(&["list"], "")), "");
}
