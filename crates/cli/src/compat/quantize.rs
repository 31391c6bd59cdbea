//! `llama-quantize`.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use gguf::TensorType;
use gguf_kit::quantize::Plan;
use gguf_quantize::recipe::{Preset, Target};

use super::arguments::{Arguments, parse_args};
use super::flag::{Flag, help, renamed, translated, version};
use super::{ArgumentStyle, Program};
use crate::commands::quantize::{Args, run_with_report};
use crate::failure::Failure;
use crate::listing::bits_per_weight;

pub const PROGRAM: Program = Program {
    name: "llama-quantize",
    command: "gguf quantize",
    positionals: "model-f32.gguf [model-quant.gguf] type [nthreads]",
    style: ArgumentStyle::LlamaCpp,
    example: "model-f16.gguf model-q4_k_m.gguf q4_k_m 8",
    flags: &[FLAGS],
    run,
};

const FLAGS: &[Flag] = &[
    help("-h --help"),
    version("--version"),
    renamed("--allow-requantize", 0, "--allow-requantize"),
    renamed("--leave-output-tensor", 0, "--leave-output-tensor"),
    renamed("--pure", 0, "--pure"),
    renamed("--imatrix", 1, "--imatrix"),
    renamed("--include-weights", 1, "--include-weights"),
    renamed("--exclude-weights", 1, "--exclude-weights"),
    renamed("--output-tensor-type", 1, "--output-tensor-type"),
    renamed("--token-embedding-type", 1, "--token-embedding-type"),
    translated("--tensor-type", 1, "`--tensor-type`, with the regex in lower case"),
    renamed("--tensor-type-file", 1, "--tensor-type-file"),
    renamed("--prune-layers", 1, "--prune-layers"),
    renamed("--keep-split", 0, "--keep-split"),
    renamed("--override-kv", 1, "--override-kv"),
    translated("--dry-run", 0, "`--dry-run`, with the sizes in the format of the original"),
    renamed("--max-buffer-size", 1, "--max-buffer-size"),
    renamed("--imatrix-missing", 1, "--imatrix-missing"),
];

fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let mut flags = vec!["--force".to_owned()];
    for entry in arguments.all("--tensor-type").map(|values| &values[0]) {
        flags.push(format!("--tensor-type={}", lowercase_pattern(entry)));
    }
    let dry_run = arguments.has("--dry-run");
    if dry_run {
        flags.push("--dry-run".to_owned());
    }
    let args: Args = parse_args(arguments.translate(flags, with_output(&arguments.positionals)))?;
    let start = Instant::now();
    run_with_report(&args, Some(&|plan| print_plan(plan, dry_run)))?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nllama_quantize: quantize time = {milliseconds:8.2} ms")?;
    writeln!(out, "llama_quantize:    total time = {milliseconds:8.2} ms")?;
    Ok(0)
}

/// Converts a regex to lower case, as the original does, except escaped characters.
fn lowercase_pattern(entry: &str) -> String {
    let (pattern, ty) = entry.split_once('=').unwrap_or((entry, ""));
    let mut is_escaped = false;
    let lowercase = pattern.chars().map(|c| {
        let was_escaped = is_escaped;
        is_escaped = c == '\\' && !was_escaped;
        if was_escaped { c } else { c.to_ascii_lowercase() }
    });
    format!("{}={ty}", lowercase.collect::<String>())
}

/// Types for which the original uses the short name in output names if the type is given by number.
const SHORT: &[(&str, &str)] = &[("Q3_K_M", "Q3_K"), ("Q4_K_M", "Q4_K"), ("Q5_K_M", "Q5_K")];

/// Returns the positional arguments with the default output of the original.
fn with_output(words: &[String]) -> Vec<String> {
    let mut words = words.to_vec();
    if let [input, ty, ..] = &words[..]
        && ty.parse::<Target>().is_ok()
    {
        let name = format!("ggml-model-{}.gguf", name_of(ty));
        let output = Path::new(input).with_file_name(name).display().to_string();
        words.insert(1, output);
    }
    words
}

/// Returns the name of a type as the original prints it: as given, or the first one of a number.
fn name_of(ty: &str) -> String {
    let Ok(number) = ty.parse::<u32>() else { return ty.to_ascii_uppercase() };
    let mix = Preset::ALL.iter().find(|mix| mix.number() == number);
    let name = mix.map_or(ty, |mix| mix.name());
    SHORT.iter().find(|(long, _)| *long == name).map_or(name, |(_, short)| short).to_owned()
}

/// Prints the plan in the format of the original.
fn print_plan(plan: &Plan, dry_run: bool) -> Result<(), Failure> {
    let mut err = std::io::stderr().lock();
    let items: Vec<_> = plan.files().flat_map(|(job, _)| &job.items).collect();
    let (mut before, mut after, mut elements) = (0, 0, 0);
    let mib = |bytes: u64| bytes as f64 / (1u64 << 20) as f64;
    for (number, item) in (1..).zip(&items) {
        let shape = &item.tensor.shape;
        let byte_len = |ty: TensorType| ty.byte_len(shape).unwrap_or(0);
        let (old, new) = (byte_len(item.tensor.stored_type), byte_len(item.target));
        let dims: Vec<_> =
            (0..4).map(|i| format!("{:6}", shape.get(i).copied().unwrap_or(1))).collect();
        let (name, ty) = (&item.tensor.name, ggml_name(item.tensor.stored_type));
        let count = items.len();
        write!(err, "[{number:4}/{count:4}] {name:36} - [{}], type = {ty:>6}, ", dims.join(", "))?;
        if item.tensor.stored_type == item.target {
            writeln!(err, "size = {:8.3} MiB", mib(old))?;
        } else {
            let target = ggml_name(item.target);
            let sizes = format!("size = {:8.2} MiB -> {:8.2} MiB", mib(old), mib(new));
            if dry_run {
                writeln!(err, "{sizes} ({target})")?;
            } else {
                writeln!(err, "converting to {target} .. {sizes}")?;
            }
        }
        before += old;
        after += new;
        elements += shape.elements().unwrap_or(0);
    }
    for (what, bytes) in [("model", before), ("quant", after)] {
        let bits = bits_per_weight(bytes, elements);
        let mib = mib(bytes);
        writeln!(err, "llama_model_quantize_impl: {what} size  = {mib:8.2} MiB ({bits:.2} BPW)")?;
    }
    Ok(())
}

/// Returns the name of a type in ggml.
pub fn ggml_name(ty: TensorType) -> String {
    let name = ty.name().to_ascii_lowercase();
    match name.strip_suffix("_k") {
        Some(start) => format!("{start}_K"),
        None => name,
    }
}
