//! Remote models: interrupted work, object stores without credentials, and the Hub.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::cli::support::{Dir, MODEL, fails, other_weights, succeeds};
use crate::server::{Reply, Request, Server};

/// Version headers of a file.
type Says = &'static [(&'static str, &'static str)];

const NOON: (&str, &str) = ("Date", "Sun, 22 Nov 2026 12:00:00 GMT");

/// Serves one file in two versions, without the last quarter of the first.
struct TwoVersions {
    server: Server,
    now: Arc<AtomicUsize>,
}

impl TwoVersions {
    fn start(versions: [(Vec<u8>, Says); 2]) -> Self {
        let now = Arc::new(AtomicUsize::new(0));
        let version = now.clone();
        let server = Server::start(move |request| {
            let version = version.load(Ordering::Relaxed);
            let (file, says) = &versions[version];
            if request.path.starts_with("/moved") {
                let signed = format!("/m.gguf?Signature={version}{}", request.earlier);
                return Reply::status(302).header("Location", signed);
            }
            match request.range() {
                Some((start, _)) if version == 0 && start > file.len() / 4 * 3 => {
                    Reply::status(404)
                }
                _ => says.iter().fold(Reply::range(request, file), |reply, (name, value)| {
                    reply.header(name, *value)
                }),
            }
        });
        Self { server, now }
    }

    /// Quantizes the first version until it fails, then the current one. Returns the output of the second run.
    /// The server is also an object store.
    fn interrupted(&self, path: &str, dir: &Dir, first: &[&str], then: &[&str]) -> Output {
        let (url, out) = (self.server.url(path), dir.path("out.gguf"));
        let word = if path.starts_with('/') { &url } else { path };
        let run = |options: &[&str]| {
            let words = [&["quantize", "--resume", "--force"], options, &[word, &out, "Q8_0", "2"]]
                .concat();
            Command::new(env!("CARGO_BIN_EXE_gguf"))
                .args(words)
                .envs(store_at(&self.server))
                .output()
                .unwrap()
        };
        self.now.store(0, Ordering::Relaxed);
        assert_eq!(run(first).status.code(), Some(3));
        assert!(Path::new(&dir.path(".out.gguf.unfinished.gguf-kit-part")).is_file());
        self.now.store(1, Ordering::Relaxed);
        run(then)
    }
}

