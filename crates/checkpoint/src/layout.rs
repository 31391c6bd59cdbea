//! Finds the weight files of a directory, by an index or by conventional names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gguf::Error;

use crate::json;

/// Prefix and suffix of weight file names, in order of preference, and the name of their index.
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

/// Suffixes of a single weight file of any name.
const SINGLE_FILE_SUFFIXES: [&str; 5] = [".safetensors", ".bin", ".pth", ".pt", ".ckpt"];

/// Weight files of a checkpoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WeightLayout {
    /// File names in order.
    pub names: Vec<String>,
    /// Index, if there is one: its name, and the file of each tensor.
    pub index: Option<(&'static str, BTreeMap<String, String>)>,
}

impl WeightLayout {
    /// Finds the weight files among `present`, the file names of a directory. Indices are read from
    /// `dir`.
    ///
    /// # Errors
    /// If there are none, or a shard is missing.
    pub fn find(dir: &Path, present: &BTreeSet<String>) -> Result<Self, Error> {
        for naming in &NAMINGS {
            if let Some(index) = naming.index
                && let Some(map) = weight_map(&dir.join(index))?
            {
                let names: BTreeSet<_> = map.values().cloned().collect();
                if let Some(missing) = names.iter().find(|name| !present.contains(*name)) {
                    let what = format!("names `{missing}`, which does not exist");
                    let (path, help) = (dir.join(index), "download the missing shard");
                    return Err(Error::input("checkpoint-shard-missing", &path, what, help));
                }
                return Ok(Self { names: names.into_iter().collect(), index: Some((index, map)) });
            }
            let names: Vec<_> = present.iter().filter(|name| naming.fits(name)).collect();
            if let Some(missing) = naming.missing_shard(&names) {
                let what =
                    format!("shard `{missing}` is missing, though other shards of its set exist");
                let help = "download the missing shard";
                return Err(Error::input("checkpoint-shard-missing", dir, what, help));
            }
            if !names.is_empty() {
                return Ok(Self { names: names.into_iter().cloned().collect(), index: None });
            }
        }
        let single: Vec<_> = present
            .iter()
            .filter(|name| SINGLE_FILE_SUFFIXES.iter().any(|end| name.ends_with(end)))
            .collect();
        match single[..] {
            [name] => Ok(Self { names: vec![name.clone()], index: None }),
            [] => Err(Error::input(
                "checkpoint-weights-missing",
                dir,
                "has neither safetensors (`model*.safetensors`) nor PyTorch weights \
                                 (`pytorch_model*.bin`)",
                "name a directory with a Hugging Face checkpoint",
            )),
            [first, second, ..] => Err(Error::input(
                "checkpoint-weights-ambiguous",
                dir,
                format!("has `{first}`, `{second}` and no `model.safetensors`"),
                "remove all weight files except those of the model",
            )),
        }
    }
}

impl WeightLayout {
    /// Whether each file holds a part of each matrix, for tensor parallelism.
    pub fn is_tensor_parallel(&self) -> bool {
        self.index.is_none() && self.names.len() > 1 && self.names[0].ends_with(".pth")
    }
}

impl Naming {
    fn fits(&self, name: &str) -> bool {
        name.starts_with(self.prefix) && name.ends_with(self.suffix)
    }

    /// Returns the first missing file of a set named `model-00001-of-00003.safetensors`.
    fn missing_shard(&self, names: &[&String]) -> Option<String> {
        if self.suffix == ".pth" {
            // Tensor-parallel files are numbered from 00.
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

/// Reads the index, from tensor name to file name, if it exists.
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

/// Whether a name is a file in the directory: an index is untrusted and must not point elsewhere.
fn is_plain_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|file_name| file_name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Result<Vec<String>, String> {
        let present = names.iter().map(|name| (*name).to_owned()).collect();
        match WeightLayout::find(Path::new("no such directory"), &present) {
            Ok(layout) => Ok(layout.names),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn preferred_weights_are_selected() {
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
    fn ambiguous_or_incomplete_weights_are_refused() {
        let cases: [(&[&str], &str); 5] = [
            (&["config.json"], "has neither"),
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
