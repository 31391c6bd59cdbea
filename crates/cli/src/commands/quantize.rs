//! `gguf quantize`: a GGUF to a smaller one.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf::edit::reserve;
use gguf::{TensorType, Value};
use gguf_convert::quantize;
use gguf_quant::recipe::{self, Target};
use regex::Regex;

use crate::failure::Failure;
use crate::opened::Opened;
use crate::{commands, listing, target};

/// Quantize a GGUF to a mix or a single type.
#[derive(clap::Args)]
#[command(
    override_usage = "gguf quantize [OPTIONS] <IN> [OUT] <TYPE> [THREADS]",
    after_help = "Examples:\n  gguf quantize model-f16.gguf model-q4.gguf q4_k_m\n  \
                  gguf quantize --tensor-type 'ffn_down=q6_k' model-f16.gguf out.gguf Q4_K_M 8",
    after_long_help = format!(
        "{}\nExamples:\n  gguf quantize model-f16.gguf model-q4.gguf q4_k_m\n  \
         gguf quantize --tensor-type 'ffn_down=q6_k' model-f16.gguf out.gguf Q4_K_M 8",
        target::table()
    )
)]
pub struct Args {
    /// Input file, output file (may be left out: ggml-model-TYPE.gguf beside the input), type, and
    /// number of threads (may be left out: one per core).
    #[arg(required = true, num_args = 2..=4, value_names = ["IN", "OUT"])]
    words: Vec<String>,
    /// Give all tensors the default type, and accept any tensor type as TYPE.
    #[arg(long)]
    pure: bool,
    /// Keep output.weight as it is.
    #[arg(long)]
    leave_output_tensor: bool,
    /// Type of output.weight.
    #[arg(long, value_name = "TYPE")]
    output_tensor_type: Option<TensorType>,
    /// Type of the token embeddings.
    #[arg(long, value_name = "TYPE")]
    token_embedding_type: Option<TensorType>,
    /// Type of the tensors whose name the pattern is found in; may be repeated, first match wins.
    #[arg(long, value_name = "REGEX=TYPE", value_parser = parse_tensor_type)]
    tensor_type: Vec<(Regex, TensorType)>,
    /// Quantize again what is quantized already.
    #[arg(long)]
    allow_requantize: bool,
    /// Set a key in the output: TYPE is int, float, bool or str; may be repeated.
    #[arg(long, value_name = "KEY=TYPE:VALUE", value_parser = parse_override)]
    override_kv: Vec<(String, Value<'static>)>,
    /// Room for later edits of the header, so that they take an instant: N(K|M|G).
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = listing::parse_reserve)]
    reserve: u64,
    /// Show the plan and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run, the plan as JSON.
    #[arg(long, requires = "dry_run")]
    json: bool,
}

fn parse_tensor_type(text: &str) -> Result<(Regex, TensorType), String> {
    let (pattern, ty) = text.rsplit_once('=').ok_or("expected REGEX=TYPE")?;
    let pattern = Regex::new(pattern).map_err(|fault| fault.to_string())?;
    Ok((pattern, ty.parse().map_err(|fault: gguf::UnknownTypeName| fault.to_string())?))
}

fn parse_override(text: &str) -> Result<(String, Value<'static>), String> {
    let form = "expected KEY=TYPE:VALUE with TYPE int, float, bool or str";
    let (key, value) = text.split_once('=').ok_or(form)?;
    let (ty, value) = value.split_once(':').ok_or(form)?;
    let wrong = |_| format!("`{value}` is no {ty}");
    let value = match ty {
        "int" => {
            Value::I64(value.parse().map_err(|fault: std::num::ParseIntError| fault.to_string())?)
        }
        "float" => {
            Value::F32(value.parse().map_err(|fault: std::num::ParseFloatError| fault.to_string())?)
        }
        "bool" => {
            Value::Bool(value.parse().map_err(|fault: std::str::ParseBoolError| wrong(fault))?)
        }
        "str" => Value::from(value.to_owned()),
        _ => return Err(form.into()),
    };
    Ok((key.to_owned(), value))
}

/// The positional words, told apart.
struct Words {
    input: String,
    output: PathBuf,
    target: Target,
    threads: NonZeroUsize,
}

impl Words {
    /// `IN TYPE`, `IN TYPE THREADS`, `IN OUT TYPE` or `IN OUT TYPE THREADS`: as with the official
    /// tool, there is no output name if the second word is a type.
    fn parse(words: &[String]) -> Result<Self, Failure> {
        let [input, rest @ ..] = words else {
            return Err(Failure::Usage("name an input file and a type".into()));
        };
        let input = input.clone();
        let (output, target, threads) = match rest {
            [ty] => (None, ty, None),
            [ty, threads] if ty.parse::<Target>().is_ok() => (None, ty, Some(threads)),
            [output, ty] => (Some(output), ty, None),
            [output, ty, threads] => (Some(output), ty, Some(threads)),
            _ => return Err(Failure::Usage("expected IN [OUT] TYPE [THREADS]".into())),
        };
        let target: Target = target
            .parse()
            .map_err(|fault: recipe::UnknownTarget| Failure::Usage(fault.to_string()))?;
        let output = match output {
            Some(output) => PathBuf::from(output),
            None => Path::new(&input).with_file_name(format!("ggml-model-{target}.gguf")),
        };
        let threads = match threads {
            Some(text) => text
                .parse()
                .map_err(|_| Failure::Usage(format!("`{text}` is no number of threads")))?,
            None => commands::all_cores(),
        };
        Ok(Self { input, output, target, threads })
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let Words { input, output, target, threads } = Words::parse(&args.words)?;
    let opened = Opened::open(&input)?;
    let model = opened.model()?;
    let options = quantize::Options {
        recipe: recipe::Options {
            pure: args.pure,
            leave_output_tensor: args.leave_output_tensor,
            output_tensor_type: args.output_tensor_type,
            token_embedding_type: args.token_embedding_type,
            tensor_types: args.tensor_type.clone(),
            ..recipe::Options::default()
        },
        allow_requantize: args.allow_requantize,
        overrides: args.override_kv.clone(),
    };
    let mut quantization = quantize::plan(&model, target, &options)?;
    if args.reserve > 0 {
        reserve(&mut quantization.job.metadata, args.reserve);
    }
    commands::print_notes(&quantization.notes);
    if args.dry_run {
        quantization.job.header()?;
        let mut out = std::io::stdout().lock();
        if args.json {
            writeln!(out, "{:#}", listing::plan_json(&quantization.job))?;
        } else {
            write!(out, "{}", listing::plan_text(&quantization.job))?;
        }
        return Ok(());
    }
    if opened.names().iter().any(|name| is_same_file(name, &output)) {
        return Err(Failure::Usage(format!(
            "{} is an input: name another output",
            output.display()
        )));
    }
    commands::write(&quantization.job, &output, threads)
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
