//! Faults of files: each case is a valid minimal file, one mutation, and the code of the expected
//! finding.

use gguf::{
    Bytes, Gguf, Header, RawHeader, Severity, Shape, TensorInfo, TensorType, Value, check,
    write_header,
};

/// Returns a file with these keys, and tensors of 8 zeros.
fn file(keys: &[(&str, Value)], tensors: impl IntoIterator<Item = String>) -> Vec<u8> {
    let mut raw = RawHeader::default();
    for (key, value) in keys {
        raw.metadata.set(*key, value.clone());
    }
    for name in tensors {
        let (shape, tensor_type) = (Shape::new(&[8]).unwrap(), TensorType::F32);
        raw.tensors.push(TensorInfo { name, shape, tensor_type, offset: 0, opaque_len: None });
    }
    let data = raw.lay_out().unwrap();
    let mut file = write_header(&Header::new(raw).unwrap()).unwrap();
    file.resize(file.len() + data as usize, 0);
    file
}

/// Returns a file with one key and two tensors of 8 floats.
fn minimal() -> Vec<u8> {
    file(&[("general.architecture", "other".into())], ["a.weight", "b.weight"].map(str::to_owned))
}

/// Replaces the bytes at offset `at`.
fn put(at: usize, bytes: &[u8]) -> impl Fn(&mut Vec<u8>) {
    let bytes = bytes.to_vec();
    move |file| file[at..at + bytes.len()].copy_from_slice(&bytes)
}

/// Replaces the bytes `skip` after the first occurrence of `needle`.
fn after(needle: &str, skip: usize, bytes: &[u8]) -> impl Fn(&mut Vec<u8>) {
    let (needle, bytes) = (needle.as_bytes().to_vec(), bytes.to_vec());
    move |file| {
        let at = file.windows(needle.len()).position(|w| w == needle).unwrap();
        let at = at + needle.len() + skip;
        file[at..at + bytes.len()].copy_from_slice(&bytes);
    }
}

type Mutation = Box<dyn Fn(&mut Vec<u8>)>;

fn cases() -> Vec<(&'static str, Severity, Mutation)> {
    use Severity::{Error, Warning};
    // After a tensor name: dimension count (4), dimension (8), type (4), offset (8).
    vec![
        ("magic", Error, Box::new(put(0, b"GGUX"))),
        ("magic", Error, Box::new(put(0, b"lmgg"))),
        ("magic", Error, Box::new(|f| f.truncate(3))),
        ("version-unknown", Error, Box::new(put(4, &[0; 4]))),
        ("version-unknown", Error, Box::new(put(4, &[4, 0, 0, 0]))),
        ("version-unknown", Error, Box::new(put(4, &[0, 0, 0, 4]))),
        ("truncated", Error, Box::new(|f| f.truncate(6))),
        ("truncated", Error, Box::new(|f| f.truncate(21))),
        ("truncated", Error, Box::new(put(8, &[0xff; 8]))),
        ("truncated", Error, Box::new(put(16, &[0xff; 8]))),
        ("truncated", Error, Box::new(put(24, &[0xff; 8]))),
        ("truncated", Error, Box::new(after("architecture", 4, &[0xff; 8]))),
        ("truncated", Error, Box::new(after("architecture", 4, &[0xff, 0xff]))),
        ("value-type-unknown", Error, Box::new(after("architecture", 0, &[13]))),
        ("name-not-utf8", Error, Box::new(after("general", 0, &[0xff]))),
        ("key-not-ascii", Warning, Box::new(after("general", 0, "é".as_bytes()))),
        ("key-spelling", Warning, Box::new(after("gener", 0, b"AL"))),
        ("architecture-missing", Warning, Box::new(after("general.arch", 0, b"x"))),
        ("architecture-name", Warning, Box::new(after("architecture", 12, b"L"))),
        (
            "architecture-not-text",
            Warning,
            Box::new(|f| *f = file(&[("general.architecture", 7u32.into())], [])),
        ),
        ("alignment-small", Warning, Box::new(|f| *f = laid_out(2, 4, 4))),
        (
            "key-duplicate",
            Error,
            Box::new(|f| {
                *f = file(&[("a.first", 1u32.into()), ("a.again", 1u32.into())], []);
                after("a.", 0, b"again")(f);
            }),
        ),
        (
            "key-too-long",
            Error,
            Box::new(|f| {
                let key = "a".repeat(65535);
                *f = file(&[(&key, 1u32.into())], []);
                let at = f.windows(8).position(|w| w == 65535u64.to_le_bytes()).unwrap();
                put(at, &65536u64.to_le_bytes())(f);
                f.insert(at + 8, b'a');
            }),
        ),
        ("tensor-name-empty", Warning, Box::new(|f| *f = file(&[], [String::new()]))),
        ("tensor-name-long", Warning, Box::new(|f| *f = file(&[], ["a".repeat(64)]))),
        ("text-not-utf8", Warning, Box::new(after("architecture", 12, &[0xff]))),
        (
            "tensor-duplicate",
            Error,
            Box::new(|f| {
                let at = f.windows(8).position(|w| w == b"b.weight").unwrap();
                f[at] = b'a';
            }),
        ),
        ("tensor-dimensions", Error, Box::new(after("a.weight", 0, &[5]))),
        ("tensor-size-overflow", Error, Box::new(after("a.weight", 4, &[0xff; 8]))),
        ("tensor-empty", Warning, Box::new(after("b.weight", 4, &[0; 8]))),
        ("tensor-type-unknown", Warning, Box::new(after("a.weight", 12, &[99]))),
        ("tensor-type-removed", Warning, Box::new(after("a.weight", 12, &[4]))),
        ("tensor-row-not-blocks", Error, Box::new(after("a.weight", 12, &[8]))),
        ("tensor-offset-misaligned", Error, Box::new(after("b.weight", 16, &[33]))),
        ("tensor-offset-overflow", Error, Box::new(after("b.weight", 16, &[0xff; 8]))),
        ("tensor-past-end", Error, Box::new(after("b.weight", 16, &[64]))),
        ("truncated", Error, Box::new(|f| f.truncate(f.len() - 1))),
        ("tensor-overlap", Error, Box::new(after("b.weight", 16, &[0]))),
        (
            "tensor-order",
            Warning,
            Box::new(|f| {
                after("a.weight", 16, &[32])(f);
                after("b.weight", 16, &[0])(f);
            }),
        ),
        (
            "tensor-gap",
            Warning,
            Box::new(|f| {
                after("b.weight", 16, &[64])(f);
                f.resize(f.len() + 32, 0);
            }),
        ),
        ("data-trailing", Warning, Box::new(|f| f.resize(f.len() + 33, 0))),
    ]
}

