//! Output of `gguf-dump --markdown`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use gguf::{TensorInfo, Value, ValueType};

use super::{Dump, Field, dims, elements, flat, python};

pub fn print(out: &mut impl Write, dump: &Dump<'_>, tensors: bool) -> std::io::Result<()> {
    let fields = dump.fields();
    writeln!(out, "# {} - GGUF Internal File Dump\n", dump.name)?;
    writeln!(out, "- Endian: {} endian\n", dump.order())?;
    writeln!(out, "## Key Value Metadata Store\n")?;
    writeln!(out, "There are {} key-value pairs in this file\n", fields.len())?;
    let rows = (1..).zip(&fields).map(|(number, field): (usize, _)| {
        let (ty, len) = (field.shown_type(), field.len().to_string());
        vec![number.to_string(), ty, len, field.name.to_owned(), shown(field)]
    });
    let columns =
        [("POS", Right), ("TYPE", Left), ("Count", Right), ("Key", Left), ("Value", Left)];
    table(out, &columns, &rows.collect::<Vec<_>>())?;
    writeln!(out)?;
    let (mut bytes, mut count) = (0, 0);
    if tensors {
        (bytes, count) = all_tensors(out, dump)?;
    }
    let name = Path::new(dump.name).file_name().unwrap_or_default().to_string_lossy();
    match count {
        0 => writeln!(out, "Total BPW for {name}: undefined (no elements)"),
        _ => writeln!(out, "Total BPW for {name}: {:.4} bits", bits(bytes, count)),
    }
}

fn bits(bytes: u64, elements: u64) -> f64 {
    (bytes * 8) as f64 / elements as f64
}

/// Formats a value, shortened.
fn shown(field: &Field<'_>) -> String {
    match &field.value {
        Value::String(bytes) => code(&String::from_utf8_lossy(bytes), 60),
        Value::Array(array) if array.is_empty() => String::new(),
        Value::Array(array) => {
            let most = if array.element_type() == ValueType::String { 5 } else { 7 };
            let values = flat(array, most);
            let shown: Vec<_> = values
                .iter()
                .map(|value| match value {
                    Value::String(bytes) => code(&String::from_utf8_lossy(bytes), 30),
                    value => python::numpy(value),
                })
                .collect();
            let more = if field.len() > values.len() as u64 { ", ..." } else { "" };
            format!("[ {}{more} ]", shown.join(", ").trim())
        }
        value => python::numpy(value),
    }
}

/// Formats text as code; of a long text, both ends.
fn code(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return in_backticks(text);
    }
    let head: String = text.chars().take(most / 2).collect();
    let tail: String = text.chars().skip(count - most / 2).collect();
    format!("{}...{}", in_backticks(&head), in_backticks(&tail))
}

/// Encloses text in one more backtick than its longest run.
fn in_backticks(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let marks = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{marks}{space}{text}{space}{marks}")
}

#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}
use Side::{Left, Right};

fn table(
    out: &mut impl Write,
    columns: &[(&str, Side)],
    rows: &[Vec<String>],
) -> std::io::Result<()> {
    let width = |(at, (header, _)): (usize, &(&str, Side))| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([header.len()]).max().unwrap_or(0) + 2
    };
    let widths: Vec<_> = columns.iter().enumerate().map(width).collect();
    let mut line = |cells: &mut dyn Iterator<Item = String>| {
        writeln!(out, "|{}|", cells.collect::<Vec<_>>().join("|"))
    };
    let cell = |text: &str, side: Side, width: usize| match side {
        Left => format!(" {text:<w$}", w = width - 1),
        Right => format!("{text:>w$} ", w = width - 1),
    };
    let sides = || columns.iter().map(|(_, side)| *side).zip(&widths);
    line(&mut columns.iter().zip(&widths).map(|((name, side), width)| cell(name, *side, *width)))?;
    line(&mut sides().map(|(side, width)| {
        let dashes = "-".repeat(width - 1);
        match side {
            Left => format!(":{dashes}"),
            Right => format!("{dashes}:"),
        }
    }))?;
    for row in rows {
        line(&mut row.iter().zip(sides()).map(|(text, (side, width))| cell(text, side, *width)))?;
    }
    Ok(())
}

