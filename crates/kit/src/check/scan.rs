//! Scan for manipulation, and the template of a base model.

use std::fs;
use std::path::Path;

use gguf::{Finding, Metadata};
use gguf_remote::{Location, RemoteOptions, RepositoryFiles};
use gguf_scan::{NamedTemplate, difference};
use gguf_tokenizer::template::{Renderer, TemplateSource};

use crate::{Error, Files};

/// Returns true for a directory that has a checkpoint and no GGUF file.
pub(super) fn is_checkpoint_alone(source: &str) -> bool {
    let directory = Path::new(source);
    let has_model = |directory: &Path| {
        let names = fs::read_dir(directory).ok().into_iter().flatten().flatten();
        names
            .map(|entry| entry.path())
            .any(|path| path.extension().is_some_and(|one| one == "gguf"))
    };
    directory.is_dir() && gguf_scan::is_checkpoint(directory) && !has_model(directory)
}

/// Scans the files of a model, or of a checkpoint directory, and compares the templates with those of a base model.
pub(super) fn scan(
    source: &str,
    renderer: &Renderer,
    template_of: Option<&str>,
) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    let mut templates = Vec::new();
    if !is_checkpoint_alone(source) {
        let files = Files::open(source, None)?;
        findings.extend(files.scan(renderer)?);
        templates.extend(
            files.files().first().and_then(|file| file.metadata()).iter().flat_map(of_metadata),
        );
    }
    let directory = Path::new(source);
    if directory.is_dir() && gguf_scan::is_checkpoint(directory) {
        findings.extend(gguf_scan::scan_directory(directory, renderer)?);
        templates.extend(in_directory(directory)?);
    }
    if let Some(base) = template_of {
        findings.extend(differences(&templates, &base_templates(base)?));
    }
    Ok(gguf_scan::with_help(findings))
}

/// Compares each template with that of the same name, or else with the default one, of the base model.
fn differences(templates: &[NamedTemplate], base: &[NamedTemplate]) -> Vec<Finding> {
    let differs = |template: &NamedTemplate| {
        let of_name = |name: &str| base.iter().find(|other| other.name == name);
        let other = of_name(&template.name).or_else(|| of_name(""))?;
        let finding = difference(&template.text, &other.text)?;
        let key = match &*template.name {
            "" => TemplateSource::KEY.to_owned(),
            name => format!("{}.{name}", TemplateSource::KEY),
        };
        Some(finding.key(key))
    };
    templates.iter().filter_map(differs).collect()
}

/// Returns the templates of a base model: a repository, a checkpoint directory, a GGUF, or a file with the template.
fn base_templates(base: &str) -> Result<Vec<NamedTemplate>, Error> {
    let path = Path::new(base);
    let found = if let Location::Hub(repository) = Location::parse(base)?
        && repository.file.is_none()
        && let files = RepositoryFiles::list(base, RemoteOptions::from_env())?
        && files.names().iter().any(|name| name == "config.json" || name == "tokenizer_config.json")
    {
        let is_listed = |name: &str| files.names().iter().any(|other| other == name);
        let fetch = |name: &str| match is_listed(name) {
            true => Ok(Some(files.fetch(name)?)),
            false => Ok(None),
        };
        gguf_scan::templates(fetch)?
    } else if path.is_dir() && gguf_scan::is_checkpoint(path) {
        in_directory(path)?
    } else if path.extension().is_some_and(|extension| extension == "jinja" || extension == "txt") {
        let text = gguf_store::read_text(path)?;
        vec![NamedTemplate { file: "chat_template.jinja", name: String::new(), text }]
    } else if path.extension().is_some_and(|extension| extension == "json") {
        let bytes = fs::read(path).map_err(|fault| Error::read(path, fault))?;
        gguf_scan::templates(|name| Ok((name == "tokenizer_config.json").then(|| bytes.clone())))?
    } else {
        of_metadata(crate::open(base)?.model().metadata())
    };
    if found.is_empty() {
        let what = format!("{base} has no chat template");
        let help = "give the model that this one was made from, or a file with its template";
        return Err(Error::request("template-base-missing", what, help));
    }
    Ok(found)
}

fn in_directory(directory: &Path) -> Result<Vec<NamedTemplate>, Error> {
    gguf_scan::templates(|name| {
        let path = directory.join(name);
        match path.is_file() {
            true => fs::read(&path).map(Some).map_err(|fault| Error::read(&path, fault)),
            false => Ok(None),
        }
    })
}

/// Returns the templates of a GGUF.
fn of_metadata(metadata: &Metadata) -> Vec<NamedTemplate> {
    let template = |(key, value): (&str, &gguf::Value)| {
        let rest = key.strip_prefix(TemplateSource::KEY)?;
        let name = if rest.is_empty() { "" } else { rest.strip_prefix('.')? };
        let text = value.as_str()?.to_owned();
        Some(NamedTemplate { file: "tokenizer.chat_template", name: name.to_owned(), text })
    };
    metadata.iter().filter_map(template).collect()
}
