//! Machine-learning bill of materials (ML-BOM) in CycloneDX 1.6: <https://cyclonedx.org/docs/1.6/json/>.

use std::path::Path;

use gguf_inspect::summary::{BaseModel, Summary};
use gguf_sign::file_digest;
use gguf_store::{Progress, digest};
use serde_json::{Value as Json, json};

use crate::{Error, Opened, redact};

/// SPDX identifiers of licenses by their names on the Hugging Face Hub, in lower case.
const LICENSES: &[(&str, &str)] = &[
    ("afl-3.0", "AFL-3.0"),
    ("agpl-3.0", "AGPL-3.0-only"),
    ("apache-2.0", "Apache-2.0"),
    ("artistic-2.0", "Artistic-2.0"),
    ("bsd-2-clause", "BSD-2-Clause"),
    ("bsd-3-clause", "BSD-3-Clause"),
    ("bsl-1.0", "BSL-1.0"),
    ("cc-by-4.0", "CC-BY-4.0"),
    ("cc-by-nc-4.0", "CC-BY-NC-4.0"),
    ("cc-by-nc-nd-4.0", "CC-BY-NC-ND-4.0"),
    ("cc-by-nc-sa-4.0", "CC-BY-NC-SA-4.0"),
    ("cc-by-nd-4.0", "CC-BY-ND-4.0"),
    ("cc-by-sa-3.0", "CC-BY-SA-3.0"),
    ("cc-by-sa-4.0", "CC-BY-SA-4.0"),
    ("cc0-1.0", "CC0-1.0"),
    ("epl-2.0", "EPL-2.0"),
    ("gpl-2.0", "GPL-2.0-only"),
    ("gpl-3.0", "GPL-3.0-only"),
    ("isc", "ISC"),
    ("lgpl-3.0", "LGPL-3.0-only"),
    ("mit", "MIT"),
    ("mpl-2.0", "MPL-2.0"),
    ("odc-by", "ODC-By-1.0"),
    ("unlicense", "Unlicense"),
    ("wtfpl", "WTFPL"),
];

/// Returns the bill of materials of a model. Local files are hashed; remote ones are listed without hashes, because that would
/// transfer them.
///
/// # Errors
/// If a file cannot be read, or `progress` stopped the work.
pub fn cyclonedx(opened: &Opened, source: &str, progress: &dyn Progress) -> Result<Json, Error> {
    let summary = Summary::of(opened.model());
    progress.begin("hashing", summary.file_bytes);
    let mut files = Vec::new();
    for path in opened.files().filter(|_| opened.transferred().is_none()) {
        files.push(file(path, &digest::hex(&file_digest(path, progress)?)));
    }
    let mut model = component(&summary, source);
    if let [only] = &files[..] {
        model["hashes"] = only["hashes"].clone();
    } else if !files.is_empty() {
        model["components"] = files.into();
    }
    let mut bom = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {
                "components": [{
                    "type": "application",
                    "name": "gguf-kit",
                    "version": env!("CARGO_PKG_VERSION"),
                }],
            },
            "component": model,
        },
    });
    // The same files have the same number.
    bom["serialNumber"] = serial_number(&bom).into();
    Ok(bom)
}

/// Returns a UUID of version 8 from the SHA-256 of a document.
fn serial_number(bom: &Json) -> String {
    let digest = digest::sha256(bom.to_string().as_bytes());
    let part = |from: usize, to: usize| &digest[from..to];
    let uuid = [part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32)];
    format!("urn:uuid:{}-{}-8{}-a{}-{}", uuid[0], uuid[1], uuid[2], uuid[3], uuid[4])
}

fn file(path: &Path, sha256: &str) -> Json {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    json!({
        "type": "file",
        "bom-ref": format!("file:{name}"),
        "name": name,
        "hashes": [{ "alg": "SHA-256", "content": sha256 }],
    })
}

