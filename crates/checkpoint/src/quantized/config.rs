//! What says how weights are quantized: `quantization_config` in `config.json`, or a file of the
//! program that quantized them.

use std::path::{Path, PathBuf};

use gguf::Error;
use serde_json::Value;

use super::method::{Method, Read, Unsupported, text};
use super::{awq, bitsandbytes, compressed, gptq, hqq, mlx, modelopt, mxfp4, scaled};
use crate::json;

/// The ways that are known. Of several files the one of the first counts.
const METHODS: [&Method; 9] = [
    &gptq::METHOD,
    &awq::METHOD,
    &scaled::METHOD,
    &compressed::METHOD,
    &bitsandbytes::METHOD,
    &mxfp4::METHOD,
    &modelopt::METHOD,
    &mlx::METHOD,
    &hqq::METHOD,
];

/// A way to quantize, with what the configuration says about it.
pub(super) struct Kind {
    /// What people call it.
    pub name: &'static str,
    /// How matrices are read.
    pub read: Read,
}

/// The file that says how the weights in `dir` are quantized, and how.
pub(super) fn find(dir: &Path) -> Result<Option<(PathBuf, Kind)>, Error> {
    let config = dir.join("config.json");
    if let Some(root) = json::read_optional(&config)? {
        let text = root.get("text_config").unwrap_or(&Value::Null);
        let found = ["quantization_config", "compression_config"]
            .iter()
            .find_map(|field| root.get(field).or_else(|| text.get(field)))
            .filter(|fields| fields.is_object())
            // MLX has a field of its own.
            .or_else(|| root.get("quantization").filter(|fields| mlx::is_meant(fields)));
        if let Some(fields) = found {
            return Ok(Some((config.clone(), kind(&config, fields)?)));
        }
    }
    for method in METHODS {
        let Some(name) = method.file else { continue };
        let path = dir.join(name);
        if let Some(root) = json::read_optional(&path)? {
            // ModelOpt tells of itself first.
            let fields = root.get("quantization").unwrap_or(&root);
            let kind = kind(&path, &with_method(fields, method.words[0]))?;
            return Ok(Some((path, kind)));
        }
    }
    Ok(None)
}

/// A configuration that does not name its method, because its file does.
fn with_method(fields: &Value, method: &str) -> Value {
    let mut fields = fields.clone();
    if let Some(fields) = fields.as_object_mut() {
        fields.entry("quant_method").or_insert_with(|| method.into());
    }
    fields
}

fn kind(path: &Path, fields: &Value) -> Result<Kind, Error> {
    let word = match text(fields, "quant_method") {
        // Older files of its program name no method.
        "" if fields.get("load_in_4bit").is_some() => "bitsandbytes",
        "" if mlx::is_meant(fields) => "mlx",
        word => word,
    };
    let refused = |what: String, help: &str| {
        Error::input("quantization-unsupported", path, what, help.to_owned())
    };
    let Some(method) = METHODS.iter().find(|method| method.words.contains(&word)) else {
        let known: Vec<_> = METHODS.iter().map(|method| method.words[0]).collect();
        return Err(refused(
            format!("the weights are quantized by `{word}`, which is not known"),
            &format!("take another checkpoint of the model; known are {}", known.join(", ")),
        ));
    };
    let read = (method.read)(fields).map_err(|Unsupported(what, help)| refused(what, help))?;
    Ok(Kind { name: method.name, read })
}

impl Kind {
    /// Whether a tensor says nothing about weights: scales of activations.
    pub fn ignores(&self, name: &str) -> bool {
        const ACTIVATIONS: [&str; 9] = [
            ".input_scale",
            ".input_scale_ub",
            ".input_zero_point",
            ".input_global_scale",
            "activation_scale",
            ".qscale_act",
            ".k_scale",
            ".v_scale",
            ".output_scale",
        ];
        ACTIVATIONS.iter().any(|end| name.ends_with(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_documented() {
        let page = include_str!("../../../../docs/checkpoints.md");
        let table = page.split("## Quantized weights").nth(1).unwrap();
        let is_in = |method: &&&Method| {
            table.lines().any(|line| line.starts_with('|') && line.contains(method.name))
        };
        let missing: Vec<_> =
            METHODS.iter().filter(|method| !is_in(method)).map(|method| method.name).collect();
        assert_eq!(missing, [""; 0], "docs/checkpoints.md has no row for them");
    }

    #[test]
    fn words_and_files_are_those_of_one_way() {
        let words: Vec<_> = METHODS.iter().flat_map(|method| method.words).collect();
        let files: Vec<_> = METHODS.iter().filter_map(|method| method.file.as_ref()).collect();
        for names in [words, files] {
            assert!((1..names.len()).all(|i| !names[..i].contains(&names[i])), "{names:?}");
        }
    }
}
