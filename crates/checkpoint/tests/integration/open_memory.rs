//! The length of a file bounds the memory for opening it, whatever its content.

use std::path::Path;
use std::sync::Arc;

use allocation_counter::measure;
use gguf_checkpoint::Checkpoint;

/// Length of the files: long enough for an attack to have an effect.
const LEN: usize = 180_000;

/// Maximum memory for opening a file, as a multiple of its length.
const MAX_MULTIPLE: u64 = 100;

const ORDERED_DICT: &[u8] = b"ccollections\nOrderedDict\nq\x00";
const REBUILD: &[u8] = b"ctorch._utils\n_rebuild_tensor_v2\nq\x00";

/// Repeats a part as often as fits.
fn fill(start: &[u8], repeated: &[u8], end: &[u8]) -> Vec<u8> {
    let times = (LEN - start.len() - end.len()) / repeated.len();
    [start, &repeated.repeat(times), end].concat()
}

fn text(bytes: &[u8]) -> Vec<u8> {
    [b"X", &(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
}

/// Returns a storage of six floats.
fn storage(key: &[u8]) -> Vec<u8> {
    [b"(X\x07\0\0\0storagectorch\nFloatStorage\n", &text(key)[..], b"X\x03\0\0\0cpuK\x06tQ"]
        .concat()
}

/// Returns the arguments of a tensor with this many dimensions of one element.
fn arguments(key: &[u8], dims: usize) -> Vec<u8> {
    let dims = [b"(", &b"K\x01".repeat(dims)[..], b"t"].concat();
    [b"(", &storage(key)[..], b"K\0", &dims, &dims, b"t"].concat()
}

/// Returns short names, each for the value with memo index 1.
fn names(n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| [&b"U\x04"[..], format!("{i:04x}").as_bytes(), b"h\x01"].concat()).collect()
}

/// Returns a file in the format before PyTorch 1.6 with this pickle and a storage of six floats.
fn file(pickle: &[u8]) -> Vec<u8> {
    let magic = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";
    let (version, machine, keys) =
        (b"\x80\x02M\xe9\x03.", b"\x80\x02}.", b"\x80\x02]X\x01\0\0\x000a.");
    [&magic[..], version, machine, pickle, keys, &6u64.to_le_bytes(), &[1; 24]].concat()
}

/// Returns the peak memory of opening the file as a multiple of its length, and the result.
fn cost(bytes: Vec<u8>) -> (u64, String) {
    let len = bytes.len() as u64;
    let source = Arc::new(bytes);
    let mut result = String::new();
    let info = measure(|| {
        result = match Checkpoint::open_source(Path::new("m.pt"), source.clone()) {
            Ok(checkpoint) => format!("{} tensors", checkpoint.entries.len()),
            Err(error) => error.to_string(),
        };
    });
    assert!(info.count_total > 0, "nothing was counted");
    (info.bytes_max / len, result)
}

#[test]
fn pickle_memory_is_bounded() {
    let half = LEN / 2;
    let long_key = vec![b'k'; half];
    let pair = [ORDERED_DICT, b"K\x01K\x02\x86q\x01"].concat();
    let list = [&pair[..], b"(", &b"h\x01".repeat(half / 2), b"l\x85q\x01"].concat();
    let tensor = [REBUILD, &arguments(b"0", 1), b"Rq\x01"].concat();
    let deep = [REBUILD, &arguments(b"0", half / 4), b"Rq\x01"].concat();
    let entries =
        |tensor: &[u8], entries: &[u8]| [tensor, b"0}(U\x01zh\x01", entries, b"u."].concat();
    let cases = [
        ("lists", fill(&list, b"h\0h\x01R0", b"."), "copies its lists repeatedly"),
        (
            "keys",
            fill(
                &[&storage(&long_key)[..storage(&long_key).len() - 1], b"q\0"].concat(),
                b"h\0Q0",
                b".",
            ),
            "names a storage in an unknown form",
        ),
        (
            "keys of tensors",
            fill(&[REBUILD, &arguments(&long_key, 1), b"q\x01"].concat(), b"h\0h\x01R0", b"."),
            "names a storage in an unknown form",
        ),
        (
            "dimensions",
            fill(&[REBUILD, &arguments(b"0", half / 4), b"q\x01"].concat(), b"h\0h\x01R0", b"."),
            "copies its lists repeatedly",
        ),
        (
            "names",
            fill(
                &[&tensor[..], b"0}(", &text(&long_key), b"q\0h\x01"].concat(),
                b"h\0h\x01",
                b"u.",
            ),
            "has two tensors `kkk",
        ),
        ("dimensions of tensors", entries(&deep, &names(half / 8)), "copies its lists repeatedly"),
        ("lists of nothing", fill(b"", b"]", b"."), "an unused key among its storages"),
        ("dicts of nothing", fill(b"", b"}", b"."), "an unused key among its storages"),
        ("the memo", fill(b"N", b"\x94", b"."), "an unused key among its storages"),
        ("tensors", entries(&tensor, &names(LEN / 9)), "20001 tensors"),
    ];
    for (what, pickle, expected) in cases {
        let (times, result) = cost(file(&pickle));
        let start: String = result.chars().take(200).collect();
        assert!(times <= MAX_MULTIPLE, "{what}: {times} times the file; {start}");
        assert!(result.contains(expected), "{what}: {start}");
        eprintln!("{what}: {times} times the file; {start}");
    }
}

#[test]
fn shared_storages_are_allowed() {
    // Thirty thousand names of six floats.
    let tensor = [REBUILD, b"(", &storage(b"0"), b"K\0K\x06\x85K\x01\x85tRq\x010}("].concat();
    let pickle = |n| [&tensor[..], &names(n), b"u."].concat();
    let (_, result) = cost(file(&pickle(30_000)));
    assert_eq!(result, "30000 tensors");
}
