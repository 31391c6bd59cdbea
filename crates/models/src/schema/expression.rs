//! Expressions of tensor dimensions: sums of products of symbols and numbers, such as
//! `n_embd, n_q + 2*n_k`.
//!
//! Terms are separated by ` + ` and ` - `; within a term `*` and `/` apply from left to right.

use std::sync::LazyLock;

use gguf::{Metadata, Value};

use crate::schema::symbols::{SYMBOLS, Source};

/// Values of the symbols in one file.
///
/// Keys are looked up once, so that evaluation is cheap for any number of layers.
#[derive(Clone, Debug)]
pub struct Scope {
    /// One value per symbol, in the order of the table.
    known: Vec<Option<Known>>,
}

#[derive(Clone, Debug)]
enum Known {
    One(u64),
    PerLayer(Vec<u64>),
}

impl Scope {
    /// Returns the values of the symbols in `metadata`, where `arch` is the prefix of the keys.
    pub fn new(metadata: &Metadata, arch: &str) -> Self {
        let known = |source: &Source| {
            let value = metadata.get(&source.key()?.replace("{arch}", arch))?;
            match (source, value) {
                (Source::Length(..), Value::Array(array)) => Some(Known::One(array.len())),
                (Source::Length(..), _) => None,
                (_, Value::Array(array)) => {
                    // A flag counts as 1 or 0.
                    let number = |value: Value| value.to_u64().or(value.to_bool().map(u64::from));
                    let values = array.iter().map(number);
                    values.collect::<Option<_>>().map(Known::PerLayer)
                }
                (_, value) => value.to_u64().map(Known::One),
            }
        };
        Self { known: SYMBOLS.iter().map(|symbol| known(&symbol.source)).collect() }
    }

    /// Returns the value of a symbol, in `layer` if it differs between layers.
    ///
    /// `None` if the metadata do not determine it, or if there is no such symbol.
    pub fn value(&self, symbol: &str, layer: Option<u64>) -> Option<u64> {
        let i = SYMBOLS.iter().position(|row| row.name == symbol)?;
        match self.known.get(i)? {
            Some(Known::One(value)) => Some(*value),
            Some(Known::PerLayer(values)) => {
                // Outside of layers, the value of the first layer counts.
                values.get(usize::try_from(layer.unwrap_or(0)).ok()?).copied()
            }
            None => evaluate((*DEFAULTS.get(i)?)?, self, layer),
        }
    }
}

/// Default expression of each symbol, looked up once for all files.
static DEFAULTS: LazyLock<Vec<Option<&str>>> =
    LazyLock::new(|| SYMBOLS.iter().map(|symbol| symbol.source.default_expression()).collect());

/// Returns the value of one expression; `None` if a symbol has no value, or if a step overflows 64
/// bits, is negative or leaves a remainder.
pub fn evaluate(expression: &str, scope: &Scope, layer: Option<u64>) -> Option<u64> {
    let mut sum = 0u64;
    let mut minus = false;
    for word in expression.split_whitespace() {
        match word {
            "+" => minus = false,
            "-" => minus = true,
            term => {
                let term = evaluate_term(term, scope, layer)?;
                sum = if minus { sum.checked_sub(term)? } else { sum.checked_add(term)? };
            }
        }
    }
    Some(sum)
}

fn evaluate_term(term: &str, scope: &Scope, layer: Option<u64>) -> Option<u64> {
    let mut result = 1u64;
    let mut divide = false;
    for factor in term.split_inclusive(['*', '/']) {
        let name = factor.trim_end_matches(['*', '/']);
        let value = match name.parse() {
            Ok(number) => number,
            Err(_) => scope.value(name, layer)?,
        };
        result = match divide {
            false => result.checked_mul(value)?,
            true if value > 0 && result.is_multiple_of(value) => result / value,
            true => return None,
        };
        divide = factor.ends_with('/');
    }
    Some(result)
}

/// Returns the dimensions of a shape, expressions separated by commas; `None` for each unknown one.
pub fn dimensions(shape: &str, scope: &Scope, layer: Option<u64>) -> Vec<Option<u64>> {
    shape.split(',').map(|dimension| evaluate(dimension, scope, layer)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gguf::Array;

    fn scope() -> Scope {
        let mut metadata = Metadata::new();
        metadata.set("x.embedding_length", 64u64);
        metadata.set("x.attention.head_count", 4u32);
        metadata.set("x.attention.head_count_kv", Array::from(&[2u32, 1][..]));
        metadata.set("tokenizer.ggml.tokens", Array::from_strings(["a", "b", "c"]));
        Scope::new(&metadata, "x")
    }

    #[test]
    fn symbols_come_from_keys_or_from_other_symbols() {
        let scope = scope();
        let value = |symbol, layer| scope.value(symbol, layer);
        assert_eq!(value("n_embd", None), Some(64));
        assert_eq!(value("n_vocab", None), Some(3));
        assert_eq!(value("head_k", None), Some(16));
        assert_eq!(value("n_k", Some(0)), Some(32));
        assert_eq!(value("n_k", Some(1)), Some(16));
        assert_eq!(value("n_k", Some(2)), None, "the array has two layers");
        assert_eq!(value("n_ff", None), None);
        assert_eq!(value("n_nonsense", None), None);
    }

    #[test]
    fn operators_apply_from_left_to_right() {
        let scope = scope();
        let value = |expression| evaluate(expression, &scope, Some(0));
        assert_eq!(value("2*n_embd/4 + n_head - 1"), Some(35));
        assert_eq!(value("n_embd/3"), None);
        assert_eq!(value("n_embd/0"), None);
        assert_eq!(value("1 - 2"), None);
        assert_eq!(value("n_embd*18446744073709551615"), None);
        assert_eq!(dimensions("n_embd, n_ff, 7", &scope, None), [Some(64), None, Some(7)]);
    }
}
