//! `gguf-new-metadata`.

use std::path::Path;

use gguf::Metadata;
use gguf_kit::{open, read_text};
use serde_json::Value as Json;

use super::arguments::{Arguments, parse_args};
use super::flag::{Flag, help, ignored, translated};
use super::prompt::{confirm, log};
use super::{ArgumentStyle, Program};
use crate::commands::edit;
use crate::failure::Failure;

pub const PROGRAM: Program = Program {
    name: "gguf-new-metadata",
    command: "gguf edit -o",
    positionals: "input output",
    style: ArgumentStyle::Package,
    example: "--general-name \"My model\" --remove-metadata general.url model.gguf new.gguf",
    flags: &[FLAGS],
    run,
};

const FLAGS: &[Flag] = &[
    help("-h --help"),
    translated("--general-name", 1, "`--set general.name=`"),
    translated("--general-description", 1, "`--set general.description=`"),
    translated(
        "--chat-template",
        1,
        "`--set tokenizer.chat_template=`, or a JSON list of templates",
    ),
    translated("--chat-template-config", 1, "the template in that tokenizer_config.json"),
    translated("--chat-template-file", 1, "the contents of that file, as `--chat-template-file`"),
    translated("--pre-tokenizer", 1, "`--set tokenizer.ggml.pre=`"),
    translated("--remove-metadata", 1, "`--remove`; missing keys are skipped"),
    translated("--special-token", 2, "`--special-token`, by the names of the original"),
    translated("--special-token-by-id", 2, "`--special-token-by-id`, by the names of the original"),
    translated("--force", 0, "does not ask, and overwrites the output"),
    ignored("--verbose", 0, "there is no further output"),
];

const LOGGER: &str = "gguf-new-metadata";
const TEMPLATE: &str = "tokenizer.chat_template";

/// Names of special tokens in the original; the key appends `_token_id`.
const ROLES: [&str; 17] = [
    "bos",
    "eos",
    "eot",
    "eom",
    "unknown",
    "seperator",
    "padding",
    "mask",
    "fim_pre",
    "fim_suf",
    "fim_mid",
    "fim_pad",
    "fim_rep",
    "fim_sep",
    "prefix",
    "suffix",
    "middle",
];

fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let [input, output] = arguments.positions(["input", "output"])?;
    let force = arguments.has("--force");
    let removed: Vec<_> =
        arguments.all("--remove-metadata").map(|values| values[0].as_str()).collect();
    if !removed.is_empty() && !force {
        let warnings = [
            "* Most metadata is required for a fully functional GGUF file,",
            "* removing crucial metadata may result in a corrupt output file!",
        ];
        if !confirm(LOGGER, &warnings.map(str::to_owned))? {
            return Ok(0);
        }
    }
    log("INFO", LOGGER, &format!("* Loading: {input}"));
    let opened = open(input)?;
    let metadata = opened.model().metadata().clone();
    drop(opened);
    let mut flags: Vec<String> = removed
        .iter()
        .filter(|key| metadata.get(key).is_some())
        .map(|key| format!("--remove={key}"))
        .collect();
    // The original writes templates before other new keys.
    flags.extend(templates(arguments, &metadata, &removed)?);
    for (flag, key) in [
        ("--general-name", "general.name"),
        ("--general-description", "general.description"),
        ("--pre-tokenizer", "tokenizer.ggml.pre"),
    ] {
        flags.extend(arguments.value(flag).map(|value| format!("--set={key}:str={value}")));
    }
    flags.extend(special_tokens(arguments, &metadata)?);
    if Path::new(output).exists() && !force {
        let what = format!("* The \"{output}\" GGUF file already exists, it will be overwritten!");
        if !confirm(LOGGER, &[what])? {
            return Ok(0);
        }
    }
    log("INFO", LOGGER, &format!("* Writing: {output}"));
    flags.extend([format!("--output={output}"), "--force".to_owned()]);
    edit::run(&parse_args(arguments.translate(flags, [input]))?)?;
    Ok(0)
}

