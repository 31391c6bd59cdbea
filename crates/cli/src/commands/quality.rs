//! `gguf quality`: compares quantization types and files of a model.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf_kit::Error;
use gguf_kit::bench::BenchmarkOptions;
use gguf_kit::quality::{Event, ModelCost, QualityOptions, QualityReport, Types, measure};
use gguf_kit::quantize::ImatrixChoice;
use gguf_kit::report::{quality_markdown, quality_page};
use gguf_quantize::recipe::{Target, UnknownTarget};
use gguf_store::{AtomicFile, Existing, Overwrite};

use crate::commands::quantize::calibration;
use crate::document;
use crate::evaluation::EvalArgs;
use crate::failure::Failure;
use crate::force::Force;
use crate::listing;
use crate::model_args::PrecisionArg;
use crate::progress::Progress;
use crate::terminal;
use crate::threads::on_threads;

/// Compare quantization types by size, KL divergence and speed.
///
/// Quantizes the model in memory to each type and evaluates it against the reference on a text; with --files, evaluates
/// files that exist. Prints a table and recommends types; with -o, also writes an HTML report, JSON and CSV.
#[derive(clap::Args)]
#[command(
    after_help = "The HTML report is self-contained; report.json and report.csv have the same results.\n\n\
                  Examples:\n  gguf quality f16.gguf -f text.txt --chunks 32 -o report.html\n  \
                  gguf quality f16.gguf --types q8_0,q4_k_m,iq3_m -f text.txt --imatrix imatrix.gguf\n  \
                  gguf quality f16.gguf --files q8_0.gguf q4_0.gguf -f text.txt --markdown\n  \
                  gguf quality f16.gguf --types all -f text.txt -o report.html --resume"
)]
pub struct Args {
    /// Reference model: a file, directory, checkpoint, shard or remote location.
    #[arg(value_name = "MODEL")]
    source: String,
    /// Quantization types, separated by commas, or `all` types smaller than the reference [default: a selection
    /// of commonly published types].
    #[arg(long, value_name = "LIST", value_parser = types)]
    types: Option<Types>,
    /// Files to evaluate as they are, such as published ones. Types are then evaluated only with --types.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    files: Vec<String>,
    #[command(flatten)]
    eval: EvalArgs,
    /// Importance matrix (GGUF or legacy `.dat`). The smallest types require it.
    #[arg(long, value_name = "FILE")]
    imatrix: Option<PathBuf>,
    #[command(flatten)]
    calibration: calibration::Args,
    /// Allow a reference that is already quantized.
    #[arg(long)]
    allow_requantize: bool,
    /// HTML report (.html). JSON and CSV are written beside it, with the extensions .json and .csv.
    #[arg(short, long, value_name = "PAGE", value_parser = page_name)]
    output: Option<PathBuf>,
    /// Resume from the JSON results, which are saved after each group of types.
    #[arg(long, requires = "output")]
    resume: bool,
    /// Print a table in Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Do not measure speed.
    #[arg(long)]
    no_speed: bool,
    /// Number of types evaluated in parallel. More need more memory and less time.
    #[arg(
        long,
        alias = "together",
        value_name = "N",
        default_value = "4",
        help_heading = "Advanced"
    )]
    parallel_models: NonZeroUsize,
    #[command(flatten)]
    force: Force,
}

fn types(list: &str) -> Result<Types, String> {
    if list.eq_ignore_ascii_case("all") {
        return Ok(Types::All);
    }
    let target = |word: &str| match word.trim().parse() {
        Ok(Target::Copy) => Err("`copy` is lossless; expected quantization types".to_owned()),
        parsed => parsed.map_err(|fault: UnknownTarget| fault.to_string()),
    };
    list.split(',').map(target).collect::<Result<_, _>>().map(Types::Listed)
}

fn page_name(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    let is_page = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("html"));
    is_page.then_some(path).ok_or_else(|| "expected an HTML file, such as report.html".to_owned())
}

/// Output files.
struct Outputs {
    page: PathBuf,
    json: PathBuf,
    csv: PathBuf,
}

impl Outputs {
    fn of(page: &Path) -> Self {
        let other = |end: &str| page.with_extension(end);
        Self { page: page.to_owned(), json: other("json"), csv: other("csv") }
    }

    fn check(&self, overwrite: &Overwrite) -> Result<(), Error> {
        [&self.json, &self.csv, &self.page].into_iter().try_for_each(|path| overwrite.check(path))
    }

