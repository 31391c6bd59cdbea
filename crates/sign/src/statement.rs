//! In-toto statement about the files of a model.

use std::path::{Component, Path};

use gguf::Error;
use gguf_store::{Progress, digest::hex};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use crate::files::{IGNORED, SignedFiles, digest};
use crate::invalid;

const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
const PREDICATE_TYPE: &str = "https://model_signing/signature/v1.0";

/// Statement: names and digests of the files of a model.
pub struct Statement {
    /// Name of the model.
    pub model: String,
    /// Names and SHA-256 digests, sorted by name.
    files: Vec<(String, String)>,
    /// Names that are not signed.
    ignored: Vec<String>,
}

/// Name of a file, and what is wrong with it.
type FileFault = (String, &'static str);

impl Statement {
    /// Hashes the files of a model.
    pub fn of(
        signed: &SignedFiles,
        signature_name: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let len = |path: &Path| path.metadata().map(|status| status.len()).unwrap_or_default();
        progress.begin("hashing", signed.paths().map(len).sum());
        let hash = |(name, path): &(String, std::path::PathBuf)| {
            Ok((name.clone(), hex(&digest(path, progress)?)))
        };
        let files = signed.files.iter().map(hash).collect::<Result<_, Error>>()?;
        let ignored = signature_name.into_iter().chain(IGNORED).map(str::to_owned).collect();
        Ok(Self { model: signed.model.clone(), files, ignored })
    }

    /// Writes the statement.
    pub fn to_json(&self) -> Vec<u8> {
        let resources: Vec<_> = self
            .files
            .iter()
            .map(|(name, digest)| json!({ "name": name, "algorithm": "sha256", "digest": digest }))
            .collect();
        let statement = json!({
            "_type": STATEMENT_TYPE,
            "subject": [{ "name": self.model, "digest": { "sha256": self.root() } }],
            "predicateType": PREDICATE_TYPE,
            "predicate": {
                "serialization": {
                    "method": "files",
                    "hash_type": "sha256",
                    "allow_symlinks": false,
                    "ignore_paths": self.ignored,
                },
                "resources": resources,
            },
        });
        statement.to_string().into_bytes()
    }

    /// Returns the SHA-256 of all digests.
    fn root(&self) -> String {
        let mut hash = Sha256::new();
        for (_, digest) in &self.files {
            let byte =
                |at| digest.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
            hash.update((0..digest.len()).step_by(2).filter_map(byte).collect::<Vec<u8>>());
        }
        hex(&hash.finalize())
    }

    /// Reads a statement whose signature was verified.
    pub fn from_json(payload: &[u8]) -> Result<Self, Error> {
        let statement: Json = serde_json::from_slice(payload)
            .map_err(|_| invalid("the signed content is not a JSON document"))?;
        let is = |value: &Json, expected: &str| match value.as_str() {
            Some(found) if found == expected => Ok(()),
            found => Err(invalid(format!("the signed content has {found:?}; expected {expected}"))),
        };
        is(&statement["_type"], STATEMENT_TYPE)?;
        is(&statement["predicateType"], PREDICATE_TYPE)?;
        let serialization = &statement["predicate"]["serialization"];
        is(&serialization["method"], "files")?;
        is(&serialization["hash_type"], "sha256")?;
        let file = |resource: &Json| {
            let name = resource["name"].as_str()?.to_owned();
            let is_inside = Path::new(&name)
                .components()
                .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
            let digest = resource["digest"].as_str()?.to_lowercase();
            let is_digest =
                digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
            (is_inside && is_digest && resource["algorithm"] == "sha256").then_some((name, digest))
        };
        let resources = statement["predicate"]["resources"].as_array();
        let files: Option<Vec<_>> = resources.into_iter().flatten().map(file).collect();
        let files = files.filter(|files| !files.is_empty());
        let files =
            files.ok_or_else(|| invalid("the signed content has no valid list of files"))?;
        let ignored = serialization["ignore_paths"].as_array().into_iter().flatten();
        let found = Self {
            model: statement["subject"][0]["name"].as_str().unwrap_or_default().to_owned(),
            files,
            ignored: ignored.filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
        };
        is(&statement["subject"][0]["digest"]["sha256"], &found.root())?;
        Ok(found)
    }

    /// Compares the files of a model. Returns the names of all files that were looked at, and the faults.
    pub fn compare(
        &self,
        model: &Path,
        progress: &dyn Progress,
    ) -> Result<(Vec<String>, Vec<FileFault>), Error> {
        let present = SignedFiles::find(model, None)?;
        let len = |path: &Path| path.metadata().map(|status| status.len()).unwrap_or_default();
        progress.begin("hashing", present.paths().map(len).sum());
        let (mut names, mut faults) = (Vec::new(), Vec::new());
        for (name, path) in &present.files {
            let is_ignored = |ignored: &String| {
                name == ignored
                    || name.strip_prefix(&**ignored).is_some_and(|rest| rest.starts_with('/'))
            };
            if present.is_directory && self.ignored.iter().any(is_ignored) {
                continue;
            }
            // The signature of a directory has the name of the file.
            let file_name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            let label = if name == "." { &file_name } else { name };
            let signed = self
                .files
                .iter()
                .find(|(other, _)| other == name || name == "." && *other == file_name);
            match signed {
                None => faults.push((label.clone(), "is not signed")),
                Some((_, expected)) if *expected != hex(&digest(path, progress)?) => {
                    faults.push((label.clone(), "differs from the signed file"));
                }
                Some(_) => {}
            }
            names.push(label.clone());
        }
        if present.is_directory {
            let is_missing = |name: &String| present.files.iter().all(|(other, _)| other != name);
            for (name, _) in self.files.iter().filter(|(name, _)| is_missing(name)) {
                faults.push((name.clone(), "is missing"));
            }
        }
        Ok((names, faults))
    }
}
