//! Which files of a directory hold the weights: by an index, or by the names checkpoints keep to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gguf::Error;

use crate::json;

/// What begins and ends the names of weight files, the best kind first, and the index to them.
struct Naming {
    prefix: &'static str,
    suffix: &'static str,
    index: Option<&'static str>,
}

const NAMINGS: [Naming; 4] = [
    Naming { prefix: "model", suffix: ".safetensors", index: Some("model.safetensors.index.json") },
    Naming { prefix: "pytorch_model", suffix: ".bin", index: Some("pytorch_model.bin.index.json") },
    Naming { prefix: "consolidated", suffix: ".safetensors", index: None },
    Naming { prefix: "consolidated", suffix: ".pth", index: None },
];

/// What a lone file of weights may end in, whatever its name.
const LONE: [&str; 5] = [".safetensors", ".bin", ".pth", ".pt", ".ckpt"];

/// The files with the weights.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Their names, in order.
    pub names: Vec<String>,
    /// The index, if there is one: its name, and which file holds which tensor.
    pub index: Option<(&'static str, BTreeMap<String, String>)>,
}

impl Layout {
    /// Finds the weights among `present`, the names of the files of a directory. Indices are read
    /// from `dir`.
    ///
    /// # Errors
    /// If there are none, or too few: a shard is missing.
    pub fn find(dir: &Path, present: &BTreeSet<String>) -> Result<Self, Error> {
        for naming in &NAMINGS {
            if let Some(index) = naming.index
                && let Some(map) = weight_map(&dir.join(index))?
            {
                let names: BTreeSet<_> = map.values().cloned().collect();
                if let Some(missing) = names.iter().find(|name| !present.contains(*name)) {
                    let what = format!("names `{missing}`, which is not there");
                    let (path, help) = (dir.join(index), "download the missing shard");
                    return Err(Error::input("checkpoint-shard-missing", &path, what, help));
                }
                return Ok(Self { names: names.into_iter().collect(), index: Some((index, map)) });
            }
            let names: Vec<_> = present.iter().filter(|name| naming.fits(name)).collect();
            if let Some(missing) = naming.missing_shard(&names) {
                let what = format!("shard `{missing}` is not there, though others of its set are");
                let help = "download the missing shard";
                return Err(Error::input("checkpoint-shard-missing", dir, what, help));
            }
            if !names.is_empty() {
                return Ok(Self { names: names.into_iter().cloned().collect(), index: None });
            }
        }
        let lone: Vec<_> =
            present.iter().filter(|name| LONE.iter().any(|end| name.ends_with(end))).collect();
        match lone[..] {
            [name] => Ok(Self { names: vec![name.clone()], index: None }),
            [] => Err(Error::input(
                "checkpoint-weights-missing",
                dir,
                "holds neither safetensors (`model*.safetensors`) nor PyTorch weights \
                 (`pytorch_model*.bin`)",
                "name a directory with a Hugging Face checkpoint",
            )),
            [first, second, ..] => Err(Error::input(
                "checkpoint-weights-ambiguous",
                dir,
                format!("holds `{first}`, `{second}` and no `model.safetensors`"),
                "leave only the weights that are meant",
            )),
        }
    }
}

impl Layout {
    /// Whether each file has a part of each matrix.
    pub fn is_cut(&self) -> bool {
        self.index.is_none() && self.names.len() > 1 && self.names[0].ends_with(".pth")
    }
}

impl Naming {
    fn fits(&self, name: &str) -> bool {
        name.starts_with(self.prefix) && name.ends_with(self.suffix)
    }

    /// The first absent file of a set named `model-00001-of-00003.safetensors`.
    fn missing_shard(&self, names: &[&String]) -> Option<String> {
        if self.suffix == ".pth" {
            // Parts of matrices, from 00 on.
            let mut parts = (0..names.len()).map(|no| format!("{}.{no:02}.pth", self.prefix));
            return parts.find(|part| names.len() > 1 && !names.contains(&part));
        }
        let (stem, count) = names.iter().find_map(|name| {
            let (stem, count) = name.strip_suffix(self.suffix)?.rsplit_once("-of-")?;
            Some((stem.rsplit_once('-')?.0, count.parse::<u32>().ok()?))
        })?;
        (1..=count.min(99_999))
            .map(|no| format!("{stem}-{no:05}-of-{count:05}{}", self.suffix))
            .find(|name| !names.contains(&name))
    }
}

/// Tensor name to file name, if there is an index.
fn weight_map(path: &Path) -> Result<Option<BTreeMap<String, String>>, Error> {
    let Some(index) = json::read_optional(path)? else { return Ok(None) };
    let fault =
        |what: &str| Error::input("checkpoint-index", path, what, "download the file again");
    let map = index.get("weight_map").and_then(|map| map.as_object());
    let map = map.ok_or_else(|| fault("has no object `weight_map`"))?;
    map.iter()
        .map(|(tensor, file)| {
            let file = file.as_str().filter(|file| is_plain_name(file));
            let file = file.ok_or_else(|| fault("a value of `weight_map` is not a file name"))?;
            Ok((tensor.clone(), file.to_owned()))
        })
        .collect::<Result<_, _>>()
        .map(Some)
}

/// A name within the directory: an index must not lead anywhere else.
fn is_plain_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|file_name| file_name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Result<Vec<String>, String> {
        let present = names.iter().map(|name| (*name).to_owned()).collect();
        match Layout::find(Path::new("no such directory"), &present) {
            Ok(layout) => Ok(layout.names),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_best_weights_are_taken() {
        let cases: [(&[&str], &[&str]); 6] = [
            (&["config.json", "model.safetensors", "pytorch_model.bin"], &["model.safetensors"]),
            (&["pytorch_model.bin", "training_args.bin"], &["pytorch_model.bin"]),
            (
                &["pytorch_model-00002-of-00002.bin", "pytorch_model-00001-of-00002.bin"],
                &["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"],
            ),
            (&["consolidated.00.pth", "params.json"], &["consolidated.00.pth"]),
            (&["RWKV-4.pth"], &["RWKV-4.pth"]),
            (&["whisper.pt"], &["whisper.pt"]),
        ];
        for (present, taken) in cases {
            assert_eq!(found(present).unwrap(), taken);
        }
    }

    #[test]
    fn doubt_is_refused() {
        let cases: [(&[&str], &str); 5] = [
            (&["config.json"], "holds neither"),
            (&["a.pth", "b.pth"], "`a.pth`, `b.pth`"),
            (&["consolidated.00.pth", "consolidated.02.pth"], "`consolidated.01.pth`"),
            (&["model-00002-of-00002.safetensors"], "`model-00001-of-00002.safetensors`"),
            (&["pytorch_model-00001-of-00003.bin"], "`pytorch_model-00002-of-00003.bin`"),
        ];
        for (present, part) in cases {
            let message = found(present).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