    fn write(&self, report: &QualityReport, overwrite: &Overwrite) -> Result<(), Error> {
        let write = |path: &Path, text: String| AtomicFile::write(path, text.as_bytes(), overwrite);
        write(&self.json, report.to_json())?;
        write(&self.csv, report.to_csv())?;
        write(&self.page, quality_page(report))
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let outputs = args.output.as_deref().map(Outputs::of);
    let inputs = || {
        let sources = std::iter::once(&args.source).chain(&args.files);
        sources
            .map(Path::new)
            .chain(args.eval.inputs())
            .chain(args.imatrix.as_deref())
            .chain(args.calibration.inputs())
    };
    let own = Overwrite::new(Existing::Replace).protecting(inputs());
    let mut overwrite = args.force.protecting(inputs());
    let mut before = None;
    if let Some(outputs) = &outputs {
        if args.resume && outputs.json.exists() {
            before = Some(QualityReport::read(&outputs.json)?);
            own.check(&outputs.json)?;
            overwrite = own.clone();
        } else {
            outputs.check(&overwrite)?;
        }
    }
    let options = args.options()?;
    let mut is_saved = before.is_some();
    let found = on_threads(args.eval.run.threads, || -> Result<QualityReport, Failure> {
        let progress = Progress::of_tokens();
        let mut each = |event: Event<'_>| {
            match event {
                Event::Begins { names, done, all } => {
                    progress.set_message(format!("{} ({done} of {all} done)", names.join(", ")));
                }
                Event::Measured(report) => {
                    if let Some(outputs) = &outputs {
                        outputs.write(report, &overwrite)?;
                        is_saved = true;
                        // From here on the output files belong to this run.
                        overwrite = own.clone();
                    }
                }
            }
            Ok(())
        };
        let found = measure(&args.source, &options, before, &mut each, &progress);
        let found = found.map_err(|error| match error {
            Error::Interrupted if is_saved => Failure::Paused,
            error if error.code() == "imatrix-needed" => {
                let what = error.finding().map_or_else(String::new, |one| one.message.to_string());
                let help =
                    "pass an importance matrix with --imatrix, or leave the type out of --types";
                Error::request("imatrix-needed", what, help).into()
            }
            error => error.into(),
        })?;
        progress.finish();
        Ok(found)
    })?;
    if let Some(outputs) = &outputs {
        outputs.write(&found, &overwrite)?;
        for path in [&outputs.page, &outputs.json, &outputs.csv] {
            eprintln!("wrote {}", path.display());
        }
    }
    let mut out = std::io::stdout().lock();
    if args.eval.json {
        // The document is the file that `-o` writes; its `version` is that of the file format.
        let file = serde_json::to_value(&found).map_err(std::io::Error::from)?;
        document::print(&mut out, "quality/3", file)?;
    } else if args.markdown {
        out.write_all(quality_markdown(&found).as_bytes())?;
    } else {
        print(&mut out, &found)?;
    }
    Ok(())
}

impl Args {
    fn options(&self) -> Result<QualityOptions, Failure> {
        Ok(QualityOptions {
            types: match &self.types {
                Some(types) => types.clone(),
                None if self.files.is_empty() => Types::default(),
                None => Types::Listed(Vec::new()),
            },
            files: self.files.clone(),
            task: self.eval.task()?,
            text: self.eval.text(),
            run: self.eval.run.options(self.eval.precision),
            imatrix: self
                .imatrix
                .clone()
                .map(|file| ImatrixChoice { file, ..ImatrixChoice::default() }),
            calibration: self.calibration.choice()?,
            allow_requantize: self.allow_requantize,
            benchmark: (!self.no_speed).then(|| BenchmarkOptions {
                depth: 0,
                prompt: 512,
                generated: 64,
                repetitions: 3,
                cache_type: self.eval.run.cache_type(PrecisionArg::Fast),
            }),
            together: self.parallel_models.get(),
        })
    }
}

/// Columns of the figures of a type, without and with speeds.
const WITHOUT_SPEEDS: usize = 72;
const WITH_SPEEDS: usize = 93;
/// Columns before figures below their name.
const INDENT: usize = 2;

