//! `gguf-dump`.

mod json;
mod markdown;
pub mod python;

use std::io::Write;
use std::path::Path;

use gguf::{Array, ByteOrder, Bytes, Gguf, TensorInfo, Value, ValueType};
use gguf_remote::Location;
use gguf_store::fetch_header;

use super::arguments::Arguments;
use super::flag::{Flag, help, ignored, translated};
use super::prompt::log;
use super::{ArgumentStyle, Program};
use crate::failure::Failure;

pub const PROGRAM: Program = Program {
    name: "gguf-dump",
    command: "gguf inspect",
    positionals: "model",
    style: ArgumentStyle::Package,
    example: "--json --no-tensors model.gguf",
    flags: &[FLAGS],
    run,
};

const FLAGS: &[Flag] = &[
    help("-h --help"),
    translated("--no-tensors", 0, "omits the tensors"),
    translated("--json", 0, "prints the original's JSON"),
    translated("--json-array", 0, "with --json, includes array values"),
    translated("--data-offset", 0, "prints the offset of the data"),
    translated("--data-alignment", 0, "prints the alignment of the data"),
    translated("--markdown", 0, "prints the original's Markdown"),
    ignored("--verbose", 0, "there is no further output"),
];

/// File as the original reads it: a single file, regardless of other shards.
struct Dump<'d> {
    name: &'d str,
    gguf: Gguf,
}

/// Metadata key, or one of the three header fields that the original lists as keys.
struct Field<'f> {
    name: &'f str,
    value: Value,
    /// Offset in the file.
    offset: u64,
}

fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let [name] = arguments.positions(["model"])?;
    let text = !["--json", "--markdown", "--data-offset", "--data-alignment"]
        .iter()
        .any(|flag| arguments.has(flag));
    if text {
        log("INFO", "gguf-dump", &format!("* Loading: {name}"));
    }
    let dump = Dump { name, gguf: open(name)? };
    let tensors = !arguments.has("--no-tensors");
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if arguments.has("--json") {
        json::print(&mut out, &dump, tensors, arguments.has("--json-array"))?;
    } else if arguments.has("--markdown") {
        markdown::print(&mut out, &dump, tensors)?;
    } else if arguments.has("--data-offset") {
        writeln!(out, "{}", dump.gguf.data_start())?;
    } else if arguments.has("--data-alignment") {
        writeln!(out, "{}", dump.gguf.header().alignment().get())?;
    } else {
        print(&mut out, &dump, tensors)?;
    }
    out.flush()?;
    Ok(0)
}

/// Reads the header of a file.
fn open(name: &str) -> Result<Gguf, Failure> {
    let limits = gguf::Limits::default();
    let opened = match Location::parse(name)? {
        Location::Path(path) => {
            let source = gguf_store::LocalFile::open(&path)?;
            header(&source, &path)?
        }
        location => {
            let opened = gguf_remote::open_with(&location, gguf_remote::RemoteOptions::from_env())?;
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

    /// Returns the fields in the order of the original.
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
    /// Returns the number of values: one, or the elements of an array.
    fn len(&self) -> u64 {
        self.value.as_array().map_or(1, flat_len)
    }

    /// Returns the type as shown in tables: the element type of an array in brackets.
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

/// Returns the types of nested arrays, outermost first. Empty arrays have no types.
fn types(array: &Array) -> Vec<&'static str> {
    let Some(first) = array.iter().next() else { return Vec::new() };
    let inner = first.as_array().map(types).unwrap_or_default();
    [array.element_type().name()].into_iter().chain(inner).collect()
}

/// Returns the number of elements of nested arrays, which the original flattens.
fn flat_len(array: &Array) -> u64 {
    match array.element_type() {
        ValueType::Array => array.iter().filter_map(|v| v.as_array().map(flat_len)).sum(),
        _ => array.len(),
    }
}

/// Returns the first elements of nested arrays, flattened.
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

/// Returns the byte order of this machine.
fn host() -> &'static str {
    order(if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little })
}

/// Prints the text of the original.
fn print(out: &mut impl Write, dump: &Dump<'_>, tensors: bool) -> Result<(), Failure> {
    /// Maximum number of characters of a string and elements of an array.
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

/// Returns four dimensions, padded with 1.
fn dims(tensor: &TensorInfo) -> [u64; 4] {
    std::array::from_fn(|i| tensor.shape.get(i).copied().unwrap_or(1))
}

fn elements(tensor: &TensorInfo) -> u64 {
    tensor.shape.elements().unwrap_or(0)
}
