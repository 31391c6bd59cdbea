//! HTTP range requests against correct, failing and malicious servers.

use std::path::Path;
use std::time::{Duration, Instant};

use gguf_remote::{Error, Fault, HfToken, Location, OpenFile, RemoteOptions, open_with};

use crate::server::{Reply, Request, Server};

/// Returns bytes that differ from their neighbours.
fn file(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

const MIB: usize = 1 << 20;

/// Short timeouts for tests.
fn options() -> RemoteOptions {
    RemoteOptions {
        read_timeout: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(5),
        attempts: 3,
        backoff: Duration::from_millis(10),
        max_backoff: Duration::from_secs(2),
        hf_token: Some(HfToken("hf_secret".into())),
        ..RemoteOptions::default()
    }
}

fn open(server: &Server, path: &str) -> Result<OpenFile, Error> {
    open_with(&Location::parse(&server.url(path))?, options())
}

fn open_fault(server: &Server, path: &str) -> Fault {
    open_fault_with(server, path, options())
}

fn open_fault_with(server: &Server, path: &str, options: RemoteOptions) -> Fault {
    match open_with(&Location::parse(&server.url(path)).unwrap(), options) {
        Err(Error::Remote { fault, place }) => {
            assert_eq!(place, server.url(path));
            fault
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("opened"),
    }
}

fn read(opened: &OpenFile, offset: u64, len: usize) -> Result<Vec<u8>, String> {
    let mut buffer = vec![0; len];
    match opened.source.read_at(&mut buffer, offset) {
        Ok(()) => Ok(buffer),
        Err(error) => Err(error.to_string()),
    }
}

/// Starts a server of one file; `change` modifies its responses.
fn serve(
    file: Vec<u8>,
    change: impl Fn(&Request, Reply) -> Reply + Send + Sync + 'static,
) -> Server {
    Server::start(move |request| change(request, Reply::range(request, &file)))
}

#[test]
fn range_requests_are_counted() {
    let server = serve(file(3 * MIB), |_, reply| reply);
    let opened = open(&server, "/dir/my%20model.gguf?signed=1").unwrap();
    assert_eq!(opened.name, "my model.gguf");
    let place = server.url("/dir/my%20model.gguf");
    assert_eq!(opened.source.file(), Some(Path::new(&place)), "without secrets");
    assert_eq!(opened.source.byte_len(), 3 * MIB as u64);
    assert_eq!(opened.transferred.bytes(), 256 << 10);
    // The first bytes are cached, also as the front of a longer read.
    assert_eq!(read(&opened, 100, 1000).unwrap(), file(1100)[100..]);
    assert_eq!(server.requests().len(), 1);
    assert_eq!(read(&opened, 0, MIB).unwrap(), file(MIB));
    assert_eq!(opened.transferred.bytes(), MIB as u64);
    assert_eq!(read(&opened, 2 * MIB as u64, MIB).unwrap(), file(3 * MIB)[2 * MIB..]);
    assert_eq!(opened.transferred.bytes(), 2 * MIB as u64);
    assert!(read(&opened, 3 * MIB as u64, 0).unwrap().is_empty());
    assert!(read(&opened, 3 * MIB as u64, 1).is_err());
    assert!(read(&opened, u64::MAX, 1).is_err());
    assert_eq!(server.requests().len(), 3);
    for request in server.requests() {
        assert_eq!(request.header("Accept-Encoding"), Some("identity"));
        // This host is not the hub.
        assert_eq!(request.header("Authorization"), None);
    }
}

#[test]
fn concurrent_readers() {
    let server = serve(file(2 * MIB), |_, reply| reply);
    let opened = open(&server, "/m.gguf").unwrap();
    std::thread::scope(|scope| {
        for i in 0..8 {
            let (opened, start) = (&opened, MIB + i * 1000);
            scope.spawn(move || {
                let expected = &file(2 * MIB)[start..start + 5000];
                assert_eq!(read(opened, start as u64, 5000).unwrap(), expected);
            });
        }
    });
}

#[test]
fn small_and_empty_files() {
    let server = serve(file(10), |_, reply| reply);
    let opened = open(&server, "/m.gguf").unwrap();
    assert_eq!(
        (opened.source.byte_len(), read(&opened, 3, 7).unwrap()),
        (10, file(10)[3..].into())
    );
    let server = serve(Vec::new(), |_, reply| reply);
    let opened = open(&server, "/m.gguf").unwrap();
    assert_eq!((opened.source.byte_len(), read(&opened, 0, 0).unwrap()), (0, vec![]));
}

#[test]
fn broken_connections_resume() {
    // Every body ends after 100000 bytes; the last attempt is complete.
    let server = serve(file(MIB), |_, reply| reply.truncate(100_000));
    let opened = open(&server, "/m.gguf").unwrap();
    let starts = || server.requests().iter().map(|r| r.range().unwrap().0).collect::<Vec<_>>();
    assert_eq!(starts(), [0, 100_000, 200_000]);
    assert_eq!(opened.transferred.bytes(), 256 << 10);
    assert_eq!(read(&opened, 300_000, 250_000).unwrap(), file(MIB)[300_000..550_000]);
    assert_eq!(starts()[3..], [300_000, 400_000, 500_000]);
    // Three attempts are not enough for this range.
    let message = read(&opened, 300_000, 400_000).unwrap_err();
    assert!(message.contains("cannot read http://127.0.0.1"), "{message}");
}

#[test]
fn busy_servers_are_retried_after_their_delay() {
    for status in [408, 429, 500, 502, 503, 504] {
        let server =
            serve(
                file(1000),
                move |request, reply| {
                    if request.earlier == 0 { Reply::status(status) } else { reply }
                },
            );
        assert_eq!(open(&server, "/m.gguf").unwrap().source.byte_len(), 1000, "{status}");
    }
    let wait = |seconds: &'static str| {
        serve(file(1000), move |request, reply| match request.earlier {
            0 => Reply::status(429).header("Retry-After", seconds),
            _ => reply,
        })
    };
    let start = Instant::now();
    open(&wait("1"), "/m.gguf").unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1));
    // Longer than the maximum delay: fails immediately.
    let fault = open_fault(&wait("3600"), "/m.gguf");
    assert_eq!(fault, Fault::Busy { status: 429, wait: Some(Duration::from_secs(3600)) });
    // Busy on every attempt.
    let server = serve(file(1000), |_, _| Reply::status(503));
    assert_eq!(open_fault(&server, "/m.gguf"), Fault::Busy { status: 503, wait: None });
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn servers_without_range_requests_are_read_from_the_start() {
    let server = serve(Vec::new(), |_, _| Reply::whole(&file(8 * MIB)));
    let opened = open(&server, "/m.gguf").unwrap();
    assert_eq!(opened.source.byte_len(), 8 * MIB as u64);
    assert_eq!(read(&opened, MIB as u64, 1000).unwrap(), file(MIB + 1000)[MIB..]);
    assert_eq!(opened.transferred.bytes(), (256 << 10) + MIB as u64 + 1000);

    // Too far from the start: only the length is forged, no body of that size is sent.
    let server = serve(Vec::new(), |_, _| {
        Reply::whole(&file(MIB)).header("Content-Length", (9u64 << 30).to_string())
    });
    let opened = open(&server, "/m.gguf").unwrap();
    let message = read(&opened, 1 << 30, 10).unwrap_err();
    assert!(message.contains("does not support range requests"), "{message}");

    let server = serve(Vec::new(), |_, _| Reply::whole(&file(10)).header("Content-Length", "x"));
    assert!(matches!(open_fault(&server, "/m.gguf"), Fault::Response(_) | Fault::Connection(_)));
}

