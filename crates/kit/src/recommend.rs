//! Which file or type of a model to use on this machine.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use gguf::{Header, NameShard};
use gguf_inspect::summary::Summary;
use gguf_quantize::QuantizeOptions;
use gguf_quantize::importance::MissingImportance;
use gguf_quantize::recipe::{Preset, Target};
pub use gguf_recommend::{
    Candidate, Choice, Loss, LossOrigin, MachineSpeed, NEGLIGIBLE_LOSS, Reason, Recommendation,
    Request, Speed, Task,
};
use gguf_recommend::{planned_model, recommend as compare};
use gguf_remote::{Cache, Location, RemoteOptions, RepositoryFiles};
use gguf_report::card::{CardFile, CardModel};
use gguf_runtime::machine;
pub use gguf_runtime::machine::available_memory;
use gguf_store::{AtomicFile, Existing, Model, Overwrite, Progress};
use serde::{Deserialize, Serialize};

use crate::card::{CardOptions, card};
use crate::convert::{ConvertOptions, Kind, Plan};
use crate::run::{GraphSource, model_graph};
use crate::{Error, open};

/// Types that are compared if only an unquantized model exists.
const TYPES: [Preset; 9] = [
    Preset::Q8_0,
    Preset::Q6_K,
    Preset::Q5_K_M,
    Preset::Q4_K_M,
    Preset::IQ4_XS,
    Preset::Q3_K_M,
    Preset::IQ3_XXS,
    Preset::Q2_K,
    Preset::IQ2_XXS,
];

/// Compares the files that `source` names: GGUF files of a directory or a repository; or the types of a single
/// unquantized model or checkpoint. Only headers are read. The speed of this machine is measured once, and kept in the
/// cache directory of the user; `measures_again` ignores what is kept.
///
/// # Errors
/// If the source cannot be read, holds no model, or has no graph; if `progress` stopped the work.
pub fn recommend(
    source: &str,
    request: &Request,
    measures_again: bool,
    progress: &dyn Progress,
) -> Result<Recommendation, Error> {
    let candidates = candidates(source, progress)?;
    let record = Record::path();
    let mut speed = match &record {
        Some(path) if !measures_again => Record::read(path),
        _ => MachineSpeed::default(),
    };
    let known = speed.clone();
    let graph_of = |model: &Model| {
        let graph = model_graph(model, GraphSource::Auto)?;
        match graph.encoder() {
            Some(_) => Err(Error::request(
                "request-invalid",
                "the model transcribes speech; only models that read text are compared",
                "`gguf quality` compares types by the loss for recordings",
            )),
            None => Ok(graph),
        }
    };
    let recommendation = compare(candidates, graph_of, request, &mut speed, progress)?;
    if let Some(path) = record.filter(|_| speed != known) {
        Record::write(&path, speed);
    }
    Ok(recommendation)
}

fn candidates(source: &str, progress: &dyn Progress) -> Result<Vec<Candidate>, Error> {
    match Location::parse(source)? {
        Location::Path(path) if path.is_dir() => match has_gguf(&path) {
            true => of_directory(&path),
            false => of_checkpoint(source, progress),
        },
        Location::Hub(repository) if repository.file.is_none() => {
            let files = RepositoryFiles::list(source, RemoteOptions::from_env())?;
            match published(files.names()) {
                names if names.is_empty() => of_checkpoint(source, progress),
                names => of_repository(source, &names),
            }
        }
        _ => of_model(open(source)?.into_model(), source),
    }
}

fn has_gguf(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_str().is_some_and(gguf::is_gguf))
}

/// Returns the files of a directory, with the losses that results in it state.
fn of_directory(directory: &Path) -> Result<Vec<Candidate>, Error> {
    let facts = card(directory, &CardOptions::default())?.card;
    if let [first, second, ..] = &facts.models[..] {
        let of = |model: &CardModel| model.files.first().map(|file| file.file.clone());
        let names = [of(first), of(second)].map(Option::unwrap_or_default).join(" and ");
        let what = format!("{} has files of several models, such as {names}", directory.display());
        return Err(Error::request("request-invalid", what, "name one of the files"));
    }
    let files: Vec<_> = facts.models.into_iter().flat_map(|model| model.files).collect();
    if let [only] = &files[..] {
        let path = directory.join(&only.file);
        return of_model(Model::open(&path)?, &path.to_string_lossy());
    }
    let candidate = |file: CardFile| {
        let model = Model::open(&directory.join(&file.file))?;
        Ok(Candidate {
            type_name: Summary::of(&model).file_type.map(str::to_owned),
            name: file.file,
            exists: true,
            model,
            measured_loss: file.loss.map(|loss| loss.mean_kld),
        })
    };
    files.into_iter().map(candidate).collect()
}

/// Returns a model, and the smaller types that can be made of it if it is not quantized.
fn of_model(model: Model, source: &str) -> Result<Vec<Candidate>, Error> {
    let type_name = Summary::of(&model).file_type.map(str::to_owned);
    let is_original =
        type_name.as_deref().is_some_and(|name| ["F32", "F16", "BF16"].contains(&name));
    let mut candidates = Vec::new();
    if is_original {
        let planned = TYPES.iter().filter_map(|preset| planned(&model, *preset).transpose());
        for header in planned {
            let (preset, model) = header?;
            candidates.push(to_make(preset, model));
        }
    }
    let name = Path::new(source).file_name().map(|name| name.to_string_lossy().into_owned());
    candidates.push(Candidate {
        name: name.unwrap_or_else(|| crate::redact(source)),
        type_name,
        exists: true,
        model,
        measured_loss: None,
    });
    Ok(candidates)
}

