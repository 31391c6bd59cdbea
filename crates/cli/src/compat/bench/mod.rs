//! `llama-bench`.

mod print;

use std::num::NonZeroUsize;
use std::time::Duration;

use gguf_kit::bench::Trial;
use gguf_kit::open;
use gguf_kit::run::{ExecutorOptions, load};
use gguf_kit::summary::Summary;
use gguf_runtime::{CacheType, Precision};
use print::{Format, Printer, Test};

use super::arguments::Arguments;
use super::flag::{Flag, help, ignored, refused, translated, version};
use super::shared_arguments;
use super::shared_flags::{CACHE_TYPE_K, CACHE_TYPE_V, NO_DEVICES, OWN_THREADS};
use super::{ArgumentStyle, Program};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::threads::on_threads;

pub const PROGRAM: Program = Program {
    name: "llama-bench",
    command: "gguf bench",
    positionals: "",
    style: ArgumentStyle::LlamaCpp,
    example: "-m model-q4_k_m.gguf -p 512 -n 128 -o json",
    flags: &[FLAGS],
    run,
};

const FLAGS: &[Flag] = &[
    help("-h --help"),
    version("--version"),
    ignored("--numa", 1, OWN_THREADS),
    translated("-r --repetitions", 1, "`--repetitions`"),
    ignored("--prio", 1, OWN_THREADS),
    translated("--delay", 1, "seconds to wait before each test"),
    translated("-o --output", 1, "format on standard output: csv, json, jsonl, md or sql"),
    translated("-oe --output-err", 1, "format on standard error"),
    refused("--list-devices", 0, "the CPU is the only device"),
    ignored("-v --verbose", 0, "there is no log"),
    ignored("--progress", 0, "progress is shown on terminals"),
    ignored("--no-warmup", 0, "there is always one warm-up run"),
    ignored("-fitt --fit-target", 1, NO_DEVICES),
    ignored("-fitc --fit-ctx", 1, NO_DEVICES),
    refused("-rpc --rpc", 1, "models run locally"),
    translated("-m --model", 1, "models, separated by commas"),
    translated("-hf -hfr --hf-repo", 1, "the model as `hf:USER/MODEL[:TYPE]`, read remotely"),
    translated("-hff --hf-file", 1, "the file in the repository of `-hf`"),
    refused(
        "-hft --hf-token",
        1,
        "other users could see it: set the environment variable HF_TOKEN",
    ),
    ignored("--offline", 0, "there is no model cache"),
    translated("-p --n-prompt", 1, "`--prompt`; numbers and ranges, as in the original"),
    translated("-n --n-gen", 1, "`--tokens`; numbers and ranges, as in the original"),
    translated("-pg", 1, "`PROMPT,GENERATED`: one test of both, timed together"),
    translated("-d --n-depth", 1, "`--depth`; numbers and ranges, as in the original"),
    ignored("-b --batch-size", 1, "prompts are processed in one batch"),
    ignored("-ub --ubatch-size", 1, "prompts are processed in one batch"),
    CACHE_TYPE_K,
    CACHE_TYPE_V,
    translated("-t --threads", 1, "`--threads`; numbers and ranges, as in the original"),
    ignored("-C --cpu-mask", 1, OWN_THREADS),
    ignored("--cpu-strict", 1, OWN_THREADS),
    ignored("--poll", 1, OWN_THREADS),
    ignored("-ngl --n-gpu-layers", 1, NO_DEVICES),
    ignored("-ncmoe --n-cpu-moe", 1, NO_DEVICES),
    ignored("-sm --split-mode", 1, NO_DEVICES),
    ignored("-mg --main-gpu", 1, NO_DEVICES),
    ignored("-nkvo --no-kv-offload", 1, NO_DEVICES),
    ignored("-fa --flash-attn", 1, "there is a single attention implementation"),
    ignored("-dev --device", 1, NO_DEVICES),
    ignored("-lm --load-mode", 1, NO_DEVICES),
    ignored("-mmp --mmap", 1, NO_DEVICES),
    ignored("-dio --direct-io", 1, NO_DEVICES),
    ignored("-lzm --lazy-mode", 1, NO_DEVICES),
    refused("-embd --embeddings", 1, "tests compute logits only"),
    ignored("-ts --tensor-split", 1, NO_DEVICES),
    ignored("-ot --override-tensor", 1, NO_DEVICES),
    ignored("-nopo --no-op-offload", 1, NO_DEVICES),
    ignored("--no-host", 1, NO_DEVICES),
    ignored("--repack", 1, NO_DEVICES),
];

fn run(arguments: &Arguments) -> Result<u8, Failure> {
    if let Some(word) = arguments.positionals.first() {
        return Err(Failure::Usage(format!("unexpected argument `{word}`: use -m for the model")));
    }
    let named: Vec<_> = arguments.all("--model").flat_map(|v| v[0].split(',')).collect();
    let models = match named.is_empty() {
        true => vec![shared_arguments::model(arguments)?],
        false => named.into_iter().map(str::to_owned).collect(),
    };
    let format = |flag: &str, default: Option<Format>| match arguments.value(flag) {
        None => Ok(default),
        Some("none") => Ok(None),
        Some(name) => Format::parse(name).map(Some).ok_or_else(|| {
            Failure::Usage(format!(
                "{flag} {name}: unknown format; expected csv, json, jsonl, md or sql"
            ))
        }),
    };
    let mut printers = Vec::new();
    if let Some(format) = format("--output", Some(Format::Markdown))? {
        printers.push(Printer::new(format, Box::new(std::io::stdout())));
    }
    if let Some(format) = format("--output-err", None)? {
        printers.push(Printer::new(format, Box::new(std::io::stderr())));
    }
    for printer in &mut printers {
        printer.begin()?;
    }
    let mut each = |test: &Test| {
        let mut printers = printers.iter_mut();
        printers.try_for_each(|printer| Ok(printer.test(test)?))
    };
    for model in &models {
        measure(arguments, model, &mut each)?;
    }
    for printer in &mut printers {
        printer.end()?;
    }
    Ok(0)
}

