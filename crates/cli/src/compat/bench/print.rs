//! Output formats of `llama-bench`, with its fields in its order.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use gguf_kit::bench::Trial;
use gguf_kit::summary::Summary;
use gguf_runtime::machine::processor;
use serde_json::Value as Json;

/// Completed test.
pub struct Test<'t> {
    pub model: &'t str,
    pub summary: &'t Summary,
    pub threads: usize,
    pub cache: &'t str,
    pub trial: &'t Trial,
    /// Tokens per second of each repetition.
    pub rates: &'t [f64],
}

/// Output format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Csv,
    Json,
    Jsonl,
    Markdown,
    Sql,
}

impl Format {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "csv" => Self::Csv,
            "json" => Self::Json,
            "jsonl" => Self::Jsonl,
            "md" => Self::Markdown,
            "sql" => Self::Sql,
            _ => return None,
        })
    }
}

/// Type of a field.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Flag,
    Integer,
    Float,
}

/// Fields in the order of the original.
type Fields = Vec<(&'static str, Kind, String)>;

/// Values of fields about devices, as the original prints them without a device.
const FIXED: &[(&str, Kind, &str)] = &[
    ("n_gpu_layers", Kind::Integer, "-1"),
    ("n_cpu_moe", Kind::Integer, "0"),
    ("split_mode", Kind::Text, "layer"),
    ("main_gpu", Kind::Integer, "0"),
    ("no_kv_offload", Kind::Flag, "0"),
    ("flash_attn", Kind::Integer, "-1"),
    ("devices", Kind::Text, "auto"),
    ("tensor_split", Kind::Text, "0.00"),
    ("tensor_buft_overrides", Kind::Text, "none"),
    ("load_mode", Kind::Text, "auto"),
    ("lazy_mode", Kind::Text, "auto"),
    ("embeddings", Kind::Flag, "0"),
    ("no_op_offload", Kind::Integer, "0"),
    ("no_host", Kind::Flag, "0"),
    ("repack", Kind::Flag, "1"),
    ("fit_target", Kind::Integer, "0"),
    ("fit_min_ctx", Kind::Integer, "0"),
];

impl Test<'_> {
    fn tokens(&self) -> usize {
        self.trial.prompt + self.trial.generated
    }

    /// Returns the time of each repetition.
    fn nanoseconds(&self) -> impl Iterator<Item = f64> {
        self.rates.iter().map(|rate| 1e9 * self.tokens() as f64 / rate)
    }

    fn model_type(&self) -> String {
        let architecture = self.summary.architecture.as_deref().unwrap_or("?");
        let size = gguf::units::count(self.summary.parameters);
        format!("{architecture} {size} {}", self.summary.file_type.unwrap_or("?"))
    }

    fn fields(&self) -> Fields {
        use Kind::{Flag, Float, Integer, Text};
        let times: Vec<_> = self.nanoseconds().collect();
        let ((time, time_spread), (rate, rate_spread)) = (mean(&times), mean(self.rates));
        let version = concat!("gguf-kit ", env!("CARGO_PKG_VERSION"));
        let mut fields: Fields = vec![
            ("build_commit", Text, version.into()),
            ("build_number", Integer, "0".into()),
            ("cpu_info", Text, processor().unwrap_or_default()),
            ("gpu_info", Text, String::new()),
            ("backends", Text, "CPU".into()),
            ("model_filename", Text, self.model.into()),
            ("model_type", Text, self.model_type()),
            ("model_size", Integer, self.summary.data_bytes.to_string()),
            ("model_n_params", Integer, self.summary.parameters.to_string()),
            ("n_batch", Integer, self.trial.prompt.max(1).to_string()),
            ("n_ubatch", Integer, self.trial.prompt.max(1).to_string()),
            ("n_threads", Integer, self.threads.to_string()),
            ("cpu_mask", Text, "0x0".into()),
            ("cpu_strict", Flag, "0".into()),
            ("poll", Integer, "0".into()),
            ("type_k", Text, self.cache.into()),
            ("type_v", Text, self.cache.into()),
        ];
        fields.extend(FIXED.iter().map(|(name, kind, value)| (*name, *kind, (*value).to_owned())));
        fields.extend([
            ("n_prompt", Integer, self.trial.prompt.to_string()),
            ("n_gen", Integer, self.trial.generated.to_string()),
            ("n_depth", Integer, self.trial.depth.to_string()),
            ("test_time", Text, now()),
            ("avg_ns", Integer, format!("{time:.0}")),
            ("stddev_ns", Integer, format!("{time_spread:.0}")),
            ("avg_ts", Float, format!("{rate:.6}")),
            ("stddev_ts", Float, format!("{rate_spread:.6}")),
        ]);
        fields
    }
}

/// Prints tests as they complete.
pub struct Printer {
    format: Format,
    out: Box<dyn Write>,
    tests: usize,
}

/// Columns of the table: name, width, and whether the text is right-aligned.
const COLUMNS: [(&str, usize, bool); 7] = [
    ("model", 30, false),
    ("size", 10, true),
    ("params", 10, true),
    ("backend", 10, false),
    ("threads", 7, true),
    ("test", 15, true),
    ("t/s", 20, true),
];

impl Printer {
    pub fn new(format: Format, out: Box<dyn Write>) -> Self {
        Self { format, out, tests: 0 }
    }

    pub fn begin(&mut self) -> std::io::Result<()> {
        match self.format {
            Format::Json => writeln!(self.out, "["),
            Format::Markdown => {
                self.row(COLUMNS.map(|(name, ..)| name.to_owned()))?;
                let dashes = |(_, width, right): (&str, usize, bool)| {
                    format!("{}{}", "-".repeat(width - 1), if right { ":" } else { "-" })
                };
                self.row(COLUMNS.map(dashes))
            }
            // These formats print the field names before the first test.
            Format::Csv | Format::Sql | Format::Jsonl => Ok(()),
        }
    }

