//! Comparison of a local file with a remote one, and repair of a damaged download.

use std::fs;
use std::process::{Command, Output};

use gguf_store::digest::sha256;

use crate::cli::support::{Dir, fails, json};
use crate::server::{Reply, Server};

/// A hub whose repository `org/repo` has two files, and a file without digest at another path.
fn hub(content: Vec<u8>) -> Server {
    Server::start(move |request| {
        let reply = Reply::range(request, &content).header("X-Repo-Commit", "c".repeat(40));
        match &*request.path {
            path if path.starts_with("/api/") => Reply::whole(
                br#"[{"type":"file","path":"f16.gguf"},{"type":"file","path":"other.gguf"}]"#,
            ),
            "/org/repo/resolve/main/f16.gguf" => {
                reply.header("ETag", format!("\"{}\"", sha256(&content)))
            }
            "/plain.gguf" => reply,
            _ => Reply::status(404),
        }
    })
}

fn run(hub: &Server, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
    command.args(words).env("HF_ENDPOINT", hub.url("")).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns a model, its bytes, and a hub that has it.
fn published(dir: &Dir) -> (String, Vec<u8>, Server) {
    let f16 = dir.f16();
    let content = fs::read(&f16).unwrap();
    (f16, content.clone(), hub(content))
}

const AGAINST: [&str; 2] = ["--against", "hf:org/repo"];

#[test]
fn damaged_files_are_found_and_repaired() {
    let dir = Dir::new();
    let (f16, content, hub) = published(&dir);
    let equal = run(&hub, &["check", &f16, AGAINST[0], AGAINST[1]]);
    assert_eq!(equal.status.code(), Some(0), "{}", stderr(&equal));
    assert_eq!(stderr(&equal), format!("{f16} is equal to hf:org/repo:f16.gguf\n"));
    assert!(stdout(&equal).contains("no errors, no warnings"), "{}", stdout(&equal));

    fs::write(&f16, &content[..7_000_000]).unwrap();
    let damaged = run(&hub, &["check", &f16, AGAINST[0], AGAINST[1]]);
    assert_eq!(damaged.status.code(), Some(1));
    let len = content.len();
    let expected = format!(
        "error: copy-damaged\n  it has 7000000 bytes, hf:org/repo:f16.gguf has {len}\n  help: `--repair` fetches the \
         damaged ranges\n"
    );
    assert!(stdout(&damaged).contains(&expected), "{}", stdout(&damaged));
    assert_eq!(fs::read(&f16).unwrap().len(), 7_000_000);

    let repaired = run(&hub, &["check", &f16, AGAINST[0], AGAINST[1], "--repair", "-v"]);
    assert_eq!(repaired.status.code(), Some(0), "{}", stderr(&repaired));
    let said = stderr(&repaired);
    assert!(
        said.starts_with("repaired 1 range (1.7") && said.contains(" of 8.45 MB fetched)"),
        "{said}"
    );
    assert!(said.contains(&format!("\n  bytes 7000000 to {} (1.4", len - 1)), "{said}");
    assert!(stdout(&repaired).contains("no errors, no warnings"), "{}", stdout(&repaired));
    assert!(fs::read(&f16).unwrap() == content);
    let again = run(&hub, &["check", &f16, AGAINST[0], AGAINST[1], "--repair", "--in-place"]);
    let said = format!("{f16} is equal to hf:org/repo:f16.gguf; nothing to repair\n");
    assert_eq!((again.status.code(), stderr(&again)), (Some(0), said));
}

#[test]
fn repaired_files_can_be_written_elsewhere() {
    let dir = Dir::new();
    let (f16, content, hub) = published(&dir);
    let (out, folder) = (dir.path("out.gguf"), dir.path("folder"));
    fs::create_dir(&folder).unwrap();
    // Not even the header can be parsed.
    fs::write(&f16, &content[..13]).unwrap();
    let repair = |words: &[&str]| {
        run(&hub, &[&["check", &f16, AGAINST[0], AGAINST[1], "--repair"], words].concat())
    };
    let output = repair(&["-o", &out]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).ends_with(&format!("wrote {out}\n")), "{}", stderr(&output));
    assert!(stdout(&output).starts_with(&out), "{}", stdout(&output));
    assert!(fs::read(&out).unwrap() == content);
    assert_eq!(repair(&["-o", &out]).status.code(), Some(2));
    assert_eq!(repair(&["-o", &out, "--force"]).status.code(), Some(0));
    assert_eq!(repair(&["-o", &folder]).status.code(), Some(0));
    assert!(fs::read(format!("{folder}/f16.gguf")).unwrap() == content);
    assert_eq!(repair(&["-o", &f16, "--force"]).status.code(), Some(2));
    assert_eq!(fs::read(&f16).unwrap().len(), 13);
}

