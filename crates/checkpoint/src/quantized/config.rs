//! Quantization configuration: `quantization_config` in `config.json`, or a file of the quantizer.

use std::path::{Path, PathBuf};

use gguf::Error;
use serde_json::Value;

use super::method::{Method, Read, Unsupported, text};
use super::{awq, bitsandbytes, compressed_tensors, fp8, gptq, hqq, mlx, modelopt, mxfp4};
use crate::json;

/// Supported quantization methods. If several of their files exist, the first counts.
const METHODS: [&Method; 9] = [
    &gptq::METHOD,
    &awq::METHOD,
    &fp8::METHOD,
    &compressed_tensors::METHOD,
    &bitsandbytes::METHOD,
    &mxfp4::METHOD,
    &modelopt::METHOD,
    &mlx::METHOD,
    &hqq::METHOD,
];

/// A configured quantization method.
pub(super) struct Quantization {
    /// Display name.
    pub name: &'static str,
    /// Reader of matrices.
    pub read: Read,
}

/// Returns the file that states the quantization of the weights in `dir`, and the method.
pub(super) fn find(dir: &Path) -> Result<Option<(PathBuf, Quantization)>, Error> {
    let config = dir.join("config.json");
    if let Some(root) = json::read_optional(&config)? {
        let text = root.get("text_config").unwrap_or(&Value::Null);
        let found = ["quantization_config", "compression_config"]
            .iter()
            .find_map(|field| root.get(field).or_else(|| text.get(field)))
            .filter(|fields| fields.is_object())
            // MLX has a field of its own.
            .or_else(|| root.get("quantization").filter(|fields| mlx::is_mlx(fields)));
        if let Some(fields) = found {
            return Ok(Some((config.clone(), parse(&config, fields)?)));
        }
    }
    for method in METHODS {
        let Some(name) = method.file else { continue };
        let path = dir.join(name);
        if let Some(root) = json::read_optional(&path)? {
            // ModelOpt nests its fields.
            let fields = root.get("quantization").unwrap_or(&root);
            let parse = parse(&path, &with_method(fields, method.names[0]))?;
            return Ok(Some((path, parse)));
        }
    }
    Ok(None)
}

/// Adds the method to a configuration that does not name it because its file does.
fn with_method(fields: &Value, method: &str) -> Value {
    let mut fields = fields.clone();
    if let Some(fields) = fields.as_object_mut() {
        fields.entry("quant_method").or_insert_with(|| method.into());
    }
    fields
}

fn parse(path: &Path, fields: &Value) -> Result<Quantization, Error> {
    let word = match text(fields, "quant_method") {
        // Older files of bitsandbytes name no method.
        "" if fields.get("load_in_4bit").is_some() => "bitsandbytes",
        "" if mlx::is_mlx(fields) => "mlx",
        word => word,
    };
    let refused = |what: String, help: &str| {
        Error::input("quantization-unsupported", path, what, help.to_owned())
    };
    let Some(method) = METHODS.iter().find(|method| method.names.contains(&word)) else {
        let known: Vec<_> = METHODS.iter().map(|method| method.names[0]).collect();
        return Err(refused(
            format!("the weights are quantized with `{word}`, which is not supported"),
            &format!("use another checkpoint of the model; supported are {}", known.join(", ")),
        ));
    };
    let read = (method.read)(fields).map_err(|Unsupported(what, help)| refused(what, help))?;
    Ok(Quantization { name: method.name, read })
}

impl Quantization {
    /// Whether a tensor is not a weight: a scale of activations.
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
    fn every_method_is_documented() {
        let page = include_str!("../../../../docs/checkpoints.md");
        let table = page.split("## Quantized weights").nth(1).unwrap();
        let is_in = |method: &&&Method| {
            table.lines().any(|line| line.starts_with('|') && line.contains(method.name))
        };
        let missing: Vec<_> =
            METHODS.iter().filter(|method| !is_in(method)).map(|method| method.name).collect();
        assert_eq!(missing, [""; 0], "docs/checkpoints.md has no row for these methods");
    }

    #[test]
    fn names_and_files_are_unique() {
        let words: Vec<_> = METHODS.iter().flat_map(|method| method.names).collect();
        let files: Vec<_> = METHODS.iter().filter_map(|method| method.file.as_ref()).collect();
        for names in [words, files] {
            assert!((1..names.len()).all(|i| !names[..i].contains(&names[i])), "{names:?}");
        }
    }
}
