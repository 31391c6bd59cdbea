//! Sharded models: found from any name, read as one, written as llama.cpp's tool writes them.

use std::fs;
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use gguf::shard_keys::PART_FINGERPRINT;
use gguf::{
    Error, Gguf, Header, NameShard, RawHeader, Severity, Shape, TensorInfo, TensorType,
    check_shards, write_header,
};
use gguf_store::{
    Existing, MergeOptions, Model, Overwrite, ShardSet, SplitLimit, SplitOptions, SplitPlan,
    delete_merged, merge,
};

/// Returns the directory of files that llama.cpp's tool wrote.
fn llama_cpp_files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/split")
}

fn by_tensors(n: u64, no_tensor_first_split: bool) -> SplitOptions {
    let limit = SplitLimit::Tensors(NonZeroU64::new(n).unwrap());
    SplitOptions { limit, no_tensor_first_split }
}

fn split(input: &Path, prefix: &Path, options: SplitOptions) -> Vec<PathBuf> {
    let model = Model::open(input).unwrap();
    SplitPlan::new(&model, options)
        .unwrap()
        .write(prefix, &Overwrite::new(Existing::Replace), &())
        .unwrap()
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// Writes a file whose tensors hold their own index, repeated.
fn write_file(path: &Path, keys: &[(&'static str, gguf::Value)], tensors: &[(&str, u64)]) {
    let mut draft = RawHeader::default();
    for (key, value) in keys {
        draft.metadata.push(*key, value.clone());
    }
    draft.tensors = tensors
        .iter()
        .map(|&(name, len)| TensorInfo {
            name: name.to_owned(),
            shape: Shape::new(&[len]).unwrap(),
            tensor_type: TensorType::F32,
            offset: 0,
            opaque_len: None,
        })
        .collect();
    draft.lay_out().unwrap();
    let header = Header::new(draft).unwrap();
    let mut bytes = write_header(&header).unwrap();
    let start = bytes.len();
    for (i, tensor) in header.tensors().iter().enumerate() {
        bytes.resize(start + tensor.offset as usize, 0);
        let len = tensor.byte_len().unwrap() as usize / 4;
        bytes.extend((i as f32).to_le_bytes().repeat(len));
    }
    fs::write(path, bytes).unwrap();
}

/// Writes a set of one-tensor files; `change` may corrupt keys and tensors of a shard, numbered
/// from 0.
fn write_set(
    directory: &Path,
    count: u32,
    change: impl Fn(u32, &mut Vec<(&'static str, gguf::Value)>, &mut Vec<(&str, u64)>),
) -> PathBuf {
    let mut path = PathBuf::new();
    for no in 0..count {
        path = directory.join(NameShard { number: no + 1, count }.file_name("m"));
        let mut keys = vec![
            ("general.architecture", "llama".into()),
            ("split.no", (no as u16).into()),
            ("split.tensors.count", (count as i32).into()),
            ("split.count", (count as u16).into()),
        ];
        let mut tensors = vec![(["a", "b", "c", "d"][no as usize], 9)];
        change(no, &mut keys, &mut tensors);
        write_file(&path, &keys, &tensors);
    }
    path
}

#[test]
fn shards_match_llama_cpp() {
    let directory = tempfile::tempdir().unwrap();
    let input = llama_cpp_files().join("model.gguf");
    for (prefix, options) in [("two", by_tensors(2, false)), ("keys-first", by_tensors(4, true))] {
        let written = split(&input, &directory.path().join(prefix), options);
        assert_eq!(written.len(), 3);
        for path in written {
            let expected = fs::read(llama_cpp_files().join(name(&path))).unwrap();
            assert!(fs::read(&path).unwrap() == expected, "{}", name(&path));
        }
    }
}

#[test]
fn merged_shards_match_the_original_or_llama_cpp() {
    let directory = tempfile::tempdir().unwrap();
    let merged = directory.path().join("merged.gguf");
    let cases = [
        ("two-00002-of-00003.gguf", false, "model.gguf"),
        ("keys-first-*.gguf", false, "model.gguf"),
        ("two-00001-of-00003.gguf", true, "two-merged.gguf"),
        // A file merged by that tool is not taken for a shard.
        ("two-merged.gguf", false, "model.gguf"),
    ];
    for (input, keep_split_keys, expected) in cases {
        let model = Model::open(&llama_cpp_files().join(input)).unwrap();
        merge(
            &model,
            &merged,
            MergeOptions { keep_split_keys },
            &Overwrite::new(Existing::Replace),
            &(),
        )
        .unwrap();
        assert!(fs::read(&merged).unwrap() == fs::read(llama_cpp_files().join(expected)).unwrap());
    }
}

#[test]
fn sharded_models_read_as_one() {
    let whole = fs::read(llama_cpp_files().join("model.gguf")).unwrap();
    let whole = Gguf::read(&whole.into()).unwrap();
    let model = Model::open(&llama_cpp_files().join("two-00003-of-00003.gguf")).unwrap();
    assert_eq!(model.metadata(), whole.metadata());
    let shards: Vec<_> = model.tensors().iter().map(|tensor| tensor.shard).collect();
    assert_eq!(shards, [0, 0, 1, 1, 2, 2]);
    for (tensor, expected) in model.tensors().iter().zip(whole.tensors()) {
        assert_eq!(tensor.info.name, expected.name);
        let expected = whole.data(expected).unwrap();
        let mut bytes = vec![0; expected.len()];
        tensor.read_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, expected);
        // The data are a view into the map of their shard.
        assert_eq!(tensor.data(), Some(expected));
        let map = tensor.source.as_slice().unwrap().as_ptr_range();
        assert!(map.contains(&tensor.data().unwrap().as_ptr()));
    }
}

#[test]
fn size_limits_follow_llama_cpp() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.gguf");
    // Padded lengths: 32, 64, 32, 128, 32 bytes.
    write_file(&path, &[], &[("a", 1), ("b", 9), ("c", 8), ("d", 32), ("e", 1)]);
    let model = Model::open(&path).unwrap();
    let plan = |bytes, no_tensor_first_split| {
        let options = SplitOptions { limit: SplitLimit::Bytes(bytes), no_tensor_first_split };
        let plan = SplitPlan::new(&model, options).unwrap();
        plan.shards().iter().map(|shard| shard.tensors.len()).collect::<Vec<_>>()
    };
    assert_eq!(plan(1000, false), [5]);
    assert_eq!(plan(128, false), [3, 1, 1]);
    assert_eq!(plan(96, false), [2, 1, 1, 1]);
    // Every tensor exceeds the limit, the first one too.
    assert_eq!(plan(16, false), [1, 1, 1, 1, 1]);
    assert_eq!(plan(128, true), [0, 3, 1, 1]);
    let options = SplitOptions { limit: SplitLimit::Bytes(128), ..Default::default() };
    let planned = SplitPlan::new(&model, options).unwrap();
    let written = planned
        .write(&directory.path().join("s"), &Overwrite::new(Existing::Replace), &())
        .unwrap();
    for (path, shard) in written.iter().zip(planned.shards()) {
        assert_eq!(fs::metadata(path).unwrap().len(), shard.file_len);
    }
}

#[test]
fn models_without_tensors_can_be_split() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.gguf");
    write_file(&path, &[("general.name", "vocab".into())], &[]);
    for (keys_first, count) in [(false, 1), (true, 2)] {
        let shards = split(&path, &directory.path().join("s"), by_tensors(5, keys_first));
        assert_eq!(shards.len(), count);
        assert_eq!(Model::open(&shards[0]).unwrap().tensors().len(), 0);
    }
}

/// The first shard stores the alignment; the others have the default.
#[test]
fn wide_alignment_round_trip() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.gguf");
    write_file(&path, &[("general.alignment", 128u32.into())], &[("a", 1), ("b", 1), ("c", 3)]);
    let shards = split(&path, &directory.path().join("s"), by_tensors(2, false));
    let model = Model::open(&shards[0]).unwrap();
    let merged = directory.path().join("merged.gguf");
    merge(&model, &merged, MergeOptions::default(), &Overwrite::new(Existing::Replace), &())
        .unwrap();
    let (mut original, merged) = (fs::read(&path).unwrap(), fs::read(&merged).unwrap());
    original.resize(merged.len(), 0);
    assert!(original == merged);
}

#[test]
fn sets_are_found_from_any_member() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write_set(directory, 3, |_, _, _| {});
    let names = |path: &Path| {
        let set = ShardSet::find(path).map_err(|error| error.to_string())?;
        Ok::<_, String>(set.paths().iter().map(|path| name(path).to_owned()).collect::<Vec<_>>())
    };
    let all = ["m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"];
    for member in all.iter().chain(&["m-*.gguf", "m-0000?-of-00003.gguf"]) {
        assert_eq!(names(&directory.join(member)).unwrap(), all, "{member}");
    }
    assert_eq!(names(directory).unwrap(), all);
    fs::write(directory.join("mmproj-m.gguf"), "").unwrap();
    assert_eq!(names(directory).unwrap(), all);
    fs::write(directory.join("other.gguf"), "").unwrap();
    let error = names(directory).unwrap_err();
    assert!(error.starts_with("2 models at "), "{error}");
    assert!(error.ends_with(": m-00001-of-00003.gguf, other.gguf; name one of them"), "{error}");
    assert_eq!(names(&directory.join("other.gguf")).unwrap(), ["other.gguf"]);
    assert!(names(&directory.join("none.gguf")).unwrap_err().starts_with("cannot open "));
    assert!(names(&directory.join("n-*.gguf")).unwrap_err().starts_with("no GGUF file at "));
    fs::remove_file(directory.join(all[1])).unwrap();
    for member in all {
        let error = names(&directory.join(member)).unwrap_err();
        let expected = "1 of 3 shards is missing: m-00002-of-00003.gguf; ";
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn git_lfs_pointers_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let last = write_set(directory.path(), 2, |_, _, _| {});
    fs::write(&last, "version https://git-lfs.github.com/spec/v1\n").unwrap();
    let model = Model::open(&directory.path().join("m-00001-of-00002.gguf"));
    let error = model.err().unwrap().to_string();
    assert!(error.contains("m-00002-of-00002.gguf: this is a Git LFS pointer"), "{error}");
}

#[test]
fn each_shard_rule_has_its_code() {
    use Severity::{Error, Warning};
    type Keys = Vec<(&'static str, gguf::Value)>;
    type Change = fn(u32, &mut Keys, &mut Vec<(&str, u64)>);
    let cases: Vec<(&str, Severity, u32, Change)> = vec![
        ("shard-number", Error, 3, |no, keys, _| {
            if no == 2 {
                keys[1].1 = 1u16.into();
            }
        }),
        ("shard-number", Error, 2, |_, keys, _| keys.retain(|(key, _)| *key != "split.no")),
        ("shard-count", Error, 2, |_, keys, _| keys[3].1 = 3u16.into()),
        ("shard-count", Error, 2, |no, keys, _| keys.truncate(if no == 1 { 3 } else { 4 })),
        ("shard-tensor-count", Error, 2, |_, keys, _| keys[2].1 = 5i32.into()),
        ("shard-tensor-count", Error, 2, |no, keys, _| {
            if no == 1 {
                keys[2].1 = 7i32.into();
            }
        }),
        ("shard-tensor-duplicate", Error, 2, |_, _, tensors| tensors[0].0 = "same"),
        ("shard-foreign", Error, 2, |no, keys, _| {
            if no == 1 {
                keys[0].1 = "gemma".into();
            }
        }),
        ("shard-other-work", Error, 3, |no, keys, _| {
            keys.push((PART_FINGERPRINT, ["a", "a", "b"][no as usize].into()));
        }),
        ("shard-other-work", Error, 2, |no, keys, _| {
            if no == 0 {
                keys.push((PART_FINGERPRINT, "a".into()));
            }
        }),
        ("shard-other-work", Error, 2, |no, keys, _| {
            if no == 1 {
                keys.push((PART_FINGERPRINT, "a".into()));
            }
        }),
        ("shard-key-ignored", Warning, 2, |no, keys, _| {
            if no == 1 {
                keys.push(("llama.block_count", 1u32.into()));
            }
        }),
        ("shard-key-type", Warning, 2, |_, keys, _| keys[3].1 = 2u32.into()),
        // A single file.
        ("shard-count-stale", Warning, 1, |_, keys, _| keys[3].1 = 4u16.into()),
        ("shard-incomplete", Error, 1, |_, keys, _| {
            keys[2].1 = 4i32.into();
            keys[3].1 = 4u16.into();
        }),
    ];
    for (i, (code, severity, count, change)) in cases.into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let member = write_set(directory.path(), count, change);
        let set = ShardSet::find(&member).unwrap();
        let bytes: Vec<_> = set.paths().iter().map(|path| fs::read(path).unwrap()).collect();
        let drafts: Vec<_> =
            bytes.iter().map(|bytes| gguf::check(&bytes.clone().into()).1.unwrap()).collect();
        let shards: Vec<_> = set.paths().iter().map(PathBuf::as_path).zip(&drafts).collect();
        let findings = check_shards(&shards);
        let found = findings.iter().find(|finding| finding.code == code);
        let found = found.unwrap_or_else(|| panic!("case {i}: no {code} among {findings:?}"));
        assert_eq!(found.severity, severity, "case {i}");
        assert_eq!(Model::open(&member).is_err(), severity == Error, "case {i}");
    }
    let directory = tempfile::tempdir().unwrap();
    let member = write_set(directory.path(), 4, |_, _, _| {});
    assert_eq!(Model::open(&member).unwrap().tensors().len(), 4);
}

#[test]
fn merging_removes_the_part_fingerprint() {
    let directory = tempfile::tempdir().unwrap();
    let member =
        write_set(directory.path(), 3, |_, keys, _| keys.push((PART_FINGERPRINT, "a".into())));
    let model = Model::open(&member).unwrap();
    assert_eq!(model.metadata().get(PART_FINGERPRINT), None);
    let bytes: Vec<_> = model.paths().map(|path| fs::read(path).unwrap()).collect();
    let drafts: Vec<_> =
        bytes.iter().map(|bytes| gguf::check(&bytes.clone().into()).1.unwrap()).collect();
    let shards: Vec<_> = model.paths().zip(&drafts).collect();
    // Other findings about this artificial model do not matter here.
    let findings = check_shards(&shards);
    assert!(findings.iter().all(|finding| !finding.code.starts_with("shard")), "{findings:?}");
    let merged = directory.path().join("merged.gguf");
    for keep_split_keys in [false, true] {
        let replace = Overwrite::new(Existing::Replace);
        let keep_going = |_| ControlFlow::Continue(());
        merge(&model, &merged, MergeOptions { keep_split_keys }, &replace, &keep_going).unwrap();
        let bytes = fs::read(&merged).unwrap();
        assert_eq!(Gguf::read(&bytes.into()).unwrap().metadata().get(PART_FINGERPRINT), None);
    }
}

#[test]
fn inputs_are_never_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let last = write_set(directory.path(), 2, |_, _, _| {});
    let before = fs::read(&last).unwrap();
    let model = Model::open(&last).unwrap();
    let refused = |result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::Caller(_))), "{result:?}");
    };
    refused(
        merge(&model, &last, MergeOptions::default(), &Overwrite::new(Existing::Replace), &())
            .map(drop),
    );
    let plan = SplitPlan::new(&model, by_tensors(1, false)).unwrap();
    refused(
        plan.write(&directory.path().join("m"), &Overwrite::new(Existing::Replace), &()).map(drop),
    );
    assert_eq!(fs::read(&last).unwrap(), before);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn shards_are_deleted_only_if_the_merged_file_matches() {
    let directory = tempfile::tempdir().unwrap();
    let last = write_set(directory.path(), 2, |_, _, _| {});
    let merged = directory.path().join("merged.gguf");
    let model = Model::open(&last).unwrap();
    merge(&model, &merged, MergeOptions::default(), &Overwrite::new(Existing::Replace), &())
        .unwrap();
    let good = fs::read(&merged).unwrap();
    let mut bad = good.clone();
    // The last byte of data: 36 bytes are padded to 64.
    let at = bad.len() - 29;
    bad[at] ^= 1;
    fs::write(&merged, &bad).unwrap();
    let error = delete_merged(model, &merged).unwrap_err().to_string();
    assert!(error.contains("tensor `b`: differs in the merged file"), "{error}");
    assert!(last.exists());
    assert!(delete_merged(Model::open(&last).unwrap(), &last).is_err());
    assert!(last.exists());
    fs::write(&merged, &good).unwrap();
    delete_merged(Model::open(&last).unwrap(), &merged).unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}
