//! Quality report: cost and loss of each quantization type of a model, as stored in JSON files.

use std::path::Path;

use gguf::{Error, Finding};
use gguf_store::read_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chunks::Chunks;
use crate::divergence::{Divergence, Spread};
use crate::recommendation::{Purpose, SizeAndLoss, dominating, recommended};

/// Version of the JSON format.
pub const VERSION: u32 = 3;

/// Oldest version that can still be read. In version 2, types have no digests, and a type is dominated by any type of lower
/// divergence.
const OLDEST_VERSION: u32 = 2;

/// A quality report, complete or in progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QualityReport {
    /// Version of the JSON format: [`VERSION`].
    pub version: u32,
    /// Conditions of all measurements.
    pub conditions: Conditions,
    /// The reference model.
    pub reference: ReferenceModel,
    /// Measured types, in the order of measurement.
    pub types: Vec<TypeQuality>,
    /// Skipped types.
    pub skipped: Vec<SkippedType>,
}

/// Conditions of the measurements. Results are comparable if these are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// Name and version of the program.
    pub program: String,
    /// Digest of the reference model: its header and a sample of rows of each tensor.
    pub reference_digest: String,
    /// File name of the text.
    pub text: String,
    /// SHA-256 of the text.
    pub text_digest: String,
    /// Chunk size in tokens.
    pub chunk_size: usize,
    /// Stride of overlapping chunks.
    pub stride: Option<usize>,
    /// Number of chunks.
    pub chunks: usize,
    /// Number of evaluated tokens.
    pub tokens: usize,
    /// Precision of the evaluation: `exact` or `fast`.
    pub precision: String,
    /// Element type of the KV cache.
    pub cache_type: String,
    /// LoRA adapters of all models, as the user named them.
    pub adapters: Vec<String>,
    /// File name of the importance matrix.
    pub imatrix: Option<String>,
    /// SHA-256 of the importance matrix.
    pub imatrix_digest: Option<String>,
    /// Calibration method and text of calibrated types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<String>,
    /// Benchmark parameters, if throughput was measured: prompt tokens, generated tokens, threads.
    pub benchmark: Option<[usize; 3]>,
    /// Context size in tokens whose F16 KV cache counts as memory.
    pub memory_context: usize,
}

/// Size, memory and throughput of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelCost {
    /// File size in bytes.
    pub file_bytes: u64,
    /// Bits of tensor data per weight.
    pub bits_per_weight: f64,
    /// Bytes of all tensors and of the full KV cache.
    pub memory_bytes: u64,
    /// Throughput of prompt processing.
    pub prompt_tokens_per_second: Option<f64>,
    /// Throughput of token generation.
    pub generation_tokens_per_second: Option<f64>,
}

/// The reference model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReferenceModel {
    /// Name of the model as the user gave it.
    pub file: String,
    /// `general.name`.
    pub name: Option<String>,
    /// `general.architecture`.
    pub architecture: Option<String>,
    /// Name of `general.file_type`.
    pub file_type: Option<String>,
    /// Number of parameters.
    pub parameters: u64,
    /// Perplexity; 0 before the first measurement.
    pub ppl: f64,
    /// Standard error.
    pub ppl_error: f64,
    /// Size, memory and throughput.
    #[serde(flatten)]
    pub cost: ModelCost,
}

/// Measured cost and loss of a quantization type. Field names follow `gguf divergence --json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TypeQuality {
    /// Name of the type, or of the file that was measured.
    #[serde(rename = "type")]
    pub name: String,
    /// File that was measured, as the user named it; `None` for a type that was quantized in memory.
    #[serde(default)]
    pub file: Option<String>,
    /// Digest of the tensors, by which a file is recognized; `None` for calibrated types.
    #[serde(default)]
    pub tensor_digest: Option<String>,
    /// Size, memory and throughput.
    #[serde(flatten)]
    pub cost: ModelCost,
    /// Perplexity.
    pub ppl_q: f64,
    /// Standard error.
    pub ppl_q_error: f64,
    /// Ratio of the perplexity to that of the reference model.
    pub ppl_ratio: f64,
    /// Standard error of the ratio; small, because both models read the same text.
    pub ppl_ratio_error: f64,
    /// Mean KL divergence from the reference model, in nats.
    pub mean_kld: f64,
    /// Standard error.
    pub mean_kld_error: f64,
    /// Median KL divergence.
    pub median_kld: f64,
    /// 99th percentile of the KL divergence.
    pub kld_99: f64,
    /// Maximum KL divergence.
    pub max_kld: f64,
    /// Top-1 agreement with the reference model, in percent.
    pub top1_agreement: f64,
    /// Standard error.
    pub top1_agreement_error: f64,
    /// Mean KL divergence by position in the chunk, for ranges of equal length.
    pub kld_by_position: Vec<PositionRange>,
    /// Weight error of each tensor whose type differs from the reference model.
    pub tensors: Vec<TensorError>,
    /// Type that dominates this one: no larger, and its divergence is lower beyond the standard error; `null` if there is
    /// none.
    pub dominated_by: Option<String>,
}

