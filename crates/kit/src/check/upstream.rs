//! Comparison of the chat template of a file with that of the model it was made from.

use std::path::Path;

use gguf::{Finding, Metadata};
use gguf_remote::{Location, RemoteOptions, RepositoryFiles};
use gguf_tokenizer::template::{Linter, Renderer, TemplateSource};
use serde_json::Value as Json;

use crate::{Error, open};

/// Files of a checkpoint with the default template, in the order of precedence.
const FILES: [&str; 3] = ["chat_template.jinja", "tokenizer_config.json", "chat_template.json"];

/// Compares the prompts that the template of `source` renders with those of `upstream`: a checkpoint directory, a
/// repository, a GGUF, or an empty text for the base model that the file names.
///
/// # Errors
/// If `upstream` cannot be read, has no template, or is empty and the file names no repository.
pub(super) fn compare(
    source: &str,
    upstream: &str,
    renderer: &Renderer,
) -> Result<Vec<Finding>, Error> {
    let opened = open(source)?;
    let metadata = opened.model().metadata();
    let upstream = match upstream {
        "" => base_model(metadata)?,
        named => named.to_owned(),
    };
    let template = template_of(&upstream)?.ok_or_else(|| {
        let what = format!("{upstream} has no chat template to compare with");
        Error::request("template-missing", what, "name the model with --upstream")
    })?;
    Ok(Linter::new(renderer.clone()).compare(metadata, &template)?)
}

/// Returns the repository of the model that a file was made from.
fn base_model(metadata: &Metadata) -> Result<String, Error> {
    const KEYS: [&str; 5] = [
        "general.source.repo_url",
        "general.source.url",
        "general.source.huggingface.repository",
        "general.base_model.0.repo_url",
        "general.base_model.0.url",
    ];
    let named = KEYS.iter().filter_map(|key| metadata.str(key));
    named.filter_map(repository).next().ok_or_else(|| {
        let what = "the file does not name the repository of its base model";
        Error::request("request-invalid", what, "name it: --upstream hf:org/repo")
    })
}

/// Returns `hf:org/repo` for the URL of a repository on the Hub, or for `org/repo`.
fn repository(url: &str) -> Option<String> {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.strip_prefix("huggingface.co/")?,
        None => url,
    };
    let mut parts = path.trim_end_matches('/').split('/');
    match (parts.next(), parts.next()) {
        (Some(organization), Some(name)) if !organization.is_empty() && !name.is_empty() => {
            Some(format!("hf:{organization}/{name}"))
        }
        _ => None,
    }
}

/// Returns the default template of a model; `None` if it has none.
fn template_of(upstream: &str) -> Result<Option<String>, Error> {
    let is_gguf = gguf::is_gguf(upstream);
    match Location::parse(upstream)? {
        Location::Path(directory) if directory.is_dir() => from_files(|name| {
            let path = directory.join(name);
            match std::fs::read(&path) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(fault) => Err(Error::read(&path, fault)),
            }
        }),
        Location::Hub(repository) if repository.file.is_none() => {
            let files = RepositoryFiles::list(upstream, RemoteOptions::from_env())?;
            from_files(|name| match files.names().iter().any(|known| known == name) {
                true => Ok(Some(files.fetch(name)?)),
                false => Ok(None),
            })
        }
        _ if is_gguf => {
            let opened = open(upstream)?;
            Ok(opened.model().metadata().str(TemplateSource::KEY).map(str::to_owned))
        }
        _ => {
            let what = format!("{upstream} is not a checkpoint, a repository or a GGUF");
            Err(Error::request("request-invalid", what, "name a directory or hf:org/repo"))
        }
    }
}

/// Returns the default template of a checkpoint whose small files `read` returns.
fn from_files(
    read: impl Fn(&str) -> Result<Option<Vec<u8>>, Error>,
) -> Result<Option<String>, Error> {
    for name in FILES {
        let Some(bytes) = read(name)? else { continue };
        if name.ends_with(".jinja") {
            return Ok(Some(String::from_utf8_lossy(&bytes).into_owned()));
        }
        let json: Json = serde_json::from_slice(&bytes).map_err(|fault| {
            let what = format!("not valid JSON: {}", crate::json::fault(&fault));
            Error::input("json-invalid", Path::new(name), what, "download the file again")
        })?;
        if let Some(template) = default_template(&json["chat_template"]) {
            return Ok(Some(template));
        }
    }
    Ok(None)
}

/// Returns the template, or the one named `default` of a list.
fn default_template(value: &Json) -> Option<String> {
    let list = value.as_array().into_iter().flatten();
    let named = list.filter(|entry| entry["name"] == "default").map(|entry| &entry["template"]);
    let found = std::iter::once(value).chain(named).find_map(Json::as_str);
    found.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repositories_are_named_by_url() {
        for (url, expected) in [
            ("https://huggingface.co/org/model", Some("hf:org/model")),
            ("https://huggingface.co/org/model/tree/main", Some("hf:org/model")),
            ("org/model", Some("hf:org/model")),
            ("https://example.com/org/model", None),
            ("https://huggingface.co/org", None),
            ("", None),
        ] {
            assert_eq!(repository(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn templates_have_precedence() {
        let config = json!({"chat_template": [
            {"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"},
        ]});
        let config = config.to_string().into_bytes();
        let with = |jinja: bool| {
            let config = config.clone();
            from_files(move |name| {
                Ok(match name {
                    "chat_template.jinja" if jinja => Some(b"J".to_vec()),
                    "tokenizer_config.json" => Some(config.clone()),
                    _ => None,
                })
            })
        };
        assert_eq!(with(true).unwrap().as_deref(), Some("J"));
        assert_eq!(with(false).unwrap().as_deref(), Some("D"));
        assert!(from_files(|_| Ok(None)).unwrap().is_none());
    }
}