fn component(summary: &Summary, source: &str) -> Json {
    let source = &*redact(source);
    let origin = &summary.origin;
    let file_name = Path::new(source).file_name().map(|name| name.to_string_lossy().into_owned());
    let name = summary.name.clone().or(file_name).unwrap_or_else(|| source.to_owned());
    let mut component = json!({
        "type": "machine-learning-model",
        "bom-ref": "model",
        "name": name,
        "modelCard": model_card(summary),
    });
    let mut set = |key: &str, value: Option<Json>| {
        if let Some(value) = value {
            component[key] = value;
        }
    };
    set("description", origin.description.clone().map(Json::from));
    set("authors", origin.author.as_ref().map(|author| json!([{ "name": author }])));
    set(
        "licenses",
        origin
            .license
            .as_ref()
            .map(|name| json!([{ "license": license(name, origin.license_link.as_deref()) }])),
    );
    set("tags", (!origin.tags.is_empty()).then(|| json!(origin.tags)));
    let url = origin.url.as_deref().filter(|url| is_url(url));
    set("externalReferences", url.map(|url| json!([{ "type": "website", "url": url }])));
    let ancestors: Vec<_> =
        origin.base_models.iter().enumerate().map(|(at, base)| ancestor(at, base)).collect();
    set("pedigree", (!ancestors.is_empty()).then(|| json!({ "ancestors": ancestors })));
    component
}

fn model_card(summary: &Summary) -> Json {
    let layers = &summary.layers;
    let mut parameters = json!({});
    if let Some(architecture) = &summary.architecture {
        parameters["architectureFamily"] = architecture.as_str().into();
    }
    if let Some(dataset) =
        summary.origin.imatrix.as_ref().and_then(|imatrix| imatrix.dataset.as_ref())
    {
        parameters["datasets"] = json!([{ "type": "dataset", "name": dataset, "description": "text of the importance matrix" }]);
    }
    let mut properties = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        properties
            .extend(value.map(|value| json!({ "name": format!("gguf:{name}"), "value": value })));
    };
    add("format_version", Some(summary.version.to_string()));
    add("parameters", Some(summary.parameters.to_string()));
    add("file_type", summary.file_type.map(str::to_owned));
    add("bits_per_weight", Some(format!("{:.2}", summary.bits_per_weight())));
    add("file_bytes", Some(summary.file_bytes.to_string()));
    add("context_length", layers.context_length.map(|count| count.to_string()));
    add("block_count", layers.block_count.map(|count| count.to_string()));
    add("vocabulary_size", summary.vocabulary.tokens.map(|count| count.to_string()));
    add("tokenizer", summary.vocabulary.model.clone());
    add("quantized_by", summary.origin.quantized_by.clone());
    for (kind, (tensors, bytes)) in &summary.types {
        add(&format!("tensors:{kind}"), Some(format!("{tensors} tensors, {bytes} bytes")));
    }
    let provenance = summary.origin.provenance.as_ref();
    add("provenance:tool", provenance.and_then(|one| one.tool.clone()));
    add("provenance:source", provenance.and_then(|one| one.source.clone()));
    add("provenance:settings", provenance.and_then(|one| one.settings.clone()));
    json!({ "modelParameters": parameters, "properties": properties })
}

/// Returns a license by its SPDX identifier, or by its name.
fn license(name: &str, link: Option<&str>) -> Json {
    let lower = name.to_lowercase();
    let id = LICENSES.iter().find(|(hub, spdx)| *hub == lower || spdx.eq_ignore_ascii_case(name));
    let mut license = match id {
        Some((_, spdx)) => json!({ "id": spdx }),
        None => json!({ "name": name }),
    };
    if let Some(link) = link.filter(|link| is_url(link)) {
        license["url"] = link.into();
    }
    license
}

fn ancestor(at: usize, base: &BaseModel) -> Json {
    let name =
        base.name.clone().or_else(|| base.url.clone()).unwrap_or_else(|| "base model".to_owned());
    let mut component =
        json!({ "type": "machine-learning-model", "bom-ref": format!("base:{at}"), "name": name });
    if let Some(organization) = &base.organization {
        component["publisher"] = organization.as_str().into();
    }
    if let Some(url) = base.url.as_deref().filter(|url| is_url(url)) {
        component["externalReferences"] = json!([{ "type": "website", "url": url }]);
    }
    component
}

/// Returns true for an address without characters that an IRI cannot have.
fn is_url(text: &str) -> bool {
    (text.starts_with("https://") || text.starts_with("http://"))
        && !text
            .contains(|c: char| c.is_whitespace() || c.is_control() || "<>\"{}|\\^`".contains(c))
}
