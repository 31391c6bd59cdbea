//! A running viewer and test models.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use gguf::{Header, RawHeader, Shape, TensorInfo, TensorType, write_header};
use gguf_kit::convert::{ConvertOptions as Conversion, Kind, Plan};
use gguf_tokenizer::template::Renderer;
use gguf_viewer::{Server, ServerOptions, StopHandle};
use serde_json::Value as Json;

/// A viewer on its own thread. Dropping it stops the server.
pub struct Viewer {
    url: String,
    stop: Option<StopHandle>,
    thread: Option<JoinHandle<()>>,
}

/// An HTTP response.
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Viewer {
    pub fn open(models: &[&str]) -> Self {
        Self::with_options(options(models))
    }

    pub fn with_options(options: ServerOptions) -> Self {
        let server = Server::bind(options).unwrap();
        let url = server.url();
        let (stop, stopped) = Server::stop_handle();
        let thread = std::thread::spawn(move || server.run(stopped));
        Self { url, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns `host:port`.
    pub fn host(&self) -> &str {
        self.url.trim_start_matches("http://").split('/').next().unwrap()
    }

    /// Returns the path of the page, including the secret.
    pub fn path(&self) -> String {
        self.url.splitn(4, '/').nth(3).map(|path| format!("/{path}")).unwrap()
    }

    /// Sends raw bytes and returns the response.
    pub fn raw(&self, request: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.host()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // The server may close the connection before it has read the whole body.
        let _ = stream.write_all(request);
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let end = all.windows(4).position(|four| four == b"\r\n\r\n").expect("headers") + 4;
        let head = String::from_utf8(all[..end].to_vec()).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        Reply { status, headers: headers.collect(), body: all[end..].to_vec() }
    }

    pub fn send(&self, method: &str, path: &str, extra: &str, body: &str) -> Reply {
        let (host, length) = (self.host(), body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\
             {extra}\r\n{body}"
        );
        self.raw(request.as_bytes())
    }

    /// Sends a GET request to `api/1/{address}`.
    pub fn get(&self, address: &str) -> Reply {
        self.send("GET", &format!("{}api/1/{address}", self.path()), "", "")
    }

    pub fn post(&self, address: &str, document: &Json) -> Reply {
        let path = format!("{}api/1/{address}", self.path());
        self.send("POST", &path, "Content-Type: application/json\r\n", &document.to_string())
    }

    #[track_caller]
    pub fn json(&self, address: &str) -> Json {
        self.get(address).ok()
    }

    /// Asserts that a GET request fails with this status and error code.
    #[track_caller]
    pub fn assert_error(&self, address: &str, status: u16, code: &str) -> Json {
        self.get(address).assert_error(status, code)
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Reply {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map_or("", |(_, value)| value)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn ok(&self) -> Json {
        assert_eq!(self.status, 200, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/json");
        serde_json::from_slice(&self.body).unwrap()
    }

    #[track_caller]
    pub fn assert_error(&self, status: u16, code: &str) -> Json {
        assert_eq!(self.status, status, "{}", self.text());
        let json: Json = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(json["error"]["code"], code, "{json}");
        json
    }

    #[track_caller]
    pub fn floats(&self) -> Vec<f32> {
        assert_eq!(self.status, 200, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/octet-stream");
        self.body.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }
}

pub fn options(models: &[&str]) -> ServerOptions {
    let models = models.iter().map(|model| (*model).to_owned()).collect();
    ServerOptions::new(models, Renderer::in_process())
}

/// Converts the demo checkpoint to F16.
pub fn demo(dir: &Path) -> String {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");
    convert(source, dir)
}

/// Returns the folder of the reference data, or reports that the test is skipped.
pub fn reference_data() -> Option<PathBuf> {
    let dir = std::env::var_os("GGUF_TEST_DATA").map(PathBuf::from);
    if dir.is_none() {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name the reference data");
    }
    dir
}

/// Converts a checkpoint to F16.
pub fn convert(source: &str, dir: &Path) -> String {
    let plan = Plan::new(source, Kind::Checkpoint, &Conversion::default(), &()).unwrap();
    let path = dir.join("demo.gguf");
    plan.outputs[0].job.write(&path, &gguf_store::Overwrite::default(), &()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Returns deterministic pseudo-random bytes.
pub fn noise(len: usize, mut state: u64) -> Vec<u8> {
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Writes a model with pseudo-random tensors.
pub fn file(path: &Path, tensors: &[(&str, &[u64], TensorType)]) -> PathBuf {
    let mut draft = RawHeader::default();
    draft.metadata.set("general.architecture", "test");
    for (name, shape, tensor_type) in tensors {
        let shape = Shape::new(shape).unwrap();
        let (name, tensor_type) = ((*name).to_owned(), *tensor_type);
        draft.tensors.push(TensorInfo { name, shape, tensor_type, offset: 0, opaque_len: None });
    }
    draft.lay_out().unwrap();
    let header = Header::new(draft).unwrap();
    let mut bytes = write_header(&header).unwrap();
    let len = header.data_len() as usize;
    bytes.extend(noise(len, 3));
    std::fs::write(path, bytes).unwrap();
    path.to_owned()
}

/// Writes a model with one tensor of 4 rows of 2 blocks for every decodable type.
pub fn all_types(dir: &Path) -> (PathBuf, Vec<(String, TensorType)>) {
    let types = TensorType::all().filter(|ty| gguf_quant::codec(*ty).is_some());
    let types: Vec<_> = types.map(|ty| (format!("blk.0.{ty}/../ä b"), ty)).collect();
    let shapes: Vec<_> = types.iter().map(|(_, ty)| [2 * ty.block().unwrap().0, 4]).collect();
    let tensors: Vec<_> =
        types.iter().zip(&shapes).map(|((name, ty), shape)| (&**name, &shape[..], *ty)).collect();
    (file(&dir.join("types.gguf"), &tensors), types)
}

/// Percent-encodes a query parameter.
pub fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

pub fn path_str(path: &Path) -> &str {
    path.to_str().unwrap()
}
