//! `gguf edit`: changes metadata and tensors.

mod graft;

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf::Value;
use gguf_kit::edit::{
    Changes, KeyChange, Rewritten, TensorChange, Token, in_place, preview, preview_tensors,
    rewrite, validate,
};
use gguf_kit::key_value::KeyValue;
use gguf_kit::open;
use gguf_remote::Location;
use gguf_store::Model;
use gguf_store::edit::{EditOutcome, Recovery, recover};
use gguf_tokenizer::template::Renderer;
use regex::Regex;
use serde_json::json;

use crate::commands::render_template;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::{commands, document, listing, terminal};

/// Edit the metadata and tensors of a GGUF.
///
/// Metadata is changed in place if the new header fits. Otherwise the file is rewritten, with padding for the
/// next edit.
///
/// Values are checked against the specification and the other keys. Misspelled keys and invalid values are refused
/// without --force.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf edit model.gguf --set general.name='My model'\n  \
                        gguf edit model.gguf --chat-template-file chat.jinja -o fixed.gguf\n  \
                        gguf edit model.gguf --special-token eos='<|im_end|>' --remove general.url\n  \
                        gguf edit model.gguf --recover undo\n  \
                        gguf edit model.gguf --graft 'other.gguf:(?:output|norm)' -o mixed.gguf")]
pub struct Args {
    /// File to edit; with -o, the input model.
    source: String,
    /// Output file; the input is not changed.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Set a key, without TYPE to a value of its current type. TYPE: u8 ... f64, bool, str, u32[] ...
    #[arg(long, value_name = "KEY[:TYPE]=VALUE")]
    set: Vec<KeyValue>,
    /// Set a key to the contents of a text file.
    #[arg(long, value_name = "KEY=PATH", value_parser = pair)]
    set_file: Vec<(String, String)>,
    /// Remove a key.
    #[arg(long, value_name = "KEY")]
    remove: Vec<String>,
    /// Rename a key.
    #[arg(long, value_name = "OLD=NEW", value_parser = pair)]
    rename: Vec<(String, String)>,
    /// Set the chat template to the contents of a file.
    #[arg(long, value_name = "FILE")]
    chat_template_file: Option<PathBuf>,
    /// Set a special token by its text: bos, eos, eot, eom, unk, sep, pad, mask, cls ...
    #[arg(long, value_name = "NAME=TOKEN", value_parser = pair)]
    special_token: Vec<(String, String)>,
    /// Set a special token by id.
    #[arg(long, value_name = "NAME=ID", value_parser = pair)]
    special_token_by_id: Vec<(String, String)>,
    /// Rename a tensor.
    #[arg(long, value_name = "OLD=NEW", value_parser = pair)]
    rename_tensor: Vec<(String, String)>,
    /// Remove tensors whose name matches the regex.
    #[arg(long, value_name = "REGEX")]
    drop: Vec<Regex>,
    /// Copy tensors whose name matches the regex from another model, replacing tensors of the same name. Splits
    /// at the last colon that is not part of the regex syntax.
    #[arg(long, value_name = "MODEL:REGEX", value_parser = graft::parse)]
    graft: Vec<(String, Regex)>,
    /// Like --graft, with model and regex as two arguments, which may contain any colons.
    #[arg(long, value_names = ["MODEL", "REGEX"], num_args = 2, help_heading = "Advanced")]
    graft_from: Vec<String>,
    /// Header padding for later in-place edits: N(K|M), at most 128M [default: 64K in a rewritten file, none
    /// with -o].
    #[arg(long, value_name = "SIZE", value_parser = listing::parse_reserve, help_heading = "Advanced")]
    reserve: Option<u64>,
    /// Show what would change without writing anything.
    #[arg(long)]
    dry_run: bool,
    /// Print the written file as JSON; with --dry-run, the changes.
    #[arg(long, conflicts_with = "recover")]
    json: bool,
    /// Recover a file after an interrupted in-place edit: undo restores the old header, finish writes the new
    /// one.
    #[arg(long, value_enum, value_name = "ACTION", help_heading = "Advanced", conflicts_with_all = [
        "output", "set", "set_file", "remove", "rename", "chat_template_file", "special_token",
        "special_token_by_id", "rename_tensor", "drop", "graft", "graft_from", "dry_run",
    ])]
    recover: Option<RecoveryArg>,
    #[command(flatten)]
    force: Force,
}

/// Header to recover.
#[derive(Clone, Copy, clap::ValueEnum)]
enum RecoveryArg {
    Undo,
    Finish,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (a, b) = text.split_once('=').ok_or("expected two values separated by =")?;
    Ok((a.to_owned(), b.to_owned()))
}

impl Args {
    /// Returns models to copy tensors from, with the regexes of their names.
    fn grafts(&self) -> Result<Vec<(String, Regex)>, Failure> {
        let pairs = self.graft_from.as_chunks::<2>().0.iter().map(|[model, pattern]| {
            let pattern = Regex::new(pattern).map_err(|fault| Failure::Usage(fault.to_string()))?;
            Ok((model.clone(), pattern))
        });
        self.graft.iter().cloned().map(Ok).chain(pairs).collect()
    }

