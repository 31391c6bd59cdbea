//! `gguf quality`: what a model costs and loses in each type.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf_kit::bench::BenchmarkOptions;
use gguf_kit::quality::{Event, ModelCost, QualityOptions, QualityReport, Types, measure};
use gguf_kit::quantize::Choice;
use gguf_kit::report::quality_page;
use gguf_kit::{Error, on_threads};
use gguf_quantize::recipe::{Target, UnknownTarget};
use gguf_runtime::CacheType;
use gguf_store::{AtomicFile, Existing, Overwrite};

use crate::commands::quantize::calibration;
use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::judging::JudgeArgs;
use crate::listing;
use crate::progress::Progress;

/// Say what a model costs and loses in each type.
///
/// Every mix is made in memory and measured beside the original by a text. Prints a table; with -o writes
/// a page to look at, and the figures beside it.
#[derive(clap::Args)]
#[command(
    after_help = "The page needs nothing but itself; report.json and report.csv have the same figures.\n\n\
                  Examples:\n  gguf quality f16.gguf -f text.txt --chunks 32 -o report.html\n  \
                  gguf quality f16.gguf --types q8_0,q4_k_m,iq3_m -f text.txt --imatrix imatrix.gguf\n  \
                  gguf quality f16.gguf --types all -f text.txt -o report.html --resume"
)]
pub struct Args {
    /// The original: file, directory, shard, checkpoint or far location.
    #[arg(value_name = "ORIGINAL")]
    source: String,
    /// Types with commas between them, or `all`, which are all mixes that are smaller than the original
    /// [default: those that people publish].
    #[arg(long, value_name = "LIST", value_parser = types)]
    types: Option<Types>,
    #[command(flatten)]
    judge: JudgeArgs,
    /// Importance matrix, GGUF or legacy `.dat`, for the mixes; the smallest ones need it.
    #[arg(long, value_name = "FILE")]
    imatrix: Option<PathBuf>,
    #[command(flatten)]
    calibration: calibration::Args,
    /// Take an original that is quantized already.
    #[arg(long)]
    allow_requantize: bool,
    /// The page, a name that ends in .html; the figures go to files of that name that end in .json and
    /// .csv.
    #[arg(short, long, value_name = "PAGE", value_parser = page_name)]
    output: Option<PathBuf>,
    /// Go on where the figures end: with the mixes that they lack. They are written after each group.
    #[arg(long, requires = "output")]
    resume: bool,
    /// Do not measure how fast the files are.
    #[arg(long)]
    no_speed: bool,
    /// Mixes that are in memory, and read the text beside the original, at a time: less memory with
    /// fewer, less time with more.
    #[arg(long, value_name = "N", default_value = "4")]
    together: NonZeroUsize,
    #[command(flatten)]
    force: Force,
}

fn types(list: &str) -> Result<Types, String> {
    if list.eq_ignore_ascii_case("all") {
        return Ok(Types::All);
    }
    let target = |word: &str| match word.trim().parse() {
        Ok(Target::Copy) => Err("a copy loses nothing: name types that are smaller".to_owned()),
        parsed => parsed.map_err(|fault: UnknownTarget| fault.to_string()),
    };
    list.split(',').map(target).collect::<Result<_, _>>().map(Types::Listed)
}

fn page_name(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    let is_page = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("html"));
    is_page.then_some(path).ok_or_else(|| "name a page, such as report.html".to_owned())
}

