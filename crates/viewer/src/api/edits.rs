//! Edits of metadata and tensor names, with the rules of `gguf edit`.

use std::path::Path;

use gguf_kit::edit::{Changes, Token, copy, in_place, new_findings, preview, preview_in_place};
use gguf_kit::key_value::KeyValue;
use gguf_kit::{Error, json};
use gguf_remote::Location;
use gguf_store::edit::{EditOutcome, EditPreview};
use gguf_tokenizer::template;
use serde::Deserialize;

use super::Request;
use super::overview::findings_json;
use super::tokens::default_true;
use crate::response::{ApiError, ApiResult, Response};

/// Body of `POST edit`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    #[serde(default = "default_true")]
    preview: bool,
    #[serde(default)]
    set: Vec<Set>,
    #[serde(default)]
    remove: Vec<String>,
    #[serde(default)]
    rename: Vec<(String, String)>,
    #[serde(default)]
    special_tokens: Vec<SpecialToken>,
    #[serde(default)]
    chat_template: Option<String>,
    #[serde(default)]
    rename_tensors: Vec<(String, String)>,
    /// Bytes reserved for later edits in a rewritten file.
    #[serde(default)]
    reserve: Option<u64>,
    /// Name of a new file beside the model that gets the changes; the model stays as it is.
    #[serde(default)]
    copy: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    key: String,
    #[serde(default, rename = "type")]
    ty: Option<String>,
    value: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecialToken {
    role: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    id: Option<u32>,
}

impl Edit {
    fn changes(&self) -> Result<Changes, Error> {
        let set = self.set.iter().map(|set| KeyValue::new(&set.key, set.ty.as_deref(), &set.value));
        let mut set = set.collect::<Result<Vec<_>, _>>()?;
        if let Some(text) = &self.chat_template {
            set.push(KeyValue::new(template::TemplateSource::KEY, Some("str"), text)?);
        }
        let special = self.special_tokens.iter().map(|special| {
            let token = match (&special.text, special.id) {
                (Some(text), None) => Token::Text(text.clone()),
                (None, Some(id)) => Token::Id(id.to_string()),
                _ => {
                    let message = "expected either `text` or `id` of a special token";
                    return Err(Error::request("request-invalid", message, ""));
                }
            };
            Ok((special.role.clone(), token))
        });
        Ok(Changes {
            remove: self.remove.clone(),
            rename: self.rename.clone(),
            set,
            special_tokens: special.collect::<Result<_, _>>()?,
            rename_tensor: self.rename_tensors.clone(),
            reserve: self.reserve,
            ..Changes::default()
        })
    }
}

/// `POST edit`.
pub fn edit(request: Request, edit: Edit) -> ApiResult {
    let Request { session, id, model, cancel, .. } = request;
    let renderer = &session.renderer;
    let Location::Path(path) = model.files.location() else {
        return Err(refused("remote files cannot be edited"));
    };
    if model.files.files().len() != 1 {
        return Err(refused("split models cannot be edited here"));
    }
    let changes = edit.changes()?;
    let keys = preview(model.model()?, &changes, renderer)?;
    let findings = new_findings(model.model()?, &changes, renderer)?;
    let mut rows = json::edited_keys(&keys);
    let metadata = model.model()?.metadata();
    for (row, change) in rows.as_array_mut().into_iter().flatten().zip(&keys) {
        let sides =
            [("a", change.before.as_ref(), metadata), ("b", change.after.as_ref(), metadata)];
        super::keys::add_text(row, &change.key, sides);
    }
    let findings = findings_json(&model, &findings);
    let write = match edit.copy {
        // A copy has no reserve unless one is requested.
        Some(_) => None,
        None => Some(write_json(&preview_in_place(path, &changes, renderer)?)),
    };
    let document = serde_json::json!({ "keys": rows, "findings": findings, "write": write });
    let mut document = json::with_schema("edit/3", document);
    if let (Some(name), false) = (&edit.copy, edit.preview) {
        copy(model.model()?, &changes, renderer, &beside(path, name)?, cancel)?;
        document["saved"] = "copied".into();
    } else if !edit.preview {
        let path = path.clone();
        // The header is written in place only if the file is not open.
        drop(model);
        let saved =
            session.models.edit(id, || Ok(in_place(&path, &changes, renderer, cancel)?.1))?;
        document["saved"] = outcome_name(saved).into();
    }
    Ok(Response::Json(document))
}

/// Returns the path of a file in the directory of `model`.
fn beside(model: &Path, name: &str) -> Result<std::path::PathBuf, ApiError> {
    let is_name = Path::new(name).file_name().is_some_and(|file| file == name)
        && !name.contains(['/', '\\', ':', '\0'])
        && name.ends_with(".gguf");
    if !is_name {
        let message = "the name of a copy has no folder and ends in .gguf";
        return Err(Error::request("edit-refused", message, "").into());
    }
    Ok(model.with_file_name(name))
}

fn write_json(preview: &EditPreview) -> serde_json::Value {
    serde_json::json!({
        "outcome": outcome_name(preview.outcome),
        "file_bytes": [preview.file_len.0, preview.file_len.1],
        "reserve": [preview.reserve.0, preview.reserve.1],
    })
}

fn outcome_name(outcome: EditOutcome) -> &'static str {
    match outcome {
        EditOutcome::Unchanged => "unchanged",
        EditOutcome::InPlace => "in-place",
        EditOutcome::Rebuilt => "rebuilt",
    }
}

fn refused(message: &str) -> ApiError {
    Error::request("edit-refused", message, "use `gguf edit -o`").into()
}
