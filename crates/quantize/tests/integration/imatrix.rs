//! Importance matrices: both formats, merging, statistics, and invalid files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gguf::{ByteOrder, Error};
use gguf_quantize::imatrix::{Entry, Imatrix, statistics};
use gguf_store::{Existing, Overwrite};
use tempfile::TempDir;

const UP: &str = "blk.0.ffn_up.weight";
const EXPERTS: &str = "blk.0.ffn_up_exps.weight";

fn entry(sums: &[f32], counts: &[u64]) -> Entry {
    Entry { sums: sums.into(), counts: counts.into() }
}

/// Two chunks of four tokens; the second expert was never used.
fn small() -> Imatrix {
    Imatrix {
        datasets: vec!["a.txt".into()],
        chunk_count: 2,
        chunk_size: Some(4),
        fingerprint: None,
        entries: BTreeMap::from([
            (UP.into(), entry(&[8.0, 4.0, 0.0], &[8])),
            (EXPERTS.into(), entry(&[2.0, 4.0, 9.0, 9.0], &[4, 0])),
        ]),
    }
}

/// The matrix of [`small`] in the legacy format, which has one count for all experts.
fn small_legacy() -> Imatrix {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("small.dat");
    small().write_legacy(&path, &Overwrite::new(Existing::Replace)).unwrap();
    Imatrix::open(&path).unwrap()
}

fn gguf_bytes(imatrix: &Imatrix) -> (TempDir, PathBuf, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("imatrix.gguf");
    imatrix.write_gguf(&path, &Overwrite::new(Existing::Replace)).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    (dir, path, bytes)
}

fn open(bytes: &[u8]) -> Result<Imatrix, Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("imatrix");
    std::fs::write(&path, bytes).unwrap();
    Imatrix::open(&path)
}

#[test]
fn both_formats_round_trip() {
    let all = small();
    let (_dir, path, _) = gguf_bytes(&all);
    assert_eq!(Imatrix::open(&path).unwrap(), all);
    let legacy = small_legacy();
    assert_eq!(legacy.chunk_size, None);
    assert_eq!(legacy.entries[UP], entry(&[2.0, 1.0, 0.0], &[2]));
    assert_eq!(legacy.importance(UP), Some(vec![1.0, 0.5, 0.0]));
    assert_eq!(all.importance(UP), legacy.importance(UP));
    assert_eq!(legacy.to_token_sums(4).entries[UP], all.entries[UP]);
}

#[test]
fn output_is_byte_identical_to_llama_cpp() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA") else {
        eprintln!("SKIPPED: set GGUF_TEST_DATA to the folder with the reference data");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    type Write = fn(&Imatrix, &Path, &Overwrite) -> Result<(), Error>;
    for (name, write) in
        [("imatrix.gguf", Imatrix::write_gguf as Write), ("imatrix.dat", Imatrix::write_legacy)]
    {
        let theirs = Path::new(&data).join("tiny-kjv-llama").join(name);
        let ours = dir.path().join(name);
        write(&Imatrix::open(&theirs).unwrap(), &ours, &Overwrite::default()).unwrap();
        assert!(std::fs::read(&ours).unwrap() == std::fs::read(&theirs).unwrap(), "{name}");
    }
}

#[test]
fn unused_experts_have_uniform_weights() {
    assert_eq!(small().importance(EXPERTS), Some(vec![0.5, 1.0, 1.0, 1.0]));
    assert_eq!(small().importance("output.weight"), None);
}

#[test]
fn merging_adds() {
    let mut twice = small();
    twice.merge(&small(), 4).unwrap();
    assert_eq!(twice.entries[UP], entry(&[16.0, 8.0, 0.0], &[16]));
    assert_eq!((twice.chunk_count, twice.datasets.len()), (4, 2));
}

#[test]
fn formats_merge_in_any_order() {
    // The legacy matrix has two chunks of both experts: 8 tokens of 0.5 and 1, and of 1 and 1.
    let both = entry(&[2.0 + 2.0, 4.0 + 4.0, 9.0 + 4.0, 9.0 + 4.0], &[4 + 4, 4]);
    let mut gguf_first = small();
    gguf_first.merge(&small_legacy(), 4).unwrap();
    assert_eq!(gguf_first.entries[EXPERTS], both);
    let mut legacy_first = small_legacy();
    legacy_first.merge(&small(), 4).unwrap();
    assert_eq!(legacy_first.entries[EXPERTS], both);
    assert_eq!(legacy_first.entries[UP], gguf_first.entries[UP]);
}

#[test]
fn merging_another_model_fails() {
    let mut other = small();
    other.entries.insert(UP.into(), entry(&[1.0; 4], &[8]));
    let error = small().merge(&other, 4).unwrap_err();
    assert!(error.to_string().contains("4 sums"), "{error}");
    other.entries.insert(UP.into(), entry(&[8.0, 4.0, 0.0], &[2, 2, 2]));
    let mut three = small();
    three.entries.insert(UP.into(), entry(&[8.0, 4.0, 0.0], &[2, 2, 2]));
    let error = three.merge(&small(), 4).unwrap_err();
    assert!(error.to_string().contains("3 sums and 1 counts"), "{error}");
}