    pub fn test(&mut self, test: &Test<'_>) -> std::io::Result<()> {
        let (fields, out) = (test.fields(), &mut self.out);
        let names: Vec<_> = fields.iter().map(|(name, ..)| *name).collect();
        let list =
            |numbers: &mut dyn Iterator<Item = String>| numbers.collect::<Vec<_>>().join(", ");
        let ns = list(&mut test.nanoseconds().map(|time| format!("{time:.0}")));
        let ts = list(&mut test.rates.iter().map(|rate| format!("{rate:.6}")));
        match self.format {
            Format::Json => {
                let comma = if self.tests > 0 { ",\n" } else { "" };
                writeln!(out, "{comma}  {{")?;
                for (name, kind, value) in &fields {
                    writeln!(out, "    \"{name}\": {},", as_json(*kind, value))?;
                }
                writeln!(out, "    \"samples_ns\": [ {ns} ],")?;
                write!(out, "    \"samples_ts\": [ {ts} ]\n  }}")?;
            }
            Format::Jsonl => {
                write!(out, "{{")?;
                for (name, kind, value) in &fields {
                    write!(out, "\"{name}\": {}, ", as_json(*kind, value))?;
                }
                writeln!(out, "\"samples_ns\": [ {ns} ],\"samples_ts\": [ {ts} ]}}")?;
            }
            Format::Csv => {
                if self.tests == 0 {
                    writeln!(out, "{}", names.join(","))?;
                }
                let quoted =
                    fields.iter().map(|(.., value)| format!("\"{}\"", value.replace('"', "\"\"")));
                writeln!(out, "{}", quoted.collect::<Vec<_>>().join(","))?;
            }
            Format::Sql => {
                if self.tests == 0 {
                    writeln!(out, "{}", table(&fields))?;
                }
                let quoted =
                    fields.iter().map(|(.., value)| format!("'{}'", value.replace('\'', "''")));
                let values = quoted.collect::<Vec<_>>().join(", ");
                let names = names.join(", ");
                writeln!(out, "INSERT INTO llama_bench ({names}) VALUES ({values});")?;
            }
            Format::Markdown => self.row(columns(test))?,
        }
        self.tests += 1;
        self.out.flush()
    }

    pub fn end(&mut self) -> std::io::Result<()> {
        match self.format {
            Format::Json => writeln!(self.out, "\n]")?,
            Format::Markdown => {
                writeln!(self.out, "\nbuild: gguf-kit {} (0)", env!("CARGO_PKG_VERSION"))?;
            }
            Format::Csv | Format::Jsonl | Format::Sql => {}
        }
        self.out.flush()
    }

    fn row(&mut self, cells: [String; COLUMNS.len()]) -> std::io::Result<()> {
        write!(self.out, "|")?;
        for ((_, width, right), cell) in COLUMNS.into_iter().zip(cells) {
            if right {
                write!(self.out, " {cell:>width$} |")?;
            } else {
                write!(self.out, " {cell:<width$} |")?;
            }
        }
        writeln!(self.out)
    }
}

fn columns(test: &Test<'_>) -> [String; COLUMNS.len()] {
    let (bytes, parameters) = (test.summary.data_bytes as f64, test.summary.parameters as f64);
    let mib = bytes / f64::from(1 << 20);
    let (rate, spread) = mean(test.rates);
    [
        test.model_type(),
        if mib < 1024.0 { format!("{mib:.2} MiB") } else { format!("{:.2} GiB", mib / 1024.0) },
        if parameters < 1e9 {
            format!("{:.2} M", parameters / 1e6)
        } else {
            format!("{:.2} B", parameters / 1e9)
        },
        "CPU".to_owned(),
        test.threads.to_string(),
        test_name(test.trial),
        format!("{rate:.2} ± {spread:.2}"),
    ]
}

/// Returns the name of a test, such as `pp512+tg128 @ d4096`.
fn test_name(trial: &Trial) -> String {
    let name = match (trial.prompt, trial.generated) {
        (0, generated) => format!("tg{generated}"),
        (prompt, 0) => format!("pp{prompt}"),
        (prompt, generated) => format!("pp{prompt}+tg{generated}"),
    };
    match trial.depth {
        0 => name,
        depth => format!("{name} @ d{depth}"),
    }
}

fn as_json(kind: Kind, value: &str) -> String {
    match kind {
        Kind::Text => Json::from(value).to_string(),
        Kind::Flag => (value != "0").to_string(),
        Kind::Integer | Kind::Float => value.to_owned(),
    }
}

fn table(fields: &Fields) -> String {
    let columns = fields.iter().map(|(name, kind, _)| {
        let kind = match kind {
            Kind::Text => "TEXT",
            Kind::Flag | Kind::Integer => "INTEGER",
            Kind::Float => "REAL",
        };
        format!("  {name} {kind}")
    });
    let columns = columns.collect::<Vec<_>>().join(",\n");
    format!("CREATE TABLE IF NOT EXISTS llama_bench (\n{columns}\n);\n")
}

/// Returns the mean and the sample standard deviation.
fn mean(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count.max(1.0);
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    (mean, if count < 2.0 { 0.0 } else { (squares / (count - 1.0)).sqrt() })
}

/// Returns the current time in RFC 3339 format.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    rfc_3339(since.as_secs())
}

/// Formats seconds since 1970 in RFC 3339 format, by Howard Hinnant's `civil_from_days`.
fn rfc_3339(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_match_the_calendar() {
        assert_eq!(rfc_3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc_3339(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(rfc_3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc_3339(1_795_379_430), "2026-11-22T20:30:30Z");
    }
}
