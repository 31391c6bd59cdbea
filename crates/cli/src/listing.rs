//! How numbers, values and plans are shown: in tables for people, in JSON for programs.

use std::path::Path;
use std::str::FromStr;

use gguf::TensorType;
pub use gguf_kit::json::value as value_json;
pub use gguf_kit::units::{bytes, count};
use gguf_pipeline::{Item, Job};
use gguf_store::edit::MAX_RESERVE;
use serde_json::{Value as Json, json};

use crate::terminal;

/// A size as users of llama.cpp write it: `2G`, `2.2G`, `500M`, `64K`, decimal.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 1_000),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 1_000_000),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let size = whole.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)).and_then(|size| {
        // Digits after the point count as long as they make whole bytes.
        let of_digit = |(i, digit): (u32, char)| {
            Some(u64::from(digit.to_digit(10)?) * factor.checked_div(10u64.checked_pow(i)?)?)
        };
        (1..).zip(fraction.chars()).try_fold(size, |sum, digit| sum.checked_add(of_digit(digit)?))
    });
    let size = size.filter(|size| *size > 0);
    size.ok_or_else(|| format!("`{text}` is no size such as 2G, 2.2G, 500M or 4096"))
}

/// Room for later edits of a header: as [`parse_size`], or 0 for none.
pub fn parse_reserve(text: &str) -> Result<u64, String> {
    match text {
        "0" => Ok(0),
        _ => parse_size(text).and_then(|size| match size {
            0..=MAX_RESERVE => Ok(size),
            _ => Err(format!("at most {}M can be reserved", MAX_RESERVE / 1_000_000)),
        }),
    }
}

/// A number above 0, such as a base frequency.
pub fn parse_above_0<T: FromStr + Copy + Into<f64>>(text: &str) -> Result<T, String> {
    let number = text.parse::<T>().ok().filter(|x| {
        let x: f64 = (*x).into();
        x.is_finite() && x > 0.0
    });
    number.ok_or_else(|| format!("`{text}` is no number above 0"))
}

/// A count with its word, in the number that goes with it: `1 tensor`, `39 tensors`.
pub fn plural(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    }
}

/// One line of text, at most so long: templates and licences fill pages.
pub fn shortened(text: &str) -> String {
    const SHOWN: usize = 100;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}... {} characters", &text[..end], text.chars().count()),
        None => text.to_owned(),
    }
}

/// Plans as JSON: one by itself, several as a list.
pub fn plans_json(mut plans: Vec<Json>) -> Json {
    if plans.len() == 1 { plans.remove(0) } else { json!({ "outputs": plans }) }
}

/// What a job would write to a file, tensor by tensor.
pub fn plan_json(job: &Job, path: &Path) -> Json {
    let tensors: Vec<_> = job
        .items
        .iter()
        .map(|item| {
            json!({
                "name": item.tensor.name,
                "shape": &item.tensor.shape[..],
                "from": item.tensor.stored_type.name(),
                "to": item.target.name(),
                "bytes": item.target.byte_len(&item.tensor.shape),
            })
        })
        .collect();
    let Totals { elements, bytes, .. } = Totals::of(job);
    json!({
        "file": path.display().to_string(),
        "tensors": tensors,
        "parameters": elements,
        "bytes": bytes,
        "bits_per_weight": bits_per_weight(bytes, elements),
    })
}

/// The same for people: what would be written, all together, by types, then one line per tensor.
pub fn plan_text(job: &Job, output: &Path) -> String {
    let Totals { elements, stored, bytes: total } = Totals::of(job);
    let from = if stored == total { String::new() } else { format!("{} -> ", bytes(stored)) };
    let all = format!(
        "would write {}: {}, {} parameters: {from}{}, {:.2} bits per weight",
        output.display(),
        plural(job.items.len(), "tensor"),
        count(elements),
        bytes(total),
        bits_per_weight(total, elements),
    );
    let mut text = terminal::wrap(&all, "") + "\n\n";
    let size = |item: &Item| item.target.byte_len(&item.tensor.shape);
    let mut types: Vec<(TensorType, TensorType, usize, u64)> = Vec::new();
    for item in &job.items {
        let (from, to, size) = (item.tensor.stored_type, item.target, size(item).unwrap_or(0));
        match types.iter_mut().find(|known| (known.0, known.1) == (from, to)) {
            Some((.., count, sum)) => (*count, *sum) = (*count + 1, sum.saturating_add(size)),
            None => types.push((from, to, 1, size)),
        }
    }
    for (from, to, count, size) in types {
        let count = plural(count, "tensor");
        let line = format!("  {from:>5} -> {to:<7} {count:>11} {:>9}", bytes(size));
        text += &(terminal::fit(&line) + "\n");
    }
    text += "\n";
    let names = job.items.iter().map(|item| console::measure_text_width(&item.tensor.name));
    let widest = names.max().unwrap_or(0).min(44);
    for item in &job.items {
        let (name, shape) = (terminal::plain(&item.tensor.name), item.tensor.shape.to_string());
        let line = format!(
            "{name:<widest$} {shape:<16} {:>5} -> {:<7} {:>9}",
            item.tensor.stored_type,
            item.target,
            size(item).map_or("?".into(), bytes),
        );
        text += &(terminal::fit(&line) + "\n");
    }
    text
}

/// What the tensors of a job are together.
pub struct Totals {
    /// Elements.
    pub elements: u64,
    /// Bytes as they are stored now.
    pub stored: u64,
    /// Bytes of the output.
    pub bytes: u64,
}

impl Totals {
    /// Of all its tensors.
    pub fn of(job: &Job) -> Self {
        job.items.iter().fold(Self { elements: 0, stored: 0, bytes: 0 }, |sum, item| {
            let len = |ty: TensorType| ty.byte_len(&item.tensor.shape).unwrap_or(0);
            Self {
                elements: sum.elements + item.tensor.shape.elements().unwrap_or(0),
                stored: sum.stored + len(item.tensor.stored_type),
                bytes: sum.bytes + len(item.target),
            }
        })
    }
}

/// Bits of data per element; 0 for no elements.
pub fn bits_per_weight(bytes: u64, elements: u64) -> f64 {
    if elements == 0 { 0.0 } else { bytes as f64 * 8.0 / elements as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_500), "1.50 kB");
        assert_eq!(bytes(8_446_368), "8.45 MB");
        assert_eq!(bytes(999_999_999), "1.00 GB");
        assert_eq!(count(7_240_000_000), "7.24B");
        assert_eq!(count(12), "12");
        assert_eq!(parse_size("2G"), Ok(2_000_000_000));
        assert_eq!(parse_size("64k"), Ok(64_000));
        assert_eq!(parse_size("1.5G"), Ok(1_500_000_000));
        assert_eq!(parse_size("2.25K"), Ok(2_250));
        for wrong in ["", "G", "0M", "-1", "1.xG", ".5G", "99999999999999999999", "1..5G"] {
            assert!(parse_size(wrong).is_err());
        }
        assert_eq!(parse_reserve("0"), Ok(0));
        assert_eq!(parse_reserve("128M"), Ok(MAX_RESERVE));
        for wrong in ["128000001", "1G", "100G", "99999999T", "99999999999G", "nan", ""] {
            assert!(parse_reserve(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_above_0("2.5"), Ok(2.5f64));
        for wrong in ["0", "-1", "nan", "inf", "1e999", "x", ""] {
            assert!(parse_above_0::<f64>(wrong).is_err(), "{wrong}");
        }
    }
}