#[test]
fn invalid_responses_are_rejected() {
    let len = 10_000;
    let cases: [(&str, &str); 6] = [
        ("Content-Range", "bytes 1-9999/10000"),
        ("Content-Range", "bytes 0-9998/10000"),
        ("Content-Range", "bytes 0-9999/9000"),
        ("Content-Range", "bytes 0-9999/*"),
        ("Content-Range", "nonsense"),
        ("Content-Encoding", "gzip"),
    ];
    for (name, value) in cases {
        let server = serve(file(len), move |_, reply| reply.header(name, value));
        let fault = open_fault(&server, "/m.gguf");
        assert!(matches!(fault, Fault::Response(_)), "{name}: {value}: {fault:?}");
        assert_eq!(server.requests().len(), 1, "{name}: {value}");
    }
    let server = serve(file(len), move |_, reply| reply.body(file(len - 1)));
    assert!(matches!(open_fault(&server, "/m.gguf"), Fault::Response(_)));
    let server = serve(file(len), move |_, _| Reply::status(206).body(file(len)));
    assert!(matches!(open_fault(&server, "/m.gguf"), Fault::Response(_)));
    // Several parts at once, and more bytes than requested.
    let server = serve(file(len), |_, reply| {
        reply.header("Content-Range", "").header("Content-Type", "multipart/byteranges; boundary=x")
    });
    assert!(matches!(open_fault(&server, "/m.gguf"), Fault::Response(_)));
    let server = serve(file(len), move |_, reply| reply.body(file(2 * len)));
    assert!(matches!(open_fault(&server, "/m.gguf"), Fault::Response(_)));
    // Endless headers.
    let server = serve(file(len), |_, reply| reply.header("X-Long", "x".repeat(10 * MIB)));
    assert!(matches!(open_fault(&server, "/m.gguf"), Fault::Connection(_)));
    let server = serve(file(len), |_, reply| {
        (0..10_000).fold(reply, |reply, i| reply.header(&format!("X-{i}"), "x"))
    });
    assert!(matches!(open_fault(&server, "/m.gguf"), Fault::Connection(_) | Fault::Unreachable(_)));
    // An absurd length: no memory is allocated for it.
    let server = serve(file(len), |_, reply| {
        reply.header("Content-Range", format!("bytes 0-262143/{}", u64::MAX)).body(file(256 << 10))
    });
    let opened = open(&server, "/m.gguf").unwrap();
    assert!(gguf_store::fetch_header(&*opened.source, gguf::Limits::default()).is_ok());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn changed_files_are_detected() {
    let grows = Server::start(|request| {
        Reply::range(request, &file(if request.earlier == 0 { MIB } else { MIB + 1 }))
    });
    let tagged = serve(file(MIB), |request, reply| {
        reply.header("ETag", if request.earlier == 0 { "\"a\"" } else { "\"b\"" })
    });
    let honest = serve(file(MIB), |request, reply| match request.header("If-Range") {
        Some(tag) if tag != "\"b\"" => Reply::whole(&file(MIB)).header("ETag", "\"b\""),
        _ => reply.header("ETag", "\"a\""),
    });
    let dated = serve(file(MIB), |request, reply| {
        let day = if request.earlier == 0 { "06" } else { "07" };
        reply.header("Last-Modified", format!("Sun, {day} Nov 1994 08:49:37 GMT"))
    });
    // A server that no longer states the version.
    let drops_etag = serve(file(MIB), |request, reply| match request.earlier {
        0 => reply.header("ETag", "\"a\""),
        _ => reply,
    });
    for server in [&grows, &tagged, &honest, &dated, &drops_etag] {
        let opened = open(server, "/m.gguf").unwrap();
        let message = read(&opened, 300_000, 10).unwrap_err();
        assert!(message.contains("the file changed"), "{message}");
    }
    assert_eq!(tagged.requests()[1].header("If-Range"), Some("\"a\""));
}

#[test]
fn identities_change_with_the_content() {
    let identity = |headers: &'static [(&'static str, &'static str)], path: &str| {
        let server = serve(file(1000), move |request, reply| {
            if request.path.starts_with("/here") {
                return Reply::status(302).header("Location", "/signed?Signature=secret");
            }
            headers.iter().fold(reply, |reply, (name, value)| reply.header(name, *value))
        });
        let identity = open(&server, path).unwrap().source.identity();
        identity.map(|identity| identity.replace(&server.port.to_string(), "PORT"))
    };
    let tag = &[("ETag", "\"a\""), ("X-Linked-ETag", "\"of no hub\"")];
    let here = "http://127.0.0.1:PORT/here 1000 \"a\"";
    assert_eq!(identity(tag, "/here?sig=x&se=2026").as_deref(), Some(here));
    assert_eq!(identity(tag, "/here").as_deref(), Some(here));
    let other = "http://127.0.0.1:PORT/here?id=7 1000 \"a\"";
    assert_eq!(identity(tag, "/here?id=7").as_deref(), Some(other));
    assert_eq!(identity(&[], "/m.gguf"), None);
    assert_eq!(identity(&[("ETag", "W/\"a\"")], "/m.gguf"), None);
}