#[test]
fn a_valid_file_has_no_findings() {
    let file = minimal().into();
    let (findings, _) = check(&file);
    assert_eq!(findings, []);
    assert_eq!(Gguf::read(&file).unwrap().tensors().len(), 2);
}

#[test]
fn each_fault_has_its_code() {
    for (i, (code, severity, mutate)) in cases().into_iter().enumerate() {
        let mut file = minimal();
        mutate(&mut file);
        let file = file.into();
        let (findings, _) = check(&file);
        let found = findings.iter().find(|finding| finding.code == code);
        let found = found.unwrap_or_else(|| panic!("case {i}: no {code} among {findings:?}"));
        assert_eq!(found.severity, severity, "case {i}: {code}");
        // A strict reader rejects exactly the files in which a check finds an error.
        let refused = Gguf::read(&file).is_err();
        let errors = findings.iter().any(|finding| finding.severity == Severity::Error);
        assert_eq!(refused, errors, "case {i}: {code}: {findings:?}");
    }
}

#[test]
fn every_truncation_is_rejected() {
    let file = Bytes::from(minimal());
    for len in 0..file.len() {
        assert!(Gguf::read(&file.slice(..len)).is_err(), "{len} bytes");
    }
}

/// Returns a minimal file with more tensors, whose data are laid out for the alignment `aligned`
/// while the key has `stated`.
fn laid_out(tensors: usize, aligned: u32, stated: u32) -> Vec<u8> {
    let keys = [("general.architecture", "other".into()), ("general.alignment", aligned.into())];
    let mut file = file(&keys, (0..tensors).map(|i| format!("{i}.weight")));
    after("general.alignment", 4, &stated.to_le_bytes())(&mut file);
    file
}

/// Returns the findings about the layout of tensor data.
fn layout(file: &[u8]) -> Vec<(&'static str, String)> {
    let (findings, _) = check(&Bytes::copy_from_slice(file));
    let all = findings.into_iter().filter(|finding| finding.code != "architecture-unknown");
    all.map(|finding| (finding.code, finding.message.into())).collect()
}

#[test]
fn a_truncated_file_has_one_finding() {
    let file = laid_out(40, 32, 32);
    let whole = file.len();
    let data = whole - 40 * 32;
    for (len, message) in [
        (data + 32, "1.8 of 3.0 kB are there; 39 of 40 tensors are truncated"),
        (data + 33, "1.8 of 3.0 kB are there; 39 of 40 tensors are truncated"),
        (data, "1.8 of 3.0 kB are there; 40 of 40 tensors are truncated"),
        (
            whole - 1,
            &format!("{} of {whole} bytes are there; 1 of 40 tensors are truncated", whole - 1),
        ),
    ] {
        assert_eq!(layout(&file[..len]), [("truncated", message.to_owned())]);
        let (findings, _) = check(&Bytes::copy_from_slice(&file[..len]));
        let found = findings.iter().find(|finding| finding.code == "truncated").unwrap();
        assert_eq!(found.offset, Some(len as u64));
        assert!(found.help.contains("download"), "{}", found.help);
    }
    assert_eq!(layout(&file), []);
}

