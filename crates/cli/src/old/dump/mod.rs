//! `gguf-dump`.

mod json;
mod markdown;
pub mod python;

use std::io::Write;
use std::path::Path;

use gguf::{Array, ByteOrder, Bytes, Gguf, TensorInfo, Value, ValueType};
use gguf_remote::Location;
use gguf_store::fetch_header;

use super::confirm::log;
use super::flag::{Flag, help, nothing, read};
use super::given::Given;
use super::{Family, Program};
use crate::failure::Failure;

pub const PROGRAM: Program = Program {
    name: "gguf-dump",
    ours: "gguf inspect",
    words: "model",
    family: Family::Package,
    example: "--json --no-tensors model.gguf",
    flags: &[FLAGS],
    run,
};

const FLAGS: &[Flag] = &[
    help("-h --help"),
    read("--no-tensors", 0, "leaves the tensors out"),
    read("--json", 0, "the JSON of the original"),
    read("--json-array", 0, "with --json, arrays in full"),
    read("--data-offset", 0, "prints where the data begin"),
    read("--data-alignment", 0, "prints the alignment of the data"),
    read("--markdown", 0, "the page of the original"),
    nothing("--verbose", 0, "there is nothing more to say"),
];

/// A file as the original reads it: one file, whatever other shards there are.
struct Dump<'d> {
    name: &'d str,
    gguf: Gguf,
}

/// A key, or one of the three numbers before the keys, which the original counts as keys.
struct Field<'f> {
    name: &'f str,
    value: Value,
    /// Where it begins in the file.
    offset: u64,
}

fn run(given: &Given) -> Result<u8, Failure> {
    let [name] = given.positions(["model"])?;
    let text = !["--json", "--markdown", "--data-offset", "--data-alignment"]
        .iter()
        .any(|flag| given.has(flag));
    if text {
        log("INFO", "gguf-dump", &format!("* Loading: {name}"));
    }
    let dump = Dump { name, gguf: open(name)? };
    let tensors = !given.has("--no-tensors");
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if given.has("--json") {
        json::print(&mut out, &dump, tensors, given.has("--json-array"))?;
    } else if given.has("--markdown") {
        markdown::print(&mut out, &dump, tensors)?;
    } else if given.has("--data-offset") {
        writeln!(out, "{}", dump.gguf.data_start())?;
    } else if given.has("--data-alignment") {
        writeln!(out, "{}", dump.gguf.header().alignment().get())?;
    } else {
        print(&mut out, &dump, tensors)?;
    }
    out.flush()?;
    Ok(0)
}

/// The header of one file.
fn open(name: &str) -> Result<Gguf, Failure> {
    let limits = gguf::Limits::default();
    let opened = match Location::parse(name)? {
        Location::Path(path) => {
            let source = gguf_store::LocalFile::open(&path)?;
            header(&source, &path)?
        }
        far => {
            let opened = gguf_remote::open_with(&far, gguf_remote::RemoteOptions::from_env())?;
            header(&*opened.source, Path::new(name))?
        }
    };
    let (bytes, len) = opened;
    Gguf::read_header(&bytes, len, limits).map_err(|error| error.in_file(name.as_ref()).into())
}

fn header(source: &dyn gguf_store::Source, path: &Path) -> Result<(Bytes, u64), Failure> {
    let bytes = fetch_header(source, gguf::Limits::default());
    Ok((bytes.map_err(|error| error.in_file(path))?, source.byte_len()))
}

impl Dump<'_> {
    fn order(&self) -> &'static str {
        order(self.gguf.header().order())
    }

    fn tensors(&self) -> &[TensorInfo] {
        self.gguf.tensors()
    }

    /// What the original calls fields, in its order.
    fn fields(&self) -> Vec<Field<'_>> {
        let (keys, tensors) = (self.gguf.metadata(), self.tensors().len() as u64);
        let numbers = [
            ("GGUF.version", Value::U32(self.gguf.header().version()), 4),
            ("GGUF.tensor_count", Value::U64(tensors), 8),
            ("GGUF.kv_count", Value::U64(keys.len() as u64), 16),
        ];
        let numbers = numbers.map(|(name, value, offset)| Field { name, value, offset });
        let spans = &self.gguf.spans().entries;
        let keys = keys.iter().zip(spans).map(|((name, value), span)| Field {
            name,
            value: value.clone(),
            offset: span.start,
        });
        numbers.into_iter().chain(keys).collect()
    }
}

