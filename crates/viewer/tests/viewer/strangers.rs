//! Requests of those who should not ask, and of those who ask wrongly.

use serde_json::json;

use crate::site::{Site, demo, options};

#[test]
fn only_those_who_know_the_address_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::of(&[&demo(dir.path())]);
    let secret = site.path().trim_matches('/').to_owned();
    assert_eq!((secret.len(), secret.bytes().all(|b| b.is_ascii_hexdigit())), (32, true));
    let mut wrong = secret.clone().into_bytes();
    wrong[31] = if wrong[31] == b'0' { b'1' } else { b'0' };
    let wrong = String::from_utf8(wrong).unwrap();
    for path in [
        "/".to_owned(),
        "/api/1/models".into(),
        format!("/{wrong}/api/1/models"),
        format!("/{wrong}/"),
        format!(
            "/{}/api/1/models",
            secret.to_uppercase().replace(|c: char| c.is_ascii_digit(), "g")
        ),
        format!("//{secret}/api/1/models"),
        format!("/x/../{secret}/api/1/models"),
        format!("/%2e/{secret}/api/1/models"),
        format!("/{}%{:02x}/api/1/models", &secret[..31], secret.as_bytes()[31]),
        format!("/{secret}0/api/1/models"),
        format!("/{}/api/1/models", &secret[..31]),
        format!("/?{secret}/api/1/models"),
    ] {
        let reply = site.send("GET", &path, "", "");
        assert_eq!((reply.status, reply.body.len()), (404, 0), "{path}");
    }
    assert_eq!(site.get("models").status, 200);
    // Another viewer has another one.
    let other = tempfile::tempdir().unwrap();
    assert_ne!(Site::of(&[&demo(other.path())]).path(), site.path());
}

#[test]
fn foreign_hosts_and_origins_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::of(&[&demo(dir.path())]);
    let (path, port) =
        (format!("{}api/1/models", site.path()), site.host().split(':').nth(1).unwrap());
    let ask = |lines: String| {
        site.raw(format!("GET {path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n").as_bytes())
            .status
    };
    assert_eq!(ask(format!("Host: {}\r\n", site.host())), 200);
    assert_eq!(ask(format!("Host: localhost:{port}\r\n")), 200);
    for host in
        ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1.evil.example", "", "192.0.2.1"]
    {
        for host in [host.to_owned(), format!("{host}:{port}")] {
            if host == site.host() {
                continue;
            }
            assert_eq!(ask(format!("Host: {host}\r\n")), 403, "{host}");
        }
    }
    assert_eq!(ask(String::new()), 403);
    let ours = format!("Host: {}\r\n", site.host());
    assert_eq!(ask(format!("{ours}Origin: http://{}\r\n", site.host())), 200);
    for origin in [
        "http://evil.example",
        "null",
        "file://",
        &format!("http://localhost:{port}"),
        &format!("https://{}", site.host()),
    ] {
        assert_eq!(ask(format!("{ours}Origin: {origin}\r\n")), 403, "{origin}");
    }
}

#[test]
fn every_answer_forbids_what_the_page_does_not_need() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::of(&[&demo(dir.path())]);
    let page = site.send("GET", &site.path(), "", "");
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    let nothing = site.send("GET", "/", "", "");
    for reply in [&page, &nothing, &site.get("models"), &site.get("models/9/summary")] {
        let policy = reply.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"),
            "{policy}"
        );
        assert!(
            !policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert_eq!(reply.header(name), value, "{name}");
        }
        assert!(reply.header("access-control-allow-origin").is_empty());
    }
    assert_eq!(site.get("models").header("cache-control"), "no-store");
}

#[test]
fn paths_lead_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::of(&[&demo(dir.path())]);
    for path in [
        "../Cargo.toml",
        "..%2fCargo.toml",
        "%2e%2e/Cargo.toml",
        "..\\Cargo.toml",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "index.html/",
        "index.html%00",
        "api/1/models/0/../../models/",
        "api/2/models",
        "api/1",
        "api/1/",
        "api/1/models/0/tensor/blk.0.attn_q.weight",
        "api/1/models/0/tensor/%2e%2e/summary",
        "app.js%2f..%2findex.html",
        "page/package.json",
    ] {
        let reply = site.send("GET", &format!("{}{path}", site.path()), "", "");
        assert_eq!(reply.status, 404, "{path}: {}", reply.text());
    }
}

#[test]
fn methods_and_bodies_are_those_of_the_address() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::of(&[&demo(dir.path())]);
    let at = |address: &str| format!("{}api/1/{address}", site.path());
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        assert_eq!(site.send(method, &at("models"), "", "").status, 405, "{method}");
        assert_eq!(site.send(method, &at("models/0/summary"), "", "").status, 405, "{method}");
    }
    assert_eq!(site.send("GET", &at("models/0/tokenize"), "", "").status, 405);
    let head = site.send("HEAD", &at("models/0/summary"), "", "");
    assert_eq!((head.status, head.body.len()), (200, 0));

    let body = json!({ "text": "a" }).to_string();
    for content_type in
        ["", "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n"]
    {
        let reply = site.send("POST", &at("models/0/tokenize"), content_type, &body);
        reply.is_error(415, "request-invalid");
    }
    let json = "Content-Type: application/json; charset=utf-8\r\n";
    assert_eq!(site.send("POST", &at("models/0/tokenize"), json, &body).status, 200);
    for wrong in [
        "",
        "{",
        "[]",
        "{}",
        "{\"text\": 5}",
        "{\"text\": \"a\", \"other\": 1}",
        "\"text\"",
        &"[".repeat(100_000),
    ] {
        site.send("POST", &at("models/0/tokenize"), json, wrong).is_error(400, "request-invalid");
    }
    let long = json!({ "text": "a".repeat(2 << 20) }).to_string();
    assert_eq!(site.send("POST", &at("models/0/tokenize"), json, &long).status, 413);
    let long = json!({ "text": "a".repeat(70_000) });
    site.post("models/0/tokenize", &long).is_error(400, "request-invalid");
}

/// Broken requests, long headers, and clients that leave in the middle do not end the server.
#[test]
fn the_server_survives_its_clients() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::of(&[&demo(dir.path())]);
    for request in
        [&b"\0\0\0\0\r\n\r\n"[..], b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", &[b'a'; 1 << 20]]
    {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(site.host()).unwrap();
        let _ = stream.write_all(request);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    for _ in 0..50 {
        use std::io::Write;
        let mut stream = std::net::TcpStream::connect(site.host()).unwrap();
        let path = format!("{}api/1/models/0/tensor/statistics?n=0&exact=true", site.path());
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", site.host()).unwrap();
        // And is gone.
    }
    assert_eq!(site.get("models/0/summary").status, 200);
}

#[test]
fn an_address_that_is_taken_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let word = demo(dir.path());
    let site = Site::of(&[&word]);
    let mut options = options(&[&word]);
    options.port = site.host().split(':').nth(1).unwrap().parse().unwrap();
    let error = gguf_viewer::Server::bind(options).err().unwrap();
    assert_eq!(error.fault(), gguf::Fault::Environment);
    assert!(error.to_string().starts_with(&format!("cannot listen at {}", site.host())), "{error}");
}