#[test]
fn slow_servers_time_out() {
    let impatient = || RemoteOptions {
        read_timeout: Duration::from_millis(300),
        min_throughput: 64 << 20,
        ..options()
    };
    let start = Instant::now();
    // No byte within the read timeout; then single bytes, each within the timeout.
    let stalled = serve(file(1000), |_, reply| reply.pause(1000, Duration::from_secs(20)));
    let drips = serve(file(1000), |_, reply| reply.pause(1, Duration::from_millis(100)));
    for server in [stalled, drips] {
        let fault = open_fault_with(&server, "/m.gguf", impatient());
        assert!(matches!(fault, Fault::Connection(_)), "{fault:?}");
        assert_eq!(server.requests().len(), 3);
    }
    // Six attempts of 0.3 s, their delays, and time for a busy machine; all bytes would take 100 s.
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}

#[test]
fn web_pages_and_lfs_pointers_are_reported() {
    let page = serve(Vec::new(), |_, _| {
        Reply::whole(b"<!doctype html>").header("Content-Type", "text/html; charset=utf-8")
    });
    assert!(matches!(open_fault(&page, "/o/r/blob/main/m.gguf"), Fault::NotTheFile(_)));
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n";
    let pointer = serve(pointer.to_vec(), |_, reply| reply);
    assert!(matches!(open_fault(&pointer, "/m.gguf"), Fault::NotTheFile(_)));
    for status in [400, 401, 403, 404, 410, 451, 501] {
        let server = serve(Vec::new(), move |_, _| Reply::status(status));
        let fault = open_fault(&server, "/m.gguf");
        assert!(matches!(fault, Fault::Status { status: s, .. } if s == status), "{fault:?}");
        assert_eq!(server.requests().len(), 1, "{status}");
    }
    let unreachable = Location::parse("http://127.0.0.1:1/m.gguf").unwrap();
    let Err(Error::Remote { fault, .. }) = open_with(&unreachable, options()) else { panic!() };
    assert!(matches!(fault, Fault::Connection(_)), "{fault:?}");
}

