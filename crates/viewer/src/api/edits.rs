//! Edits of metadata and tensor names, with the rules of `gguf edit`.

use gguf_kit::edit::{Changes, Token, in_place, new_findings, preview};
use gguf_kit::key_value::KeyValue;
use gguf_kit::{Error, json};
use gguf_remote::Location;
use gguf_store::edit::EditOutcome;
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
    for (row, change) in rows.as_array_mut().into_iter().flatten().zip(&keys) {
        super::keys::add_text(row, change.before.as_ref(), change.after.as_ref());
    }
    let findings = findings_json(&model, &findings);
    let document = serde_json::json!({ "keys": rows, "findings": findings });
    let mut document = json::with_schema("edit/3", document);
    if !edit.preview {
        let path = path.clone();
        // The header is written in place only if the file is not open.
        drop(model);
        let saved =
            session.models.edit(id, || Ok(in_place(&path, &changes, renderer, cancel)?.1))?;
        document["saved"] = match saved {
            EditOutcome::Unchanged => "unchanged",
            EditOutcome::InPlace => "in-place",
            EditOutcome::Rebuilt => "rebuilt",
        }
        .into();
    }
    Ok(Response::Json(document))
}

fn refused(message: &str) -> ApiError {
    Error::request("edit-refused", message, "use `gguf edit -o`").into()
}