/// Returns the environment that maps `s3://` to a server.
fn store_at(server: &Server) -> [(&'static str, String); 4] {
    [
        ("AWS_ENDPOINT_URL", server.url("")),
        ("AWS_ACCESS_KEY_ID", "test".into()),
        ("AWS_SECRET_ACCESS_KEY", "test".into()),
        ("AWS_REGION", "us-east-1".into()),
    ]
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn resume_never_mixes_two_versions_of_a_remote_file() {
    let dir = Dir::new();
    let (old, new) = (dir.f16(), other_weights(&dir));
    let (of_old, of_new) = (dir.path("old-q8.gguf"), dir.path("new-q8.gguf"));
    succeeds(&["quantize", &old, &of_old, "Q8_0"]);
    succeeds(&["quantize", &new, &of_new, "Q8_0"]);
    let read = |path: &str| std::fs::read(path).unwrap();
    assert_eq!(read(&old).len(), read(&new).len());
    assert_ne!(read(&of_old), read(&of_new));

    let changed: [[Says; 2]; 3] = [
        [&[("ETag", "\"a\"")], &[("ETag", "\"b\"")]],
        [
            &[NOON, ("Last-Modified", "Sat, 21 Nov 2026 08:00:00 GMT")],
            &[NOON, ("Last-Modified", "Sat, 21 Nov 2026 08:00:01 GMT")],
        ],
        // A weak ETag does not identify bytes, the date does.
        [
            &[NOON, ("ETag", "W/\"a\""), ("Last-Modified", "Sat, 21 Nov 2026 08:00:00 GMT")],
            &[NOON, ("ETag", "W/\"a\""), ("Last-Modified", "Sun, 22 Nov 2026 08:00:00 GMT")],
        ],
    ];
    let in_store: [Says; 2] = [
        &[("ETag", "\"a\""), ("Last-Modified", "Sat, 21 Nov 2026 08:00:00 GMT")],
        &[("ETag", "\"b\""), ("Last-Modified", "Sat, 21 Nov 2026 08:00:00 GMT")],
    ];
    let changed = changed.map(|says| ("/m.gguf", says)).into_iter();
    for (path, [before, after]) in changed.chain([("s3://bucket/m.gguf", in_store)]) {
        let far = TwoVersions::start([(read(&old), before), (read(&new), after)]);
        let output = far.interrupted(path, &dir, &[], &[]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(read(&dir.path("out.gguf")) == read(&of_new), "{before:?}: two versions mixed");
        assert!(stderr(&output).contains("starting over"), "{}", stderr(&output));
    }

    // The same version, also with redirects to newly signed URLs.
    for (says, path) in [
        (&[("ETag", "\"a\"")] as Says, "/m.gguf"),
        (&[("ETag", "\"a\"")], "/moved.gguf"),
        (&[NOON, ("Last-Modified", "Sat, 21 Nov 2026 08:00:00 GMT")], "/m.gguf"),
        (in_store[0], "s3://bucket/m.gguf"),
    ] {
        let far = TwoVersions::start([(read(&old), says), (read(&old), says)]);
        let before = |request: &Request| request.range().map_or(0, |(start, end)| end - start);
        let output = far.interrupted(path, &dir, &[], &[]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(read(&dir.path("out.gguf")) == read(&of_old));
        assert!(!stderr(&output).contains("starting over"), "{}", stderr(&output));
        let requested: usize = far.server.requests().iter().map(before).sum();
        let whole = read(&old).len();
        assert!(requested < whole + whole / 2, "{requested} of {whole}: nothing was resumed");
    }
}

#[test]
fn resume_with_other_pruned_blocks_starts_over() {
    let dir = Dir::new();
    let (model, expected) = (dir.f16(), dir.path("expected.gguf"));
    succeeds(&["quantize", "--prune-layers", "2", &model, &expected, "Q8_0"]);
    let file = || (std::fs::read(&model).unwrap(), &[("ETag", "\"a\"")] as Says);
    let far = TwoVersions::start([file(), file()]);
    let output =
        far.interrupted("/m.gguf", &dir, &["--prune-layers", "1"], &["--prune-layers", "2"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let read = |path: &str| std::fs::read(path).unwrap();
    assert!(read(&dir.path("out.gguf")) == read(&expected), "two choices of blocks mixed");
}

#[test]
fn a_remote_file_without_version_cannot_be_resumed() {
    let dir = Dir::new();
    let (model, out, expected) = (dir.f16(), dir.path("out.gguf"), dir.path("expected.gguf"));
    succeeds(&["quantize", &model, &expected, "Q8_0"]);
    let file = std::fs::read(&model).unwrap();
    let nothing: [Says; 4] = [
        &[],
        &[("ETag", "W/\"a\"")],
        // Modified within the second of the read, so the date is ambiguous.
        &[NOON, ("Last-Modified", NOON.1)],
        &[("Last-Modified", "yesterday")],
    ];
    for says in nothing {
        let far = TwoVersions::start([(vec![], &[]), (file.clone(), says)]);
        far.now.store(1, Ordering::Relaxed);
        let url = far.server.url("/m.gguf");
        let parts = ["--resume", "neither an ETag nor", "identifies the file"];
        fails(&["quantize", "--resume", &url, &out, "Q8_0"], 2, &parts);
        assert!(
            !Path::new(&out).exists()
                && !Path::new(&dir.path(".out.gguf.unfinished.gguf-kit-part")).exists()
        );
        succeeds(&["quantize", &url, &out, "Q8_0"]);
        assert_eq!(std::fs::read(&out).unwrap(), std::fs::read(&expected).unwrap());
        std::fs::remove_file(&out).unwrap();
    }
}

/// A branch may move while shards are opened: all come from the commit of the first, in its folder.
#[test]
fn hub_shards_are_from_one_commit() {
    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
    let dir = Dir::new();
    let model = dir.f16();
    succeeds(&["split", "--split-max-tensors", "20", &model, &dir.path("m-Q8_0")]);
    let names = ["m-Q8_0-00001-of-00002.gguf", "m-Q8_0-00002-of-00002.gguf"];
    let files = names.map(|name| std::fs::read(dir.path(name)).unwrap());
    let listing = names.map(|name| format!(r#"{{"type":"file","path":"q/{name}"}}"#)).join(",");
    let hub = Server::start(move |request| {
        let file = request.path.strip_prefix("/org/repo/resolve/");
        let file = file.and_then(|path| path.split_once("/q/"));
        match file {
            Some((revision, file)) if [COMMIT, "main"].contains(&revision) => {
                let file = &files[names.iter().position(|name| *name == file).unwrap()];
                Reply::range(request, file).header("X-Repo-Commit", COMMIT)
            }
            None if request.path.starts_with("/api/") => {
                Reply::whole(format!("[{listing}]").as_bytes())
            }
            _ => Reply::status(404),
        }
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
    let output = command.args(["inspect", "hf:org/repo:Q8"]).env("HF_ENDPOINT", hub.url(""));
    let output = output.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let requested: Vec<_> = hub.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(requested[1], format!("/org/repo/resolve/main/q/{}", names[0]));
    assert!(requested[2..].iter().all(|path| path.contains(COMMIT)), "{requested:?}");
    assert!(requested.iter().any(|path| path.ends_with(names[1])));
}

/// Runs without credentials in the environment, except for these variables.
fn without_credentials(word: &str, variables: &[(&str, &str)]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
    command.args(["inspect", word]).env_clear().env("HOME", home.path());
    command.envs(variables.iter().copied()).output().unwrap()
}

/// Starts a listener that counts connections.
fn counting() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    (url, calls)
}

#[test]
fn listing_a_store_terminates() {
    let store = Server::start(|_| {
        Reply::whole(
            b"<ListBucketResult><Name>bucket</Name><KeyCount>0</KeyCount>\
              <IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>\
              </ListBucketResult>",
        )
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
    let output = command.args(["inspect", "s3://bucket/dir/"]).envs(store_at(&store)).output();
    let message = stderr(&output.unwrap());
    assert!(message.contains("the listing is too long"), "{message}");
    assert_eq!(store.requests().len(), 1025);
}

#[test]
fn no_credentials_are_requested_from_the_network() {
    let (url, calls) = counting();
    let here: &str = &url;
    type Variables<'v> = &'v [(&'v str, &'v str)];
    let cases: [(&str, Variables, &[&str]); 5] = [
        (
            "s3://bucket/m.gguf",
            &[("AWS_METADATA_ENDPOINT", here), ("AWS_ENDPOINT_URL", here)],
            &["AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE=true", "~/.aws/credentials is not read"],
        ),
        // A role without a token, or a token without a role, would have the same effect.
        (
            "s3://bucket/m.gguf",
            &[("AWS_METADATA_ENDPOINT", here), ("AWS_ROLE_ARN", "arn")],
            &["AWS_WEB_IDENTITY_TOKEN_FILE"],
        ),
        ("s3://bucket/dir/", &[("AWS_METADATA_ENDPOINT", here)], &["AWS_EC2_METADATA_DISABLED"]),
        (
            "gs://bucket/m.gguf",
            &[("GOOGLE_BASE_URL", here)],
            &["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SKIP_SIGNATURE=true"],
        ),
        (
            "az://container/m.gguf",
            &[("AZURE_STORAGE_ACCOUNT_NAME", "a"), ("AZURE_STORAGE_ENDPOINT", here)],
            &["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_SKIP_SIGNATURE=true"],
        ),
    ];
    for (word, variables, parts) in cases {
        let start = Instant::now();
        let output = without_credentials(word, variables);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{word}: {message}");
        assert!(start.elapsed() < Duration::from_secs(10), "{word}: {:?}", start.elapsed());
        for part in parts {
            assert!(message.contains(part), "{word}: `{part}` is not in: {message}");
        }
        assert!(message.contains("no credentials"), "{word}: {message}");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0, "somebody was requested");
    // On a cloud machine, the user opts in.
    let on_it = [("AWS_METADATA_ENDPOINT", here), ("AWS_EC2_METADATA_DISABLED", "false")];
    let output = without_credentials("s3://bucket/m.gguf", &on_it);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_ne!(calls.load(Ordering::Relaxed), 0);
}

#[test]
fn errors_in_remote_weights_name_the_file() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let start = gguf_store::Model::open(f16.as_ref()).unwrap().parts()[0].data_start as usize;
    let mut file = std::fs::read(&f16).unwrap();
    // NaN, in F16 and in F32.
    file[start..].fill(0xff);
    let server = Server::start(move |request| {
        Reply::range(request, &file)
            .header("ETag", "\"a\"")
            .header("Last-Modified", "Sat, 21 Nov 2026 08:00:00 GMT")
    });
    let url = server.url("/m.gguf");
    for (word, name) in [
        (format!("{url}?Signature=1"), url.as_str()),
        ("s3://bucket/m.gguf".to_owned(), "s3://bucket/m.gguf"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_gguf"))
            .args(["quantize", &word, &dir.path("out.gguf"), "q8_0"])
            .envs(store_at(&server))
            .output()
            .unwrap();
        let output_text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{output_text}");
        assert!(output_text.contains(&format!("{name}: tensor")), "{output_text}");
        assert!(!output_text.contains("Signature"), "{output_text}");
    }
}

/// Remote models are evaluated directly; Hub checkpoints are converted first.
#[test]
fn remote_reference_models() {
    let dir = Dir::new();
    let model = dir.f16();
    let small = dir.path("q8_0.gguf");
    succeeds(&["quantize", &model, &small, "Q8_0"]);
    let file = std::fs::read(&model).unwrap();
    let names = std::fs::read_dir(MODEL).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    let listing: Vec<_> =
        names.iter().map(|name| format!(r#"{{"type":"file","path":"{name}"}}"#)).collect();
    let listing = format!("[{}]", listing.join(","));
    let hub = Server::start(move |request| {
        let name = request.path.rsplit('/').next().unwrap();
        match request.path.as_str() {
            "/m.gguf" => Reply::range(request, &file),
            path if path.starts_with("/api/") => Reply::whole(listing.as_bytes()),
            _ if names.iter().any(|one| one == name) => {
                Reply::range(request, &std::fs::read(Path::new(MODEL).join(name)).unwrap())
            }
            _ => Reply::status(404),
        }
    });
    let text = crate::cli::evaluation::text();
    let compared = |reference: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
        command.env("HF_ENDPOINT", hub.url("")).args(["divergence", "-r", reference, &small]);
        let output = command.args(["-f", &text, "-c", "32", "--chunks", "1"]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let here = compared(&model);
    assert!(here.contains("16 tokens evaluated in 1 chunk)"), "{here}");
    assert_eq!(compared(&hub.url("/m.gguf")), here);
    assert_eq!(compared("hf:org/repo"), compared(MODEL));
}

/// A quality report reads a remote reference once, for any number of types.
#[test]
fn quality_reads_a_remote_reference_once() {
    let dir = Dir::new();
    let file = std::fs::read(dir.f16()).unwrap();
    let len = file.len();
    let served = Arc::new(AtomicUsize::new(0));
    let counted = served.clone();
    let server = Server::start(move |request| {
        let (start, end) = request.range().unwrap_or((0, file.len()));
        counted.fetch_add(end.min(file.len()).saturating_sub(start), Ordering::Relaxed);
        Reply::range(request, &file)
    });
    let (text, page) = (crate::cli::evaluation::text(), dir.path("page.html"));
    let types = "Q8_0,Q6_K,Q4_K_M,Q4_0,Q5_0";
    let far = server.url("/m.gguf");
    let measured = ["-f", &text, "-c", "32", "--chunks", "1", "--types", types, "-o", &page];
    succeeds(
        &[&["quality", &far][..], &measured, &["--parallel-models", "1", "--no-speed"]].concat(),
    );
    let served = served.load(Ordering::Relaxed);
    assert!((len..2 * len).contains(&served), "{served} bytes of {len}");
}

/// Versioned remote weights can be resumed.
#[test]
fn conversions_of_remote_checkpoints_resume() {
    let names: Vec<_> = std::fs::read_dir(MODEL).unwrap().map(|e| e.unwrap().file_name()).collect();
    let names: Vec<_> = names.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    let entry = |name: &String| format!(r#"{{"type":"file","path":"{name}"}}"#);
    let listing = names.iter().map(entry).collect::<Vec<_>>().join(",");
    let whole = Arc::new(AtomicUsize::new(0));
    let is_whole = whole.clone();
    let hub = Server::start(move |request| {
        if request.path.starts_with("/api/") {
            return Reply::whole(format!("[{listing}]").as_bytes());
        }
        let name = request.path.rsplit('/').next().unwrap();
        let file = std::fs::read(Path::new(MODEL).join(name)).unwrap_or_default();
        // The first run cannot read the end of the weights.
        let is_missing = request.range().is_some_and(|(start, _)| start > 8_000_000);
        if file.is_empty() || (is_missing && is_whole.load(Ordering::Relaxed) == 0) {
            return Reply::status(404);
        }
        Reply::range(request, &file).header("ETag", "\"a\"")
    });
    let dir = Dir::new();
    let [out, at_once] = ["out.gguf", "at-once.gguf"].map(|name| dir.path(name));
    let convert = |out: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
        command.args(["convert", "hf:org/repo", "--resume", "-o", out, "--outtype", "f16"]);
        command.env("HF_ENDPOINT", hub.url("")).output().unwrap()
    };
    let output = convert(&out);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(Path::new(&dir.path(".out.gguf.unfinished.gguf-kit-part")).is_file());
    whole.store(1, Ordering::Relaxed);
    for out in [&out, &at_once] {
        let output = convert(out);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(!stderr(&output).contains("starting over"), "{}", stderr(&output));
    }
    assert!(std::fs::read(out).unwrap() == std::fs::read(at_once).unwrap());
}

/// Small files of a remote checkpoint are stored in a temporary directory, which messages do not mention.
#[test]
fn messages_use_the_given_remote_location() {
    let names: Vec<_> = std::fs::read_dir(MODEL).unwrap().map(|e| e.unwrap().file_name()).collect();
    let names: Vec<_> = names.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    let entry = |name: &String| format!(r#"{{"type":"file","path":"{name}"}}"#);
    let listing = names.iter().map(entry).collect::<Vec<_>>().join(",");
    let hub = Server::start(move |request| {
        if request.path.starts_with("/api/") {
            return Reply::whole(format!("[{listing}]").as_bytes());
        }
        let name = request.path.rsplit('/').next().unwrap();
        let file = match name {
            "config.json" => b"{ \"architectures\": oops }".to_vec(),
            name => std::fs::read(Path::new(MODEL).join(name)).unwrap_or_default(),
        };
        Reply::range(request, &file)
    });
    let dir = Dir::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
    command.args(["convert", "hf:org/repo", "-o", &dir.path("out.gguf")]);
    let output = command.env("HF_ENDPOINT", hub.url("")).output().unwrap();
    let output_text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{output_text}");
    assert!(
        output_text.starts_with("error: hf:org/repo/config.json: not valid JSON"),
        "{output_text}"
    );
}