/// Runs all tests of a model.
fn measure(
    arguments: &Arguments,
    model: &str,
    each: &mut dyn FnMut(&Test) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let cache_type = shared_arguments::cache_type(arguments)?.unwrap_or(CacheType::F16);
    let cache = cache_type.name();
    let repetitions =
        arguments.number::<NonZeroUsize>("--repetitions")?.map_or(5, NonZeroUsize::get);
    let delay = Duration::from_secs(arguments.number("--delay")?.unwrap_or(0));
    let all = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let (prompts, generated) =
        (numbers(arguments, "--n-prompt", &[512])?, numbers(arguments, "--n-gen", &[128])?);
    let pairs = arguments.all("-pg").map(|values| pair(&values[0]));
    let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
    let depths = numbers(arguments, "--n-depth", &[0])?;
    let tests = prompts.iter().map(|n| (*n, 0)).chain(generated.iter().map(|n| (0, *n)));
    let tests = tests.chain(pairs).filter(|(prompt, generated)| prompt + generated > 0);
    let at = |depth: usize| {
        tests.clone().map(move |(prompt, generated)| Trial { depth, prompt, generated })
    };
    let trials: Vec<_> = depths.iter().flat_map(|depth| at(*depth)).collect();
    let opened = open(model)?;
    let summary = Summary::of(opened.model());
    drop(opened);
    let options = ExecutorOptions { precision: Precision::Fast, ..ExecutorOptions::default() };
    let running = load(model, &options)?;
    for threads in numbers(arguments, "--threads", &[all])? {
        for trial in &trials {
            std::thread::sleep(delay);
            let rates = on_threads(NonZeroUsize::new(threads), || -> Result<_, Failure> {
                let progress = Progress::new();
                let rates = trial.measure(&running.executor, repetitions, cache_type, &progress)?;
                progress.finish();
                Ok(rates)
            })?;
            each(&Test { model, summary: &summary, threads, cache, trial, rates: &rates })?;
        }
    }
    Ok(())
}

/// Parses the value of `-pg`.
fn pair(text: &str) -> Result<(usize, usize), Failure> {
    let numbers = text.split_once(',').and_then(|(prompt, generated)| {
        Some((prompt.trim().parse().ok()?, generated.trim().parse().ok()?))
    });
    numbers.ok_or_else(|| {
        Failure::Usage(format!("-pg: `{text}` is not a pair of numbers such as 512,128"))
    })
}

/// Parses the numbers of a flag, separated by commas: single numbers or ranges `FIRST-LAST`, with steps `+N` or
/// `*N`.
fn numbers(arguments: &Arguments, flag: &str, default: &[usize]) -> Result<Vec<usize>, Failure> {
    let mut numbers = Vec::new();
    for text in arguments.all(flag).flat_map(|values| values[0].split(',')) {
        let range = range(text).ok_or_else(|| {
            Failure::Usage(format!(
                "{flag}: `{text}` is neither a number nor a range such as 16-128*2"
            ))
        })?;
        numbers.extend(range);
    }
    Ok(if numbers.is_empty() { default.to_vec() } else { numbers })
}

fn range(text: &str) -> Option<Vec<usize>> {
    /// Upper limit of the number of tests.
    const MAX_TESTS: usize = 10_000;
    let (first, rest) = text.split_once('-').unwrap_or((text, ""));
    let first: usize = first.parse().ok()?;
    if rest.is_empty() {
        return (!text.ends_with('-')).then(|| vec![first]);
    }
    let at = rest.find(['+', '*']).unwrap_or(rest.len());
    let (last, step) = rest.split_at(at);
    let last: usize = last.parse().ok()?;
    let next = |n: usize| match step.chars().next() {
        None => n.checked_add(1),
        Some('+') => n.checked_add(step[1..].parse().ok()?),
        _ => n.checked_mul(step[1..].parse().ok()?),
    };
    let mut numbers = Vec::new();
    let mut number = first;
    while number <= last {
        numbers.push(number);
        number = next(number).filter(|next| *next > number && numbers.len() < MAX_TESTS)?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_match_llama_bench() {
        assert_eq!(range("512"), Some(vec![512]));
        assert_eq!(range("1-4"), Some(vec![1, 2, 3, 4]));
        assert_eq!(range("16-64+16"), Some(vec![16, 32, 48, 64]));
        assert_eq!(range("1-9*2"), Some(vec![1, 2, 4, 8]));
        for wrong in ["", "a", "1-", "-1", "1-4*1", "1-4+0", "1-4/2"] {
            assert_eq!(range(wrong), None, "{wrong}");
        }
    }
}
