//! Unauthorized and invalid requests.

use serde_json::json;

use crate::viewer::{Viewer, demo, options};

#[test]
fn requests_without_the_secret_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let viewer = Viewer::open(&[&demo(dir.path())]);
    let secret = viewer.path().trim_matches('/').to_owned();
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
        let reply = viewer.send("GET", &path, "", "");
        assert_eq!((reply.status, reply.body.len()), (404, 0), "{path}");
    }
    assert_eq!(viewer.get("models").status, 200);
    // Another viewer has another secret.
    let other = tempfile::tempdir().unwrap();
    assert_ne!(Viewer::open(&[&demo(other.path())]).path(), viewer.path());
}

#[test]
fn foreign_hosts_and_origins_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let viewer = Viewer::open(&[&demo(dir.path())]);
    let (path, port) =
        (format!("{}api/1/models", viewer.path()), viewer.host().split(':').nth(1).unwrap());
    let status = |lines: String| {
        viewer
            .raw(format!("GET {path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n").as_bytes())
            .status
    };
    assert_eq!(status(format!("Host: {}\r\n", viewer.host())), 200);
    assert_eq!(status(format!("Host: localhost:{port}\r\n")), 200);
    for host in
        ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1.evil.example", "", "192.0.2.1"]
    {
        for host in [host.to_owned(), format!("{host}:{port}")] {
            if host == viewer.host() {
                continue;
            }
            assert_eq!(status(format!("Host: {host}\r\n")), 403, "{host}");
        }
    }
    assert_eq!(status(String::new()), 403);
    let own_host = format!("Host: {}\r\n", viewer.host());
    assert_eq!(status(format!("{own_host}Origin: http://{}\r\n", viewer.host())), 200);
    for origin in [
        "http://evil.example",
        "null",
        "file://",
        &format!("http://localhost:{port}"),
        &format!("https://{}", viewer.host()),
    ] {
        assert_eq!(status(format!("{own_host}Origin: {origin}\r\n")), 403, "{origin}");
    }
}

#[test]
fn every_response_has_the_security_headers() {
    let dir = tempfile::tempdir().unwrap();
    let viewer = Viewer::open(&[&demo(dir.path())]);
    let page = viewer.send("GET", &viewer.path(), "", "");
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    let nothing = viewer.send("GET", "/", "", "");
    for reply in [&page, &nothing, &viewer.get("models"), &viewer.get("models/9/summary")] {
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
    assert_eq!(viewer.get("models").header("cache-control"), "no-store");
}

#[test]
fn path_traversal_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let viewer = Viewer::open(&[&demo(dir.path())]);
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
        let reply = viewer.send("GET", &format!("{}{path}", viewer.path()), "", "");
        assert_eq!(reply.status, 404, "{path}: {}", reply.text());
    }
}

#[test]
fn methods_content_types_and_bodies_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let viewer = Viewer::open(&[&demo(dir.path())]);
    let at = |address: &str| format!("{}api/1/{address}", viewer.path());
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        assert_eq!(viewer.send(method, &at("models"), "", "").status, 405, "{method}");
        assert_eq!(viewer.send(method, &at("models/0/summary"), "", "").status, 405, "{method}");
    }
    assert_eq!(viewer.send("GET", &at("models/0/tokenize"), "", "").status, 405);
    let head = viewer.send("HEAD", &at("models/0/summary"), "", "");
    assert_eq!((head.status, head.body.len()), (200, 0));

    let body = json!({ "text": "a" }).to_string();
    for content_type in
        ["", "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n"]
    {
        let reply = viewer.send("POST", &at("models/0/tokenize"), content_type, &body);
        reply.assert_error(415, "request-invalid");
    }
    let json = "Content-Type: application/json; charset=utf-8\r\n";
    assert_eq!(viewer.send("POST", &at("models/0/tokenize"), json, &body).status, 200);
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
        viewer
            .send("POST", &at("models/0/tokenize"), json, wrong)
            .assert_error(400, "request-invalid");
    }
    let long = json!({ "text": "a".repeat(2 << 20) }).to_string();
    assert_eq!(viewer.send("POST", &at("models/0/tokenize"), json, &long).status, 413);
    let long = json!({ "text": "a".repeat(70_000) });
    viewer.post("models/0/tokenize", &long).assert_error(400, "request-invalid");
}

/// Malformed requests, long headers and disconnecting clients do not stop the server.
#[test]
fn the_server_survives_malformed_requests_and_disconnects() {
    let dir = tempfile::tempdir().unwrap();
    let viewer = Viewer::open(&[&demo(dir.path())]);
    for request in
        [&b"\0\0\0\0\r\n\r\n"[..], b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", &[b'a'; 1 << 20]]
    {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(viewer.host()).unwrap();
        let _ = stream.write_all(request);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    for _ in 0..50 {
        use std::io::Write;
        let mut stream = std::net::TcpStream::connect(viewer.host()).unwrap();
        let path = format!("{}api/1/models/0/tensor/statistics?n=0&exact=true", viewer.path());
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", viewer.host()).unwrap();
        // The client disconnects.
    }
    assert_eq!(viewer.get("models/0/summary").status, 200);
}

#[test]
fn an_address_in_use_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    let mut options = options(&[&path]);
    options.port = viewer.host().split(':').nth(1).unwrap().parse().unwrap();
    let error = gguf_viewer::Server::bind(options).err().unwrap();
    assert_eq!(error.fault(), gguf::Fault::Environment);
    assert!(
        error.to_string().starts_with(&format!("cannot listen at {}", viewer.host())),
        "{error}"
    );
}