#[test]
fn a_wrong_alignment_has_one_finding() {
    let message = "5 of 10 tensors are not at a multiple of 64: the data is aligned to 32";
    assert_eq!(layout(&laid_out(10, 32, 64))[0], ("tensor-offset-misaligned", message.to_owned()));
    let codes = |file: &[u8], code| layout(file).iter().filter(|found| found.0 == code).count();
    assert_eq!(codes(&laid_out(10, 32, 64), "tensor-offset-misaligned"), 1);
    let message = "the data has an alignment of 128, not 32";
    let found = layout(&laid_out(10, 128, 32));
    assert_eq!(found[0], ("tensor-gap", message.to_owned()));
    assert_eq!(codes(&laid_out(10, 128, 32), "tensor-gap"), 1);
    // Independent wrong offsets are reported separately.
    let mut file = laid_out(10, 32, 32);
    after("3.weight", 16, &[97])(&mut file);
    after("5.weight", 16, &[161])(&mut file);
    assert_eq!(codes(&file, "tensor-offset-misaligned"), 2);
}

/// Damage of single keys, tensors or data leaves a header that can be shown; other faults do not.
#[test]
fn damaged_headers_can_be_read() {
    let read = |file: Vec<u8>| {
        let len = file.len() as u64;
        Gguf::read_damaged(&Bytes::from(file), len, gguf::Limits::default())
    };
    // Without damage, there is nothing to report.
    let (whole, violations) = read(minimal()).unwrap();
    assert_eq!((whole.tensors().len(), violations.len()), (2, 0));

    let two = [("general.architecture", "other".into()), ("general.architecturx", "two".into())];
    let mut twice = file(&two, ["a.weight".to_owned()]);
    let second = twice.len() - twice.iter().rev().position(|byte| *byte == b'x').unwrap();
    twice[second - 1] = b'e';
    assert!(Gguf::read(&twice.clone().into()).is_err());
    let (gguf, violations) = read(twice).unwrap();
    let values: Vec<_> = gguf.metadata().iter().map(|(key, value)| (key, value.as_str())).collect();
    let key = "general.architecture";
    assert_eq!(values, [(key, Some("other")), (key, Some("two"))]);
    assert_eq!(violations.len(), 1);
    assert_eq!((violations[0].code, violations[0].key.as_deref()), ("key-duplicate", Some(key)));
    // Such a header cannot be written.
    assert!(Header::new(gguf.into_header().into_raw()).is_err());

    let mut overlap = minimal();
    after("b.weight", 16, &[0; 8])(&mut overlap);
    let (gguf, violations) = read(overlap).unwrap();
    assert_eq!((gguf.tensors().len(), violations[0].code), (2, "tensor-overlap"));

    let mut cut = minimal();
    cut.truncate(cut.len() - 8);
    let (gguf, violations) = read(cut).unwrap();
    assert_eq!((gguf.tensors().len(), violations[0].code), (2, "truncated"));

    // A file that ends within its header has the complete entries.
    let bytes = minimal();
    let (whole, _) = read(bytes.clone()).unwrap();
    assert!(whole.header_complete());
    let (first_end, second) = (whole.spans().tensors[0], whole.spans().tensors[1]);
    for (len, keys, tensors) in [
        (first_end - 1, 0, None),
        (first_end, 1, Some(0)),
        (second, 1, Some(1)),
        (second + 9, 1, Some(1)),
    ] {
        let found = read(bytes[..len as usize].to_vec());
        let Some(tensors) = tensors else {
            assert!(found.is_none(), "{keys} keys");
            continue;
        };
        let (gguf, violations) = found.unwrap();
        assert!(!gguf.header_complete());
        assert_eq!((gguf.metadata().len(), gguf.tensors().len()), (keys, tensors));
        let complete = [first_end, second][tensors];
        assert_eq!((gguf.spans().end, gguf.data_start() >= len), (complete, true));
        assert_eq!((violations[0].code, violations[0].offset.is_some()), ("truncated", true));
        assert!(gguf.tensors().iter().all(|tensor| gguf.data(tensor).is_none_or(<[u8]>::is_empty)));
    }

    // Sizes whose sum could overflow, and headers that cannot be parsed.
    let mut huge = minimal();
    after("b.weight", 4, &(1u64 << 55).to_le_bytes())(&mut huge);
    assert!(read(huge).is_none());
    let mut broken = minimal();
    after("architecture", 0, &[13])(&mut broken);
    assert!(read(broken).is_none());
}
