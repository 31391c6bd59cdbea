//! Tensor type flags shared by `gguf quantize` and `gguf convert`.

use std::path::{Path, PathBuf};

use gguf::{TensorType, Value};
use gguf_kit::quantize::ImatrixChoice;
use gguf_kit::{key_value, read_text};
use gguf_quantize::recipe;

use super::imatrix;
use crate::failure::Failure;

/// Tensor types, and metadata overrides.
#[derive(clap::Args)]
// Without `skip`, clap's group would take the name of the parent struct.
#[group(skip)]
pub struct Args {
    /// Use the same type for all tensors, and accept any tensor type as TYPE.
    #[arg(long, help_heading = "Advanced")]
    pure: bool,
    /// Do not quantize output.weight.
    #[arg(long, help_heading = "Advanced")]
    leave_output_tensor: bool,
    /// Type of output.weight.
    #[arg(long, value_name = "TYPE")]
    output_tensor_type: Option<TensorType>,
    /// Type of the token embeddings.
    #[arg(long, value_name = "TYPE")]
    token_embedding_type: Option<TensorType>,
    /// Type of tensors whose name matches the regex, as in llama.cpp (ECMAScript). May be repeated; the first match wins.
    #[arg(long, value_name = "REGEX=TYPE", value_parser = recipe::parse_entry)]
    tensor_type: Vec<(recipe::NamePattern, TensorType)>,
    /// File of REGEX=TYPE entries, as printed by `gguf recipe`. Applied after --tensor-type.
    #[arg(long, value_name = "FILE")]
    tensor_type_file: Option<PathBuf>,
    #[command(flatten)]
    importance: imatrix::Args,
    /// Set a metadata key of the output. TYPE is int, float, bool or str. May be repeated.
    #[arg(long, value_name = "KEY=TYPE:VALUE", value_parser = parse_override)]
    override_kv: Vec<(String, Value)>,
}

/// Flags that need a quantized output type: all except `--override-kv`.
pub const FLAGS: &[&str] = &[
    "--pure",
    "--leave-output-tensor",
    "--output-tensor-type",
    "--token-embedding-type",
    "--tensor-type",
    "--tensor-type-file",
    "--imatrix",
    "--include-weights",
    "--exclude-weights",
    "--imatrix-missing",
];

impl Args {
    /// Input files.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.tensor_type_file.as_deref().into_iter().chain(self.importance.input())
    }

    /// Returns the imatrix with its filters, if given.
    pub fn imatrix(&self) -> Option<ImatrixChoice> {
        self.importance.choice()
    }

    /// Returns the library's options without the imatrix. Reads the file of types.
    pub fn options(&self) -> Result<gguf_quantize::QuantizeOptions, Failure> {
        let mut tensor_types = self.tensor_type.clone();
        if let Some(path) = &self.tensor_type_file {
            tensor_types.extend(read_type_file(path)?);
        }
        Ok(gguf_quantize::QuantizeOptions {
            recipe: recipe::RecipeOptions {
                pure: self.pure,
                leave_output_tensor: self.leave_output_tensor,
                output_tensor_type: self.output_tensor_type,
                token_embedding_type: self.token_embedding_type,
                tensor_types,
                ..recipe::RecipeOptions::default()
            },
            missing: self.importance.missing(),
            overrides: self.override_kv.clone(),
            ..gguf_quantize::QuantizeOptions::default()
        })
    }
}

fn parse_override(text: &str) -> Result<(String, Value), String> {
    let form = "expected KEY=TYPE:VALUE with TYPE int, float, bool or str";
    let (key, value) = text.split_once('=').ok_or(form)?;
    let (ty, value) = value.split_once(':').ok_or(form)?;
    let wrong = |_| format!("`{value}` is not a valid {ty}");
    let value = match ty {
        "int" => {
            Value::I64(value.parse().map_err(|fault: std::num::ParseIntError| fault.to_string())?)
        }
        "float" => {
            let number =
                key_value::float(value).ok_or_else(|| format!("`{value}` is not a valid {ty}"))?;
            Value::F32(number)
        }
        "bool" => {
            Value::Bool(value.parse().map_err(|fault: std::str::ParseBoolError| wrong(fault))?)
        }
        "str" => Value::from(value.to_owned()),
        _ => return Err(form.into()),
    };
    key_value::check_number(key, &value).map_err(|fault| fault.to_string())?;
    Ok((key.to_owned(), value))
}

fn read_type_file(path: &Path) -> Result<Vec<(recipe::NamePattern, TensorType)>, Failure> {
    let text = read_text(path)?;
    recipe::parse_type_file(&text)
        .map_err(|fault| Failure::Input(format!("{}: {fault}", path.display())))
}
