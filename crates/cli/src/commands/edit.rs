//! `gguf edit`: keys and tensors of a file, changed in place where that is possible.

mod graft;

use std::path::{Path, PathBuf};

use gguf::edit::{EditLock, RESERVE_KEY, Recovery, Saved, edit_header, recover, reserve};
use gguf::{Draft, Existing, Metadata, Model, Overwrite, ShardSet, Value};
use gguf_convert::pipeline::{Item, Job};
use gguf_convert::tensor::Tensor;
use gguf_remote::Location;
use gguf_tokenizer::{TemplateError, TemplateSource};
use regex::Regex;

use crate::commands::render_template;
use crate::failure::{Failure, read_text};
use crate::force::Force;
use crate::key_value::KeyValue;
use crate::opened::Opened;
use crate::progress::Progress;
use crate::{commands, listing};

/// Room for later edits in a file that is rebuilt, in bytes.
const RESERVE: u64 = 64_000;

/// Change keys and tensors of a GGUF. A change of keys takes an instant where the new header fits
/// before the data; otherwise the file is rebuilt beside the old one and leaves room for the next.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf edit model.gguf --set general.name='My model'\n  \
                        gguf edit model.gguf --chat-template-file chat.jinja -o fixed.gguf\n  \
                        gguf edit model.gguf --special-token eos='<|im_end|>' --remove general.url\n  \
                        gguf edit model.gguf --recover undo\n  \
                        gguf edit model.gguf --graft 'other.gguf:(?:output|norm)' -o mixed.gguf")]
pub struct Args {
    /// The file to change, or the model that -o is made from.
    source: String,
    /// Write the result here and leave the source as it is.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Set a key; without a type it keeps the one it has. TYPE: u8 ... f64, bool, str, u32[] ...
    #[arg(long, value_name = "KEY[:TYPE]=VALUE")]
    set: Vec<KeyValue>,
    /// Set a key to the text of a file.
    #[arg(long, value_name = "KEY=PATH", value_parser = pair)]
    set_file: Vec<(String, String)>,
    /// Remove a key.
    #[arg(long, value_name = "KEY")]
    remove: Vec<String>,
    /// Rename a key.
    #[arg(long, value_name = "OLD=NEW", value_parser = pair)]
    rename: Vec<(String, String)>,
    /// Set the chat template to the text of a file.
    #[arg(long, value_name = "FILE")]
    chat_template_file: Option<PathBuf>,
    /// Make a token of the vocabulary a special one: bos, eos, eot, eom, unk, sep, pad, mask, cls ...
    #[arg(long, value_name = "NAME=TOKEN", value_parser = pair)]
    special_token: Vec<(String, String)>,
    /// The same by number.
    #[arg(long, value_name = "NAME=ID", value_parser = pair)]
    special_token_by_id: Vec<(String, String)>,
    /// Rename a tensor.
    #[arg(long, value_name = "OLD=NEW", value_parser = pair)]
    rename_tensor: Vec<(String, String)>,
    /// Leave out the tensors whose name the pattern is found in.
    #[arg(long, value_name = "REGEX")]
    drop: Vec<Regex>,
    /// Take the tensors of another model whose name the pattern is found in, replacing those of
    /// the same name. The last colon divides, but for those of (?:...), (?i:...) and [[:alpha:]].
    #[arg(long, value_name = "MODEL:REGEX", value_parser = graft::parse)]
    graft: Vec<(String, Regex)>,
    /// The same as two words, for patterns and locations with any colons.
    #[arg(long, value_names = ["MODEL", "REGEX"], num_args = 2)]
    graft_from: Vec<String>,
    /// Room for later edits: N(K|M), at most 128M [default: 64K in a file that has to be rebuilt,
    /// none in one that -o names].
    #[arg(long, value_name = "SIZE", value_parser = listing::parse_reserve)]
    reserve: Option<u64>,
    /// Only say what would change.
    #[arg(long)]
    dry_run: bool,
    /// End an edit that was interrupted while it overwrote the header of this file: give it the
    /// header from before the edit, or the one that the edit was to write.
    #[arg(long, value_enum, value_name = "HOW", conflicts_with_all = [
        "output", "set", "set_file", "remove", "rename", "chat_template_file", "special_token",
        "special_token_by_id", "rename_tensor", "drop", "graft", "graft_from", "dry_run",
    ])]
    recover: Option<How>,
    #[command(flatten)]
    force: Force,
}

