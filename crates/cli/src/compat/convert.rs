//! `convert_hf_to_gguf.py` and `convert_lora_to_gguf.py`.

use std::path::Path;

use gguf_kit::open;
use gguf_kit::summary::Summary;
use gguf_store::{Existing, Overwrite};

use super::arguments::{Arguments, parse_args};
use super::flag::{Flag, help, ignored, refused, renamed, translated};
use super::prompt::log;
use super::{ArgumentStyle, Program};
use crate::commands::convert;
use crate::failure::Failure;

pub const CHECKPOINTS: Program = Program {
    name: "convert_hf_to_gguf.py",
    command: "gguf convert",
    positionals: "model",
    style: ArgumentStyle::Converter,
    example: "Llama-3.2-1B --outtype f16 --outfile llama-{ftype}.gguf",
    flags: &[CHECKPOINT_FLAGS],
    run: run_checkpoints,
};

pub const ADAPTERS: Program = Program {
    name: "convert_lora_to_gguf.py",
    command: "gguf convert",
    positionals: "lora_path",
    style: ArgumentStyle::Converter,
    example: "adapter/ --base Llama-3.2-1B --outfile adapter-{ftype}.gguf",
    flags: &[ADAPTER_FLAGS],
    run: run_adapters,
};

const ONE_PASS: &str = "conversion always streams";
const NOT_YET: &str = "not supported by `gguf convert`";

/// Flags that split the output.
const SPLITS: [&str; 2] = ["--split-max-tensors", "--split-max-size"];

const CHECKPOINT_FLAGS: &[Flag] = &[
    help("-h --help"),
    renamed("--vocab-only", 0, "--vocab-only"),
    translated("--outfile", 1, "`--output`; `{ftype}` is replaced by the type"),
    translated("--outtype", 1, "`--outtype`"),
    renamed("--bigendian", 0, "--bigendian"),
    ignored("--use-temp-file", 0, ONE_PASS),
    ignored("--no-lazy", 0, ONE_PASS),
    renamed("--model-name", 1, "--model-name"),
    ignored("--verbose", 0, "`--dry-run` shows every tensor"),
    translated("--split-max-tensors", 1, "`--split-max-tensors`; 0 disables splitting"),
    translated("--split-max-size", 1, "`--split-max-size`; 0 disables splitting"),
    renamed("--dry-run", 0, "--dry-run"),
    renamed("--no-tensor-first-split", 0, "--no-tensor-first-split"),
    renamed("--metadata", 1, "--metadata"),
    translated("--print-supported-models", 0, "`--print-supported-models`"),
    translated("--remote", 0, "the model is `hf:USER/MODEL`, read remotely"),
    renamed("--mmproj", 0, "--mmproj"),
    refused("--mtp", 0, NOT_YET),
    refused("--no-nextn --no-mtp", 0, NOT_YET),
    refused("--dspark", 0, NOT_YET),
    ignored("--mistral-format", 0, "the format is detected if there is no `config.json`"),
    refused("--disable-mistral-community-chat-template", 0, "use `gguf edit --chat-template-file`"),
    refused("--sentence-transformers-dense-modules", 0, NOT_YET),
    refused("--fuse-gate-up-exps", 0, NOT_YET),
    refused("--fp8-as-q8", 0, "use `--tensor-type` of `gguf convert`"),
    refused("--fuse-qkv", 0, NOT_YET),
    renamed("--target-model-dir", 1, "--target-model-dir"),
];

const ADAPTER_FLAGS: &[Flag] = &[
    help("-h --help"),
    translated("--outfile", 1, "`--output`; `{ftype}` is replaced by the type"),
    translated("--outtype", 1, "`--outtype`, f32 by default"),
    renamed("--bigendian", 0, "--bigendian"),
    ignored("--no-lazy", 0, ONE_PASS),
    ignored("--verbose", 0, "`--dry-run` shows every tensor"),
    renamed("--dry-run", 0, "--dry-run"),
    renamed("--base", 1, "--base"),
    refused("--base-model-id", 1, "use --base with the directory of the base model"),
    ignored("--trust-remote-code", 0, "model code is never executed"),
];

fn run_checkpoints(arguments: &Arguments) -> Result<u8, Failure> {
    if arguments.has("--print-supported-models") {
        convert::run(&parse_args(vec!["--print-supported-models".to_owned()])?)?;
        return Ok(0);
    }
    let [model] = arguments.positions(["model"])?;
    let model = if arguments.has("--remote") { format!("hf:{model}") } else { model.to_owned() };
    run(arguments, "hf-to-gguf", &model, "auto")
}

fn run_adapters(arguments: &Arguments) -> Result<u8, Failure> {
    let [adapter] = arguments.positions(["lora_path"])?;
    run(arguments, "lora-to-gguf", adapter, "f32")
}

fn run(arguments: &Arguments, logger: &str, source: &str, default: &str) -> Result<u8, Failure> {
    let outtype = arguments.value("--outtype").unwrap_or(default);
    let mut flags = vec!["--force".to_owned(), format!("--outtype={outtype}")];
    let named = arguments.value("--outfile");
    let written = named.map(|path| fill_type(path, outtype));
    // Without a name, the original writes into the directory of the model.
    let beside = Path::new(source).is_dir().then(|| source.to_owned());
    flags.extend(written.clone().or(beside).map(|path| format!("--output={path}")));
    for flag in SPLITS {
        let limit = arguments.value(flag).filter(|limit| *limit != "0");
        flags.extend(limit.map(|limit| format!("{flag}={limit}")));
    }
    let files =
        convert::run_with_report(&parse_args(arguments.translate(flags, [source]))?, false)?;
    if let [first, others @ ..] = &files[..] {
        let path = match (named, written) {
            (Some(named), Some(written)) if outtype == "auto" && others.is_empty() => {
                rename_by_type(named, written, source)?
            }
            (_, Some(written)) => written,
            (_, None) => first.display().to_string(),
        };
        log("INFO", logger, &format!("Model successfully exported to {path}"));
    }
    Ok(0)
}

/// Fills the type into a name, as Python's `str.format` does.
fn fill_type(name: &str, ty: &str) -> String {
    let (lower, upper) = (ty.to_lowercase(), ty.to_uppercase());
    let places = [("{ftype}", &lower), ("{outtype}", &lower), ("{}", &lower)];
    let places = places.into_iter().chain([("{FTYPE}", &upper), ("{OUTTYPE}", &upper)]);
    places.fold(name.to_owned(), |name, (place, ty)| name.replace(place, ty))
}

/// Renames a file after the type that was chosen for it.
fn rename_by_type(named: &str, written: String, source: &str) -> Result<String, Failure> {
    if fill_type(named, "") == named {
        return Ok(written);
    }
    let summary = Summary::of(open(&written)?.model());
    let path = fill_type(named, summary.file_type.unwrap_or("auto"));
    if path != written {
        Overwrite::new(Existing::Replace).protecting([source]).check(path.as_ref())?;
        std::fs::rename(&written, &path).map_err(|fault| {
            Failure::Environment(format!("cannot rename {written} to {path}: {fault}"))
        })?;
    }
    Ok(path)
}
