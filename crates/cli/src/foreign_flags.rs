//! Flags of other programs: those with a meaning here are translated, the others get a tip.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use gguf::suggest;

use crate::compat::flag::{Flag as Flagged, Handling};
use crate::compat::shared_flags;
use crate::terminal;

/// Commands that run a model.
const RUN: &[&str] = &[
    "generate",
    "chat",
    "embed",
    "logits",
    "perplexity",
    "divergence",
    "quality",
    "sensitivity",
    "imatrix",
    "bench",
    "transcribe",
];
/// Commands whose first argument is the model.
const MODEL_FIRST: &[&str] = &[
    "bench",
    "chat-template",
    "check",
    "detokenize",
    "divergence",
    "embed",
    "imatrix",
    "inspect",
    "logits",
    "perplexity",
    "quality",
    "sensitivity",
    "tokenize",
    "transcribe",
    "view",
];
/// Commands that write text.
const TEXT: &[&str] = &["generate", "chat"];

/// Meaning of a foreign flag.
#[derive(Clone, Copy)]
enum Meaning {
    /// The flag with this name; values stay.
    Flag(&'static str),
    /// The model: the value with this prefix.
    Model(&'static str),
    /// The model, as the first argument.
    Operand,
    /// The output, as the last argument.
    Last,
    /// A flag and its value without effect, said with the reason unless it only concerns the other program.
    Nothing(Option<&'static str>),
    /// The flag with this name, if the value is a number.
    Number(&'static str),
    /// A flag whose value is the default if it is negative.
    Unlimited,
    /// A flag whose value is the default if it is not positive.
    Positive,
}

use Meaning::{Flag, Last, Model, Nothing, Number, Operand, Positive, Unlimited};

const CPU: Option<&str> = Some("models run on the CPU");
const OWN: Option<&str> = None;
const DRAFT_LENGTH: Option<&str> =
    Some("the length of drafts follows measured acceptance and speed");

/// Flags of llama.cpp's programs, the commands that translate them, the number of values, and the meaning.
const TRANSLATIONS: &[(&[&str], &[&str], usize, Meaning)] = &[
    (&["-m", "--model"], MODEL_FIRST, 1, Operand),
    (&["-o", "--output", "--outfile"], &["merge", "split"], 1, Last),
    (&["-hf", "-hfr", "--hf-repo"], TEXT, 1, Model("hf:")),
    (&["-mu", "--model-url"], TEXT, 1, Model("")),
    (&["-ngl", "--n-gpu-layers", "--gpu-layers"], RUN, 1, Nothing(CPU)),
    (
        &["-dev", "--device", "-sm", "--split-mode", "-ts", "--tensor-split", "-mg", "--main-gpu"],
        RUN,
        1,
        Nothing(CPU),
    ),
    (&["-sys", "--system-prompt"], TEXT, 1, Flag("--system")),
    (
        &["-cnv", "--conversation", "-i", "--interactive", "-if", "--interactive-first"],
        &["generate"],
        0,
        Flag("--chat"),
    ),
    (&["-cnv", "--conversation", "-i", "--interactive"], &["chat"], 0, Nothing(OWN)),
    // It always prints JSON.
    (&["--json"], &["embed"], 0, Nothing(OWN)),
    (&["-no-cnv"], &["generate"], 0, Flag("--raw")),
    (
        &["-st", "--single-turn", "--jinja", "--no-warmup", "--simple-io", "--no-display-prompt"],
        TEXT,
        0,
        Nothing(OWN),
    ),
    (
        &["-e", "--escape", "--mlock", "--no-mmap", "-nkvo", "--no-kv-offload"],
        TEXT,
        0,
        Nothing(OWN),
    ),
    (
        &["-tb", "--threads-batch", "-ub", "--ubatch-size", "--numa", "-ctv", "--cache-type-v"],
        TEXT,
        1,
        Nothing(OWN),
    ),
    (&["-ctk", "--cache-type-k"], TEXT, 1, Flag("--cache-type")),
    (&["-fa", "--flash-attn"], TEXT, 1, Nothing(OWN)),
    (&["-md"], TEXT, 1, Flag("--draft")),
    (&["--lookup"], TEXT, 0, Nothing(Some("prompt lookup is on unless --no-lookup is given"))),
    (&["--draft"], TEXT, 1, Number("--draft-max")),
    (
        &[
            "--draft-min",
            "--draft-n-min",
            "--spec-draft-n-min",
            "--draft-p-min",
            "--spec-draft-p-min",
            "--draft-p-split",
            "--spec-draft-p-split",
        ],
        TEXT,
        1,
        Nothing(DRAFT_LENGTH),
    ),
    (
        &["-ngld", "--n-gpu-layers-draft", "--gpu-layers-draft", "-devd", "--device-draft"],
        TEXT,
        1,
        Nothing(CPU),
    ),
    (
        &["-cd", "--ctx-size-draft", "-td", "--threads-draft", "-tbd", "--threads-batch-draft"],
        TEXT,
        1,
        Nothing(OWN),
    ),
    (&["-n", "--predict", "--n-predict", "-s", "--seed"], TEXT, 1, Unlimited),
    (&["-t", "--threads"], RUN, 1, Positive),
    (&["-t", "--threads"], &["quantize", "convert"], 1, Positive),
];

/// Flags whose values are texts, which may look like flags.
const WITH_TEXT: &[&str] =
    &["-p", "--prompt", "-f", "--file", "--system", "-r", "--stop", "--reverse-prompt"];

/// Translates flags of llama.cpp's programs.
///
/// # Errors
/// If a word begins as `-h` does and is another flag: clap would print the help.
pub fn translate(
    words: Vec<OsString>,
    command: &clap::Command,
) -> Result<Vec<OsString>, clap::Error> {
    let name = words.get(1).and_then(|word| word.to_str()).unwrap_or_default().to_owned();
    let Some(own) = command.find_subcommand(&name) else { return Ok(words) };
    let mut translated = Vec::with_capacity(words.len());
    let mut last = None;
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        if text == "--" {
            translated.push(word);
            break;
        }
        if WITH_TEXT.contains(&text) {
            translated.push(word);
            translated.extend(words.next());
            continue;
        }
        let row = TRANSLATIONS
            .iter()
            .find(|(flags, commands, ..)| flags.contains(&text) && commands.contains(&&*name));
        let row = row.map(|(.., values, meaning)| (*values, *meaning));
        let Some((values, meaning)) = row.or_else(|| without_effect(own, &name, text)) else {
            // clap would read a cluster of short flags.
            let is_word = text.len() > 2 && !text.starts_with("--");
            if is_word && (text.starts_with("-h") || tip_of(text, &name).is_some()) {
                return Err(unknown(text, own));
            }
            translated.push(word);
            continue;
        };
        let value = (values > 0).then(|| words.next()).flatten();
        match (meaning, value) {
            (Flag(name), value) => {
                translated.push(name.into());
                translated.extend(value);
            }
            (Model(prefix), Some(value)) => {
                let value = value.to_string_lossy();
                let prefix = if value.starts_with(prefix) { "" } else { prefix };
                translated.extend(["-m".into(), format!("{prefix}{value}").into()]);
            }
            // The model is the first argument.
            (Operand, Some(value)) => translated.insert(2, value),
            (Last, Some(value)) => last = Some(value),
            (Nothing(None), _) => {}
            (Nothing(Some(reason)), _) => {
                terminal::note(format!("`{text}` has no effect: {reason}"))
            }
            (Number(name), Some(value)) => {
                let is_number = value.to_string_lossy().parse::<usize>().is_ok();
                translated.push(if is_number { name.into() } else { word });
                translated.push(value);
            }
            (Unlimited, Some(value)) if value.to_string_lossy().starts_with('-') => {}
            (Positive, Some(value)) if value == "0" || value.to_string_lossy().starts_with('-') => {
            }
            (Unlimited | Positive, Some(value)) => translated.extend([word, value]),
            (Model(_) | Operand | Last | Number(_) | Unlimited | Positive, None) => {
                translated.push(word);
            }
        }
    }
    translated.extend(words);
    translated.extend(last);
    Ok(translated)
}

/// Returns the number of values of a flag about devices or logs that a command does not have, and why it has no effect.
fn without_effect(own: &clap::Command, name: &str, flag: &str) -> Option<(usize, Meaning)> {
    if !RUN.contains(&name) || has_flag(own, flag) {
        return None;
    }
    let rows = shared_flags::MACHINE.iter().chain(shared_flags::LOG);
    rows.filter(|row| row.names().any(|name| name == flag)).find_map(|row| match row.handling {
        Handling::Ignored(reason) => Some((row.values, Nothing(Some(reason)))),
        _ => None,
    })
}

/// Whether a command has a flag, under any of its names.
fn has_flag(command: &clap::Command, flag: &str) -> bool {
    let is_long = |name: &str| flag.strip_prefix("--") == Some(name);
    let is_short = |name: char| flag.strip_prefix('-') == Some(name.to_string().as_str());
    command.get_arguments().any(|arg| {
        arg.get_long_and_visible_aliases().is_some_and(|names| names.into_iter().any(is_long))
            || arg.get_all_aliases().is_some_and(|names| names.into_iter().any(is_long))
            || arg
                .get_short_and_visible_aliases()
                .is_some_and(|names| names.into_iter().any(is_short))
    })
}

/// Returns the error for a flag that a command does not have.
fn unknown(flag: &str, own: &clap::Command) -> clap::Error {
    let mut error = clap::Error::new(ErrorKind::UnknownArgument).with_cmd(own);
    error.insert(ContextKind::InvalidArg, ContextValue::String(flag.to_owned()));
    tip(&mut error, own.get_name());
    with_usage(error, own)
}

/// Unknown flags, the commands for which a tip holds (empty for all), and the tip.
const TIPS: &[(&[&str], &[&str], &str)] = &[
    (&["-m", "--model"], &[], "the model is the first argument, without a flag"),
    (
        &["-hff", "--hf-file"],
        &[],
        "a file of a repository is named `hf:org/repo:TYPE` or by its URL",
    ),
    (
        &[
            "--rope-scaling",
            "--rope-scale",
            "--rope-freq-base",
            "--rope-freq-scale",
            "--override-kv",
        ],
        TEXT,
        "edit a copy: `gguf edit MODEL --set KEY=VALUE -o COPY`",
    ),
    (&["--lora-scaled"], RUN, "the scale follows the file, as in `--lora adapter.gguf:0.5`"),
    (&["-i", "--input", "--infile"], &[], "the input is the first argument, without a flag"),
    (
        &["--type", "--quant", "--output-type", "--quantize"],
        &["convert"],
        "the type of the output is --outtype, as in `--outtype q4_k_m`",
    ),
    (
        &["--type", "--quant", "--output-type"],
        &["quantize"],
        "the type is an argument without a flag, as in `Q4_K_M`",
    ),
    (
        &["--grammar", "--grammar-file", "-j", "--json-schema", "--json-schema-file"],
        &[],
        "output cannot be constrained by a grammar or schema; llama.cpp's llama-cli can",
    ),
    (
        &["--image", "--audio", "--mmproj"],
        TEXT,
        "images and audio are not read; llama.cpp's llama-mtmd-cli does",
    ),
    (&["--markdown"], &["quality", "divergence"], "-o writes a page; --json prints the figures"),
    (&["--host", "--port"], TEXT, "there is no server; llama.cpp's llama-server is one"),
];

/// Tip for samplers that do not exist.
const SAMPLERS: &str = "there is no such sampler; there are --temp, --top-k, --top-p, --min-p, --typical-p and penalties";

const WHOLE: &str = "expected a whole number";

/// Errors of the standard library about numbers, and what to say instead.
const NUMBERS: &[(&str, &str)] = &[
    ("number would be zero for non-zero type", "expected a number of at least 1"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
    ("invalid digit found in string", WHOLE),
    ("cannot parse integer from empty string", WHOLE),
    ("invalid float literal", "expected a number"),
    ("cannot parse float from empty string", "expected a number"),
    ("provided string was not `true` or `false`", "expected true or false"),
];

/// Explains an error of the argument parser: its tips, the usage line, and the standard library's words about numbers.
pub fn explain(mut error: clap::Error, words: &[OsString], command: &clap::Command) -> clap::Error {
    if let Some(explained) = value(&error) {
        return clap::Error::raw(error.kind(), explained).with_cmd(command);
    }
    let own = subcommand(words, command);
    if error.kind() == ErrorKind::UnknownArgument {
        // Of a word such as `-md`, clap names the first letter.
        if let Some(ContextValue::String(letter)) = error.get(ContextKind::InvalidArg)
            && letter.len() == 2
            && let Some(word) = words.iter().filter_map(|word| word.to_str()).find(|word| {
                word.len() > 2 && word.starts_with(letter.as_str()) && !word.starts_with("--")
            })
        {
            error.insert(ContextKind::InvalidArg, ContextValue::String(word.to_owned()));
        }
        tip(&mut error, own.get_name());
    }
    if error.kind() == ErrorKind::InvalidSubcommand {
        crate::guesses::explain(&mut error);
    }
    with_usage(error, own)
}

/// Returns the innermost command that the words name.
fn subcommand<'c>(words: &[OsString], command: &'c clap::Command) -> &'c clap::Command {
    let mut found = command;
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        match found.find_subcommand(word) {
            Some(below) => found = below,
            None if word.starts_with('-') => {}
            None => break,
        }
    }
    found
}

/// Replaces clap's tip about an unknown flag by that of [`TIPS`], or by flags with nearly the same name.
fn tip(error: &mut clap::Error, command: &str) {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg).cloned() else {
        return;
    };
    let is_sampler = || {
        let mut names = shared_flags::SAMPLING.iter().flat_map(Flagged::names);
        TEXT.contains(&command) && names.any(|name| name == flag)
    };
    let tip = tip_of(&flag, command).or_else(|| is_sampler().then_some(SAMPLERS));
    // A flag is hardly ever meant as a value.
    error.remove(ContextKind::Suggested);
    let suggested = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(flag)) => Some(flag.clone()),
        _ => None,
    };
    if tip.is_some() || !suggested.is_some_and(|suggested| is_near(&flag, &suggested)) {
        error.remove(ContextKind::SuggestedArg);
    }
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// Returns the tip of [`TIPS`] about a flag of a command.
fn tip_of(flag: &str, command: &str) -> Option<&'static str> {
    let goes = |commands: &[&str]| commands.is_empty() || commands.contains(&command);
    let row = TIPS.iter().find(|(flags, commands, _)| goes(commands) && flags.contains(&flag));
    row.map(|(_, _, tip)| *tip)
}

