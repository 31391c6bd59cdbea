//! Fuzz properties of HTTP clients.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gguf_remote::{Location, RemoteOptions, RepositoryFiles, open_with};

/// Separator of two responses.
const CUT: &[u8] = b"\n--\n";

/// Maximum number of requested bytes of a file.
const MOST: u64 = 1 << 20;

/// Local server that sends the scripted responses one by one and closes the connection after each;
/// repeats the last one.
struct Server {
    port: u16,
    script: &'static Mutex<Vec<Vec<u8>>>,
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    static SCRIPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
    SERVER.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut script = SCRIPT.lock().unwrap_or_else(PoisonError::into_inner);
                let answer = match script.len() {
                    0 | 1 => script.first().cloned().unwrap_or_default(),
                    _ => script.remove(0),
                };
                drop(script);
                // The client may close the connection first.
                let _ = send(stream, &answer);
            }
        });
        Server { port, script: &SCRIPT }
    })
}

fn send(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    let mut request = Vec::new();
    let mut part = [0; 4096];
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut part)? {
            0 => return Ok(()),
            n => request.extend(&part[..n]),
        }
    }
    stream.write_all(answer)?;
    stream.shutdown(Shutdown::Write)?;
    // Closing the connection before reading all input would discard the response.
    while stream.read(&mut part)? > 0 {}
    Ok(())
}

/// Opens and reads a file and a repository without a panic, without blocking, without requests to
/// other hosts, and without more bytes than announced.
pub fn answers(bytes: &[u8]) {
    let mut answers = vec![Vec::new()];
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if line == &CUT[1..] {
            answers.push(Vec::new());
        } else if let Some(answer) = answers.last_mut() {
            answer.extend(at_home(line));
        }
    }
    let server = server();
    let address = format!("http://127.0.0.1:{}", server.port);
    let second = Duration::from_secs(1);
    let options = RemoteOptions {
        hf_endpoint: address.clone(),
        connect_timeout: second,
        read_timeout: second,
        attempts: 2,
        backoff: Duration::ZERO,
        max_backoff: Duration::ZERO,
        ..RemoteOptions::default()
    };
    let play = || *server.script.lock().unwrap_or_else(PoisonError::into_inner) = answers.clone();
    play();
    let location = Location::parse(&format!("{address}/m.gguf")).unwrap();
    if let Ok(opened) = open_with(&location, options.clone()) {
        let len = opened.source.byte_len();
        let mut buffer = vec![0; len.min(MOST) as usize];
        let _ = opened.source.read_at(&mut buffer, len.saturating_sub(MOST));
    }
    play();
    let _ = RepositoryFiles::list("hf:o/r", options);
}

/// Returns a line without URLs of other hosts.
fn at_home(line: &[u8]) -> Vec<u8> {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default().trim_ascii();
    let leads = [&b"location"[..], b"link"].iter().any(|n| name.eq_ignore_ascii_case(n));
    if !leads {
        return line.to_vec();
    }
    let value = line.get(name.len() + 1..).unwrap_or_default();
    let kept = value.iter().copied().filter(|byte| !b":/\\@".contains(byte));
    [name, b":"].concat().into_iter().chain(kept).collect()
}