/// The files that are written.
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
        let source = Path::new(&args.source);
        std::iter::once(source)
            .chain(args.judge.inputs())
            .chain(args.imatrix.as_deref())
            .chain(args.calibration.input())
    };
    let mut before = None;
    if let Some(outputs) = &outputs {
        if args.resume && outputs.json.exists() {
            before = Some(QualityReport::read(&outputs.json)?);
            Overwrite::new(Existing::Replace).protecting(inputs()).check(&outputs.json)?;
        } else {
            outputs.check(&args.force.protecting(inputs()))?;
        }
    }
    // What is under those names from here on is ours.
    let overwrite = Overwrite::new(Existing::Replace).protecting(inputs());
    let options = args.options()?;
    let mut is_kept = before.is_some();
    let found = on_threads(args.judge.run.threads, || -> Result<QualityReport, Failure> {
        let progress = Progress::of_tokens();
        let mut each = |event: Event<'_>| {
            match event {
                Event::Begins { names, done, all } => {
                    progress.say(format!("{} ({done} of {all} done)", names.join(", ")));
                }
                Event::Measured(report) => {
                    if let Some(outputs) = &outputs {
                        outputs.write(report, &overwrite)?;
                        is_kept = true;
                    }
                }
            }
            Ok(())
        };
        let found = measure(&args.source, &options, before, &mut each, &progress);
        let found = found.map_err(|error| match error {
            Error::Interrupted if is_kept => Failure::Paused,
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
    if args.judge.json {
        // The file that `-o` writes, with its `version`, which says how it is read back.
        let file = serde_json::to_value(&found).map_err(std::io::Error::from)?;
        document::print(&mut out, "quality/1", file)?;
    } else {
        print(&mut out, &found)?;
    }
    Ok(())
}

impl Args {
    fn options(&self) -> Result<QualityOptions, Failure> {
        Ok(QualityOptions {
            types: self.types.clone().unwrap_or_default(),
            task: self.judge.task()?,
            text: self.judge.text(),
            run: self.judge.run.options(self.judge.arithmetic),
            imatrix: self.imatrix.clone().map(|file| Choice { file, ..Choice::default() }),
            calibration: self.calibration.choice(),
            allow_requantize: self.allow_requantize,
            benchmark: (!self.no_speed).then(|| BenchmarkOptions {
                prompt: 512,
                generated: 64,
                repetitions: 3,
                cache_type: self.judge.run.cache_type_or(CacheType::F16),
            }),
            together: self.together.get(),
        })
    }
}

/// The table: a line per file, the largest first.
fn print(out: &mut impl Write, report: &QualityReport) -> std::io::Result<()> {
    let (conditions, original) = (&report.conditions, &report.original);
    let mixes = report.by_size();
    let width = mixes.iter().map(|mix| mix.name.len()).max().unwrap_or(0).max("original".len());
    let has_speed = conditions.trial.is_some();
    writeln!(
        out,
        "{} predictions in {} windows of {}",
        conditions.predictions, conditions.windows, conditions.text
    )?;
    // 80 columns, but for speeds.
    let mut line = |name: &str, cells: [&str; 8], speeds: [&str; 2]| {
        let [size, bits, mean, median, max, same, ppl, memory] = cells;
        let [prompt, generation] = speeds;
        let speeds = match has_speed {
            true => format!(" {prompt:>9} {generation:>9}"),
            false => String::new(),
        };
        let line = format!(
            "{name:<width$} {size:>8} {bits:>5} {mean:>10} {median:>9} {max:>9} {same:>6} {ppl:>9}{speeds} {memory:>8}"
        );
        writeln!(out, "{}", line.trim_end())
    };
    let group = ["", "", "divergence", "", "", "same", "", ""];
    line("", group, ["prompt", "generated"])?;
    let names = ["size", "bits", "mean", "median", "greatest", "top, %", "ppl", "memory"];
    line("type", names, ["tokens/s", "tokens/s"])?;
    let costs = |cost: &ModelCost| {
        let speed = |speed: Option<f64>| speed.map_or(String::new(), |speed| format!("{speed:.1}"));
        (
            listing::bytes(cost.file_bytes),
            format!("{:.2}", cost.bits_per_weight),
            listing::bytes(cost.memory_bytes),
            [speed(cost.prompt_tokens_per_second), speed(cost.generation_tokens_per_second)],
        )
    };
    let (size, bits, memory, [prompt, generation]) = costs(&original.cost);
    let ppl = format!("{:.4}", original.ppl);
    let cells = [&*size, &*bits, "0", "0", "0", "100", &*ppl, &*memory];
    line("original", cells, [&*prompt, &*generation])?;
    for mix in &mixes {
        let (size, bits, memory, [prompt, generation]) = costs(&mix.cost);
        let [mean, median] = [mix.mean_kld, mix.median_kld].map(|x| format!("{x:.7}"));
        let max = format!("{:.6}", mix.max_kld);
        let (same, ppl) = (format!("{:.2}", mix.same_top), format!("{:.4}", mix.ppl_q));
        let cells = [&*size, &*bits, &*mean, &*median, &*max, &*same, &*ppl, &*memory];
        line(&mix.name, cells, [&*prompt, &*generation])?;
    }
    for mix in mixes {
        if let Some(other) = &mix.dominated_by {
            writeln!(out, "{}: rather {other}, which is as small and nearer", mix.name)?;
        }
    }
    for one in &report.left_out {
        writeln!(out, "{:<width$} left out: {}", one.name, one.why)?;
    }
    Ok(())
}