/// A range of positions in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PositionRange {
    /// First position, counted from 0.
    pub from: usize,
    /// Position after the last.
    pub to: usize,
    /// Mean KL divergence.
    pub mean_kld: f64,
}

/// Weight error of a tensor relative to the reference model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TensorError {
    /// Name of the tensor.
    pub name: String,
    /// Type of the tensor.
    #[serde(rename = "type")]
    pub tensor_type: String,
    /// Relative RMS error: 0 is lossless, 1 corresponds to weights that are all 0.
    pub error: f64,
}

/// A type that was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedType {
    /// Name of the type.
    #[serde(rename = "type")]
    pub name: String,
    /// Reason.
    pub reason: String,
}

impl Conditions {
    /// Refuses to add to a report that was measured under these conditions if the present ones
    /// differ.
    ///
    /// # Errors
    /// `report-other`, with the first field that differs.
    pub fn require_same(&self, now: &Self) -> Result<(), Error> {
        if self == now {
            return Ok(());
        }
        let fields = |conditions: &Self| serde_json::to_value(conditions).unwrap_or_default();
        let (before, now) = (fields(self), fields(now));
        let differs =
            now.as_object().and_then(|all| all.iter().find(|(key, value)| before[key] != **value));
        let field = differs.map_or("conditions", |(key, _)| key.as_str());
        let what = format!(
            "the report was measured with another {field}: {}, now {}",
            before[field], now[field]
        );
        let help = "write to another file, or start over with --force";
        Err(Error::request("report-other", what, help))
    }
}

/// Number of position ranges.
const RANGES: usize = 16;

impl PositionRange {
    /// Returns the mean KL divergence by position in the chunk, for ranges of equal length.
    fn all(divergences: &[f32], chunks: &Chunks) -> Vec<Self> {
        let positions = chunks.predicted() / chunks.count().max(1);
        let first = chunks.chunk_len() - positions;
        let edge = |range: usize| range * positions / RANGES.min(positions.max(1));
        let range = |range: usize| {
            let (from, to) = (edge(range), edge(range + 1));
            let in_range = divergences.chunks_exact(positions.max(1)).map(|all| &all[from..to]);
            let sum: f64 = in_range.flatten().map(|divergence| f64::from(*divergence)).sum();
            let count = (to - from) * chunks.count();
            Self { from: first + from, to: first + to, mean_kld: sum / count.max(1) as f64 }
        };
        (0..RANGES.min(positions)).map(range).collect()
    }
}

impl TypeQuality {
    /// Returns the result of a type: its divergence from the reference model, and the weight error
    /// of its tensors.
    pub fn new(
        name: String,
        cost: ModelCost,
        found: &Divergence,
        chunks: &Chunks,
        tensors: Vec<TensorError>,
    ) -> Self {
        let spread = Spread::new(&found.divergences);
        let ((ppl_ratio, ppl_ratio_error), (same, same_error)) =
            (found.ratio(), found.top1_agreement());
        Self {
            name,
            file: None,
            tensor_digest: None,
            cost,
            ppl_q: found.model.value(),
            ppl_q_error: found.model.error(),
            ppl_ratio,
            ppl_ratio_error,
            mean_kld: found.divergence.value(),
            mean_kld_error: found.divergence.error(),
            median_kld: spread.at(0.5),
            kld_99: spread.at(0.99),
            max_kld: spread.at(1.0),
            top1_agreement: 100.0 * same,
            top1_agreement_error: 100.0 * same_error,
            kld_by_position: PositionRange::all(&found.divergences, chunks),
            tensors,
            dominated_by: None,
        }
    }
}

impl From<&TypeQuality> for SizeAndLoss {
    fn from(entry: &TypeQuality) -> Self {
        let TypeQuality { mean_kld, mean_kld_error, .. } = *entry;
        Self { file_bytes: entry.cost.file_bytes, mean_kld, mean_kld_error }
    }
}

