//! A small HTTP server on loopback with scripted responses, valid or not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request of a client.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Number of earlier requests for the same path.
    pub earlier: usize,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// Returns the requested range, its end exclusive.
    pub fn range(&self) -> Option<(usize, usize)> {
        let (first, last) = self.header("Range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().unwrap(), last.parse::<usize>().unwrap() + 1))
    }
}

/// A response, and how to send it.
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    truncate: Option<usize>,
    pause: Option<(usize, Duration)>,
}

impl Reply {
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), truncate: None, pause: None }
    }

    /// Returns the whole file.
    pub fn whole(file: &[u8]) -> Self {
        Self { body: file.to_vec(), ..Self::status(200) }
    }

    /// Returns the requested range, as a correct server does.
    pub fn range(request: &Request, file: &[u8]) -> Self {
        let Some((start, end)) = request.range() else { return Self::whole(file) };
        let end = end.min(file.len());
        if start >= end {
            return Self::status(416).header("Content-Range", format!("bytes */{}", file.len()));
        }
        let stated = format!("bytes {start}-{}/{}", end - 1, file.len());
        let reply = Self { body: file[start..end].to_vec(), ..Self::status(206) };
        reply.header("Content-Range", stated)
    }

    /// Sets a header.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.retain(|(n, _)| n != name);
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// Closes the connection after this many bytes of the body.
    pub fn truncate(self, bytes: usize) -> Self {
        Self { truncate: Some(bytes), ..self }
    }

    /// Pauses before each `bytes` bytes of the body.
    pub fn pause(self, bytes: usize, pause: Duration) -> Self {
        Self { pause: Some((bytes, pause)), ..self }
    }

    fn send(self, mut to: TcpStream) -> std::io::Result<()> {
        let mut head = format!("HTTP/1.1 {} Status\r\nConnection: close\r\n", self.status);
        if !self.headers.iter().any(|(name, _)| name == "Content-Length") {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        to.write_all(head.as_bytes())?;
        to.write_all(b"\r\n")?;
        let len = self.body.len();
        let body = &self.body[..self.truncate.unwrap_or(len).min(len)];
        let (step, pause) = self.pause.unwrap_or((body.len().max(1), Duration::ZERO));
        for piece in body.chunks(step) {
            std::thread::sleep(pause);
            to.write_all(piece)?;
        }
        Ok(())
    }
}

/// A server that runs until the process ends.
pub struct Server {
    pub port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::<Request>::new()));
        let (log, answer) = (Arc::clone(&requests), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let Ok(stream) = stream else { return };
                    let Some(mut request) = read_request(&stream) else { return };
                    let mut log = log.lock().unwrap();
                    request.earlier = log.iter().filter(|r| r.path == request.path).count();
                    log.push(request.clone());
                    drop(log);
                    // The client may close the connection early.
                    let _ = answer(&request).send(stream);
                });
            }
        });
        Self { port, requests }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut lines = reader.by_ref().lines().map_while(Result::ok);
    let first = lines.next()?;
    let (method, path) = first.split_once(' ')?;
    let (method, path) = (method.to_owned(), path.split(' ').next()?.to_owned());
    let lines = lines.take_while(|line| !line.is_empty());
    let split = |line: String| line.split_once(": ").map(|(n, v)| (n.to_owned(), v.to_owned()));
    let headers = lines.filter_map(split).collect();
    let mut request = Request { method, path, headers, body: Vec::new(), earlier: 0 };
    let len = request.header("Content-Length").map_or(0, |len| len.parse().unwrap());
    request.body = vec![0; len];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}
