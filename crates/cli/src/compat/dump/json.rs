//! JSON of `gguf-dump`, byte-identical.

use std::io::Write;

use gguf::Value;

use super::{Dump, flat, python, types};

/// Prints one object without a trailing newline, as the original does.
pub fn print(
    out: &mut impl Write,
    dump: &Dump<'_>,
    tensors: bool,
    arrays: bool,
) -> std::io::Result<()> {
    let name = python::json(dump.name);
    write!(out, "{{\"filename\": {name}, \"endian\": \"{}\", \"metadata\": {{", dump.order())?;
    for (index, field) in dump.fields().iter().enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        let ty = field.value.value_type().name();
        write!(out, "{comma}{}: {{\"index\": {index}, ", python::json(field.name))?;
        write!(out, "\"type\": \"{ty}\", \"offset\": {}", field.offset)?;
        match &field.value {
            Value::Array(array) => {
                let types: Vec<_> = types(array).iter().map(|ty| python::json(ty)).collect();
                write!(out, ", \"array_types\": [{}]", types.join(", "))?;
                if arrays {
                    let values: Vec<_> = flat(array, usize::MAX).iter().map(json).collect();
                    write!(out, ", \"value\": [{}]", values.join(", "))?;
                }
            }
            value => write!(out, ", \"value\": {}", json(value))?,
        }
        write!(out, "}}")?;
    }
    write!(out, "}}, \"tensors\": {{")?;
    let starts = &dump.gguf.spans().tensors;
    let listed = dump.tensors().iter().zip(starts).filter(|_| tensors);
    for (index, (tensor, start)) in listed.enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        let shape: Vec<_> = tensor.shape.iter().map(u64::to_string).collect();
        write!(out, "{comma}{}: {{\"index\": {index}, ", python::json(&tensor.name))?;
        write!(out, "\"shape\": [{}], \"type\": ", shape.join(", "))?;
        write!(out, "\"{}\", \"offset\": {start}}}", tensor.tensor_type.name())?;
    }
    write!(out, "}}}}")
}

fn json(value: &Value) -> String {
    match value {
        Value::String(bytes) => python::json(&String::from_utf8_lossy(bytes)),
        Value::Bool(value) => value.to_string(),
        value => match value.to_f64() {
            // Python's `json` prints these, although they are not valid JSON.
            Some(number) if number.is_nan() => "NaN".to_owned(),
            Some(number) if number.is_infinite() => {
                if number > 0.0 {
                    "Infinity".to_owned()
                } else {
                    "-Infinity".to_owned()
                }
            }
            _ => python::value(value),
        },
    }
}
