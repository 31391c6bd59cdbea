//! Uploads to the Hub, and outputs there.

use std::process::{Command, Output};

use serde_json::Value;

use crate::cli::support::{Dir, gguf, json};
use crate::server::{Reply, Server};
use crate::upload_hub::{COMMIT, answer};

/// Runs `gguf` beside a hub, with the directory as the user's cache.
fn run(hub: &Server, dir: &Dir, token: Option<&str>, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
    command.args(words).env("HF_ENDPOINT", hub.url("")).env_remove("HF_TOKEN");
    command.env("HF_HOME", dir.path("hf")).env("XDG_CACHE_HOME", dir.path("cache"));
    command.envs(token.map(|token| ("HF_TOKEN", token))).output().unwrap()
}

fn hub() -> Server {
    Server::start(|request| answer(request).unwrap_or_else(|| Reply::status(404)))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the paths that a commit adds.
fn committed(hub: &Server) -> Vec<String> {
    let commits = hub.requests().into_iter().filter(|request| request.path.contains("/commit/"));
    let text: String = commits.map(|request| String::from_utf8(request.body).unwrap()).collect();
    let lines = text.lines().map(json).filter(|line| line["key"] != "header");
    lines.map(|line| line["value"]["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn directories_are_uploaded() {
    let (hub, dir) = (hub(), Dir::new());
    let out = dir.path("out");
    std::fs::create_dir_all(dir.path("out/sub")).unwrap();
    std::fs::create_dir_all(dir.path("out/.git")).unwrap();
    for name in [
        "README.md",
        "sub/m.gguf",
        ".git/config",
        ".gitattributes",
        ".m.gguf.unfinished.gguf-kit-part",
    ] {
        std::fs::write(dir.path(&format!("out/{name}")), b"text").unwrap();
    }
    let output = run(&hub, &dir, Some("hf_secret"), &["upload", &out, "me/repo", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(committed(&hub), [".gitattributes", "README.md", "sub/m.gguf"]);
    let document: Value = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(document["commit"], COMMIT);
    assert_eq!(document["url"], hub.url(&format!("/me/repo/commit/{COMMIT}")));
    assert_eq!(document["files"][2]["state"], "stored");
    let file = dir.path("out/README.md");
    let output = run(&hub, &dir, Some("hf_secret"), &["upload", &file, "hf:me/repo:docs/a.md"]);
    assert!(stderr(&output).starts_with("committed to hf:me/repo: "), "{}", stderr(&output));
    assert_eq!(committed(&hub)[3], "docs/a.md");
    let output = run(&hub, &dir, Some("hf_secret"), &["upload", &out, "hf:me/repo/m.gguf"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("m.gguf names one file of the repository"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn outputs_go_to_the_hub() {
    let (hub, dir) = (hub(), Dir::new());
    let f16 = dir.f16();
    let output =
        run(&hub, &dir, Some("hf_secret"), &["quantize", &f16, "hf:me/repo@v1", "q8_0,q4_0"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("wrote hf:me/repo@v1:") && said.contains("committed to hf:me/repo@v1: "),
        "{said}"
    );
    let mut names = committed(&hub);
    names.sort();
    assert_eq!(names.len(), 2);
    assert!(names[0].ends_with("Q4_0.gguf") && names[1].ends_with("Q8_0.gguf"), "{names:?}");
    // Nothing stays in the cache.
    let left = std::fs::read_dir(dir.path("cache/gguf-kit/uploads")).unwrap().count();
    assert_eq!(left, 0);
    let output =
        run(&hub, &dir, Some("hf_secret"), &["quantize", &f16, "hf:me/repo/sub/a.gguf", "q8_0"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(committed(&hub)[2], "sub/a.gguf");
}

#[test]
fn outputs_without_a_token_are_refused_before_the_work() {
    let (hub, dir) = (hub(), Dir::new());
    let output = run(&hub, &dir, None, &["quantize", &dir.f16(), "hf:me/repo", "q8_0"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("no token for 127.0.0.1 is set") && said.contains("HF_TOKEN"), "{said}");
    assert!(!said.contains("wrote") && hub.requests().is_empty(), "{said}");
    assert_eq!(std::fs::read_dir(dir.path("cache/gguf-kit/uploads")).unwrap().count(), 0);
}

#[test]
fn outputs_of_a_failed_upload_are_kept() {
    let hub = Server::start(|request| match request.path.contains("/commit/") {
        true => Reply::status(403),
        false => answer(request).unwrap_or_else(|| Reply::status(404)),
    });
    let dir = Dir::new();
    let output =
        run(&hub, &dir, Some("hf_secret"), &["quantize", &dir.f16(), "hf:me/repo/a.gguf", "q8_0"]);
    assert_eq!(output.status.code(), Some(3));
    let said = stderr(&output);
    assert!(
        said.contains("the output is kept: `gguf upload ") && !said.contains("secret"),
        "{said}"
    );
    assert!(said.contains("the token may not write to this repository"), "{said}");
    assert!(std::fs::exists(dir.path("cache/gguf-kit/uploads/me--repo@main/a.gguf")).unwrap());
}

#[test]
fn other_commands_write_to_local_paths_only() {
    let dir = Dir::new();
    let output = gguf(&["edit", &dir.f16(), "--set", "general.name=x", "-o", "hf:me/repo/a.gguf"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("hf:me/repo/a.gguf cannot be written: it is not a local path"), "{said}");
}