#[test]
fn comparisons_are_in_documents() {
    let dir = Dir::new();
    let (f16, content, hub) = published(&dir);
    let document = |words: &[&str]| {
        let words = [&["check", &f16, "--json"], words].concat();
        json(&stdout(&run(&hub, &words)))
    };
    assert_eq!(document(&[])["against"], serde_json::Value::Null);
    let equal = document(&AGAINST);
    assert_eq!(equal["against"]["equal"], true);
    assert_eq!(equal["against"]["sha256"], sha256(&content));
    assert_eq!(equal["against"]["location"], "hf:org/repo:f16.gguf");
    let plain = hub.url("/plain.gguf");
    let unknown = document(&["--against", &plain]);
    assert_eq!(unknown["against"]["equal"], serde_json::Value::Null);
    assert_eq!(unknown["against"]["sha256"], serde_json::Value::Null);
    assert_eq!(unknown["findings"][0]["code"], "copy-unverified", "{unknown}");

    let mut damaged = content.clone();
    damaged[5_000_000..5_100_000].fill(0);
    damaged.extend(b"more");
    fs::write(&f16, &damaged).unwrap();
    let found = document(&AGAINST);
    assert_eq!(found["against"]["equal"], false);
    assert_eq!(
        (found["data_read"].clone(), found["findings"][1].clone()),
        (false.into(), serde_json::Value::Null)
    );
    assert_eq!(found["findings"][0]["code"], "copy-damaged");
    let log = run(&hub, &["check", &f16, "--sarif", AGAINST[0], AGAINST[1]]);
    assert_eq!(json(&stdout(&log))["runs"][0]["results"][0]["ruleId"], "copy-damaged");
    let repaired = document(&[AGAINST[0], AGAINST[1], "--repair"]);
    let against = &repaired["against"];
    assert_eq!((&against["equal"], &against["removed_bytes"]), (&true.into(), &4.into()));
    let ranges = against["repaired"].as_array().unwrap();
    assert!(
        !ranges.is_empty()
            && ranges.iter().all(|range| {
                let start = range["offset"].as_u64().unwrap();
                start >= 5_000_000 && start + range["bytes"].as_u64().unwrap() <= 5_100_000
            }),
        "{against}"
    );
    assert!(against["transferred_bytes"].as_u64().unwrap() < 500_000, "{against}");
    assert!(fs::read(&f16).unwrap() == content);
}

#[test]
fn other_files_are_kept_unless_forced() {
    let dir = Dir::new();
    let (f16, content, hub) = published(&dir);
    let other = crate::cli::support::other_weights(&dir);
    fs::copy(&other, &f16).unwrap();
    let words = ["check", &f16, AGAINST[0], AGAINST[1], "--repair"];
    let scrambled: Vec<u8> = content.iter().map(|byte| byte ^ 0x5a).collect();
    fs::write(&f16, &scrambled).unwrap();
    let refused = run(&hub, &words);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("is another file than hf:org/repo:f16.gguf"),
        "{}",
        stderr(&refused)
    );
    assert!(fs::read(&f16).unwrap() == scrambled);
    let forced = run(&hub, &[&words[..], &["--force"]].concat());
    assert_eq!(forced.status.code(), Some(0), "{}", stderr(&forced));
    assert!(fs::read(&f16).unwrap() == content);
}

#[test]
fn options_without_effect_are_refused() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let out = dir.path("out.gguf");
    let against = ["check", &f16, AGAINST[0], AGAINST[1]];
    let with = |words: &[&'static str]| [&against[..], words].concat();
    fails(&["check", &f16, "--repair"], 2, &["--against"]);
    fails(
        &["check", &f16, "-o", &out],
        2,
        &["-o and --in-place need --fix, or --against with --repair"],
    );
    fails(&["check", &f16, "--in-place"], 2, &["-o and --in-place need --fix"]);
    fails(&with(&["--in-place"]), 2, &["-o and --in-place need --fix"]);
    fails(&with(&["--repair", "--fix", "--in-place"]), 2, &["repair first, then fix"]);
    fails(&with(&["--repair", "--in-place", "-o", "x.gguf"]), 2, &["cannot be used with"]);
    fails(&["check", &f16, &out, AGAINST[0], AGAINST[1]], 2, &["--against compares one file"]);
    let remote = ["check", "hf:org/repo:Q8_0", AGAINST[0], AGAINST[1]];
    fails(&remote, 2, &["compares a local file with a remote one, but hf:org/repo:Q8_0 is remote"]);
    let missing = ["check", &out, AGAINST[0], AGAINST[1], "--repair"];
    fails(&missing, 3, &["cannot open", "no such file"]);
    fails(&["check", &f16, "--against", &f16], 2, &["is not a remote file", "gguf diff"]);
}

/// A selected type that the repository lacks.
#[test]
fn missing_types_are_named() {
    let dir = Dir::new();
    let (_, _, hub) = published(&dir);
    let output = run(&hub, &["inspect", "hf:org/repo:Q8_0"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("Q8_0") && said.contains("f16.gguf, other.gguf"), "{said}");
}
