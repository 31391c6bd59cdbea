//! Values of a tensor, with statistics and a histogram.

use std::ops::Range;
use std::str::FromStr;

use gguf_kit::values::{Values, values};
use gguf_store::Model;
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal;

/// Tensor name with optional rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRows {
    tensor: String,
    rows: Option<Range<u64>>,
}

impl FromStr for TensorRows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let whole = || Self { tensor: text.to_owned(), rows: None };
        let Some((tensor, rows)) = text.rsplit_once(':') else { return Ok(whole()) };
        let number = |text: &str| {
            text.parse::<u64>()
                .map_err(|_| format!("`{rows}` is not a row or a range of rows such as 7 or 0..4"))
        };
        let rows = match rows.split_once("..") {
            Some((first, end)) => number(first)?..number(end)?,
            None => {
                let row = number(rows)?;
                row..row.saturating_add(1)
            }
        };
        Ok(Self { tensor: tensor.to_owned(), rows: Some(rows) })
    }
}

impl TensorRows {
    pub fn read(&self, model: &Model) -> Result<Values, Failure> {
        let progress = Progress::new();
        let found = values(model, &self.tensor, self.rows.clone(), &progress)?;
        progress.finish();
        Ok(found)
    }
}

pub fn text(values: &Values) -> String {
    let figures = &values.figures;
    let title = terminal::strong(terminal::plain(&values.name));
    let title = format!("{title}  {} {}", values.tensor_type, values.shape);
    let mut text = terminal::fit(&title) + "\n\n";
    for (row, numbers) in values.shown.clone().zip(&values.data) {
        text += &(terminal::fit(&format!("  row {row:<6} {}", row_text(numbers))) + "\n");
    }
    let wrong = figures.nan + figures.infinite > 0;
    let counts = [
        (figures.zeros > 0, format!(", {} zero", figures.zeros)),
        (wrong, format!(", {} NaN, {} infinite", figures.nan, figures.infinite)),
    ];
    let counts: String = counts.into_iter().filter(|(is, _)| *is).map(|(_, text)| text).collect();
    text += &format!("\n  values         {}{counts}\n", figures.count);
    let facts = [
        ("mean", figures.mean),
        ("std dev", figures.deviation),
        ("min", figures.min.into()),
        ("max", figures.max.into()),
    ];
    for (name, number) in facts {
        text += &format!("  {name:<14} {}\n", significant(number));
    }
    if !figures.histogram.is_empty() {
        text += "\n";
        text += &bars(values);
    }
    text
}

/// Formats a row; of a long one, the beginning and the end.
fn row_text(numbers: &[f32]) -> String {
    const SHOWN: usize = 3;
    let shown = |numbers: &[f32]| {
        numbers.iter().map(|x| format!("{:>10}", significant(f64::from(*x)))).collect::<String>()
    };
    match numbers.len() {
        0..=6 => shown(numbers),
        len => format!("{}  ...{}", shown(&numbers[..SHOWN]), shown(&numbers[len - SHOWN..])),
    }
}

/// Formats a number with four significant digits.
fn significant(number: f64) -> String {
    match number.abs() {
        0.0 => "0".into(),
        size if size.is_finite() && !(1e-4..1e5).contains(&size) => format!("{number:.3e}"),
        size if size >= 1000.0 => format!("{number:.0}"),
        size if size >= 1.0 => format!("{number:.3}"),
        _ => format!("{number:.5}"),
    }
}

/// Returns the histogram, one bar per line.
fn bars(values: &Values) -> String {
    const LONGEST: usize = 50;
    /// Columns used before and after a bar.
    const BESIDE: usize = 24;
    let figures = &values.figures;
    let room = terminal::width().map_or(LONGEST, |width| width.saturating_sub(BESIDE));
    let longest = room.clamp(4, LONGEST);
    let most = figures.histogram.iter().copied().max().unwrap_or(1).max(1);
    let (min, max) = (f64::from(figures.min), f64::from(figures.max));
    let step = (max - min) / figures.histogram.len() as f64;
    let bar = |(number, count): (usize, &u64)| {
        let from = significant(min + step * number as f64);
        // Eighths of a character.
        let eighths = (*count as f64 / most as f64 * 8.0 * longest as f64).ceil() as usize;
        let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        let bar = terminal::added("█".repeat(eighths / 8) + rest);
        terminal::fit(&format!("  {from:>10} {bar} {count}")) + "\n"
    };
    figures.histogram.iter().enumerate().map(bar).collect()
}

pub fn to_json(values: &Values) -> Json {
    let figures = &values.figures;
    json!({
        "tensor": values.name,
        "type": values.tensor_type.name(),
        "shape": &values.shape[..],
        "first_row": values.shown.start,
        "rows": values.data,
        "count": figures.count,
        "zeros": figures.zeros,
        "nan": figures.nan,
        "infinite": figures.infinite,
        "min": figures.min,
        "max": figures.max,
        "mean": figures.mean,
        "stddev": figures.deviation,
        "histogram": figures.histogram,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_the_last_colon() {
        let parse = |text: &str| text.parse::<TensorRows>().map(|w| (w.tensor, w.rows));
        assert_eq!(parse("a.weight"), Ok(("a.weight".into(), None)));
        assert_eq!(parse("a:7"), Ok(("a".into(), Some(7..8))));
        assert_eq!(parse("a:b:2..4"), Ok(("a:b".into(), Some(2..4))));
        assert!(parse("a:x").unwrap_err().contains("0..4"));
    }

    #[test]
    fn numbers_have_four_significant_digits() {
        let cases = [(0.0, "0"), (0.5, "0.50000"), (-2.0, "-2.000"), (1e-7, "1.000e-7")];
        for (number, expected) in cases {
            assert_eq!(significant(number), expected);
        }
        assert_eq!(
            (significant(f64::NAN), significant(-f64::INFINITY)),
            ("NaN".into(), "-inf".into())
        );
    }
}