/// Returns flags that replace all old templates by the new ones, if any.
fn templates(
    arguments: &Arguments,
    metadata: &Metadata,
    removed: &[&str],
) -> Result<Vec<String>, Failure> {
    let mut new = arguments.value("--chat-template").map(|text| match text.starts_with('[') {
        true => serde_json::from_str(text).map_err(|fault| {
            Failure::Usage(format!(
                "--chat-template is not valid JSON: {}",
                gguf_kit::json::fault(&fault)
            ))
        }),
        false => Ok(Json::from(text)),
    });
    if let Some(path) = arguments.value("--chat-template-config") {
        let config: Json = serde_json::from_str(&read_text(path.as_ref())?).map_err(|fault| {
            Failure::Input(format!("{path} is not valid JSON: {}", gguf_kit::json::fault(&fault)))
        })?;
        let template = config.get("chat_template").filter(|template| !template.is_null());
        new = template.cloned().map(Ok).or(new);
    }
    if let Some(path) = arguments.value("--chat-template-file") {
        new = Some(Ok(Json::from(read_text(path.as_ref())?)));
    }
    let Some(new) = new.transpose()? else { return Ok(Vec::new()) };
    let old = metadata.iter().map(|(key, _)| key);
    let old = old.filter(|key| key.starts_with(TEMPLATE) && !removed.contains(key));
    let mut flags: Vec<_> = old.map(|key| format!("--remove={key}")).collect();
    let list = match new {
        Json::Array(list) => list,
        text => vec![serde_json::json!({ "name": "default", "template": text })],
    };
    let (mut names, mut default) = (Vec::new(), None);
    for one in &list {
        let text = |key: &str| one.get(key).and_then(Json::as_str);
        let (Some(name), Some(template)) = (text("name"), text("template")) else {
            let what = "expected a list of objects with `name` and `template`";
            return Err(Failure::Usage(what.to_owned()));
        };
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        if name == "default" {
            default = Some(format!("--set={TEMPLATE}:str={template}"));
        } else {
            flags.push(format!("--set={TEMPLATE}.{name}:str={template}"));
            names.push(name);
        }
    }
    if !names.is_empty() {
        flags.push(format!("--set={TEMPLATE}s:str[]={}", Json::from(names)));
    }
    flags.extend(default);
    Ok(flags)
}

/// Returns flags that set special tokens, whose names differ from those of `gguf edit`.
fn special_tokens(arguments: &Arguments, metadata: &Metadata) -> Result<Vec<String>, Failure> {
    let texts = || metadata.array("tokenizer.ggml.tokens").and_then(|tokens| tokens.strings());
    let count = texts().map_or(0, Iterator::count);
    let known = |name: &str| {
        let known = ROLES.contains(&name);
        if !known {
            let what = format!("Unknown special token \"{name}\", ignoring...");
            log("WARNING", LOGGER, &what);
        }
        known
    };
    let mut flags = Vec::new();
    let mut set = |name: &str, id: usize| {
        flags.push(format!("--set=tokenizer.ggml.{name}_token_id:u32={id}"));
    };
    for values in arguments.all("--special-token").filter(|values| known(&values[0])) {
        let (name, text) = (&values[0], &values[1]);
        let mut ids = texts().into_iter().flatten().enumerate();
        let mut ids = ids.by_ref().filter(|(_, token)| *token == text.as_bytes()).map(|(id, _)| id);
        let Some(id) = ids.next() else {
            return Err(Failure::Input(format!(
                "--special-token: token `{text}` is not in the vocabulary"
            )));
        };
        if ids.next().is_some() {
            let what = format!(
                "Multiple \"{text}\" tokens found, choosing ID {id}, use \
                                --special-token-by-id if you want another"
            );
            log("WARNING", LOGGER, &what);
        }
        set(name, id);
    }
    for values in arguments.all("--special-token-by-id").filter(|values| known(&values[0])) {
        let id = values[1].parse::<usize>().ok().filter(|id| *id < count);
        let Some(id) = id else {
            return Err(Failure::Input(format!(
                "--special-token-by-id: {} is not a token id; the vocabulary has {count} tokens",
                values[1]
            )));
        };
        set(&values[0], id);
    }
    Ok(flags)
}