/// Prints tensors by group, in order of first occurrence. Returns total bytes and elements.
fn all_tensors(out: &mut impl Write, dump: &Dump<'_>) -> std::io::Result<(u64, u64)> {
    let mut order: Vec<String> = Vec::new();
    let mut groups: BTreeMap<String, Vec<(usize, &TensorInfo)>> = BTreeMap::new();
    for (id, tensor) in dump.tensors().iter().enumerate() {
        let group = group(&tensor.name);
        if !groups.contains_key(&group) {
            order.push(group.clone());
        }
        groups.entry(group).or_default().push((id, tensor));
    }
    let total: u64 = dump.tensors().iter().map(elements).sum();
    writeln!(out, "## Tensors Overview {} Elements\n", rounded(total))?;
    writeln!(out, "Total number of elements in all tensors: {total} Elements\n")?;
    for name in &order {
        let count = groups[name].iter().map(|(_, tensor)| elements(tensor)).sum();
        let (description, anchor) = (describe(name), name.replace('.', "_"));
        writeln!(out, "- [{description} Tensor Group - {} Elements](#{anchor})", rounded(count))?;
    }
    writeln!(out, "\n### Tensor Data Offset\n")?;
    writeln!(out, "This table contains the offset and data segment relative to start of file\n")?;
    let hex = |number: u64| format!("{:>16}", format!("{number:#x}"));
    let rows = dump.tensors().iter().enumerate().map(|(id, tensor)| {
        let start = dump.gguf.data_start() + tensor.offset;
        let len = tensor.byte_len().unwrap_or(0);
        vec![id.to_string(), tensor.name.clone(), hex(start), hex(len)]
    });
    let columns = [
        ("T_ID", Right),
        ("Tensor Layer Name", Left),
        ("Data Offset (B)", Right),
        ("Data Size (B)", Right),
    ];
    table(out, &columns, &rows.collect::<Vec<_>>())?;
    writeln!(out)?;
    let mut bytes = 0;
    for name in &order {
        bytes += print_group(out, name, &groups[name], total)?;
    }
    Ok((bytes, total))
}

/// Prints the table of a group. Returns its bytes.
fn print_group(
    out: &mut impl Write,
    name: &str,
    tensors: &[(usize, &TensorInfo)],
    total: u64,
) -> std::io::Result<u64> {
    let infos = || tensors.iter().map(|(_, tensor)| *tensor);
    let count: u64 = infos().map(elements).sum();
    let bytes: u64 = infos().map(|tensor| tensor.byte_len().unwrap_or(0)).sum();
    let (anchor, description) = (name.replace('.', "_"), describe(name));
    let about = rounded(count);
    writeln!(out, "### <a name=\"{anchor}\">{description} Tensor Group : {about} Elements</a>\n")?;
    let widest = |text: &dyn Fn(&TensorInfo) -> String| {
        infos().map(|tensor| text(tensor).len()).max().unwrap_or(1)
    };
    let about_width = widest(&|tensor| rounded(elements(tensor)));
    let count_width = widest(&|tensor| elements(tensor).to_string());
    let dim_widths: [usize; 4] =
        std::array::from_fn(|i| widest(&|tensor| dims(tensor)[i].to_string()));
    let rows = tensors.iter().map(|(id, tensor)| {
        let n = elements(tensor);
        let shape: Vec<_> = dims(tensor)
            .iter()
            .zip(dim_widths)
            .map(|(dim, width)| format!("{dim:>width$}"))
            .collect();
        let plain = tensor.name.replace(".weight", ".(W)").replace(".bias", ".(B)");
        let bits = match n {
            0 => "nan".to_owned(),
            n => format!("{:.4}", bits(tensor.byte_len().unwrap_or(0), n)),
        };
        vec![
            id.to_string(),
            tensor.name.clone(),
            describe(&plain),
            format!("({:>about_width$}) {n:>count_width$}", rounded(n)),
            shape.join(" x "),
            tensor.tensor_type.name().into_owned(),
            bits,
        ]
    });
    let columns = [
        ("T_ID", Right),
        ("Tensor Layer Name", Left),
        ("Human Friendly Tensor Layer Name", Left),
        ("Elements", Left),
        ("Shape", Left),
        ("Type", Left),
        ("BPW", Right),
    ];
    table(out, &columns, &rows.collect::<Vec<_>>())?;
    writeln!(out, "\n- Total elements in {name}: ({about:>4}) {count}")?;
    let share = count as f64 / total as f64 * 100.0;
    writeln!(out, "- Percentage of total elements: {share:.2}%")?;
    match count {
        0 => writeln!(out, "- Bits per Weight (BPW) for {name}: undefined (no elements)")?,
        _ => {
            let bits = bits(bytes, count);
            writeln!(out, "- Bits per Weight (BPW) for {name}: {bits:.4} bits")?;
        }
    }
    writeln!(out, "\n")?;
    Ok(bytes)
}

