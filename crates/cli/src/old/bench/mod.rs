//! `llama-bench`.

mod print;

use std::num::NonZeroUsize;
use std::time::Duration;

use gguf_kit::bench::{BenchmarkOptions, Rates};
use gguf_kit::run::{ExecutorOptions, load};
use gguf_kit::summary::Summary;
use gguf_kit::{on_threads, open};
use gguf_runtime::{Arithmetic, CacheType};
use print::{Form, Printer, Test};

use super::common::{self, NO_DEVICES, OWN_THREADS};
use super::flag::{Flag, help, nothing, read, refused, version};
use super::given::Given;
use super::{Family, Program};
use crate::failure::Failure;
use crate::progress::Progress;

pub const PROGRAM: Program = Program {
    name: "llama-bench",
    ours: "gguf bench",
    words: "",
    family: Family::LlamaCpp,
    example: "-m model-q4_k_m.gguf -p 512 -n 128 -o json",
    flags: &[FLAGS],
    run,
};

const FLAGS: &[Flag] = &[
    help("-h --help"),
    version("--version"),
    nothing("--numa", 1, OWN_THREADS),
    read("-r --repetitions", 1, "`--repetitions`"),
    nothing("--prio", 1, OWN_THREADS),
    read("--delay", 1, "waits so many seconds before each test"),
    read("-o --output", 1, "csv, json, jsonl, md or sql: the form on the standard output"),
    read("-oe --output-err", 1, "the same on the standard error"),
    refused("--list-devices", 0, "there are no devices here but the processor"),
    nothing("-v --verbose", 0, "there is no log"),
    nothing("--progress", 0, "it shows itself on terminals"),
    nothing("--no-warmup", 0, "one run that does not count comes first, always"),
    nothing("-fitt --fit-target", 1, NO_DEVICES),
    nothing("-fitc --fit-ctx", 1, NO_DEVICES),
    refused("-rpc --rpc", 1, "models run on this machine"),
    read("-m --model", 1, "the models, with commas between them"),
    read("-hf -hfr --hf-repo", 1, "the model as `hf:USER/MODEL[:TYPE]`, read where it is"),
    read("-hff --hf-file", 1, "the file in the repository of `-hf`"),
    refused("-hft --hf-token", 1, "others can see it there: put it in the environment as HF_TOKEN"),
    nothing("--offline", 0, "nothing is downloaded to a cache"),
    read("-p --n-prompt", 1, "`--prompt`; numbers and ranges, as in the original"),
    read("-n --n-gen", 1, "`--tokens`; numbers and ranges, as in the original"),
    refused("-pg", 1, "prompts and tokens are measured apart: give -p and -n"),
    read("-d --n-depth", 1, "0 only: speeds are those of an empty context"),
    nothing("-b --batch-size", 1, "a prompt is read at once"),
    nothing("-ub --ubatch-size", 1, "a prompt is read at once"),
    read("-ctk --cache-type-k", 1, "`--cache-type`, with -ctv: f32, f16 or q8_0"),
    read("-ctv --cache-type-v", 1, "`--cache-type`, with -ctk: f32, f16 or q8_0"),
    read("-t --threads", 1, "`--threads`; numbers and ranges, as in the original"),
    nothing("-C --cpu-mask", 1, OWN_THREADS),
    nothing("--cpu-strict", 1, OWN_THREADS),
    nothing("--poll", 1, OWN_THREADS),
    nothing("-ngl --n-gpu-layers", 1, NO_DEVICES),
    nothing("-ncmoe --n-cpu-moe", 1, NO_DEVICES),
    nothing("-sm --split-mode", 1, NO_DEVICES),
    nothing("-mg --main-gpu", 1, NO_DEVICES),
    nothing("-nkvo --no-kv-offload", 1, NO_DEVICES),
    nothing("-fa --flash-attn", 1, "there is one way to compute attention"),
    nothing("-dev --device", 1, NO_DEVICES),
    nothing("-lm --load-mode", 1, NO_DEVICES),
    nothing("-mmp --mmap", 1, NO_DEVICES),
    nothing("-dio --direct-io", 1, NO_DEVICES),
    nothing("-lzm --lazy-mode", 1, NO_DEVICES),
    refused("-embd --embeddings", 1, "what is measured are logits"),
    nothing("-ts --tensor-split", 1, NO_DEVICES),
    nothing("-ot --override-tensor", 1, NO_DEVICES),
    nothing("-nopo --no-op-offload", 1, NO_DEVICES),
    nothing("--no-host", 1, NO_DEVICES),
    nothing("--repack", 1, NO_DEVICES),
];