#[test]
fn redirects_are_followed_and_limited() {
    let server = Server::start(|request| match request.path.as_str() {
        "/there" => Reply::range(request, &file(MIB)),
        "/here" => Reply::status(302).header("Location", "there"),
        "/loop" => Reply::status(302).header("Location", "/loop"),
        "/file" => Reply::status(302).header("Location", "file:///etc/hostname"),
        _ => Reply::status(302),
    });
    let opened = open(&server, "/here").unwrap();
    assert_eq!(read(&opened, 300_000, 10).unwrap(), file(MIB)[300_000..300_010]);
    let paths: Vec<_> = server.requests().into_iter().map(|request| request.path).collect();
    // The second read goes straight to the final URL of the redirect.
    assert_eq!(paths, ["/here", "/there", "/there"]);
    assert_eq!(open_fault(&server, "/loop"), Fault::Redirect("too often"));
    assert!(matches!(open_fault(&server, "/file"), Fault::Redirect(_)));
    assert!(matches!(open_fault(&server, "/nowhere"), Fault::Redirect("without a target")));
}

#[test]
fn expired_redirects_are_requested_again() {
    let server = Server::start(|request| match request.path.as_str() {
        "/here" if request.earlier == 0 => Reply::status(302).header("Location", "/signed1"),
        "/here" => Reply::status(302).header("Location", "/signed2"),
        "/signed1" if request.earlier > 0 => Reply::status(403),
        _ => Reply::range(request, &file(MIB)),
    });
    let opened = open(&server, "/here").unwrap();
    assert_eq!(read(&opened, 300_000, 10).unwrap(), file(MIB)[300_000..300_010]);
    let paths: Vec<_> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/here", "/signed1", "/signed1", "/here", "/signed2"]);
}

#[test]
fn headers_cost_a_small_part_of_the_file() {
    let mut draft = gguf::RawHeader::default();
    draft.metadata.set("general.architecture", "llama");
    let words = (0..200_000).map(|i| format!("word {i}"));
    let words = gguf::Value::Array(gguf::Array::from_strings(words));
    draft.metadata.set("tokenizer.ggml.tokens", words);
    draft.tensors.push(gguf::TensorInfo {
        name: "output.weight".into(),
        shape: gguf::Shape::new(&[8 << 20]).unwrap(),
        tensor_type: gguf::TensorType::F32,
        offset: 0,
        opaque_len: None,
    });
    let data = draft.lay_out().unwrap() as usize;
    let mut bytes = gguf::write_header(&gguf::Header::new(draft).unwrap()).unwrap();
    let header = bytes.len();
    bytes.extend(file(data));

    let served = bytes.clone();
    let server = serve(bytes, |_, reply| reply);
    let opened = open(&server, "/m.gguf").unwrap();
    let limits = gguf::Limits::default();
    let fetched = gguf_store::fetch_header(&*opened.source, limits).unwrap();
    let model = gguf::Gguf::read_header(&fetched, opened.source.byte_len(), limits).unwrap();
    let cost = opened.transferred.bytes();
    assert!(cost <= header as u64 * 3 / 2 + MIB as u64, "{cost} for {header}");
    // Read a tensor on demand.
    let range = model.data_range(&model.tensors()[0]).unwrap();
    let tensor = read(&opened, range.start, 1000).unwrap();
    assert_eq!(tensor, served[range.start as usize..][..1000]);
    assert_eq!(opened.transferred.bytes(), cost + 1000);
}
