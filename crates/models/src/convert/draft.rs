//! Common parts of draft models, whose vocabulary may be a subset of the target model's.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::{Exported, Values};

/// Which token of the target each of the draft's is. In checkpoints it is stored as the difference from the
/// draft's number.
pub const LIST: &str = "d2t";

/// Tensor of the target tokens in the draft vocabulary, which no runtime needs.
const INVERSE: &str = "t2d";

/// Section of some configurations with the fields of the layers.
const LAYERS: &str = "transformer_layer_config";

/// Moves the fields of the layers to the top level.
pub fn flatten(config: &mut Config) {
    let fields = config.part(LAYERS).json().clone();
    for (field, value) in fields.as_object().into_iter().flatten() {
        if field != "architectures" {
            config.set(field, value.clone());
        }
    }
}

/// Returns whether the fields of the layers are in their own section.
pub fn is_nested(config: &Config) -> bool {
    config.find(&[LAYERS]).is_some()
}

/// Returns whether a tensor is a list of tokens.
pub fn is_no_weight(name: &str) -> bool {
    let name = name.strip_prefix("model.").unwrap_or(name);
    name == LIST || name == INVERSE
}

/// Sets the list of tokens, if the checkpoint has one: of `tokens` that the target has, and of as many as
/// the draft has, if that is known.
pub fn read_list(
    config: &mut Config,
    values: &Values,
    tokens: u32,
    of_draft: Option<u32>,
) -> Result<(), Error> {
    let wrong = |config: &Config, what: String| {
        let help = "download the configuration and the weights from the same repository";
        let what = format!("does not match the tensor `{LIST}`: {what}");
        Error::input("checkpoint-misfit", config.path(), what, help)
    };
    let Some(differences) = values.whole(LIST)? else {
        return match of_draft {
            Some(guessed) if guessed < tokens => {
                let what = format!(
                    "the draft has {guessed} of {tokens} tokens, but the tensor is missing"
                );
                Err(wrong(config, what))
            }
            _ => Ok(()),
        };
    };
    if let Some(guessed) = of_draft.filter(|&guessed| guessed as usize != differences.len()) {
        let what =
            format!("the draft has {guessed} tokens, but the tensor has {}", differences.len());
        return Err(wrong(config, what));
    }
    let numbered = differences.iter().zip(0i64..);
    let absolute: Vec<i64> = numbered.map(|(difference, i)| difference.wrapping_add(i)).collect();
    if let Some(token) = absolute.iter().find(|token| !(0..i64::from(tokens)).contains(token)) {
        return Err(wrong(
            config,
            format!("token {token} is not one of the {tokens} of the target"),
        ));
    }
    let mut sorted = absolute.clone();
    sorted.sort_unstable();
    if let Some([token, _]) = sorted.array_windows().find(|[a, b]| a == b) {
        return Err(wrong(config, format!("token {token} is in it twice")));
    }
    config.set(LIST, absolute);
    Ok(())
}

/// Returns a number as GGUF arrays store it.
pub fn signed(number: u32) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

/// Returns the numbers in an array under the architecture's name.
pub fn numbers(model: &Model, key: &str) -> Option<Vec<i64>> {
    let metadata = model.metadata();
    let array = metadata.array(&format!("{}.{key}", metadata.architecture()?))?;
    array.iter().map(|value| value.to_i64()).collect()
}

/// Returns the number of tokens in the list of a model; `None` if it has no list.
pub fn list_shape(model: &Model) -> Option<u64> {
    let tensor = model.tensors().iter().find(|tensor| &*tensor.info.name == LIST)?;
    tensor.info.shape.elements()
}

/// Returns the list in the checkpoint's form, if the model has one; `None` if it cannot be read.
pub fn export_list(model: &Model, exported: Exported) -> Option<Exported> {
    let Some(tensor) = model.tensors().iter().find(|tensor| &*tensor.info.name == LIST) else {
        return Some(exported);
    };
    let mut bytes = vec![0; usize::try_from(tensor.info.byte_len()?).ok()?];
    tensor.read_at(&mut bytes, 0).ok()?;
    let absolute = bytes.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
    let absolute: Vec<i64> = absolute.collect();
    let differences: Vec<i64> =
        absolute.iter().zip(0i64..).map(|(token, i)| token.wrapping_sub(i)).collect();
    let tensor = crate::convert::assembly::integer_list(LIST, &differences);
    Some(exported.unwritten(LIST, Value::from(absolute)).in_place_of(LIST, tensor))
}
