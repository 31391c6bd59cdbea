//! Front matter of model cards: the fields that the Hub reads.

use gguf_inspect::summary::Summary;

use super::{Card, License};
use crate::markdown::{yaml_entry, yaml_list};

/// Tag of all cards.
const GGUF: &str = "gguf";

/// Address of the Hub, which a base model is named without.
const HUB: &str = "https://huggingface.co/";

/// Returns the front matter of the card of a repository.
pub(super) fn of_card(card: &Card) -> String {
    let mut front = String::from("---\nlibrary_name: gguf\n");
    let licenses = distinct(card.models.iter().filter_map(|model| model.license.as_ref()));
    match &licenses[..] {
        [] => {}
        [license] => front += &of_license(license),
        _ => front += "license: other\nlicense_name: several\n",
    }
    front += &yaml_list("base_model", &card.base_models);
    if is_quantized(card) && !card.base_models.is_empty() {
        front += "base_model_relation: quantized\n";
    }
    let mut entry = |name, value: &Option<String>| {
        if let Some(value) = value {
            front += &yaml_entry(name, value);
        }
    };
    entry("quantized_by", &card.quantized_by);
    entry("pipeline_tag", &card.pipeline_tag);
    front += &yaml_list("language", &card.languages);
    front + &yaml_list("tags", &with_gguf(&card.tags)) + "---\n"
}

/// Returns the front matter of the card of a single file.
pub fn front_matter_of_file(summary: &Summary) -> String {
    let origin = &summary.origin;
    let mut front = String::from("---\nlibrary_name: gguf\n");
    if let Some(license) = &origin.license {
        front += &yaml_entry("license", license);
    }
    let address = |url: &String| url.strip_prefix(HUB).unwrap_or(url).to_owned();
    let bases = origin.base_models.iter().filter_map(|base| base.url.as_ref().map(address));
    front += &yaml_list("base_model", &bases.collect::<Vec<_>>());
    front += &yaml_list("language", &origin.languages);
    front + &yaml_list("tags", &with_gguf(&origin.tags)) + "---\n"
}

fn of_license(license: &License) -> String {
    let mut text = yaml_entry("license", &license.id);
    if let Some(name) = &license.name {
        text += &yaml_entry("license_name", name);
    }
    if let Some(link) = &license.link {
        text += &yaml_entry("license_link", link);
    }
    text
}

/// Whether the files hold fewer bits per weight than the base model.
fn is_quantized(card: &Card) -> bool {
    let mut files = card.models.iter().flat_map(|model| &model.files);
    files.any(|file| !["F32", "F16", "BF16"].contains(&&*file.file_type))
}

/// Returns the tags, each once, with that of GGUF.
fn with_gguf(tags: &[String]) -> Vec<&str> {
    distinct(tags.iter().map(String::as_str).chain([GGUF]))
}

/// Returns different items in their order.
pub(super) fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for item in items {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}