/// Returns the group of a tensor: its block, encoder or decoder, or the base.
fn group(name: &str) -> String {
    let words: Vec<_> = name.split('.').collect();
    match &words[..] {
        ["blk", number, ..] => format!("blk.{number}"),
        [half @ ("enc" | "dec"), "blk", number, ..] => format!("{half}.blk.{number}"),
        [half @ ("enc" | "dec"), ..] => (*half).to_owned(),
        _ => "base".to_owned(),
    }
}

fn rounded(count: u64) -> String {
    let units = [(1e15, "Q"), (1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")];
    match units.iter().find(|(size, _)| count as f64 > *size) {
        Some((size, unit)) => format!("~{}{unit}", (count as f64 * size.recip()).round_ties_even()),
        None => count.to_string(),
    }
}

/// Descriptions of name parts, as in the original.
const DESCRIPTIONS: &[(&str, &str)] = &[
    ("token_embd", "Token Embedding"),
    ("pos_embd", "Position Embedding"),
    ("output_norm", "Output Normalization"),
    ("output", "Output"),
    ("attn_norm", "Attention Normalization"),
    ("attn_norm_2", "Attention Normalization"),
    ("attn_qkv", "Attention Query-Key-Value"),
    ("attn_q", "Attention Query"),
    ("attn_k", "Attention Key"),
    ("attn_v", "Attention Value"),
    ("attn_output", "Attention Output"),
    ("ffn_norm", "Feed-Forward Network Normalization"),
    ("ffn_up", "Feed-Forward Network \"Up\""),
    ("ffn_gate", "Feed-Forward Network \"Gate\""),
    ("ffn_down", "Feed-Forward Network \"Down\""),
    (
        "ffn_gate_inp",
        "Expert-Routing Layer For The Feed-Forward Network In Mixture Of Expert Models",
    ),
    ("ffn_gate_exp", "Feed-Forward Network \"Gate\" Layer Per Expert In Mixture Of Expert Models"),
    ("ffn_down_exp", "Feed-Forward Network \"Down\" Layer Per Expert In Mixture Of Expert Models"),
    ("ffn_up_exp", "Feed-Forward Network \"Up\" Layer Per Expert In Mixture Of Expert Models"),
    ("ssm_in", "State Space Model Input Projections"),
    ("ssm_conv1d", "State Space Model Rolling/Shift"),
    ("ssm_x", "State Space Model Selective Parametrization"),
    ("ssm_a", "State Space Model State Compression"),
    ("ssm_d", "State Space Model Skip Connection"),
    ("ssm_dt", "State Space Model Time Step"),
    ("ssm_out", "State Space Model Output Projection"),
    ("blk", "Block"),
    ("enc", "Encoder"),
    ("dec", "Decoder"),
];

fn describe(name: &str) -> String {
    let words = name.split('.').map(|word| {
        let known = DESCRIPTIONS.iter().find(|(short, _)| *short == word.trim().to_lowercase());
        known.map_or_else(|| title(word), |(_, description)| (*description).to_owned())
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Capitalizes words, as Python's `str.title` does.
fn title(word: &str) -> String {
    let mut inside = false;
    let letter = |c: char| {
        let was_inside = std::mem::replace(&mut inside, c.is_alphabetic());
        if was_inside { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() }
    };
    word.chars().map(letter).collect()
}
