//! Origin and license of a model.

use gguf::Metadata;
use serde::Serialize;

/// Origin and license in the metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// Description.
    pub description: Option<String>,
    /// License: its SPDX expression, or its name.
    pub license: Option<String>,
    /// URL of the license.
    pub license_link: Option<String>,
    /// Organization or author.
    pub author: Option<String>,
    /// Author of the quantization.
    pub quantized_by: Option<String>,
    /// URL of the model or its source.
    pub url: Option<String>,
    /// Base models.
    pub base_models: Vec<BaseModel>,
    /// Language codes.
    pub languages: Vec<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Importance matrix of the quantization.
    pub imatrix: Option<Imatrix>,
    /// Provenance keys.
    pub provenance: Option<Provenance>,
}

/// A base model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BaseModel {
    /// Name.
    pub name: Option<String>,
    /// Organization.
    pub organization: Option<String>,
    /// URL of its repository or page.
    pub url: Option<String>,
}

/// Importance matrix of a quantization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imatrix {
    /// File name.
    pub file: Option<String>,
    /// File name of the text.
    pub dataset: Option<String>,
    /// Number of tensors.
    #[serde(rename = "tensors")]
    pub entries: Option<u64>,
    /// Number of chunks.
    pub chunks: Option<u64>,
}

/// Provenance of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// Program and version.
    pub tool: Option<String>,
    /// Source.
    pub source: Option<String>,
    /// Settings of the conversion.
    pub settings: Option<String>,
}

impl Origin {
    /// Reads the origin.
    pub(super) fn of(metadata: &Metadata) -> Self {
        let text = |key: &str| metadata.str(key).filter(|text| !text.is_empty());
        let first = |keys: &[&str]| keys.iter().find_map(|key| text(key)).map(str::to_owned);
        let texts = |key: &str| {
            let array = metadata.array(key);
            let strings = array.and_then(|array| array.strings()).into_iter().flatten();
            strings.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
        };
        // "other" refers to the name.
        let license = text("general.license").filter(|license| *license != "other");
        let license = license.or(text("general.license.name")).or(text("general.license"));
        let imatrix = Imatrix {
            file: first(&["quantize.imatrix.file"]),
            dataset: first(&["quantize.imatrix.dataset"]),
            entries: metadata.u64("quantize.imatrix.entries_count"),
            chunks: metadata.u64("quantize.imatrix.chunks_count"),
        };
        let provenance = Provenance {
            tool: first(&["gguf_kit.provenance.tool"]),
            source: first(&["gguf_kit.provenance.source"]),
            settings: first(&["gguf_kit.provenance.settings"]),
        };
        Self {
            license: license.map(str::to_owned),
            license_link: first(&["general.license.link"]),
            description: first(&["general.description"]),
            author: first(&["general.organization", "general.author"]),
            quantized_by: first(&["general.quantized_by"]),
            url: first(&[
                "general.url",
                "general.repo_url",
                "general.source.url",
                "general.source.repo_url",
            ]),
            base_models: base_models(metadata),
            languages: texts("general.languages"),
            tags: texts("general.tags"),
            imatrix: (imatrix != Imatrix::default()).then_some(imatrix),
            provenance: (provenance != Provenance::default()).then_some(provenance),
        }
    }
}

fn base_models(metadata: &Metadata) -> Vec<BaseModel> {
    /// Limit of the number of base models.
    const MAX: u64 = 100;
    let count = metadata.u64("general.base_model.count").unwrap_or(0).min(MAX);
    let of = |id: u64| {
        let text = |name: &str| {
            let key = format!("general.base_model.{id}.{name}");
            metadata.str(&key).map(str::to_owned)
        };
        BaseModel {
            name: text("name"),
            organization: text("organization"),
            url: text("repo_url").or(text("url")),
        }
    };
    (0..count).map(of).filter(|model| *model != BaseModel::default()).collect()
}
