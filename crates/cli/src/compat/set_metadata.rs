//! `gguf-set-metadata`.

use gguf::Value;
use gguf_kit::open;

use super::arguments::{Arguments, parse_args};
use super::dump::python;
use super::flag::{Flag, help, ignored, translated};
use super::prompt::{confirm, log};
use super::{ArgumentStyle, Program};
use crate::commands::edit;
use crate::failure::Failure;

pub const PROGRAM: Program = Program {
    name: "gguf-set-metadata",
    command: "gguf edit --set",
    positionals: "model key value",
    style: ArgumentStyle::Package,
    example: "--force model.gguf tokenizer.ggml.bos_token_id 2",
    flags: &[FLAGS],
    run,
};

const FLAGS: &[Flag] = &[
    help("-h --help"),
    translated("--dry-run", 0, "shows the change without writing anything"),
    translated("--force", 0, "does not ask"),
    ignored("--verbose", 0, "there is no further output"),
];

const LOGGER: &str = "gguf-set-metadata";

fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let [model, key, value] = arguments.positions(["model", "key", "value"])?;
    let info = |what: &str| log("INFO", LOGGER, what);
    info(&format!("* Loading: {model}"));
    let opened = open(model)?;
    let Some(old) = opened.model().metadata().get(key).cloned() else {
        return Err(Failure::Input(format!(
            "{model}: key `{key}` does not exist; use `gguf edit --set` for new keys"
        )));
    };
    drop(opened);
    if matches!(old, Value::String(_) | Value::Array(_)) {
        return Err(Failure::Input(format!(
            "{model}: key `{key}` has type {}; gguf-set-metadata supports numbers and booleans only: use `gguf edit {model} --set`",
            old.value_type()
        )));
    }
    let Some(new) = parse(&old, value) else {
        let ty = old.value_type();
        return Err(Failure::Input(format!(
            "{model}: `{value}` is not a valid {ty} for key `{key}`"
        )));
    };
    let (from, to) = (python::value(&old), python::value(&new));
    info(&format!("* Preparing to change field '{key}' from {from} to {to}"));
    let dry_run = arguments.has("--dry-run");
    if old == new {
        info(&format!("- Key '{key}' already set to requested value {from}"));
        return Ok(0);
    }
    if !dry_run && !arguments.has("--force") {
        let what =
            "* Changing fields in a GGUF file can make it unusable. Proceed at your own risk.";
        if !confirm(LOGGER, &[what.to_owned()])? {
            return Ok(0);
        }
    }
    let value = match new {
        Value::Bool(flag) => flag.to_string(),
        _ => value.to_owned(),
    };
    let flags = [format!("--set={key}={value}")].into_iter();
    let flags = flags.chain(dry_run.then(|| "--dry-run".to_owned()));
    edit::run(&parse_args(arguments.translate(flags, [model]))?)?;
    if !dry_run {
        info("* Field changed. Successful completion.");
    }
    Ok(0)
}

/// Parses a value of the type of the old value.
fn parse(old: &Value, text: &str) -> Option<Value> {
    Some(match old {
        Value::U8(_) => Value::U8(text.parse().ok()?),
        Value::I8(_) => Value::I8(text.parse().ok()?),
        Value::U16(_) => Value::U16(text.parse().ok()?),
        Value::I16(_) => Value::I16(text.parse().ok()?),
        Value::U32(_) => Value::U32(text.parse().ok()?),
        Value::I32(_) => Value::I32(text.parse().ok()?),
        Value::U64(_) => Value::U64(text.parse().ok()?),
        Value::I64(_) => Value::I64(text.parse().ok()?),
        Value::F32(_) => Value::F32(text.parse().ok()?),
        Value::F64(_) => Value::F64(text.parse().ok()?),
        // The original treats every word as true, even `False`.
        Value::Bool(_) => Value::Bool(match text {
            "True" | "true" | "1" => true,
            "False" | "false" | "0" => false,
            _ => return None,
        }),
        Value::String(_) | Value::Array(_) => return None,
    })
}