impl Field<'_> {
    /// How many values it has: one, or the elements of an array.
    fn len(&self) -> u64 {
        self.value.as_array().map_or(1, flat_len)
    }

    /// Its type as tables show it: that of an array's elements in brackets.
    fn shown_type(&self) -> String {
        let Value::Array(array) = &self.value else {
            return self.value.value_type().name().to_owned();
        };
        let types = types(array);
        let depth = types.len();
        let innermost = types.last().copied().unwrap_or(ValueType::Array.name());
        format!("{}{innermost}{}", "[".repeat(depth), "]".repeat(depth))
    }
}

/// The types within an array: of its elements, and of theirs. Nothing is known of no elements.
fn types(array: &Array) -> Vec<&'static str> {
    let Some(first) = array.iter().next() else { return Vec::new() };
    let inner = first.as_array().map(types).unwrap_or_default();
    [array.element_type().name()].into_iter().chain(inner).collect()
}

/// Elements of an array, and of the arrays in it: the original does not keep these apart.
fn flat_len(array: &Array) -> u64 {
    match array.element_type() {
        ValueType::Array => array.iter().filter_map(|v| v.as_array().map(flat_len)).sum(),
        _ => array.len(),
    }
}

/// The first elements, those of arrays in it one after the other.
fn flat(array: &Array, most: usize) -> Vec<Value> {
    let mut values = Vec::new();
    for value in array.iter() {
        match value {
            Value::Array(inner) => values.extend(flat(&inner, most - values.len())),
            value => values.push(value),
        }
        if values.len() >= most {
            values.truncate(most);
            break;
        }
    }
    values
}

fn order(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "LITTLE",
        ByteOrder::Big => "BIG",
    }
}

/// The order of this machine.
fn host() -> &'static str {
    order(if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little })
}

/// The text of the original.
fn print(out: &mut impl Write, dump: &Dump<'_>, tensors: bool) -> Result<(), Failure> {
    /// Characters of a text, and elements of an array.
    const CHARACTERS: usize = 60;
    const ELEMENTS: usize = 6;
    let (file, host) = (dump.order(), host());
    writeln!(out, "* File is {file} endian, script is running on a {host} endian host.")?;
    let fields = dump.fields();
    writeln!(out, "* Dumping {} key/value pair(s)", fields.len())?;
    for (number, field) in (1..).zip(&fields) {
        let value = match &field.value {
            Value::String(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                python::repr(&match text.chars().count() {
                    ..=CHARACTERS => text.into_owned(),
                    _ => text.chars().take(CHARACTERS - 3).chain("...".chars()).collect(),
                })
            }
            Value::Array(array) => {
                let shown: Vec<_> = flat(array, ELEMENTS).iter().map(python::value).collect();
                let more = if field.len() > ELEMENTS as u64 { ", ..." } else { "" };
                format!("[{}{more}]", shown.join(", "))
            }
            value => python::value(value),
        };
        let (ty, len, name) = (field.shown_type(), field.len(), field.name);
        writeln!(out, "  {number:5}: {ty:10} | {len:8} | {name} = {value}")?;
    }
    if !tensors {
        return Ok(());
    }
    writeln!(out, "* Dumping {} tensor(s)", dump.tensors().len())?;
    for (number, tensor) in (1..).zip(dump.tensors()) {
        let dims = dims(tensor).map(|n| format!("{n:5}")).join(", ");
        let (elements, ty, name) = (elements(tensor), tensor.tensor_type.name(), &tensor.name);
        writeln!(out, "  {number:5}: {elements:10} | {dims} | {ty:7} | {name}")?;
    }
    Ok(())
}

/// Four dimensions.
fn dims(tensor: &TensorInfo) -> [u64; 4] {
    std::array::from_fn(|i| tensor.shape.get(i).copied().unwrap_or(1))
}

fn elements(tensor: &TensorInfo) -> u64 {
    tensor.shape.elements().unwrap_or(0)
}