impl QualityReport {
    /// Reads a report from a JSON file.
    ///
    /// # Errors
    /// `report-invalid` if the file is not a report of this version; if it cannot be read.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = read_text(path)?;
        let invalid =
            |what: String| Error::from(Finding::error("report-invalid", what)).in_file(path);
        let report: Value = serde_json::from_str(&text)
            .map_err(|fault| invalid(format!("is not a report of `gguf quality`: {fault}")))?;
        // Fields depend on the version, so it comes first.
        let is_known =
            |version: u64| (u64::from(OLDEST_VERSION)..=u64::from(VERSION)).contains(&version);
        if let Some(version) = report["version"].as_u64().filter(|&version| !is_known(version)) {
            return Err(invalid(format!("has version {version}; expected {VERSION}")));
        }
        let mut report: Self = serde_json::from_value(report)
            .map_err(|fault| invalid(format!("is not a report of `gguf quality`: {fault}")))?;
        report.version = VERSION;
        report.find_dominated();
        Ok(report)
    }

    /// Formats the report as JSON.
    pub fn to_json(&self) -> String {
        // Serialization does not fail: all fields are numbers and strings.
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }

    /// Returns the recommended type for each purpose, each type once.
    pub fn choices(&self) -> Vec<(Purpose, &TypeQuality)> {
        let choices = recommended(&self.sizes_and_losses());
        choices.into_iter().map(|(purpose, model)| (purpose, &self.types[model])).collect()
    }

    fn sizes_and_losses(&self) -> Vec<SizeAndLoss> {
        self.types.iter().map(SizeAndLoss::from).collect()
    }

    /// Returns the Pareto front of size and mean KL divergence, the smallest type first.
    pub fn front(&self) -> Vec<&TypeQuality> {
        let mut front: Vec<_> =
            self.types.iter().filter(|entry| entry.dominated_by.is_none()).collect();
        front.sort_by_key(|entry| entry.cost.file_bytes);
        front
    }

    /// Returns all types, the largest first.
    pub fn by_size(&self) -> Vec<&TypeQuality> {
        let mut all: Vec<_> = self.types.iter().collect();
        all.sort_by(|a, b| {
            let size = |entry: &TypeQuality| entry.cost.file_bytes;
            size(b).cmp(&size(a)).then(a.mean_kld.total_cmp(&b.mean_kld))
        });
        all
    }

    /// Sets `dominated_by` of every type, as [`dominating`] finds it.
    pub fn find_dominated(&mut self) {
        let names: Vec<_> = dominating(&self.sizes_and_losses())
            .into_iter()
            .map(|other| Some(self.types[other?].name.clone()))
            .collect();
        for (entry, name) in self.types.iter_mut().zip(names) {
            entry.dominated_by = name;
        }
    }

    /// Formats the report as CSV: the reference model, then one line per type, the largest first.
    pub fn to_csv(&self) -> String {
        const COLUMNS: &str = "type,file_bytes,bits_per_weight,ppl,ppl_error,mean_kld,mean_kld_error,median_kld,\
             kld_99,max_kld,top1_agreement,top1_agreement_error,prompt_tokens_per_second,\
             generation_tokens_per_second,memory_bytes,dominated_by\n";
        let rate = |rate: Option<f64>| rate.map_or(String::new(), |rate| rate.to_string());
        let line = |name: &str, cost: &ModelCost, figures: String, dominated_by: &str| {
            let ModelCost { file_bytes, bits_per_weight, memory_bytes, .. } = cost;
            let prompt = rate(cost.prompt_tokens_per_second);
            let generation = rate(cost.generation_tokens_per_second);
            format!(
                "{name},{file_bytes},{bits_per_weight},{figures},{prompt},{generation},{memory_bytes},{dominated_by}\n"
            )
        };
        let ReferenceModel { ppl, ppl_error, cost, .. } = &self.reference;
        let mut text = COLUMNS.to_owned();
        text += &line("reference", cost, format!("{ppl},{ppl_error},0,0,0,0,0,100,0"), "");
        for entry in self.by_size() {
            let figures = [
                entry.ppl_q,
                entry.ppl_q_error,
                entry.mean_kld,
                entry.mean_kld_error,
                entry.median_kld,
                entry.kld_99,
                entry.max_kld,
                entry.top1_agreement,
                entry.top1_agreement_error,
            ];
            let figures = figures.map(|figure| figure.to_string()).join(",");
            let dominated_by = entry.dominated_by.as_deref().unwrap_or_default();
            text += &line(&entry.name, &entry.cost, figures, dominated_by);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a report of types with the given sizes and divergences.
    fn report(types: &[(&str, u64, f64)]) -> QualityReport {
        let entry = |&(name, file_bytes, mean_kld): &(&str, u64, f64)| TypeQuality {
            name: name.to_owned(),
            cost: ModelCost { file_bytes, ..ModelCost::default() },
            mean_kld,
            ..TypeQuality::default()
        };
        let mut report = QualityReport {
            version: VERSION,
            conditions: Conditions::default(),
            reference: ReferenceModel::default(),
            types: types.iter().map(entry).collect(),
            skipped: Vec::new(),
        };
        report.find_dominated();
        report
    }

    #[test]
    fn finds_dominated_types() {
        let report = report(&[
            ("large", 90, 0.0001),
            ("like large", 90, 0.0001),
            ("worse", 60, 0.02),
            ("better", 60, 0.009),
            ("as good, larger", 70, 0.009),
            ("small", 30, 0.04),
            ("hopeless", 40, 2.0),
        ]);
        let dominated_by: Vec<_> =
            report.types.iter().map(|entry| entry.dominated_by.as_deref()).collect();
        let expected =
            [None, Some("large"), Some("better"), None, Some("better"), None, Some("small")];
        assert_eq!(dominated_by, expected);
        let names = |types: Vec<&TypeQuality>| {
            types.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(report.front()), ["small", "better", "large"]);
        assert_eq!(names(report.by_size())[..3], ["large", "like large", "as good, larger"]);
        let chosen = report.choices().into_iter().map(|(purpose, entry)| (purpose, &*entry.name));
        let expected = [
            (Purpose::Faithful, "large"),
            (Purpose::Balanced, "better"),
            (Purpose::Small, "small"),
        ];
        assert_eq!(chosen.collect::<Vec<_>>(), expected);
    }
}