/// Prints the table, one line per type, largest first, and the recommended types.
fn print(out: &mut impl Write, report: &QualityReport) -> std::io::Result<()> {
    let (conditions, reference) = (&report.conditions, &report.reference);
    let rows = report.by_size();
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max("reference".len());
    let has_speed = conditions.benchmark.is_some();
    let evaluated = listing::evaluated(conditions.tokens, conditions.chunks);
    writeln!(out, "{evaluated} of {}", conditions.text)?;
    let terminal = terminal::width().unwrap_or(usize::MAX);
    let figures = if has_speed { WITH_SPEEDS } else { WITHOUT_SPEEDS };
    // On a narrow terminal, names have a line of their own, and two figures are left out if need be.
    let (is_narrow, is_short) = (width + figures > terminal, INDENT + figures > terminal);
    let mut line = |name: &str, cells: [&str; 8], speeds: [&str; 2]| {
        let [size, bits, mean, error, max, same, ppl, memory] = cells;
        let [prompt, generation] = speeds;
        let speeds = match has_speed {
            true => format!(" {prompt:>9} {generation:>10}"),
            false => String::new(),
        };
        let (max, memory) = match is_short {
            true => (String::new(), String::new()),
            false => (format!(" {max:>9}"), format!(" {memory:>8}")),
        };
        let figures = format!(
            " {size:>8} {bits:>5} {mean:>10} {error:>9}{max} {same:>6} {ppl:>9}{speeds}{memory}"
        );
        let figures = figures.trim_end();
        match is_narrow {
            true if name.is_empty() => writeln!(out, "{:INDENT$}{figures}", ""),
            true => writeln!(out, "{name}\n{:INDENT$}{figures}", ""),
            false => writeln!(out, "{name:<width$}{figures}"),
        }
    };
    let group = ["", "", "KLD", "", "", "top-1", "", ""];
    line("", group, ["prompt", "generation"])?;
    let names = ["size", "bpw", "mean", "±", "max", "agr, %", "ppl", "memory"];
    line(if is_narrow { "" } else { "type" }, names, ["tokens/s", "tokens/s"])?;
    let costs = |cost: &ModelCost| {
        let speed = |speed: Option<f64>| speed.map_or(String::new(), |speed| format!("{speed:.1}"));
        (
            listing::bytes(cost.file_bytes),
            format!("{:.2}", cost.bits_per_weight),
            listing::bytes(cost.memory_bytes),
            [speed(cost.prompt_tokens_per_second), speed(cost.generation_tokens_per_second)],
        )
    };
    let (size, bits, memory, [prompt, generation]) = costs(&reference.cost);
    let ppl = format!("{:.4}", reference.ppl);
    let cells = [&*size, &*bits, "0", "", "0", "100", &*ppl, &*memory];
    line("reference", cells, [&*prompt, &*generation])?;
    for row in &rows {
        let (size, bits, memory, [prompt, generation]) = costs(&row.cost);
        let (mean, error) = (format!("{:.7}", row.mean_kld), format!("{:.7}", row.mean_kld_error));
        let max = format!("{:.6}", row.max_kld);
        let (same, ppl) = (format!("{:.2}", row.top1_agreement), format!("{:.4}", row.ppl_q));
        let cells = [&*size, &*bits, &*mean, &*error, &*max, &*same, &*ppl, &*memory];
        line(&row.name, cells, [&*prompt, &*generation])?;
    }
    writeln!(out)?;
    let choices = report.choices();
    for (purpose, row) in &choices {
        let size = listing::bytes(row.cost.file_bytes);
        let line = format!("{}: {}, {size}. {}", purpose.name(), row.name, purpose.meaning());
        writeln!(out, "{}", terminal::wrap(&line, ""))?;
    }
    if choices.is_empty() {
        let advice = "No measured type has a mean KLD of 0.05 or less. Use a larger type, or an importance matrix.";
        writeln!(out, "{}", terminal::wrap(advice, ""))?;
    }
    for row in rows {
        let other = row.dominated_by.as_ref();
        let Some(other) = other.and_then(|name| report.types.iter().find(|row| row.name == *name))
        else {
            continue;
        };
        let is_equal =
            other.mean_kld == row.mean_kld && other.cost.file_bytes == row.cost.file_bytes;
        let line = match is_equal {
            true => format!("{}: same size and KLD as {}", row.name, other.name),
            false => format!(
                "{}: dominated by {} (no larger, KLD lower beyond the standard error)",
                row.name, other.name
            ),
        };
        writeln!(out, "{line}")?;
    }
    for one in &report.skipped {
        writeln!(out, "{:<width$} skipped: {}", one.name, one.reason)?;
    }
    Ok(())
}