/// Whether a flag is a misspelling of another, or a part of its name.
fn is_near(typed: &str, flag: &str) -> bool {
    let (typed, flag) = (typed.trim_start_matches('-'), flag.trim_start_matches('-'));
    let is_part = typed.len() >= 4 && flag.split('-').count() > 1 && flag.contains(typed);
    is_part || suggest::distance(typed, flag, typed.len().div_ceil(4)).is_some()
}

/// Gives an error the usage line of the command instead of one made of the words that were typed.
fn with_usage(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    if error.get(ContextKind::Usage).is_some() || error.kind() == ErrorKind::UnknownArgument {
        let usage = command.clone().render_usage();
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    }
    error
}

/// Returns a message about a value that its parser refuses in words of the standard library.
fn value(error: &clap::Error) -> Option<String> {
    let cause = std::error::Error::source(error)?.to_string();
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let (argument, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    let is_negative = value.strip_prefix('-').is_some_and(|rest| rest.parse::<f64>().is_ok());
    let instead = match NUMBERS.iter().find(|(words, _)| *words == cause) {
        Some((_, instead)) if is_negative && *instead == WHOLE => {
            "expected a whole number, not a negative one"
        }
        Some((_, instead)) => instead,
        None => return None,
    };
    Some(format!("invalid value '{value}' for '{argument}': {instead}\n"))
}
