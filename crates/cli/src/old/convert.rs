//! `convert_hf_to_gguf.py` and `convert_lora_to_gguf.py`.

use gguf_kit::open;
use gguf_kit::summary::Summary;
use gguf_store::{Existing, Overwrite};

use super::confirm::log;
use super::flag::{Flag, help, nothing, ours, read, refused};
use super::given::{Given, args_of};
use super::{Family, Program};
use crate::commands::convert;
use crate::failure::Failure;

pub const CHECKPOINTS: Program = Program {
    name: "convert_hf_to_gguf.py",
    ours: "gguf convert",
    words: "model",
    family: Family::Converter,
    example: "Llama-3.2-1B --outtype f16 --outfile llama-{ftype}.gguf",
    flags: &[CHECKPOINT_FLAGS],
    run: run_checkpoints,
};

pub const ADAPTERS: Program = Program {
    name: "convert_lora_to_gguf.py",
    ours: "gguf convert",
    words: "lora_path",
    family: Family::Converter,
    example: "adapter/ --base Llama-3.2-1B --outfile adapter-{ftype}.gguf",
    flags: &[ADAPTER_FLAGS],
    run: run_adapters,
};

const ONE_PASS: &str = "rows are read, changed and written as they come";
const NOT_YET: &str = "`gguf convert` does not do that";

/// Flags by which there are several files.
const SPLITS: [&str; 2] = ["--split-max-tensors", "--split-max-size"];

const CHECKPOINT_FLAGS: &[Flag] = &[
    help("-h --help"),
    ours("--vocab-only", 0, "--vocab-only"),
    read("--outfile", 1, "`--output`; `{ftype}` is replaced by the type"),
    read("--outtype", 1, "`--outtype`"),
    ours("--bigendian", 0, "--bigendian"),
    nothing("--use-temp-file", 0, ONE_PASS),
    nothing("--no-lazy", 0, ONE_PASS),
    ours("--model-name", 1, "--model-name"),
    nothing("--verbose", 0, "`--dry-run` shows every tensor"),
    read("--split-max-tensors", 1, "`--split-max-tensors`; 0 is one file"),
    read("--split-max-size", 1, "`--split-max-size`; 0 is one file"),
    ours("--dry-run", 0, "--dry-run"),
    ours("--no-tensor-first-split", 0, "--no-tensor-first-split"),
    ours("--metadata", 1, "--metadata"),
    read("--print-supported-models", 0, "`--print-supported-models`"),
    read("--remote", 0, "the model is `hf:USER/MODEL`, read where it is"),
    ours("--mmproj", 0, "--mmproj"),
    refused("--mtp", 0, NOT_YET),
    refused("--no-nextn --no-mtp", 0, NOT_YET),
    refused("--dspark", 0, NOT_YET),
    nothing(
        "--mistral-format",
        0,
        "that form is known by its files, where no `config.json` is beside them",
    ),
    refused(
        "--disable-mistral-community-chat-template",
        0,
        "`gguf edit --chat-template-file` sets one",
    ),
    refused("--sentence-transformers-dense-modules", 0, NOT_YET),
    refused("--fuse-gate-up-exps", 0, NOT_YET),
    refused("--fp8-as-q8", 0, "`--tensor-type` of `gguf convert` gives tensors their types"),
    refused("--fuse-qkv", 0, NOT_YET),
    ours("--target-model-dir", 1, "--target-model-dir"),
];

const ADAPTER_FLAGS: &[Flag] = &[
    help("-h --help"),
    read("--outfile", 1, "`--output`; `{ftype}` is replaced by the type"),
    read("--outtype", 1, "`--outtype`, which is f32 if there is none"),
    ours("--bigendian", 0, "--bigendian"),
    nothing("--no-lazy", 0, ONE_PASS),
    nothing("--verbose", 0, "`--dry-run` shows every tensor"),
    ours("--dry-run", 0, "--dry-run"),
    ours("--base", 1, "--base"),
    refused("--base-model-id", 1, "give the directory of the base model with --base"),
    nothing("--trust-remote-code", 0, "no code of models is run"),
];

fn run_checkpoints(given: &Given) -> Result<u8, Failure> {
    if given.has("--print-supported-models") {
        convert::run(&args_of(vec!["--print-supported-models".to_owned()])?)?;
        return Ok(0);
    }
    let [model] = given.positions(["model"])?;
    let model = if given.has("--remote") { format!("hf:{model}") } else { model.to_owned() };
    run(given, "hf-to-gguf", &model, "auto")
}

fn run_adapters(given: &Given) -> Result<u8, Failure> {
    let [adapter] = given.positions(["lora_path"])?;
    run(given, "lora-to-gguf", adapter, "f32")
}

fn run(given: &Given, logger: &str, source: &str, usual: &str) -> Result<u8, Failure> {
    let outtype = given.value("--outtype").unwrap_or(usual);
    let mut flags = vec!["--force".to_owned(), format!("--outtype={outtype}")];
    let named = given.value("--outfile");
    let written = named.map(|path| filled(path, outtype));
    flags.extend(written.as_ref().map(|path| format!("--output={path}")));
    for flag in SPLITS {
        let most = given.value(flag).filter(|most| *most != "0");
        flags.extend(most.map(|most| format!("{flag}={most}")));
    }
    convert::run(&args_of(given.ours(flags, [source]))?)?;
    let (Some(named), Some(written)) = (named, written) else { return Ok(0) };
    if !given.has("--dry-run") {
        let whole = !SPLITS.iter().any(|flag| given.has(flag));
        let path =
            if outtype == "auto" && whole { by_type(named, written, source)? } else { written };
        log("INFO", logger, &format!("Model successfully exported to {path}"));
    }
    Ok(0)
}

/// The name with the type in its place, as Python fills such names.
fn filled(name: &str, ty: &str) -> String {
    let (small, large) = (ty.to_lowercase(), ty.to_uppercase());
    let places = [("{ftype}", &small), ("{outtype}", &small), ("{}", &small)];
    let places = places.into_iter().chain([("{FTYPE}", &large), ("{OUTTYPE}", &large)]);
    places.fold(name.to_owned(), |name, (place, ty)| name.replace(place, ty))
}

/// Gives a file the name with the type that was chosen for it.
fn by_type(named: &str, written: String, source: &str) -> Result<String, Failure> {
    if filled(named, "") == named {
        return Ok(written);
    }
    let summary = Summary::of(open(&written)?.model());
    let path = filled(named, summary.file_type.unwrap_or("auto"));
    if path != written {
        Overwrite::new(Existing::Replace).protecting([source]).check(path.as_ref())?;
        std::fs::rename(&written, &path).map_err(|fault| {
            Failure::Environment(format!("cannot rename {written} to {path}: {fault}"))
        })?;
    }
    Ok(path)
}
