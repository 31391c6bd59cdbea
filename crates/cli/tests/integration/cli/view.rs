//! `gguf view`: printed address, shutdown, and HTML export.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::cli::support::{Dir, fails, succeeds};

/// Starts the program. Returns it with the first printed line.
fn start(args: &[&str]) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gguf"))
        .arg("view")
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

/// Returns the response of a server, including the status line.
fn get(url: &str, path: &str) -> String {
    let (host, secret) = url.trim().trim_start_matches("http://").split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{secret}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[cfg(unix)]
#[test]
fn prints_the_address_and_stops_on_a_signal() {
    let dir = Dir::new();
    let f16 = dir.f16();
    for signal in ["INT", "TERM"] {
        let (mut child, line) = start(&[&f16, "--no-open"]);
        let secret = line.trim_end_matches("/\n").rsplit('/').next().unwrap();
        assert!(line.starts_with("http://127.0.0.1:") && secret.len() == 32, "{line}");
        assert!(get(&line, "api/1/models").starts_with("HTTP/1.1 200 OK\r\n"));
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
        let mut output_text = String::new();
        child.stderr.take().unwrap().read_to_string(&mut output_text).unwrap();
        assert_eq!(output_text, "");
    }
}

#[test]
fn public_addresses_are_warned_about() {
    let dir = Dir::new();
    let (mut child, line) = start(&[&dir.f16(), "--no-open", "--listen", "0.0.0.0"]);
    assert!(line.starts_with("http://127.0.0.1:"), "{line}");
    assert!(get(&line, "").starts_with("HTTP/1.1 200 OK\r\n"));
    child.kill().unwrap();
    child.wait().unwrap();
    let mut output_text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut output_text).unwrap();
    assert!(output_text.starts_with("warning: anyone who can reach 0.0.0.0"), "{output_text}");
}

#[test]
fn export_never_overwrites() {
    let dir = Dir::new();
    let (f16, page) = (dir.f16(), dir.path("report.html"));
    assert_eq!(succeeds(&["view", &f16, "--export", &page]), "");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("blk.0.attn_q.weight"));
    fails(&["view", &f16, "--export", &page], 2, &["report.html exists already"]);
    fails(&["view", &f16, "--export", &f16, "--force"], 2, &["f16.gguf"]);
    fails(&["view", &dir.path("nothing.gguf"), "--no-open"], 3, &["no such file"]);
    fails(&["view"], 2, &["<MODEL>..."]);
}

/// A report of several models, and of what quantization did.
#[test]
fn export_compares_models() {
    let dir = Dir::new();
    let (f16, page) = (dir.f16(), dir.path("two.html"));
    let q8 = dir.path("q8.gguf");
    succeeds(&["quantize", &f16, &q8, "q8_0"]);
    succeeds(&["view", &f16, &q8, "--export", &page]);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("<title>2 GGUF models</title>") && html.contains("href=\"#m2-top\""));
    assert!(html.contains("id=\"m1-weights\"") && html.contains("data:image/png;base64,"));
    let page = dir.path("errors.html");
    succeeds(&["view", &q8, "--reference", &f16, "--export", &page]);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("id=\"errors\"") && html.contains("The weights differ by 0."), "{html}");
    assert!(html.contains("F16 → Q8_0") && html.contains("id=\"memory\""));
    fails(&["view", &f16, "--reference", &q8, "--export", &q8, "--force"], 2, &["q8.gguf"]);
}

/// The report of a truncated file shows its header and the tensors that are there.
#[test]
fn export_of_a_truncated_file() {
    let dir = Dir::new();
    let (f16, page) = (dir.f16(), dir.path("cut.html"));
    let bytes = std::fs::read(&f16).unwrap();
    let cut = dir.path("cut.gguf");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    succeeds(&["view", &cut, "--export", &page]);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("data is missing") && html.contains("truncated"), "{html}");
}
