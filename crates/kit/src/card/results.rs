//! Results of `gguf quality` and `gguf divergence`, matched with files.

use std::path::{Path, PathBuf};

use gguf::Finding;
use gguf_eval::quality::{QualityReport, TypeQuality};
use gguf_inspect::summary::Summary;
use gguf_report::card::{CardFile, Loss, Measurement};
use serde_json::Value;

use super::directory::{Directory, FoundModel};
use super::{file_name, is_calibrated};
use crate::{Error, tensor_digest};

/// Maximum size of a file that is searched for results, in bytes.
const LARGEST: u64 = 64 << 20;

/// Results of all documents.
pub(super) struct Results {
    documents: Vec<Document>,
}

/// A file with results.
struct Document {
    measurement: Measurement,
    /// Number of parameters of the reference model, if the document states it.
    parameters: Option<u64>,
    entries: Vec<Entry>,
    /// Whether the user named the file.
    is_given: bool,
    /// Whether a result was matched with a file.
    is_used: bool,
}

/// Result of a file or a type.
struct Entry {
    /// Digest of the tensors.
    digest: Option<String>,
    /// File name, or name of the type.
    name: String,
    bits_per_weight: Option<f64>,
    loss: Loss,
}

impl Results {
    /// Reads the files of `given`, and the JSON files of the directory that hold results.
    ///
    /// # Errors
    /// `report-invalid` if a given file holds no results; if it cannot be read.
    pub fn read(directory: &Directory, given: &[PathBuf]) -> Result<Self, Error> {
        let mut documents = Vec::new();
        for path in given {
            documents.push(Document { is_given: true, ..Document::read(path)? });
        }
        let is_given = |path: &Path| {
            let same = |other: &PathBuf| other.canonicalize().ok() == path.canonicalize().ok();
            given.iter().any(same)
        };
        let others = directory.json.iter().filter(|path| !is_given(path));
        let is_small = |path: &&PathBuf| path.metadata().is_ok_and(|of| of.len() <= LARGEST);
        // Other JSON files, such as a configuration, are no results.
        documents.extend(others.filter(is_small).filter_map(|path| Document::read(path).ok()));
        Ok(Self { documents })
    }

    /// Returns the loss of a file, and adds its measurement.
    ///
    /// # Errors
    /// If the tensors of the file cannot be read.
    pub fn of(
        &mut self,
        found: &FoundModel,
        file: &CardFile,
        summary: &Summary,
        measurements: &mut Vec<Measurement>,
    ) -> Result<Option<Loss>, Error> {
        if self.documents.is_empty() {
            return Ok(None);
        }
        let digest = tensor_digest::of_model(&found.model)?;
        for document in &mut self.documents {
            let Some(loss) = document.loss_of(&digest, found, file, summary) else { continue };
            document.is_used = true;
            let own = &document.measurement;
            let known = measurements.iter().position(|other| other.has_conditions_of(own));
            let measurement = known.unwrap_or_else(|| {
                measurements.push(own.clone());
                measurements.len() - 1
            });
            let files = &mut measurements[measurement].files;
            if !own.files.iter().all(|file| files.contains(file)) {
                files.extend(own.files.iter().cloned());
            }
            return Ok(Some(Loss { measurement, ..loss }));
        }
        Ok(None)
    }

    /// Notes about files that the user named without a use.
    pub fn notes(&self) -> Vec<String> {
        let unused =
            self.documents.iter().filter(|document| document.is_given && !document.is_used);
        let note = |document: &Document| {
            let file = document.measurement.files.concat();
            format!("warning: {file}: none of its results belongs to a file of the directory")
        };
        unused.map(note).collect()
    }
}

impl Document {
    fn read(path: &Path) -> Result<Self, Error> {
        let invalid =
            |what: &str| Error::from(Finding::error("report-invalid", what)).in_file(path);
        let wrong = "holds no results of `gguf quality --json` or `gguf divergence --json`";
        let text = crate::read_text(path)?;
        let json: Value = serde_json::from_str(&text).map_err(|_| invalid(wrong))?;
        let name = file_name(path.display().to_string());
        if json["conditions"].is_object() {
            return Ok(Self::of_quality(name, QualityReport::read(path)?));
        }
        let is_divergence =
            json["schema"].as_str().is_some_and(|name| name.starts_with("gguf-kit/divergence/"));
        Self::of_divergence(name, &json).filter(|_| is_divergence).ok_or_else(|| invalid(wrong))
    }

    fn of_quality(file: String, report: QualityReport) -> Self {
        let conditions = report.conditions;
        let measurement = Measurement {
            files: vec![file],
            reference: file_name(&report.reference.file),
            text: Some(file_name(&conditions.text)),
            text_sha256: Some(conditions.text_digest),
            tokens: conditions.tokens as u64,
            chunk_size: Some(conditions.chunk_size as u64),
            program: Some(conditions.program),
        };
        let entry = |entry: TypeQuality| Entry {
            digest: entry.tensor_digest,
            name: entry.name,
            bits_per_weight: Some(entry.cost.bits_per_weight),
            loss: Loss {
                mean_kld: entry.mean_kld,
                mean_kld_error: entry.mean_kld_error,
                top1_agreement: entry.top1_agreement,
                top1_agreement_error: entry.top1_agreement_error,
                measurement: 0,
            },
        };
        let parameters = Some(report.reference.parameters);
        let entries = report.types.into_iter().map(entry).collect();
        Self { measurement, parameters, entries, is_given: false, is_used: false }
    }

    fn of_divergence(file: String, json: &Value) -> Option<Self> {
        let models = json["models"].as_array()?;
        let entry = |model: &Value| {
            let number = |name: &str| model[name].as_f64();
            Some(Entry {
                digest: model["tensor_digest"].as_str().map(str::to_owned),
                name: file_name(model["file"].as_str()?),
                bits_per_weight: None,
                loss: Loss {
                    mean_kld: number("mean_kld")?,
                    mean_kld_error: number("mean_kld_error")?,
                    top1_agreement: number("top1_agreement")?,
                    top1_agreement_error: number("top1_agreement_error")?,
                    measurement: 0,
                },
            })
        };
        let measurement = Measurement {
            files: vec![file],
            reference: json["reference"].as_str().map(file_name)?,
            tokens: models.first()?["tokens"].as_u64()?,
            ..Measurement::default()
        };
        let entries = models.iter().filter_map(entry).collect();
        Some(Self { measurement, parameters: None, entries, is_given: false, is_used: false })
    }

    /// Returns the loss of the entry with the digest. Entries without digest belong to the file of the same type and size
    /// per weight, or of the same name, if the user named the document.
    fn loss_of(
        &self,
        digest: &str,
        found: &FoundModel,
        file: &CardFile,
        summary: &Summary,
    ) -> Option<Loss> {
        let is_type = |entry: &&Entry| {
            let name = match is_calibrated(found) {
                true => format!("{} calibrated", file.file_type),
                false => file.file_type.clone(),
            };
            let bits = entry.bits_per_weight.unwrap_or(0.0);
            entry.name == name
                && (bits - file.bits_per_weight).abs() < 1e-9
                && self.parameters == Some(summary.parameters)
        };
        let has_name =
            |entry: &&Entry| entry.bits_per_weight.is_none() && entry.name == file_name(&file.file);
        let with_digest = self.entries.iter().find(|entry| entry.digest.as_deref() == Some(digest));
        let mut without = self.entries.iter().filter(|entry| entry.digest.is_none());
        let entry = with_digest
            .or_else(|| without.find(|entry| self.is_given && (is_type(entry) || has_name(entry))));
        entry.map(|entry| entry.loss)
    }
}