/// Returns the types that a checkpoint can be converted to.
fn of_checkpoint(source: &str, progress: &dyn Progress) -> Result<Vec<Candidate>, Error> {
    let plan = Plan::new(source, Kind::Checkpoint, &ConvertOptions::default(), progress)?;
    let Some(output) = plan.outputs.first() else { return Ok(Vec::new()) };
    let converted = planned_model(output.job.header()?, PathBuf::from(source))?;
    let unquantized = Preset::BF16;
    let presets = TYPES.iter().chain([&unquantized]);
    let planned = presets.filter_map(|preset| planned(&converted, *preset).transpose());
    planned.map(|planned| planned.map(|(preset, model)| to_make(preset, model))).collect()
}

fn to_make(preset: Preset, model: Model) -> Candidate {
    Candidate {
        name: preset.name().to_owned(),
        type_name: Some(preset.name().to_owned()),
        exists: false,
        model,
        measured_loss: None,
    }
}

/// Returns the files of a repository by type. The header of one is read; the tensor types of the others follow from the
/// types that they are named by.
fn of_repository(source: &str, names: &[(String, Preset)]) -> Result<Vec<Candidate>, Error> {
    let (first, _) = &names[0];
    let model = open(&format!("{source}:{first}"))?.into_model();
    let mut candidates = Vec::new();
    for (name, preset) in names {
        let model = match name == first {
            true => model.clone(),
            false => match planned(&model, *preset)? {
                Some((_, model)) => model,
                None => continue,
            },
        };
        candidates.push(Candidate {
            name: name.clone(),
            type_name: Some(preset.name().to_owned()),
            exists: true,
            model,
            measured_loss: None,
        });
    }
    Ok(candidates)
}

/// Returns the models among the files of a repository, and the types in their names. Of several shards, the first stands
/// for all.
fn published(names: &[String]) -> Vec<(String, Preset)> {
    let mut found = HashMap::new();
    for name in names.iter().filter(|name| gguf::is_gguf(name)) {
        let lower = name.to_ascii_lowercase();
        if lower.contains("mmproj") || lower.contains("imatrix") {
            continue;
        }
        let stem = match NameShard::strip(name) {
            Some((_, shard)) if shard.number > 1 => continue,
            Some((stem, _)) => stem,
            None => name.strip_suffix(".gguf").unwrap_or(name),
        };
        if let Some(preset) = preset_of(stem) {
            found.entry(preset.name()).or_insert_with(|| (name.clone(), preset));
        }
    }
    let mut found: Vec<_> = found.into_values().collect();
    found.sort();
    found
}

/// Returns the type by which a file name ends.
fn preset_of(stem: &str) -> Option<Preset> {
    let stem = stem.to_ascii_uppercase();
    let ends = |preset: &&Preset| {
        let before = stem.strip_suffix(preset.name());
        before.is_some_and(|before| before.is_empty() || before.ends_with(['-', '.', '_']))
    };
    Preset::ALL.iter().filter(ends).max_by_key(|preset| preset.name().len()).copied()
}

/// Returns the header of a type of the model; `None` if the model cannot have it.
fn planned(model: &Model, preset: Preset) -> Result<Option<(Preset, Model)>, Error> {
    let options = QuantizeOptions {
        allow_requantize: true,
        missing: MissingImportance::Uniform,
        ..QuantizeOptions::default()
    };
    let planned = gguf_quantize::plan(model, Target::Preset(preset), &options);
    let header: Header = match planned {
        Ok(planned) => planned.job.header()?,
        Err(error) if error.code() == "type-does-not-fit" => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some((preset, planned_model(header, PathBuf::from(preset.name()))?)))
}

/// Stored speed of a machine.
#[derive(Serialize, Deserialize)]
struct Record {
    /// Processor, threads and version, which must be those of today.
    machine: String,
    speed: MachineSpeed,
}

impl Record {
    fn path() -> Option<PathBuf> {
        Some(Cache::directory()?.with_file_name("machine.json"))
    }

    fn read(path: &Path) -> MachineSpeed {
        let record = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let record = record.filter(|record: &Self| record.machine == machine::identity());
        record.map_or_else(MachineSpeed::default, |record| record.speed)
    }

    /// Writes the record. Without it, the next run measures again.
    fn write(path: &Path, speed: MachineSpeed) {
        let record = Self { machine: machine::identity(), speed };
        let Ok(bytes) = serde_json::to_vec_pretty(&record) else { return };
        let written = path.parent().map(std::fs::create_dir_all);
        if written.is_some_and(|made| made.is_ok()) {
            let _ = AtomicFile::write(path, &bytes, &Overwrite::new(Existing::Replace));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_in_file_names() {
        for (name, expected) in [
            ("Llama-3.2-1B-Instruct-Q4_K_M", Some(Preset::Q4_K_M)),
            ("model.q8_0", Some(Preset::Q8_0)),
            ("model-iq4_xs", Some(Preset::IQ4_XS)),
            ("Q4_0", Some(Preset::Q4_0)),
            ("model-BF16", Some(Preset::BF16)),
            ("modelQ4_0", None),
            ("model", None),
        ] {
            assert_eq!(preset_of(name), expected, "{name}");
        }
    }

    #[test]
    fn shards_encoders_and_matrices_are_no_models() {
        let names = [
            "m-Q8_0-00001-of-00002.gguf",
            "m-Q8_0-00002-of-00002.gguf",
            "m-Q4_K_M.gguf",
            "mmproj-m-F16.gguf",
            "m.imatrix.gguf",
            "README.md",
        ];
        let found = published(&names.map(str::to_owned));
        let found: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(found, ["m-Q4_K_M.gguf", "m-Q8_0-00001-of-00002.gguf"]);
    }
}
