//! Fuzz properties of the GGUF reader and writer.
//!
//! One function per fuzz target. The tests of the crates call the same functions on the committed
//! seeds. Each function passes the bytes to the library as a file of exactly that length.

use std::cell::Cell;
use std::fs;

use gguf::{
    Array, ByteOrder, Bytes, Error, Finding, Gguf, Header, Limits, RawHeader, Severity, Value,
    check, check_header, write_header,
};
use gguf_store::edit::{EditOutcome, RESERVE_KEY, edit_header};
use gguf_store::fetch_header;

/// Reads and checks a file without a panic. A check finds an error in every file that a strict
/// reader rejects, and no violation of the format in others.
pub fn parse(bytes: &[u8]) {
    let bytes = &Bytes::copy_from_slice(bytes);
    let (findings, draft) = check(bytes);
    for finding in &findings {
        let _ = finding.to_string();
        assert!(finding.offset.is_none_or(|at| at <= bytes.len() as u64), "{finding}");
    }
    for (key, value) in draft.iter().flat_map(|draft| draft.metadata.iter()) {
        let _ = format!("{key} = {value}");
        visit(value);
    }
    let error = findings.iter().find(|finding| finding.severity == Severity::Error);
    match (Gguf::read(bytes), error) {
        (Ok(file), error) => {
            // Errors of a model, which the rules of the format do not find.
            let rules = Header::new(draft.clone().expect("a header that was read"));
            assert!(rules.is_ok(), "{error:?}: {rules:?}");
            for tensor in file.tensors() {
                let _ = format!("{} {}", tensor.shape, tensor.tensor_type);
                assert_eq!(file.data(tensor).is_some(), tensor.byte_len().is_some());
            }
        }
        (Err(error), None) => panic!("not read, although no error is found: {error}"),
        (Err(error), Some(_)) => {
            let _ = error.to_string();
        }
    }
}

/// Reads every element of a value.
fn visit(value: &Value) {
    let _ = (value.to_u64(), value.to_f64(), value.to_bool(), value.as_str());
    let Some(array) = value.as_array() else { return };
    let mut elements = 0;
    array.iter().for_each(|element| {
        elements += 1;
        visit(&element);
    });
    assert_eq!(elements, array.len());
    assert_eq!(array.strings().map_or(elements, |strings| strings.count() as u64), elements);
}

/// A file that was read can be written, and reads back equal; also in every other encoding that its
/// numbers fit.
pub fn round_trip(bytes: &[u8]) {
    let Ok(file) = Gguf::read(&Bytes::copy_from_slice(bytes)) else { return };
    let header = file.into_header();
    assert_reads_back(&header, write_header(&header).unwrap().into());
    for version in 1..=3 {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let mut draft = header.clone().into_raw();
            (draft.version, draft.order) = (version, order);
            let header = Header::new(draft).unwrap();
            match write_header(&header) {
                Ok(bytes) => assert_reads_back(&header, bytes.into()),
                Err(Error::File(finding)) if version == 1 => {
                    assert_eq!(finding.code, "version-too-narrow");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn assert_reads_back(header: &Header, bytes: Bytes) {
    let file_len = bytes.len() as u64 + header.data_len();
    let back = Gguf::read_header(&bytes, file_len, Limits::default()).unwrap().into_header();
    assert_eq!(back, *header);
    assert_eq!(write_header(&back).unwrap(), bytes);
}

/// A truncated header is detected as incomplete or checked like the whole file, and fetching a
/// remote header returns enough bytes.
pub fn chunked(bytes: &[u8]) {
    let bytes = &Bytes::copy_from_slice(bytes);
    let len = bytes.len() as u64;
    let whole = Gguf::read(bytes).map(Gguf::into_header);
    // Tests some hundred lengths: testing every length would take quadratic time.
    for at_hand in (0..bytes.len()).step_by(bytes.len() / 100 + 1) {
        let part = Gguf::read_header(&bytes.slice(..at_hand), len, Limits::default());
        match (part.map(Gguf::into_header), &whole) {
            (Err(Error::Caller(_)), _) => {}
            (part, whole) => assert_same(part.as_ref(), whole.as_ref(), at_hand),
        }
    }
    let fetched = fetch_header(bytes, Limits::default()).unwrap();
    let part = Gguf::read_header(&fetched, len, Limits::default()).map(Gguf::into_header);
    assert_same(part.as_ref(), whole.as_ref(), fetched.len());
    assert_eq!(check_header(&fetched, len), check(bytes));
}

/// Compares two results: equal headers, or errors with the same code. If a length exceeds the file,
/// a truncated file may fail at an earlier position than the whole.
fn assert_same(part: Result<&Header, &Error>, whole: Result<&Header, &Error>, at_hand: usize) {
    let reason = |error: &Error| match error {
        Error::File(finding) => {
            let Finding { code, key, tensor, .. } = &**finding;
            (*code, key.clone(), tensor.clone())
        }
        other => panic!("{other}"),
    };
    assert_eq!(part.map_err(reason), whole.map_err(reason), "{at_hand} bytes at hand");
}

/// An edit of the header writes the requested file with unchanged data, or leaves the file
/// unchanged; no other file remains. The last four bytes select the edit.
pub fn edit(bytes: &[u8]) {
    let Some(&[what, which, len, reserve]) = bytes.last_chunk() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.gguf");
    fs::write(&path, bytes).unwrap();
    let edited = Cell::new(None);
    let saved = edit_header(&path, u64::from(reserve) * 64, &(), |draft| {
        change(draft, what, which.into(), len.into());
        edited.set(Some(draft.clone()));
        Ok::<_, Error>(())
    });
    let after = fs::read(&path).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let Ok(saved) = saved else {
        assert_eq!(after, bytes);
        return;
    };
    let [old, new] =
        [bytes, &after].map(|bytes| Gguf::read(&Bytes::copy_from_slice(bytes)).unwrap());
    match saved {
        EditOutcome::Unchanged => assert_eq!(after, bytes),
        EditOutcome::InPlace => assert_eq!(new.data_start(), old.data_start()),
        EditOutcome::Rebuilt => {}
    }
    // A header without tensors may end before its padding.
    let data = |file: &Gguf, bytes: &[u8]| {
        bytes.get(file.data_start() as usize..).unwrap_or_default().to_vec()
    };
    assert_eq!(data(&new, &after), data(&old, bytes));
    let mut expected = edited.take().unwrap();
    let mut found = new.into_header().into_raw();
    if saved != EditOutcome::Unchanged {
        expected.metadata.remove(RESERVE_KEY);
        found.metadata.remove(RESERVE_KEY);
    }
    assert_eq!(found, expected);
}

fn change(draft: &mut RawHeader, what: u8, which: usize, len: usize) {
    let entries = draft.metadata.len().max(1);
    let key = draft.metadata.iter().nth(which % entries).map(|(key, _)| key.to_owned());
    let tensors = draft.tensors.len().max(1);
    match (what % 8, key) {
        (0, Some(key)) => draft.metadata.set(key, "x".repeat(len)),
        (1, Some(key)) => drop(draft.metadata.remove(&key)),
        (2, Some(key)) => drop(draft.metadata.rename(&key, "x".repeat(len))),
        (3, _) => draft.metadata.set("fuzz.number", len as u64),
        (4, _) => draft.metadata.set("fuzz.array", Array::from(&vec![0u16; len][..])),
        (5, _) => {
            if let Some(tensor) = draft.tensors.get_mut(which % tensors) {
                tensor.name = "x".repeat(len);
            }
        }
        (6, _) => draft.metadata.set("general.alignment", 1u32 << (len % 32)),
        _ => {}
    }
}