/// Which header a file gets.
#[derive(Clone, Copy, clap::ValueEnum)]
enum How {
    Undo,
    Finish,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (a, b) = text.split_once('=').ok_or("expected two words joined by =")?;
    Ok((a.to_owned(), b.to_owned()))
}

impl Args {
    /// Models to take tensors of, and which.
    fn grafts(&self) -> Result<Vec<(String, Regex)>, Failure> {
        let pairs = self.graft_from.as_chunks::<2>().0.iter().map(|[model, pattern]| {
            let pattern = Regex::new(pattern).map_err(|fault| Failure::Usage(fault.to_string()))?;
            Ok((model.clone(), pattern))
        });
        self.graft.iter().cloned().map(Ok).chain(pairs).collect()
    }

    /// Whether there are other tensors in the result, and not only other names.
    fn changes_tensors(&self) -> bool {
        !(self.drop.is_empty() && self.graft.is_empty() && self.graft_from.is_empty())
    }

    /// The files that are read.
    fn inputs<'a>(&'a self, opened: &'a Opened) -> impl Iterator<Item = &'a Path> {
        let texts = self.set_file.iter().map(|(_, path)| Path::new(path));
        opened.files().chain(texts).chain(self.chat_template_file.as_deref())
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    match (&args.output, args.recover) {
        _ if args.dry_run => dry_run(args, Opened::open(&args.source)?.model()),
        (Some(output), _) => {
            let opened = Opened::open(&args.source)?;
            rewrite(args, &opened, output, &args.force.sparing(args.inputs(&opened)))
        }
        (None, Some(how)) => end_interrupted(&near(&args.source)?, how),
        (None, None) => in_place(args),
    }
}

/// The path of a model that is to be changed itself.
fn near(source: &str) -> Result<PathBuf, Failure> {
    match Location::parse(source)? {
        Location::Path(path) => Ok(path),
        _ => Err(Failure::Usage("a far file cannot be changed: give -o".into())),
    }
}

fn end_interrupted(path: &Path, how: How) -> Result<(), Failure> {
    let (to, done) = match how {
        How::Undo => (Recovery::Undo, "undone: it has the header from before"),
        How::Finish => (Recovery::Finish, "finished: it has the new header"),
    };
    match recover(path, to)? {
        true => eprintln!("{}: the edit is {done}", path.display()),
        false => eprintln!("{}: no edit of it was interrupted", path.display()),
    }
    Ok(())
}

fn dry_run(args: &Args, model: &Model) -> Result<(), Failure> {
    let mut metadata = model.metadata().clone();
    edit_metadata(args, &mut metadata)?;
    for (key, value) in metadata.iter() {
        match model.metadata().get(key) {
            Some(old) if old == value => {}
            Some(old) => println!("~ {key} = {value} (was {old})"),
            None => println!("+ {key} = {value}"),
        }
    }
    for (key, _) in model.metadata().iter().filter(|(key, _)| metadata.get(key).is_none()) {
        println!("- {key}");
    }
    Ok(())
}

/// Changes the file itself; of a model in several files, the first, which has the keys.
fn in_place(args: &Args) -> Result<(), Failure> {
    let files = ShardSet::find(&near(&args.source)?)?;
    let (path, several) = (&files.paths()[0], files.paths().len() > 1);
    if !args.changes_tensors() {
        if several && !args.rename_tensor.is_empty() {
            return Err(Failure::Usage(
                "tensors in several files cannot be renamed: give -o".into(),
            ));
        }
        let len = path.metadata().map_or(0, |metadata| metadata.len());
        let progress = Progress::new(len, "rebuilding").stoppable();
        let room = args.reserve.unwrap_or(RESERVE);
        let saved = edit_header(path, room, &|bytes| progress.advance(bytes), |draft| {
            edit_metadata(args, &mut draft.metadata)?;
            rename_tensors(args, draft)
        })?;
        progress.finish();
        eprintln!(
            "{}: {}",
            path.display(),
            match saved {
                Saved::Unchanged => "nothing to change",
                Saved::InPlace => "changed in place",
                Saved::Rebuilt => "rebuilt",
            }
        );
        return Ok(());
    }
    if several {
        return Err(Failure::Usage("tensors in several files cannot be dropped: give -o".into()));
    }
    // Before the file is read, until the new one has its name.
    let _lock = EditLock::take(path)?;
    let opened = Opened::open(&args.source)?;
    rewrite(args, &opened, path, &Overwrite::new(Existing::Replace))
}

/// Writes a new file with the changes.
fn rewrite(
    args: &Args,
    opened: &Opened,
    output: &Path,
    overwrite: &Overwrite,
) -> Result<(), Failure> {
    let model = opened.model();
    let grafts = args.grafts()?;
    let others =
        grafts.iter().map(|(word, _)| Opened::open(word)).collect::<Result<Vec<_>, _>>()?;
    let overwrite = overwrite.clone().sparing(others.iter().flat_map(Opened::files));
    let others = others.iter().map(Opened::model).collect::<Vec<_>>();
    let mut job = Job::copy(model);
    edit_metadata(args, &mut job.metadata)?;
    if let Some(room) = args.reserve {
        reserve(&mut job.metadata, room);
    }
    for pattern in &args.drop {
        let before = job.items.len();
        job.items.retain(|item| !pattern.is_match(&item.tensor.name));
        if job.items.len() == before {
            return Err(Failure::Usage(format!("--drop {pattern}: no tensor has such a name")));
        }
    }
    for ((word, pattern), other) in grafts.iter().zip(&others) {
        let tensors: Vec<_> =
            other.tensors().iter().filter(|tensor| pattern.is_match(&tensor.info.name)).collect();
        if tensors.is_empty() {
            return Err(Failure::Usage(format!(
                "--graft {word}:{pattern}: no tensor has such a name"
            )));
        }
        for tensor in tensors {
            let item = Item::new(Tensor::of_model(tensor), tensor.info.tensor_type);
            match job.items.iter_mut().find(|old| old.tensor.name == item.tensor.name) {
                Some(old) => *old = item,
                None => job.items.push(item),
            }
        }
    }
    for (old, new) in &args.rename_tensor {
        let item = job.items.iter_mut().find(|item| item.tensor.name == *old);
        item.ok_or_else(|| no_tensor(old))?.tensor.name.clone_from(new);
    }
    commands::write(&job, output, &overwrite)
}

fn no_tensor(name: &str) -> Failure {
    Failure::Usage(format!("there is no tensor `{name}`"))
}

fn rename_tensors(args: &Args, draft: &mut Draft) -> Result<(), Failure> {
    for (old, new) in &args.rename_tensor {
        let tensor = draft.tensors.iter_mut().find(|tensor| tensor.name == *old);
        tensor.ok_or_else(|| no_tensor(old))?.name = new.clone();
    }
    Ok(())
}

fn edit_metadata(args: &Args, metadata: &mut Metadata) -> Result<(), Failure> {
    for key in &args.remove {
        metadata.remove(key).ok_or_else(|| no_key(key))?;
    }
    for (old, new) in &args.rename {
        if metadata.get(new).is_some() {
            return Err(Failure::Usage(format!("there is a key `{new}` already")));
        }
        if !metadata.rename(old, new.clone()) {
            return Err(no_key(old));
        }
    }
    for set in &args.set {
        let value = set.value(metadata).map_err(Failure::Usage)?;
        metadata.set(set.key.clone(), value);
    }
    for (key, path) in &args.set_file {
        metadata.set(key.clone(), Value::from(read_text(Path::new(path))?));
    }
    if let Some(path) = &args.chat_template_file {
        metadata.set("tokenizer.chat_template", Value::from(read_text(path)?));
    }
    for (name, token) in &args.special_token {
        let id = token_id(metadata, token)?;
        metadata.set(special_key(name)?, id);
    }
    for (name, id) in &args.special_token_by_id {
        let tokens = metadata.array("tokenizer.ggml.tokens").map_or(0, |tokens| tokens.len());
        let id = id.parse::<u32>().ok().filter(|id| u64::from(*id) < tokens);
        let id = id.ok_or_else(|| {
            Failure::Usage(format!("ids go from 0 to {}", tokens.saturating_sub(1)))
        })?;
        metadata.set(special_key(name)?, id);
    }
    templates_parse(args, metadata)?;
    // Nobody means to edit the room for edits.
    if args.set.iter().any(|set| set.key == RESERVE_KEY) {
        return Err(Failure::Usage(format!("`{RESERVE_KEY}` is set by --reserve")));
    }
    Ok(())
}

/// Refuses chat templates of the user that are none; what the file has already may stay.
fn templates_parse(args: &Args, metadata: &Metadata) -> Result<(), Failure> {
    let given = |option: &str, key: &str| (key.to_owned(), format!("--{option} {key}"));
    let of_file = args.chat_template_file.iter();
    let of_file = of_file.map(|path| (TemplateSource::KEY.into(), path.display().to_string()));
    let set = args.set.iter().map(|set| given("set", &set.key));
    let set_file = args.set_file.iter().map(|(key, path)| (key.clone(), path.clone()));
    let renamed = args.rename.iter().map(|(_, new)| given("rename", new));
    for (key, origin) in of_file.chain(set).chain(set_file).chain(renamed) {
        let refused = |error| match error {
            TemplateError::Process(_) => Failure::from(error),
            _ => Failure::Usage(format!("{origin} is no chat template: {error}")),
        };
        if let Some(source) = TemplateSource::of_key(metadata, &key).map_err(refused)? {
            render_template::renderer()?.parse(&source).map_err(refused)?;
        }
    }
    Ok(())
}

fn no_key(key: &str) -> Failure {
    Failure::Usage(format!("there is no key `{key}`"))
}

/// The key of a special token; some have names of their own, and one has been misspelt for ever.
fn special_key(name: &str) -> Result<String, Failure> {
    let word = match name {
        "unk" => "unknown",
        "sep" => "seperator",
        "pad" => "padding",
        "bos" | "eos" | "eot" | "eom" | "cls" | "mask" | "fim_pre" | "fim_suf" | "fim_mid"
        | "fim_pad" | "fim_rep" | "fim_sep" => name,
        _ => {
            return Err(Failure::Usage(format!(
                "`{name}` is no special token: bos eos eot eom unk sep pad cls mask fim_pre \
                 fim_suf fim_mid fim_pad fim_rep fim_sep are"
            )));
        }
    };
    Ok(format!("tokenizer.ggml.{word}_token_id"))
}

fn token_id(metadata: &Metadata, token: &str) -> Result<u32, Failure> {
    let tokens = metadata.array("tokenizer.ggml.tokens").and_then(|tokens| tokens.strings());
    let mut tokens = tokens.ok_or_else(|| Failure::Input("the file has no vocabulary".into()))?;
    let id = tokens.position(|text| text == token.as_bytes());
    id.and_then(|id| id.try_into().ok())
        .ok_or_else(|| Failure::Usage(format!("`{token}` is no token of the vocabulary")))
}
