//! Names on the Hugging Face hub, and where its token goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use gguf_remote::{Error, Fault, HfToken, Location, Opened, Options, open_with};

use crate::server::{Reply, Server};

fn open(hub: &Server, word: &str, token: Option<&str>) -> Result<Opened, Error> {
    let options = Options {
        hf_endpoint: hub.url(""),
        hf_token: token.map(|token| HfToken(token.into())),
        attempts: 1,
        ..Options::default()
    };
    open_with(&Location::parse(word)?, options)
}

#[test]
fn the_token_is_for_the_hub_only() {
    let elsewhere = Server::start(|request| Reply::part(request, b"GGUF far away"));
    // The same machine by another name is another host.
    let target = format!("http://localhost:{}/blob?signature=x", elsewhere.port);
    let hub = Server::start(move |_| Reply::status(302).header("Location", target.as_str()));
    let opened = open(&hub, "hf:org/repo:dir/m.gguf@v1", Some("hf_secret")).unwrap();
    assert_eq!((opened.name.as_str(), opened.source.byte_len()), ("m.gguf", 13));
    let asked = &hub.requests()[0];
    assert_eq!(asked.path, "/org/repo/resolve/v1/dir/m.gguf");
    assert_eq!(asked.header("Authorization"), Some("Bearer hf_secret"));
    assert_eq!(elsewhere.requests().len(), 1);
    assert_eq!(elsewhere.requests()[0].path, "/blob?signature=x");
    assert_eq!(elsewhere.requests()[0].header("Authorization"), None);
    // Nor does it show when somebody prints the options.
    let options = Options { hf_token: Some(HfToken("hf_secret".into())), ..Options::default() };
    assert!(!format!("{options:?}").contains("secret"));
}

#[test]
fn a_repository_is_listed_page_by_page() {
    let port = Arc::new(AtomicU16::new(0));
    let here = Arc::clone(&port);
    let hub = Server::start(move |request| match request.path.as_str() {
        "/api/models/org/repo/tree/refs%2Fpr%2F1?recursive=true" => {
            let port = here.load(Ordering::Relaxed);
            let next = format!("<http://127.0.0.1:{port}/page2?cursor=a%3D>; rel=\"next\"");
            let page = r#"[{"type":"directory","path":"q","oid":"0","size":0},
                {"type":"file","path":"README.md","oid":"0","size":5}]"#;
            Reply::whole(page.as_bytes()).header("Link", next)
        }
        "/page2?cursor=a%3D" => Reply::whole(
            br#"[{"type":"file","path":"q/a-Q4_K_M.gguf"},{"type":"file","path":"q/a-Q8_0.gguf"},
                {"type":"file","path":"mmproj-Q8_0.gguf"}]"#,
        ),
        "/org/repo/resolve/refs%2Fpr%2F1/q/a-Q8_0.gguf" => Reply::part(request, b"GGUF"),
        _ => Reply::status(404),
    });
    port.store(hub.port, Ordering::Relaxed);
    let opened = open(&hub, "hf:org/repo:Q8_0@refs/pr/1", Some("hf_secret")).unwrap();
    assert_eq!((opened.name.as_str(), opened.source.byte_len()), ("a-Q8_0.gguf", 4));
    assert_eq!(hub.requests().len(), 3);
    for request in hub.requests() {
        assert_eq!(request.header("Authorization"), Some("Bearer hf_secret"));
    }
    let Err(Error::Choice(choice)) = open(&hub, "hf:org/repo@refs/pr/1", None) else {
        panic!("two files, none named")
    };
    assert_eq!(choice.place, "hf:org/repo@refs/pr/1");
    assert_eq!(choice.names, ["q/a-Q4_K_M.gguf", "q/a-Q8_0.gguf"]);
}

/// What is said about a repository whose pages the server makes by their number, from 0.
fn listing_fault(page: impl Fn(usize, u16) -> Reply + Send + Sync + 'static) -> (Fault, usize) {
    let (port, asked) = (Arc::new(AtomicU16::new(0)), AtomicU16::new(0));
    let here = Arc::clone(&port);
    let hub = Server::start(move |_| {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        page(number.into(), here.load(Ordering::Relaxed))
    });
    port.store(hub.port, Ordering::Relaxed);
    match open(&hub, "hf:org/repo", Some("hf_secret")) {
        Err(Error::Remote { fault, .. }) => (fault, hub.requests().len()),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("opened"),
    }
}

