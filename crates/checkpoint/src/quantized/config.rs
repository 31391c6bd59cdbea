//! What says how weights are quantized: `quantization_config` in `config.json`, or a file of the
//! program that quantized them.

use std::path::{Path, PathBuf};

use gguf::Error;
use serde_json::Value;

use super::super::raw::Raw;
use super::{Matrix, Set, Wrong, awq, bitsandbytes, compressed, gptq, mxfp4, nvfp4, scaled};
use crate::json;

/// A way to quantize, with what the configuration says about it.
pub(super) enum Kind {
    Gptq(gptq::Gptq),
    Awq,
    /// Each part of a matrix multiplied by a scale: FP8.
    Scaled(scaled::Blocks),
    Compressed(compressed::Compressed),
    BitsAndBytes,
    Mxfp4,
    /// NVIDIA's tool: NVFP4, FP8, or a mixture.
    ModelOpt,
}

/// Names of the ways that are known, for messages.
const KNOWN: &str = "gptq, awq, fp8, compressed-tensors, bitsandbytes, mxfp4, modelopt";

/// Files of programs that quantize, and what their method is called.
const OTHERS: [(&str, &str); 3] = [
    ("quantize_config.json", "gptq"),
    ("quant_config.json", "awq"),
    ("hf_quant_config.json", "modelopt"),
];

/// The file that says how the weights in `dir` are quantized, and how.
pub(super) fn find(dir: &Path) -> Result<Option<(PathBuf, Kind)>, Error> {
    let config = dir.join("config.json");
    if let Some(root) = json::read_optional(&config)? {
        let text = root.get("text_config").unwrap_or(&Value::Null);
        let found = ["quantization_config", "compression_config"]
            .iter()
            .find_map(|field| root.get(field).or_else(|| text.get(field)))
            .filter(|fields| fields.is_object());
        if let Some(fields) = found {
            return Ok(Some((config.clone(), kind(&config, fields)?)));
        }
    }
    for (name, method) in OTHERS {
        let path = dir.join(name);
        if let Some(root) = json::read_optional(&path)? {
            // ModelOpt tells of itself first.
            let fields = root.get("quantization").unwrap_or(&root);
            let kind = kind(&path, &with_method(fields, method))?;
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
    let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default();
    let refuse = |what: String, help: &str| {
        Err(Error::input("quantization-unsupported", path, what, help.to_owned()))
    };
    let method = match text("quant_method") {
        // Older files of its program name no method.
        "" if fields.get("load_in_4bit").is_some() => "bitsandbytes",
        method => method,
    };
    match method {
        "gptq" => {
            // Older files name no format, and newer ones sometimes the same under `format`.
            let format = [text("checkpoint_format"), text("format")].concat();
            match format.as_str() {
                "" | "gptq" | "gptqgptq" => Ok(Kind::Gptq(gptq::Gptq::of(fields, 1))),
                "gptq_v2" | "gptq_v2gptq_v2" => Ok(Kind::Gptq(gptq::Gptq::of(fields, 0))),
                other => refuse(
                    format!("the weights are packed as `{other}`, for one kind of processor"),
                    "take the checkpoint in the format `gptq` or `gptq_v2`",
                ),
            }
        }
        "awq" => match text("version").to_lowercase().as_str() {
            "" | "gemm" => Ok(Kind::Awq),
            other => refuse(
                format!("the weights are packed as AWQ `{other}`"),
                "take the checkpoint in the version `gemm`",
            ),
        },
        "fp8" | "fbgemm_fp8" => Ok(Kind::Scaled(scaled::Blocks::of(fields))),
        "compressed-tensors" => match compressed::Compressed::of(fields) {
            Ok(compressed) => Ok(Kind::Compressed(compressed)),
            Err(compressed::UnknownFormat(format)) => refuse(
                format!("the weights are compressed as `{format}`"),
                "take a checkpoint in another format: known are int-quantized, pack-quantized, \
                 float-quantized, naive-quantized, nvfp4-pack-quantized and mxfp4-pack-quantized",
            ),
        },
        "bitsandbytes" => Ok(Kind::BitsAndBytes),
        "mxfp4" => Ok(Kind::Mxfp4),
        "modelopt" | "modelopt_fp4" => Ok(Kind::ModelOpt),
        other => refuse(
            format!("the weights are quantized by `{other}`, which is not known"),
            &format!("take another checkpoint of the model; known are {KNOWN}"),
        ),
    }
}

impl Kind {
    /// What people call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gptq(_) => "GPTQ",
            Self::Awq => "AWQ",
            Self::Scaled(_) => "FP8",
            Self::Compressed(_) => "compressed-tensors",
            Self::BitsAndBytes => "bitsandbytes",
            Self::Mxfp4 => "MXFP4",
            Self::ModelOpt => "ModelOpt",
        }
    }

    /// The matrix of which `main` is the packed part, if it is that of one.
    pub fn matrix(&self, set: &Set, main: &Raw) -> Result<Option<Matrix>, Wrong> {
        match self {
            Self::Gptq(gptq) => gptq.matrix(set, main),
            Self::Awq => awq::matrix(set, main),
            Self::Scaled(blocks) => blocks.matrix(set, main),
            Self::Compressed(compressed) => compressed.matrix(set, main),
            Self::BitsAndBytes => bitsandbytes::matrix(set, main),
            Self::Mxfp4 => mxfp4::matrix(set, main),
            Self::ModelOpt => match nvfp4::matrix(set, main)? {
                None => scaled::Blocks::default().matrix(set, main),
                found => Ok(found),
            },
        }
    }

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