#[test]
fn another_chunk_size_recounts_chunks() {
    let other = small().to_token_sums(2);
    assert_eq!((other.chunk_size, other.chunk_count), (Some(2), 4));
    assert_eq!(other.entries, small().entries);
    let legacy = small_legacy().to_token_sums(100);
    assert_eq!((legacy.chunk_size, legacy.chunk_count), (Some(100), 2));
    assert_eq!(legacy.entries[UP].counts, [200]);
}

#[test]
fn statistics_match_llama_cpp() {
    let mut imatrix = small();
    imatrix.entries = BTreeMap::from([
        ("enc.blk.0.attn_q.weight".into(), entry(&[4.0, 0.0, 0.0, 0.0], &[4])),
        ("enc.blk.1.attn_q.weight".into(), entry(&[1.0, 1.0, 1.0, 1.0], &[4])),
        ("enc.blk.2.attn_q.weight".into(), entry(&[3.0, 3.0, 3.0, 3.0], &[0])),
        ("enc.blk.3.attn_q.weight".into(), entry(&[1.0, 1.0, 1.0, 1.0], &[4])),
    ]);
    let [first, constant, after_unused] = &statistics(&imatrix)[..] else { panic!("three used") };
    assert_eq!((first.sum, first.mean, first.max, first.min), (1.0, 0.25, 1.0, 0.0));
    assert_eq!((first.active, first.entropy, first.outstanding), (0.25, 0.0, 0.25));
    assert_eq!(first.similarity, None);
    // Without deviation no column is outstanding.
    assert_eq!((constant.deviation, constant.outstanding, constant.entropy), (0.0, 0.0, 2.0));
    assert_eq!(constant.similarity, Some(0.5));
    // A matrix that was never used has no statistics to compare with.
    assert_eq!((&*after_unused.name, after_unused.similarity), ("enc.blk.3.attn_q.weight", None));
}

#[test]
fn truncated_files_are_rejected_or_lack_optional_fields() {
    let (_dir, _, gguf) = gguf_bytes(&small());
    for len in 0..gguf.len() {
        // The padding of the last tensor is not content.
        match open(&gguf[..len]) {
            Ok(read) => assert!(read == small() && gguf[len..].iter().all(|b| *b == 0), "{len}"),
            Err(error) => assert_eq!(error.code(), "imatrix-damaged", "{len}: {error}"),
        }
    }
    let (dir, whole) = (tempfile::tempdir().unwrap(), small_legacy());
    let path = dir.path().join("whole.dat");
    whole.write_legacy(&path, &Overwrite::new(Existing::Replace)).unwrap();
    let legacy = std::fs::read(&path).unwrap();
    // The number of chunks, and the length and the name of the dataset.
    let end = legacy.len() - 4 - 4 - "a.txt".len();
    for len in 0..legacy.len() {
        match open(&legacy[..len]) {
            Ok(read) => assert!(len >= end && read.entries == whole.entries, "{len}"),
            Err(error) => assert!(len < end, "{len}: {error}"),
        }
    }
}

#[test]
fn invalid_files_are_rejected() {
    let forged = [&1u32.to_le_bytes()[..], &u32::MAX.to_le_bytes(), &[0; 16]].concat();
    assert!(open(&forged).is_err());
    for wrong in [f32::NAN, -1.0, f32::INFINITY] {
        let mut broken = small();
        broken.entries.get_mut(UP).unwrap().sums[1] = wrong;
        let fault = open(&gguf_bytes(&broken).2).unwrap_err().to_string();
        assert!(fault.contains("column 1"), "{fault}");
    }
}

#[test]
fn big_endian_files_are_equivalent() {
    let (_dir, _, bytes) = gguf_bytes(&small());
    let little = gguf::Gguf::read(&bytes.clone().into()).unwrap();
    let draft = gguf::RawHeader { order: ByteOrder::Big, ..little.header().clone().into_raw() };
    let mut big = gguf::write_header(&gguf::Header::new(draft).unwrap()).unwrap();
    for floats in bytes[little.data_start() as usize..].as_chunks::<4>().0 {
        big.extend(floats.iter().rev());
    }
    assert_eq!(open(&big).unwrap(), open(&bytes).unwrap());
}

#[test]
fn unused_matrices_cannot_be_written_as_legacy() {
    let mut unused = small();
    unused.entries.values_mut().for_each(|entry| entry.counts.fill(0));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("unused.dat");
    let fault =
        unused.write_legacy(&path, &Overwrite::new(Existing::Replace)).unwrap_err().to_string();
    assert!(fault.contains("no matrix received any tokens"), "{fault}");
    assert!(!path.exists());
}