#[test]
fn listings_come_to_an_end() {
    const ONE: &[u8] = br#"[{"type":"file","path":"a.txt"}]"#;
    let next =
        |target: String| Reply::whole(ONE).header("Link", format!("<{target}>; rel=\"next\""));
    let says = |what: &str| Fault::Answer(what.into());
    // To itself, and to the page before.
    let (fault, asked) = listing_fault(move |number, _| next(format!("/page?n={}", number.min(1))));
    assert_eq!((fault, asked), (says("its listing leads in a circle"), 3));
    // Always one more, small.
    let (fault, asked) = listing_fault(move |number, _| next(format!("/page?n={number}")));
    assert_eq!((fault, asked), (says("the listing has no end"), 1025));
    // Always one more, large: most of it is space.
    let (fault, asked) = listing_fault(move |number, _| {
        next(format!("/page?n={number}")).body([ONE, &vec![b' '; 7 << 20][..]].concat())
    });
    assert_eq!((fault, asked), (says("the listing has no end"), 10));
    let (fault, _) = listing_fault(|_, _| Reply::whole(&vec![b' '; 20 << 20]));
    assert_eq!(fault, says("a page of the listing has no end"));
    let many = r#"{"type":"file","path":"a"},"#.repeat(100_000);
    let many = format!("[{}]", many.trim_end_matches(','));
    let (fault, _) = listing_fault(move |number, _| next(format!("/page?n={number}")).body(&*many));
    assert_eq!(fault, says("it lists more than 200000 files"));
    // Nested deeper than a stack is high.
    let (fault, _) = listing_fault(|_, _| Reply::whole("[".repeat(1 << 20).as_bytes()));
    assert!(matches!(fault, Fault::Answer(_)), "{fault:?}");
    let deep = format!(r#"[{{"type":"file","path":"a","x":{}"#, "[".repeat(1 << 20));
    let (fault, _) = listing_fault(move |_, _| Reply::whole(deep.as_bytes()));
    assert!(matches!(fault, Fault::Answer(_)), "{fault:?}");
    let number = format!(r#"[{{"type":"file","path":"a","size":{}}}]"#, "9".repeat(1 << 20));
    let (fault, _) = listing_fault(move |number_of_page, _| match number_of_page {
        0 => Reply::whole(number.as_bytes()).header("Link", "<file:///etc/passwd>; rel=next"),
        _ => Reply::status(500),
    });
    assert_eq!(fault, Fault::Redirect("to something else than http or https"));
}

#[test]
fn the_token_does_not_follow_a_listing_elsewhere() {
    let elsewhere = Server::start(|_| Reply::whole(br#"[{"type":"file","path":"a.txt"}]"#));
    let target = format!("<http://localhost:{}/page>; rel=\"next\"", elsewhere.port);
    let hub = Server::start(move |_| Reply::whole(b"[]").header("Link", target.as_str()));
    let opened = open(&hub, "hf:org/repo", Some("hf_secret"));
    assert!(matches!(opened, Err(Error::Choice(_))));
    assert_eq!(elsewhere.requests().len(), 1);
    assert_eq!(elsewhere.requests()[0].header("Authorization"), None);
}

#[test]
fn names_that_no_file_here_could_have_are_left_out() {
    let listing = r#"[{"type":"file","path":"../a.gguf"},{"type":"file","path":"/b.gguf"},
        {"type":"file","path":"c\u001b[2J.gguf"},{"type":"file","path":"C:\\d.gguf"},
        {"type":"file","path":"e.gguf"},{"type":"file","path":"x/../f.gguf"}]"#;
    let hub = Server::start(move |request| match request.path.as_str() {
        "/org/repo/resolve/main/e.gguf" => Reply::part(request, b"GGUF"),
        path if path.starts_with("/api/") => Reply::whole(listing.as_bytes()),
        _ => Reply::status(404),
    });
    let opened = open(&hub, "hf:org/repo", None).unwrap();
    assert_eq!(opened.name, "e.gguf");
}

#[test]
fn a_file_on_the_hub_is_known_by_its_digest_and_its_commit() {
    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
    let blob =
        Server::start(|request| Reply::part(request, b"GGUF").header("ETag", "\"of a node\""));
    let target = format!("http://127.0.0.1:{}/blob?Signature=x", blob.port);
    let hub = Server::start(move |_| {
        Reply::status(302)
            .header("Location", target.as_str())
            .header("X-Repo-Commit", COMMIT)
            .header("X-Linked-ETag", "\"sha256\"")
    });
    let opened = open(&hub, "hf:org/repo:m.gguf", None).unwrap();
    assert_eq!(opened.source.identity(), Some(format!("{} 4 \"sha256\"", hub.url(""))));
    let Location::Hub(found) = opened.location else { panic!() };
    assert_eq!((found.file.as_deref(), &*found.revision), (Some("m.gguf"), COMMIT));
}

#[test]
fn refusals_say_what_to_do() {
    let hub =
        Server::start(|_| Reply::status(401).header("X-Error-Message", "Repository not found"));
    let refusal = |token| match open(&hub, "hf:org/repo", token) {
        Err(Error::Remote { fault: Fault::Status { status: 401, hint }, .. }) => hint,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("opened"),
    };
    let hint = refusal(None);
    assert!(hint.starts_with("Repository not found; set HF_TOKEN"), "{hint}");
    let hint = refusal(Some("hf_secret"));
    assert!(hint.contains("the token in HF_TOKEN may not"), "{hint}");

    let garbage = Server::start(|_| Reply::whole(b"<html>"));
    let Err(Error::Remote { fault: Fault::Answer(_), .. }) = open(&garbage, "hf:org/repo", None)
    else {
        panic!("no listing was read")
    };
}

#[test]
fn local_files_and_folders_open_by_the_same_call() {
    let dir = std::env::temp_dir().join(format!("gguf-remote-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("README.md"), b"text").unwrap();
    std::fs::write(dir.join("only.gguf"), b"GGUF!").unwrap();
    let opened = gguf_remote::open(dir.to_str().unwrap()).unwrap();
    assert_eq!((opened.name.as_str(), opened.source.byte_len()), ("only.gguf", 5));
    assert_eq!(opened.transferred.bytes(), 0);
    std::fs::write(dir.join("other.gguf"), b"GGUF").unwrap();
    std::fs::write(dir.join("mmproj-only.gguf"), b"GGUF").unwrap();
    std::fs::remove_file(dir.join("other.gguf")).unwrap();
    assert_eq!(gguf_remote::open(dir.to_str().unwrap()).unwrap().name, "only.gguf");
    std::fs::write(dir.join("other.gguf"), b"GGUF").unwrap();
    let message = gguf_remote::open(dir.to_str().unwrap()).err().unwrap().to_string();
    let expected =
        format!("2 models at {}: only.gguf, other.gguf; name one of them", dir.display());
    assert_eq!(message, expected);
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(matches!(gguf_remote::open("no/such/file.gguf"), Err(Error::Local(_))));
}
