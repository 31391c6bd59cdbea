//! Fetching a header in several reads gives the same header without reading too much.

use std::sync::Mutex;

use gguf::{
    Array, Bytes, Error, FIRST_READ, Gguf, Header, Limits, RawHeader, Shape, TensorInfo,
    TensorType, Value, check, check_header, write_header,
};
use gguf_store::{Source, fetch_header};

/// A source that records every read and may be longer than its bytes.
struct RecordingSource {
    bytes: Bytes,
    len: u64,
    reads: Mutex<Vec<(u64, usize)>>,
}

impl RecordingSource {
    fn new(bytes: Bytes, len: u64) -> Self {
        Self { bytes, len, reads: Mutex::default() }
    }

    fn reads(&self) -> Vec<(u64, usize)> {
        self.reads.lock().unwrap().clone()
    }
}

impl Source for RecordingSource {
    fn byte_len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        self.reads.lock().unwrap().push((offset, buffer.len()));
        assert!(offset + buffer.len() as u64 <= self.len);
        // Beyond the bytes, the source holds zeros.
        for (i, byte) in buffer.iter_mut().enumerate() {
            *byte = self.bytes.get(offset as usize + i).copied().unwrap_or(0);
        }
        Ok(())
    }
}

/// Returns a header with one entry of every kind, `words` strings, and a tensor of 32 bytes.
fn header(version: u32, words: usize) -> Bytes {
    let mut draft = RawHeader { version, ..RawHeader::default() };
    draft.metadata.set("general.architecture", "llama");
    draft.metadata.set("a.flag", true);
    draft.metadata.set("a.small", 7u8);
    draft.metadata.set("a.ratio", 0.5f64);
    draft.metadata.set("a.list", Value::Array(Array::from(&[1u32, 2, 3][..])));
    let words = (0..words).map(|i| format!("word {i}"));
    draft.metadata.set("a.words", Value::Array(Array::from_strings(words)));
    draft.tensors.push(TensorInfo {
        name: "output_norm.weight".into(),
        shape: Shape::new(&[8]).unwrap(),
        tensor_type: TensorType::F32,
        offset: 0,
        opaque_len: None,
    });
    write_header(&Header::new(draft).unwrap()).unwrap().into()
}

#[test]
fn truncated_headers_report_the_missing_bytes() {
    for version in [1, 2, 3] {
        let header = header(version, 5);
        let file_len = header.len() as u64 + 32;
        let end = Gguf::read_header(&header, file_len, Limits::default()).unwrap().spans().end;
        for present in 0..header.len() {
            let prefix = &header.slice(..present);
            let read = Gguf::read_header(prefix, file_len, Limits::default());
            if present as u64 >= end {
                assert_eq!(read.unwrap().spans().end, end);
                continue;
            }
            assert!(matches!(read, Err(Error::Caller(_))), "{present}: {read:?}");
            let (findings, draft) = check_header(prefix, file_len);
            assert_eq!((findings[0].code, draft), ("truncated", None));
            // The message names the missing bytes, never more than the header has.
            let message = findings[0].message.split(' ').nth(3).unwrap();
            let needed: u64 = message.parse().unwrap();
            assert!(needed > present as u64 && needed <= end, "{present}: {needed} of {end}");
        }
    }
}

#[test]
fn long_headers_take_few_reads() {
    let header = header(3, 300_000);
    let file_len = 5 << 30;
    let source = RecordingSource::new(header.clone(), file_len);
    let fetched = fetch_header(&source, Limits::default()).unwrap();
    assert_eq!(fetched, header);
    let reads = source.reads();
    assert!(reads.len() <= 5, "{reads:?}");
    assert_eq!(reads[0], (0, FIRST_READ as usize));
    let (last_at, last_len) = reads[reads.len() - 1];
    let total = last_at + last_len as u64;
    assert!(total < header.len() as u64 * 3 / 2 + (1 << 20), "{total} of {}", header.len());

    let model = Gguf::read_header(&fetched, file_len, Limits::default()).unwrap();
    let tensor = &model.tensors()[0];
    let start = header.len() as u64;
    assert_eq!(model.data(tensor), None);
    assert_eq!(model.data_range(tensor), Some(start..start + 32));
}

#[test]
fn source_length_is_file_length() {
    let header = header(3, 5);
    for (data, code) in [(31, Some("truncated")), (32, None), (100, Some("data-trailing"))] {
        let (findings, _) = check_header(&header, header.len() as u64 + data);
        // Findings of the schema about this artificial model do not matter here.
        let layout = ["truncated", "data-trailing"];
        let found = findings.iter().map(|finding| finding.code).find(|code| layout.contains(code));
        assert_eq!(found, code, "{data} bytes of data");
    }
}

#[test]
fn forged_lengths_are_not_fetched() {
    let forge = |count: u64| {
        let mut forged = header(3, 5).to_vec();
        let at = forged.windows(7).position(|w| w == b"a.words").unwrap() + 7 + 8;
        forged[at..at + 8].copy_from_slice(&count.to_le_bytes());
        Bytes::from(forged)
    };
    // More than the source holds: the first read is enough to detect that.
    let source = RecordingSource::new(forge(1 << 40), 8 << 30);
    let fetched = fetch_header(&source, Limits::default()).unwrap();
    assert_eq!(source.reads(), [(0, FIRST_READ as usize)]);
    assert_eq!(check_header(&fetched, source.len).0[0].code, "truncated");
    // Less than the source holds, more than the limit.
    let source = RecordingSource::new(forge(1 << 28), 8 << 30);
    let Err(Error::File(finding)) = fetch_header(&source, Limits::default()) else { panic!() };
    assert_eq!((finding.code, source.reads().len()), ("limit-header", 1));
    // Within the limit, then zeros beyond it: the limit holds.
    let limits = Limits { header_bytes: 3 << 20, ..Limits::default() };
    let source = RecordingSource::new(forge((3 << 20) / 8), 8 << 30);
    assert!(matches!(fetch_header(&source, limits), Err(Error::File(_))));
    assert!(source.reads().iter().all(|&(at, len)| at + len as u64 <= 3 << 20));
}

#[test]
fn reference_files_have_the_same_findings() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA").map(std::path::PathBuf::from) else {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name the reference data");
        return;
    };
    let mut compared = 0;
    for folder in ["hostile", "legacy", "vocab", "zoo"] {
        for entry in std::fs::read_dir(data.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "gguf") {
                continue;
            }
            let bytes = Bytes::from(std::fs::read(&path).unwrap());
            let fetched = fetch_header(&bytes, Limits::default()).unwrap();
            let (source, local) = (check_header(&fetched, bytes.len() as u64), check(&bytes));
            assert_eq!(source.0, local.0, "{}", path.display());
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared} files");
}
