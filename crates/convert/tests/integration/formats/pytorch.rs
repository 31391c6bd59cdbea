//! PyTorch files, built opcode by opcode as `torch.save` writes them.

use std::io::Write;
use std::path::Path;

use gguf::TensorType;
use gguf_checkpoint::Checkpoint;
use zip::write::SimpleFileOptions;

use super::builders::{bytes, digest, floats, numbers};
use crate::fixtures::reference_data;

/// Builder of a pickle.
struct Pickle(Vec<u8>);

impl Pickle {
    fn new() -> Self {
        Self(b"\x80\x02".to_vec())
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    fn text(self, text: &str) -> Self {
        self.raw(b"X").raw(&(text.len() as u32).to_le_bytes()).raw(text.as_bytes())
    }

    fn int(self, number: i32) -> Self {
        self.raw(b"J").raw(&number.to_le_bytes())
    }

    fn ints(self, numbers: &[i32]) -> Self {
        numbers.iter().fold(self.raw(b"("), |pickle, number| pickle.int(*number)).raw(b"t")
    }

    fn global(self, module: &str, name: &str) -> Self {
        self.raw(format!("c{module}\n{name}\n").as_bytes())
    }

    fn ordered_dict(self) -> Self {
        self.global("collections", "OrderedDict").raw(b")R")
    }

    fn storage(self, kind: &str, key: &str, elements: i32) -> Self {
        self.raw(b"(").text("storage").global("torch", kind).text(key).text("cpu").int(elements)
    }

    fn tensor(self, view: &View) -> Self {
        self.text(view.name)
            .global("torch._utils", "_rebuild_tensor_v2")
            .raw(b"(")
            .storage(view.kind, view.key, view.elements)
            .raw(if view.legacy { b"NtQ" } else { b"tQ" })
            .int(view.offset)
            .ints(view.size)
            .ints(view.stride)
            .raw(b"\x89")
            .ordered_dict()
            .raw(b"tR")
    }

    fn end(self) -> Vec<u8> {
        self.raw(b".").0
    }
}

/// Tensor of a state dict.
#[derive(Clone, Copy)]
struct View {
    name: &'static str,
    kind: &'static str,
    key: &'static str,
    elements: i32,
    offset: i32,
    size: &'static [i32],
    stride: &'static [i32],
    legacy: bool,
}

const WHOLE: View = View {
    name: "whole",
    kind: "FloatStorage",
    key: "0",
    elements: 6,
    offset: 0,
    size: &[2, 3],
    stride: &[3, 1],
    legacy: false,
};

fn state_dict(views: &[View]) -> Vec<u8> {
    let start = Pickle::new().ordered_dict().raw(b"(");
    views.iter().fold(start, Pickle::tensor).raw(b"u").end()
}

/// Builds an archive as `torch.save` writes it.
fn archive(pickle: &[u8], storages: &[(&str, Vec<u8>)], options: SimpleFileOptions) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let mut add = |name: &str, bytes: &[u8]| {
        zip.start_file(format!("archive/{name}"), options).unwrap();
        zip.write_all(bytes).unwrap();
    };
    add("data.pkl", pickle);
    add("byteorder", b"little");
    storages.iter().for_each(|(key, bytes)| add(&format!("data/{key}"), bytes));
    add("version", b"3\n");
    zip.finish().unwrap().into_inner()
}

fn stored() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored)
}

fn open(file: &[u8]) -> Result<Checkpoint, String> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("pytorch_model.bin"), file).unwrap();
    let checkpoint = Checkpoint::open(dir.path()).map_err(|error| error.to_string());
    if let Err(message) = &checkpoint {
        assert!(message.contains("pytorch_model.bin") && !message.contains('\n'), "{message}");
    }
    checkpoint
}

