//! Where a model comes from, and what may be done with it.

use gguf::Metadata;

/// What the keys say of where a model comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The licence: its SPDX expression or, where that says nothing, what people call it.
    pub licence: Option<String>,
    /// Address of the licence.
    pub licence_link: Option<String>,
    /// What its maker says of it.
    pub description: Option<String>,
    /// Who made it: author or organization.
    pub maker: Option<String>,
    /// Who quantized it.
    pub quantized_by: Option<String>,
    /// Its page, or that of its source.
    pub page: Option<String>,
    /// What it was trained from.
    pub base_models: Vec<BaseModel>,
    /// Two-letter codes of its languages.
    pub languages: Vec<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// The importance matrix that quantization used.
    pub imatrix: Option<Imatrix>,
    /// What wrote the file, and from what, if the file says so.
    pub provenance: Option<Provenance>,
}

/// A model that another one was trained from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseModel {
    /// Its name.
    pub name: Option<String>,
    /// Who made it.
    pub organization: Option<String>,
    /// Its repository, or its page.
    pub address: Option<String>,
}

/// An importance matrix that was used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imatrix {
    /// The file.
    pub file: Option<String>,
    /// The text that it was made from.
    pub dataset: Option<String>,
    /// Tensors that it speaks of.
    pub entries: Option<u64>,
    /// Chunks of text that were read.
    pub chunks: Option<u64>,
}

/// What wrote a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The program and its version.
    pub tool: Option<String>,
    /// What it was made from.
    pub source: Option<String>,
    /// What was asked for.
    pub settings: Option<String>,
}

impl Origin {
    /// What the keys say.
    pub(super) fn of(metadata: &Metadata) -> Self {
        let text = |key: &str| metadata.str(key).filter(|text| !text.is_empty());
        let first = |keys: &[&str]| keys.iter().find_map(|key| text(key)).map(str::to_owned);
        let texts = |key: &str| {
            let array = metadata.array(key);
            let strings = array.and_then(|array| array.strings()).into_iter().flatten();
            strings.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
        };
        // "other" says that the name does.
        let licence = text("general.license").filter(|licence| *licence != "other");
        let licence = licence.or(text("general.license.name")).or(text("general.license"));
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
            licence: licence.map(str::to_owned),
            licence_link: first(&["general.license.link"]),
            description: first(&["general.description"]),
            maker: first(&["general.organization", "general.author"]),
            quantized_by: first(&["general.quantized_by"]),
            page: first(&[
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
    /// More parents than that no model has.
    const MOST: u64 = 100;
    let count = metadata.u64("general.base_model.count").unwrap_or(0).min(MOST);
    let of = |id: u64| {
        let text = |name: &str| {
            let key = format!("general.base_model.{id}.{name}");
            metadata.str(&key).map(str::to_owned)
        };
        BaseModel {
            name: text("name"),
            organization: text("organization"),
            address: text("repo_url").or(text("url")),
        }
    };
    (0..count).map(of).filter(|model| *model != BaseModel::default()).collect()
}