fn run(given: &Given) -> Result<u8, Failure> {
    if let Some(word) = given.words.first() {
        return Err(Failure::Usage(format!("`{word}` is no flag: name the model with -m")));
    }
    if numbers(given, "--n-depth", &[0])?.iter().any(|depth| *depth > 0) {
        return Err(Failure::Usage("-d: speeds are those of an empty context, of depth 0".into()));
    }
    let named: Vec<_> = given.all("--model").flat_map(|v| v[0].split(',')).collect();
    let models = match named.is_empty() {
        true => vec![common::model(given)?],
        false => named.into_iter().map(str::to_owned).collect(),
    };
    let form = |flag: &str, usual: Option<Form>| match given.value(flag) {
        None => Ok(usual),
        Some("none") => Ok(None),
        Some(name) => Form::parse(name).map(Some).ok_or_else(|| {
            Failure::Usage(format!("{flag} {name}: the forms are csv, json, jsonl, md and sql"))
        }),
    };
    let mut printers = Vec::new();
    if let Some(form) = form("--output", Some(Form::Markdown))? {
        printers.push(Printer::new(form, Box::new(std::io::stdout())));
    }
    if let Some(form) = form("--output-err", None)? {
        printers.push(Printer::new(form, Box::new(std::io::stderr())));
    }
    for printer in &mut printers {
        printer.begin()?;
    }
    let mut each = |test: &Test| {
        let mut printers = printers.iter_mut();
        printers.try_for_each(|printer| Ok(printer.test(test)?))
    };
    for model in &models {
        measure(given, model, &mut each)?;
    }
    for printer in &mut printers {
        printer.end()?;
    }
    Ok(0)
}

/// All tests of a model.
fn measure(
    given: &Given,
    model: &str,
    each: &mut dyn FnMut(&Test) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let cache = common::cache_type(given)?.unwrap_or("f16");
    let cache_type = match cache {
        "f32" => CacheType::F32,
        "q8_0" => CacheType::Q8_0,
        _ => CacheType::F16,
    };
    let repetitions = given.number::<NonZeroUsize>("--repetitions")?.map_or(5, NonZeroUsize::get);
    let delay = Duration::from_secs(given.number("--delay")?.unwrap_or(0));
    let all = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let (prompts, generated) =
        (numbers(given, "--n-prompt", &[512])?, numbers(given, "--n-gen", &[128])?);
    let tests = prompts.iter().map(|n| (*n, 0)).chain(generated.iter().map(|n| (0, *n)));
    let tests: Vec<_> = tests.filter(|(prompt, generated)| prompt + generated > 0).collect();
    let opened = open(model)?;
    let summary = Summary::of(opened.model());
    drop(opened);
    let options = ExecutorOptions { arithmetic: Arithmetic::Fast, ..ExecutorOptions::default() };
    let running = load(model, &options)?;
    for threads in numbers(given, "--threads", &[all])? {
        for (prompt, generated) in &tests {
            std::thread::sleep(delay);
            let trial = BenchmarkOptions {
                prompt: *prompt,
                generated: *generated,
                repetitions,
                cache_type,
            };
            let rates = on_threads(NonZeroUsize::new(threads), || -> Result<_, Failure> {
                let progress = Progress::new();
                let rates = Rates::measure(&running.executor, &trial, &progress)?;
                progress.finish();
                Ok(rates)
            })?;
            let rates = rates.prompt.or(rates.generation).unwrap_or_default();
            each(&Test { model, summary: &summary, threads, cache, trial: &trial, rates: &rates })?;
        }
    }
    Ok(())
}

/// The numbers of a flag: with commas between them, each one alone or `FIRST-LAST`, with steps of
/// `+N` or `*N`.
fn numbers(given: &Given, flag: &str, usual: &[usize]) -> Result<Vec<usize>, Failure> {
    let mut numbers = Vec::new();
    for text in given.all(flag).flat_map(|values| values[0].split(',')) {
        let range = range(text).ok_or_else(|| {
            Failure::Usage(format!("{flag}: `{text}` is no number, nor a range such as 16-128*2"))
        })?;
        numbers.extend(range);
    }
    Ok(if numbers.is_empty() { usual.to_vec() } else { numbers })
}

fn range(text: &str) -> Option<Vec<usize>> {
    /// More tests than anybody waits for.
    const MOST: usize = 10_000;
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
        number = next(number).filter(|next| *next > number && numbers.len() < MOST)?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_llama_bench() {
        assert_eq!(range("512"), Some(vec![512]));
        assert_eq!(range("1-4"), Some(vec![1, 2, 3, 4]));
        assert_eq!(range("16-64+16"), Some(vec![16, 32, 48, 64]));
        assert_eq!(range("1-9*2"), Some(vec![1, 2, 4, 8]));
        for wrong in ["", "a", "1-", "-1", "1-4*1", "1-4+0", "1-4/2"] {
            assert_eq!(range(wrong), None, "{wrong}");
        }
    }
}