fn failure(file: &[u8], parts: &[&str]) {
    let message = open(file).unwrap_err();
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

fn six() -> Vec<u8> {
    [0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0].iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Returns views: whole, transposed, sliced, scalar, of another type, and two of one storage.
fn views(legacy: bool) -> [View; 5] {
    let view = View { legacy, ..WHOLE };
    [
        view,
        View { name: "transposed", size: &[3, 2], stride: &[1, 3], ..view },
        View { name: "column", offset: 1, size: &[2], stride: &[3], ..view },
        View { name: "scalar", offset: 4, size: &[], stride: &[], ..view },
        View {
            name: "bytes",
            kind: "ByteStorage",
            key: "1",
            elements: 3,
            size: &[3],
            stride: &[1],
            ..view
        },
    ]
}

fn check_views(checkpoint: &Checkpoint) {
    let names: Vec<_> = checkpoint.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["whole", "transposed", "column", "scalar", "bytes"]);
    assert_eq!(floats(checkpoint, "whole"), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(floats(checkpoint, "transposed"), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(floats(checkpoint, "column"), [1.0, 4.0]);
    assert_eq!(floats(checkpoint, "scalar"), [4.0]);
    assert_eq!(checkpoint.entries[4].tensor_type, TensorType::I16);
    assert_eq!(bytes(checkpoint, &checkpoint.entries[4]), [7, 0, 8, 0, 200, 0]);
}

#[test]
fn archives_are_read() {
    let storages = [("0", six()), ("1", vec![7, 8, 200])];
    let pickle = state_dict(&views(false));
    check_views(&open(&archive(&pickle, &storages, stored())).unwrap());
    // With ZIP64 fields.
    check_views(&open(&archive(&pickle, &storages, stored().large_file(true))).unwrap());
    // Nested in a training checkpoint.
    let wrapped = Pickle::new().raw(b"}(").text("epoch").int(3).text("state_dict");
    let wrapped = wrapped.raw(&pickle[2..pickle.len() - 1]).raw(b"u").end();
    check_views(&open(&archive(&wrapped, &storages, stored())).unwrap());
}

/// Builds a file of the legacy format: five pickles, among them the list of keys, and the storages with their lengths.
fn stream(pickle: &[u8]) -> Vec<u8> {
    let magic = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";
    let version = b"\x80\x02M\xe9\x03.";
    let machine = Pickle::new().raw(b"}(").text("little_endian").raw(b"\x88u").end();
    let keys = Pickle::new().raw(b"](").text("1").text("0").raw(b"e").end();
    let mut file = [&magic[..], version, &machine, pickle, &keys].concat();
    file.extend(3u64.to_le_bytes());
    file.extend([7, 8, 200]);
    file.extend(6u64.to_le_bytes());
    file.extend(six());
    file
}

#[test]
fn legacy_files_are_read() {
    check_views(&open(&stream(&state_dict(&views(true)))).unwrap());
}

#[test]
fn parameters_and_new_types_are_read() {
    let view = Pickle::new().ordered_dict().raw(b"(").text("parameter");
    let view = view.global("torch._utils", "_rebuild_parameter").raw(b"(");
    let tensor = Pickle(Vec::new()).tensor(&WHOLE).0;
    // A storage without a key.
    let view = view.raw(&tensor[10..]).raw(b"\x88").ordered_dict().raw(b"tR");
    let view = view.text("eight").global("torch._utils", "_rebuild_tensor_v3").raw(b"((");
    let view = view.text("storage").global("torch.storage", "UntypedStorage").text("1");
    let view = view.text("cpu").int(2).raw(b"tQ").int(0).ints(&[2]).ints(&[1]).raw(b"\x89");
    let view = view.ordered_dict().global("torch", "float8_e4m3fn").raw(b"tR").raw(b"u").end();
    let file = archive(&view, &[("0", six()), ("1", vec![0x38, 0xc0])], stored());
    let checkpoint = open(&file).unwrap();
    assert_eq!(floats(&checkpoint, "parameter"), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(floats(&checkpoint, "eight"), [1.0, -2.0]);
}

#[test]
fn calls_of_other_functions_fail_by_name() {
    let calls = [
        b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.".to_vec(),
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.".to_vec(),
        b"\x80\x02(X\x02\x00\x00\x00idios\nsystem\n.".to_vec(),
    ];
    for pickle in calls {
        let parts = ["asks Python to call `os.system`", "nothing was loaded", "safetensors"];
        failure(&archive(&pickle, &[], stored()), &parts);
        failure(&stream(&pickle), &parts);
    }
    let others = [
        ("builtins", "eval"),
        ("torch", "load"),
        ("torch.storage", "_load_from_bytes"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("torch._utils", "_rebuild_tensor_v2.__globals__"),
    ];
    for (module, name) in others {
        let pickle = Pickle::new().global(module, name).end();
        failure(&archive(&pickle, &[], stored()), &[&format!("`{module}.{name}`")]);
    }
}

#[test]
fn damaged_pickles_fail_with_distinct_errors() {
    let deep = [b"\x80\x02)".to_vec(), vec![0x85; 3_000_000], b".".to_vec()].concat();
    let endless = [b"\x80\x02".to_vec(), vec![b'N'; 5_000_000], b".".to_vec()].concat();
    let long_text = b"\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.".to_vec();
    let cyclic = b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s.".to_vec();
    let cases: [(Vec<u8>, &str); 10] = [
        (b"\x80\x02".to_vec(), "ends within a pickle"),
        (b"\x80\x02.".to_vec(), "opcodes are inconsistent"),
        (b"\x80\x02h\x07.".to_vec(), "opcodes are inconsistent"),
        (b"\x80\x02N.".to_vec(), "no dict of named tensors"),
        (b"\x80\x02\x82\x01.".to_vec(), "opcode 0x82"),
        (b"\x80\x02NNR.".to_vec(), "not a function"),
        (deep, "no dict of named tensors"),
        (endless, "too large"),
        (long_text, "a string of"),
        (cyclic, "no dict of named tensors"),
    ];
    for (pickle, part) in cases {
        failure(&archive(&pickle, &[], stored()), &[part]);
    }
}

#[test]
fn views_beyond_their_storage_fail() {
    let wrong = [
        View { offset: 1, ..WHOLE },
        View { size: &[2, 4], stride: &[4, 1], ..WHOLE },
        View { size: &[2, 2], stride: &[5, 1], ..WHOLE },
        // A shape larger than the storage must not allocate.
        View { size: &[1_000_000], stride: &[0], ..WHOLE },
        View { offset: -1, ..WHOLE },
        View { size: &[2], ..WHOLE },
    ];
    for view in wrong {
        let file = archive(&state_dict(&[view]), &[("0", six())], stored());
        let message = open(&file).unwrap_err();
        let fits = ["does not fit its storage", "invalid arguments"];
        assert!(fits.iter().any(|part| message.contains(part)), "{message}");
    }
    failure(&archive(&state_dict(&[WHOLE]), &[], stored()), &["no entry `archive/data/0`"]);
}

#[test]
fn truncated_archives_fail() {
    let file = archive(&state_dict(&[WHOLE]), &[("0", six())], stored());
    for len in [0, 1, 3, 10, 100, file.len() / 2, file.len() - 1] {
        failure(&file[..len], &[";"]);
    }
    failure(&file[..file.len() - 30], &["not a complete zip archive", "download it again"]);
    let old = stream(&state_dict(&views(true)));
    for len in [8, 20, 60, old.len() - 40, old.len() - 1] {
        failure(&old[..len], &["download it again"]);
    }
}

#[test]
fn other_archives_fail() {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("readme.txt", stored()).unwrap();
    failure(&zip.finish().unwrap().into_inner(), &["without `data.pkl`"]);
    failure(b"\x80\x02\x8a\x01\x07.........", &["not of a PyTorch checkpoint"]);
    let big = archive(&state_dict(&[WHOLE]), &[("0", six())], stored());
    let at = big.windows(6).position(|window| window == b"little").unwrap();
    let big = [&big[..at], b"biggie", &big[at + 6..]].concat();
    failure(&big, &["byte order"]);
}

/// Reading a file with changed bytes fails with an error, or returns readable tensors.
#[test]
fn changed_bytes_never_panic() {
    let storages = [("0", six()), ("1", vec![7, 8, 200])];
    let whole = [
        archive(&state_dict(&views(false)), &storages, stored()),
        stream(&state_dict(&views(true))),
    ];
    let mut opened = 0;
    for (file, seed) in whole.iter().zip(1..) {
        let changes = numbers(3 * 5_000 + seed, 1 << 20);
        for change in changes.chunks_exact(3) {
            let mut changed = file.clone();
            let at = change[0] as usize % changed.len();
            match change[1] % 4 {
                0 => changed[at] = change[2] as u8,
                1 => changed[at] ^= 1 << (change[2] % 8),
                2 => drop(changed.remove(at)),
                _ => changed.insert(at, change[2] as u8),
            }
            let source = std::sync::Arc::new(changed);
            match Checkpoint::open_source(Path::new("changed"), source) {
                Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
                Ok(checkpoint) => {
                    checkpoint.entries.iter().for_each(|entry| drop(bytes(&checkpoint, entry)));
                    opened += 1;
                }
            }
        }
    }
    assert!(opened > 100, "some changes should leave something to read: {opened}");
}

/// Names, types, shapes and bytes of all tensors have the digest that `interop/converter/pytorch_digest.py` prints,
/// which uses Python's own pickle and zip modules.
#[test]
fn whole_model_equals_pythons_reading() {
    let Some(data) = reference_data() else { return };
    let checkpoint = Checkpoint::open(&data.join("zoo/rwkv")).unwrap();
    let mut all = Vec::new();
    for entry in &checkpoint.entries {
        all.extend(format!("{} {} {:?}\n", entry.name, entry.tensor_type, entry.shape).bytes());
        all.extend(bytes(&checkpoint, entry));
    }
    assert_eq!(digest(&all), RWKV);
    let moved = tempfile::tempdir().unwrap();
    let file = data.join("zoo/rwkv/pytorch_model.bin");
    std::fs::copy(&file, moved.path().join("any name.pth")).unwrap();
    let same = |dir: &Path| Checkpoint::open(dir).unwrap().entries;
    assert_eq!(same(moved.path()), checkpoint.entries);
}

const RWKV: &str = "5cc57e56a12822567b5c0a90b861cdab80ef2778a0171bfd2921f4aecf4666da";

/// Builds one file of a model-parallel checkpoint, whose elements count up from `first`.
fn part(first: u16, tensors: &[(&'static str, &'static [i32], &'static [i32])]) -> Vec<u8> {
    let mut storages = Vec::new();
    let mut views = Vec::new();
    for ((name, size, stride), key) in tensors.iter().zip(["0", "1", "2", "3", "4"]) {
        let elements: i32 = size.iter().product();
        let values = (0..elements).map(|i| f32::from(first + i as u16));
        storages.push((key, values.flat_map(f32::to_le_bytes).collect()));
        views.push(View { name, key, elements, size, stride, ..WHOLE });
    }
    archive(&state_dict(&views), &storages, stored())
}

const NORM: (&str, &[i32], &[i32]) = ("norm.weight", &[4], &[1]);
const EMBEDDING: &str = "tok_embeddings.weight";
const QUERY: (&str, &[i32], &[i32]) = ("layers.0.attention.wq.weight", &[1, 4], &[4, 1]);
const OUT: (&str, &[i32], &[i32]) = ("layers.0.attention.wo.weight", &[2, 2], &[2, 1]);

fn parts(files: &[Vec<u8>]) -> Result<Checkpoint, String> {
    let dir = tempfile::tempdir().unwrap();
    for (no, file) in files.iter().enumerate() {
        std::fs::write(dir.path().join(format!("consolidated.{no:02}.pth")), file).unwrap();
    }
    Checkpoint::open(dir.path()).map_err(|error| error.to_string())
}

#[test]
fn model_parallel_shards_are_merged() {
    let narrow = (EMBEDDING, &[3, 2][..], &[2, 1][..]);
    let files = [0, 100].map(|first| part(first, &[NORM, narrow, QUERY, OUT]));
    let found = parts(&files).unwrap();
    let shapes: Vec<_> = found.entries.iter().map(|entry| &entry.shape[..]).collect();
    assert_eq!(shapes, [&[4][..], &[3, 4], &[2, 4], &[2, 4]]);
    assert_eq!(floats(&found, NORM.0), [0.0, 1.0, 2.0, 3.0]);
    let expected =
        [0.0, 1.0, 100.0, 101.0, 2.0, 3.0, 102.0, 103.0, 4.0, 5.0, 104.0, 105.0].as_slice();
    assert_eq!(floats(&found, EMBEDDING), expected);
    assert_eq!(floats(&found, QUERY.0), [0.0, 1.0, 2.0, 3.0, 100.0, 101.0, 102.0, 103.0]);
    assert_eq!(floats(&found, OUT.0), [0.0, 1.0, 100.0, 101.0, 2.0, 3.0, 102.0, 103.0]);

    // Llama 3 shards the embedding by rows, which have the model's width.
    let wide = (EMBEDDING, &[1, 4][..], &[4, 1][..]);
    let found = parts(&[0, 100].map(|first| part(first, &[NORM, wide]))).unwrap();
    let expected = [0.0, 1.0, 2.0, 3.0, 100.0, 101.0, 102.0, 103.0];
    assert_eq!(floats(&found, EMBEDDING), expected);
    assert_eq!(found.entries[1].shape, [2, 4]);
}

#[test]
fn shards_of_different_models_fail() {
    let other = (QUERY.0, &[2, 2][..], &[2, 1][..]);
    let unknown = ("layers.0.gate.weight", &[2, 2][..], &[2, 1][..]);
    let cases = [
        ([&[NORM, QUERY][..], &[NORM]], "`layers.0.attention.wq.weight` is not in all files"),
        ([&[NORM], &[NORM, QUERY]], "is not in the first file"),
        ([&[NORM, QUERY], &[NORM, other]], "differs in shape or type between the files"),
        ([&[unknown], &[unknown]], "the way it is split is unknown"),
    ];
    for (files, what) in cases {
        let message = parts(&files.map(|tensors| part(0, tensors))).unwrap_err();
        for part in [what, "consolidated.NN.pth"] {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
}
