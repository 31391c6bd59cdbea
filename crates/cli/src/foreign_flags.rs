//! Flags of other programs: those with a meaning here are translated, the others get a tip.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

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
/// Commands that write text.
const TEXT: &[&str] = &["generate", "chat"];

/// Commands whose first argument is the model.
const MODEL_FIRST: &[&str] = &[
    "embed",
    "logits",
    "perplexity",
    "divergence",
    "quality",
    "sensitivity",
    "imatrix",
    "bench",
    "transcribe",
    "tokenize",
    "detokenize",
    "chat-template",
    "inspect",
    "check",
    "view",
];

/// Meaning of a foreign flag.
#[derive(Clone, Copy)]
enum Meaning {
    /// The flag with this name; values stay.
    Flag(&'static str),
    /// The model: the value with this prefix.
    Model(&'static str),
    /// The value stands without a flag.
    Positional,
    /// A flag and its value without effect, said with the reason unless it only concerns the other program.
    Nothing(Option<&'static str>),
    /// A flag whose value is the default if it is negative.
    Unlimited,
    /// A flag whose value is the default if it is not positive.
    Positive,
}

use Meaning::{Flag, Model, Nothing, Positional, Positive, Unlimited};

const CPU: Option<&str> = Some("models run on the CPU");
const OWN: Option<&str> = None;

/// Flags of llama.cpp's programs, the commands that translate them, the number of values, and the meaning.
const TRANSLATIONS: &[(&[&str], &[&str], usize, Meaning)] = &[
    (&["-hf", "-hfr", "--hf-repo"], TEXT, 1, Model("hf:")),
    (&["-mu", "--model-url"], TEXT, 1, Model("")),
    (&["-m", "--model"], MODEL_FIRST, 1, Positional),
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
    (&["-n", "--predict", "--n-predict", "-s", "--seed"], TEXT, 1, Unlimited),
    (&["-t", "--threads"], RUN, 1, Positive),
    (&["-t", "--threads"], &["quantize"], 1, Positive),
];

/// Flags whose values are texts, which may look like flags.
const WITH_TEXT: &[&str] =
    &["-p", "--prompt", "-f", "--file", "--system", "-r", "--stop", "--reverse-prompt"];

/// Translates flags of llama.cpp's programs.
pub fn translate(words: Vec<OsString>) -> Vec<OsString> {
    let command = words.get(1).and_then(|word| word.to_str()).unwrap_or_default().to_owned();
    let mut translated = Vec::with_capacity(words.len());
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
            .find(|(flags, commands, ..)| flags.contains(&text) && commands.contains(&&*command));
        let Some((_, _, values, meaning)) = row else {
            translated.push(word);
            continue;
        };
        let value = (*values > 0).then(|| words.next()).flatten();
        match (meaning, value) {
            (Flag(name), value) => {
                translated.push((*name).into());
                translated.extend(value);
            }
            (Model(prefix), Some(value)) => {
                let value = value.to_string_lossy();
                let prefix = if value.starts_with(prefix) { "" } else { prefix };
                translated.extend(["-m".into(), format!("{prefix}{value}").into()]);
            }
            (Positional, value) => translated.extend(value),
            (Nothing(None), _) => {}
            (Nothing(Some(reason)), _) => {
                terminal::note(format!("`{text}` has no effect: {reason}"))
            }
            (Unlimited, Some(value)) if value.to_string_lossy().starts_with('-') => {}
            (Positive, Some(value)) if value == "0" || value.to_string_lossy().starts_with('-') => {
            }
            (Unlimited | Positive, Some(value)) => translated.extend([word, value]),
            (Model(_) | Unlimited | Positive, None) => translated.push(word),
        }
    }
    translated.extend(words);
    translated
}

/// Unknown flags, the commands for which a tip holds (empty for all), and the tip.
const TIPS: &[(&[&str], &[&str], &str)] = &[
    (&["-m", "--model"], &[], "the model is a positional argument, as in `gguf bench model.gguf`"),
    (
        &["-o", "--output", "--outfile"],
        &["quantize"],
        "the output is the second argument, as in `gguf quantize in.gguf out.gguf Q4_K_M`",
    ),
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
    (
        &["--mirostat", "--mirostat-lr", "--mirostat-ent", "--dynatemp-range"],
        TEXT,
        "use --temp, --top-p and --min-p",
    ),
    (&["--markdown"], &["quality", "divergence"], "-o writes a page; --json prints the figures"),
    (&["--host", "--port"], TEXT, "there is no server; llama.cpp's llama-server is one"),
];

/// Errors of the standard library about numbers, and what to say instead.
const NUMBERS: &[(&str, &str)] = &[
    ("number would be zero for non-zero type", "expected a number of at least 1"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
    ("invalid digit found in string", "expected a whole number"),
    ("cannot parse integer from empty string", "expected a whole number"),
    ("invalid float literal", "expected a number"),
    ("cannot parse float from empty string", "expected a number"),
];

/// Explains an error of the argument parser: replaces its tips by those of [`TIPS`], and the standard library's words about
/// numbers.
pub fn explain(mut error: clap::Error, words: &[OsString], command: &clap::Command) -> clap::Error {
    let typed = |known: &str| words.iter().any(|word| word == known);
    if let Some(explained) = number(&error) {
        return clap::Error::raw(error.kind(), explained).with_cmd(command);
    }
    let at_fault = |flag: &&str| match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) => flag == unknown,
        _ => false,
    };
    let tip = TIPS.iter().find(|(flags, commands, _)| {
        let goes = commands.is_empty() || commands.iter().any(|name| typed(name));
        goes && flags.iter().any(at_fault)
    });
    if let Some((_, _, tip)) = tip {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*tip).into()]));
    } else if error.kind() == ErrorKind::UnknownArgument {
        // A flag is hardly ever meant as a value.
        error.remove(ContextKind::Suggested);
    }
    if error.kind() == ErrorKind::InvalidSubcommand {
        crate::guesses::explain(&mut error);
    }
    error
}

/// Returns a message about a value that is no number.
fn number(error: &clap::Error) -> Option<String> {
    let cause = std::error::Error::source(error)?.to_string();
    let (_, instead) = NUMBERS.iter().find(|(words, _)| *words == cause)?;
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let (argument, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    Some(format!("invalid value '{value}' for '{argument}': {instead}\n"))
}