    fn changes(&self) -> Result<Changes, Failure> {
        let by_text =
            self.special_token.iter().map(|(name, token)| (name, Token::Text(token.clone())));
        let by_id = self.special_token_by_id.iter().map(|(name, id)| (name, Token::Id(id.clone())));
        Ok(Changes {
            remove: self.remove.clone(),
            rename: self.rename.clone(),
            set: self.set.clone(),
            set_file: self.set_file.iter().map(|(key, path)| (key.clone(), path.into())).collect(),
            chat_template_file: self.chat_template_file.clone(),
            special_tokens: by_text
                .chain(by_id)
                .map(|(name, token)| (name.clone(), token))
                .collect(),
            drop: self.drop.clone(),
            graft: self.grafts()?,
            rename_tensor: self.rename_tensor.clone(),
            reserve: self.reserve,
        })
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some(action) = args.recover {
        return recover_edit(&local_path(&args.source)?, action);
    }
    let changes = args.changes()?;
    let renderer = render_template::renderer()?;
    if !args.force.is_given() {
        check_values(&args.source, &changes, &renderer)?;
    }
    match &args.output {
        _ if args.dry_run => dry_run(args, &changes, open(&args.source)?.model(), &renderer),
        Some(output) => {
            let opened = open(&args.source)?;
            let Rewritten { job, files } = rewrite(opened.model(), &changes, &renderer)?;
            let inputs = opened.files().chain(changes.inputs()).chain(files.iter().map(|f| &**f));
            let overwrite = args.force.protecting(inputs);
            commands::write_and_report("edit/3", &job, output, &overwrite, args.json)
        }
        None => {
            let progress = Progress::new();
            let path = local_path(&args.source)?;
            let (path, saved) = in_place(&path, &changes, &renderer, &progress)?;
            let time = progress.finish();
            if args.json {
                let len = open(&args.source)?.model().byte_len();
                let file = (saved != EditOutcome::Unchanged).then_some((path.as_path(), len));
                return commands::print_written("edit/3", file, time);
            }
            if args.reserve.is_some() && saved != EditOutcome::Rebuilt {
                terminal::note(
                    "the header padding stays when a file is edited in place; -o writes a copy with the given one",
                );
            }
            let saved = match saved {
                EditOutcome::Unchanged => "nothing to change",
                EditOutcome::InPlace => "changed in place",
                EditOutcome::Rebuilt => "rewritten",
            };
            eprintln!("{}: {saved}", path.display());
            Ok(())
        }
    }
}

/// Refuses values that make the model invalid, and warns about doubtful ones. A model that cannot be opened is
/// reported by the edit.
fn check_values(source: &str, changes: &Changes, renderer: &Renderer) -> Result<(), Failure> {
    let Ok(opened) = open(source) else { return Ok(()) };
    for finding in validate(opened.model(), changes, renderer)? {
        terminal::warning(finding.to_string());
    }
    Ok(())
}

/// Returns the path of a model to edit in place.
fn local_path(source: &str) -> Result<PathBuf, Failure> {
    match Location::parse(source)? {
        Location::Path(path) => Ok(path),
        _ => Err(Failure::Usage("a remote file cannot be edited in place: use -o".into())),
    }
}

fn recover_edit(path: &Path, action: RecoveryArg) -> Result<(), Failure> {
    let (to, done) = match action {
        RecoveryArg::Undo => (Recovery::Undo, "undone; the file has its old header"),
        RecoveryArg::Finish => (Recovery::Finish, "finished; the file has the new header"),
    };
    match recover(path, to)? {
        true => eprintln!("{}: the edit is {done}", path.display()),
        false => eprintln!("{}: there is no interrupted edit", path.display()),
    }
    Ok(())
}

/// Counts changed tensors. A tensor that is copied and renamed counts once.
fn count_changed(changes: &[TensorChange]) -> usize {
    let is_repeated = |(i, change): &(usize, &TensorChange)| {
        match change {
        TensorChange::Renamed(old, _) => changes[..*i].iter().any(|earlier| {
            matches!(earlier, TensorChange::Added(name) | TensorChange::Replaced(name) if name == old)
        }),
        _ => false,
    }
    };
    changes.len() - changes.iter().enumerate().filter(is_repeated).count()
}

fn dry_run(
    args: &Args,
    changes: &Changes,
    model: &Model,
    renderer: &Renderer,
) -> Result<(), Failure> {
    let changed = preview(model, changes, renderer)?;
    let tensors = preview_tensors(model, changes)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let keys = gguf_kit::json::edited_keys(&changed);
        return Ok(document::print(
            &mut out,
            "edit/3",
            json!({
                "keys": keys,
                "tensors": gguf_kit::json::edited_tensors(&tensors),
            }),
        )?);
    }
    let counts = [(changed.len(), "key"), (count_changed(&tensors), "tensor")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<_> = counts.map(|(count, what)| listing::plural(*count, what)).collect();
    match &*counts {
        [] => writeln!(out, "nothing would change")?,
        counts => writeln!(out, "{} would change", counts.join(" and "))?,
    }
    for KeyChange { key, before, after } in &changed {
        let name = terminal::plain(key);
        let shown = |value: &Value| listing::shortened(&value.to_string());
        let line = match (before, after) {
            (Some(old), Some(new)) => {
                let (old, new) = (shown(old), shown(new));
                format!("{} {name} = {new} (was {old})", terminal::changed("~"))
            }
            (None, Some(new)) => terminal::added(format!("+ {name} = {}", shown(new))),
            (_, None) => terminal::removed(format!("- {name}")),
        };
        writeln!(out, "{}", terminal::fit(&line))?;
    }
    for tensor in &tensors {
        let line = match tensor {
            TensorChange::Dropped(name) => {
                terminal::removed(format!("- {}", terminal::plain(name)))
            }
            TensorChange::Added(name) => terminal::added(format!("+ {}", terminal::plain(name))),
            TensorChange::Replaced(name) => {
                let name = terminal::plain(name);
                format!("{} {name}: replaced from the other model", terminal::changed("~"))
            }
            TensorChange::Renamed(old, new) => {
                let (old, new) = (terminal::plain(old), terminal::plain(new));
                format!("{} {old} -> {new}", terminal::changed("~"))
            }
        };
        writeln!(out, "{}", terminal::fit(&line))?;
    }
    Ok(())
}
