//! Formatting of sizes, counts and plans, as tables and as JSON.

use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

use gguf::TensorType;
pub use gguf::units::{bytes, count};
use gguf_pipeline::{Item, Job};
use gguf_store::edit::MAX_RESERVE;
use serde_json::{Value as Json, json};

use crate::terminal;

/// Units of sizes in lower case, and their bytes.
const UNITS: &[(&str, u64)] = &[
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("k", 1_000),
    ("m", 1_000_000),
    ("g", 1_000_000_000),
];

/// Parses a size as llama.cpp does: `2G`, `2.2G`, `500M`, `64K`, decimal; also with `B`, and `MiB` in powers of two.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let unit = UNITS.iter().find_map(|(unit, factor)| Some((lower.strip_suffix(unit)?, *factor)));
    let (digits, factor) = unit.unwrap_or((&lower, 1));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let size = whole.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)).and_then(|size| {
        // Fractional digits count as long as they make whole bytes.
        let digit_value = |(i, digit): (u32, char)| {
            Some(u64::from(digit.to_digit(10)?) * factor.checked_div(10u64.checked_pow(i)?)?)
        };
        (1..)
            .zip(fraction.chars())
            .try_fold(size, |sum, digit| sum.checked_add(digit_value(digit)?))
    });
    let size = size.filter(|size| *size > 0);
    size.ok_or_else(|| format!("`{text}` is not a size such as 2G, 2.2GB, 500M, 4GiB or 4096"))
}

/// Parses the header padding: as [`parse_size`], or 0 for none.
pub fn parse_reserve(text: &str) -> Result<u64, String> {
    match text {
        "0" => Ok(0),
        _ => parse_size(text).and_then(|size| match size {
            0..=MAX_RESERVE => Ok(size),
            _ => Err(format!("at most {}M of padding is supported", MAX_RESERVE / 1_000_000)),
        }),
    }
}

/// Parses a probability.
pub fn parse_probability(text: &str) -> Result<f32, String> {
    let number = parse_finite(text).ok().filter(|x| (0.0..=1.0).contains(x));
    number.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// Parses a number that is not negative.
pub fn parse_at_least_zero(text: &str) -> Result<f32, String> {
    let number = parse_finite(text).ok().filter(|x| *x >= 0.0);
    number.ok_or_else(|| "expected a number of at least 0".to_owned())
}

/// Parses a finite number.
pub fn parse_finite(text: &str) -> Result<f32, String> {
    let number = text.parse::<f32>().ok().filter(|x| x.is_finite());
    number.ok_or_else(|| "expected a number".to_owned())
}

/// Parses a positive number, such as a base frequency.
pub fn parse_positive<T: FromStr + Copy + Into<f64>>(text: &str) -> Result<T, String> {
    let number = text.parse::<T>().ok().filter(|x| {
        let x: f64 = (*x).into();
        x.is_finite() && x > 0.0
    });
    number.ok_or_else(|| format!("`{text}` is not a positive number"))
}

/// Formats a count with its noun: `1 tensor`, `39 tensors`.
pub fn plural(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    }
}

/// Formats how much of a text was evaluated: `1536 tokens evaluated in 3 chunks`.
pub fn evaluated(tokens: usize, chunks: usize) -> String {
    format!("{} evaluated in {}", plural(tokens, "token"), plural(chunks, "chunk"))
}

/// Shortens a text to one line; templates and licenses fill pages.
pub fn shortened(text: &str) -> String {
    const SHOWN: usize = 100;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}... {} characters", &text[..end], text.chars().count()),
        None => text.to_owned(),
    }
}

/// Returns one plan as is, several as a list.
pub fn plans_json(mut plans: Vec<Json>) -> Json {
    if plans.len() == 1 { plans.remove(0) } else { json!({ "outputs": plans }) }
}

/// Returns the planned output of a job as JSON, tensor by tensor.
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
        "file_bytes": job.file_len().ok(),
        "bits_per_weight": bits_per_weight(bytes, elements),
    })
}

/// Returns the planned output of a job as text: totals, counts by type, then one line per tensor.
pub fn plan_text(job: &Job, output: &Path) -> String {
    let Totals { elements, stored, bytes: total } = Totals::of(job);
    let bits = |bytes: u64| bits_per_weight(bytes, elements);
    let all = format!(
        "would write {}: {}, {}, {} parameters, {}",
        output.display(),
        job.file_len().map_or("?".into(), bytes),
        plural(job.items.len(), "tensor"),
        count(elements),
        change_of_bits(bits(stored), bits(total)),
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

/// Prints a table of a model's files, with tensor counts and sizes.
pub fn parts<'p>(
    out: &mut impl Write,
    files: impl Iterator<Item = (&'p Path, usize, u64)>,
) -> io::Result<()> {
    let files: Vec<_> = files.map(|(path, n, len)| (path.display().to_string(), n, len)).collect();
    let widest = files.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
    files.iter().try_for_each(|(name, tensors, len)| {
        let (tensors, len) = (plural(*tensors, "tensor"), bytes(*len));
        writeln!(out, "{}", terminal::fit(&format!("  {name:<widest$} {tensors:>11} {len:>9}")))
    })
}

/// Returns several plans as text: totals, the estimated time, and each plan.
pub fn plans_text(plans: &[(&Job, &Path)], time: &str) -> String {
    let texts = plans.iter().map(|(job, path)| plan_text(job, path));
    let texts: Vec<String> = texts.collect();
    match &texts[..] {
        [only] => match only.split_once("\n\n") {
            Some((all, rest)) => format!("{all}\n{time}\n\n{rest}"),
            None => format!("{only}{time}\n"),
        },
        _ => {
            let sum = plans.iter().filter_map(|(job, _)| job.file_len().ok()).sum();
            let files = plural(plans.len(), "file");
            format!("would write {files}: {}\n{time}\n\n{}", bytes(sum), texts.join("\n"))
        }
    }
}

/// Totals over the tensors of a job.
pub struct Totals {
    /// Elements.
    pub elements: u64,
    /// Stored bytes of the source.
    pub stored: u64,
    /// Bytes of the output.
    pub bytes: u64,
}

impl Totals {
    /// Sums over all tensors.
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

/// Formats the bits per weight of a source and an output: `16.00 -> 4.77 bits per weight`, or one number if both are equal.
pub fn change_of_bits(before: f64, after: f64) -> String {
    let [before, after] = [before, after].map(|bits| format!("{bits:.2}"));
    match before == after {
        true => format!("{after} bits per weight"),
        false => format!("{before} -> {after} bits per weight"),
    }
}

/// Returns the bits per element; 0 without elements.
pub fn bits_per_weight(bytes: u64, elements: u64) -> f64 {
    if elements == 0 { 0.0 } else { bytes as f64 * 8.0 / elements as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_formatted_and_parsed() {
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
        assert_eq!(parse_positive("2.5"), Ok(2.5f64));
        for wrong in ["0", "-1", "nan", "inf", "1e999", "x", ""] {
            assert!(parse_positive::<f64>(wrong).is_err(), "{wrong}");
        }
    }
}
