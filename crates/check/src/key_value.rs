//! Parsing of metadata assignments: `KEY=VALUE`, `KEY:TYPE=VALUE`.

use gguf::{Array, Error, Metadata, Value, ValueType};
use gguf_models::schema;
use serde_json::Value as Json;

/// An invalid assignment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadValue(String);

impl From<BadValue> for Error {
    fn from(fault: BadValue) -> Self {
        Self::request("edit-refused", fault.0, "")
    }
}

impl From<String> for BadValue {
    fn from(what: String) -> Self {
        Self(what)
    }
}

impl From<&str> for BadValue {
    fn from(what: &str) -> Self {
        Self(what.into())
    }
}

/// A key with its value as text, and its type if given.
#[derive(Clone, Debug)]
pub struct KeyValue {
    /// The key.
    pub key: String,
    ty: Option<Type>,
    text: String,
}

/// Type of a value, or of the elements of an array.
#[derive(Clone, Copy, Debug)]
struct Type {
    value: ValueType,
    array: bool,
}

impl std::str::FromStr for KeyValue {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let (key, text) = text.split_once('=').ok_or("expected KEY=VALUE or KEY:TYPE=VALUE")?;
        match key.rsplit_once(':') {
            Some((key, ty)) => Self::new(key, Some(ty), text),
            None => Self::new(key, None, text),
        }
    }
}

impl std::str::FromStr for Type {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, array) = match text.strip_suffix("[]") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let value = match name {
            "u8" => ValueType::U8,
            "i8" => ValueType::I8,
            "u16" => ValueType::U16,
            "i16" => ValueType::I16,
            "u32" => ValueType::U32,
            "i32" => ValueType::I32,
            "u64" => ValueType::U64,
            "i64" => ValueType::I64,
            "f32" => ValueType::F32,
            "f64" => ValueType::F64,
            "bool" => ValueType::Bool,
            "str" | "string" => ValueType::String,
            _ => {
                return Err(format!(
                    "`{text}` is not a type; expected u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool str, or one \
                     of these with [] for an array"
                ));
            }
        };
        Ok(Self { value, array })
    }
}

impl KeyValue {
    /// Creates an assignment from a key, the name of a type, and the value as text.
    ///
    /// # Errors
    /// If the key is empty or the type is unknown.
    pub fn new(key: &str, ty: Option<&str>, text: &str) -> Result<Self, BadValue> {
        if key.is_empty() {
            return Err("the key is empty".into());
        }
        let ty = ty.map(str::parse).transpose()?;
        Ok(Self { key: key.to_owned(), ty, text: text.to_owned() })
    }

    /// Parses the value. Its type is the given one, or else that of the existing key, that of the specification, or the one
    /// that the text looks like.
    ///
    /// # Errors
    /// If the text does not parse, or a standard key does not allow the number.
    pub fn value(&self, metadata: &Metadata) -> Result<Value, BadValue> {
        let ty = self.ty.or_else(|| self.known_type(metadata)).unwrap_or_else(|| guess(&self.text));
        let wrong = |what: String| format!("`{}`: {what}", self.key);
        let value = if ty.array {
            let elements: Vec<Json> = serde_json::from_str(&self.text)
                .map_err(|fault| wrong(format!("an array is written as JSON: {fault}")))?;
            array(ty.value, &elements).map(Value::Array).map_err(wrong)?
        } else {
            scalar(ty.value, &self.text).map_err(wrong)?
        };
        check_number(&self.key, &value)?;
        Ok(value)
    }

    fn known_type(&self, metadata: &Metadata) -> Option<Type> {
        let of = |value: &Value| match value.as_array() {
            Some(array) => Type { value: array.element_type(), array: true },
            None => Type { value: value.value_type(), array: false },
        };
        metadata.get(&self.key).map(of).or_else(|| {
            // If the key takes both, brackets indicate an array.
            let value = match schema::key(&self.key)?.value.value_type {
                // Counts are U64 in the specification, but all writers use U32.
                ValueType::U64 if self.text.parse::<u32>().is_ok() => ValueType::U32,
                other => other,
            };
            Some(Type { value, array: self.text.starts_with('[') && value != ValueType::String })
        })
    }
}

/// Refuses a number that a standard key does not allow, such as NaN.
///
/// # Errors
/// If the key does not allow the number.
pub fn check_number(key: &str, value: &Value) -> Result<(), BadValue> {
    match schema::key(key).and_then(|standard| standard.value.out_of_range(value)) {
        Some(wrong) => Err(BadValue(format!("`{key}`: {wrong}"))),
        None => Ok(()),
    }
}

/// Parses a float; refuses numbers that overflow to infinity.
pub fn float<T: std::str::FromStr + Copy + Into<f64>>(text: &str) -> Option<T> {
    let number = text.parse::<T>().ok()?;
    let is_infinity = || text.to_ascii_lowercase().contains("inf");
    (!number.into().is_infinite() || is_infinity()).then_some(number)
}

fn guess(text: &str) -> Type {
    let value = if text.parse::<bool>().is_ok() {
        ValueType::Bool
    } else if text.parse::<u32>().is_ok() {
        ValueType::U32
    } else if text.parse::<i32>().is_ok() {
        ValueType::I32
    } else if text.parse::<i64>().is_ok() {
        ValueType::I64
    } else if text.parse::<u64>().is_ok() {
        ValueType::U64
    } else if text.parse::<f32>().is_ok_and(f32::is_finite) {
        ValueType::F32
    } else {
        ValueType::String
    };
    Type { value, array: false }
}

fn scalar(ty: ValueType, text: &str) -> Result<Value, String> {
    fn parse<T: std::str::FromStr + Into<Value>>(text: &str) -> Option<Value> {
        text.parse::<T>().ok().map(Into::into)
    }
    let value = match ty {
        ValueType::U8 => parse::<u8>(text),
        ValueType::I8 => parse::<i8>(text),
        ValueType::U16 => parse::<u16>(text),
        ValueType::I16 => parse::<i16>(text),
        ValueType::U32 => parse::<u32>(text),
        ValueType::I32 => parse::<i32>(text),
        ValueType::U64 => parse::<u64>(text),
        ValueType::I64 => parse::<i64>(text),
        ValueType::F32 => float::<f32>(text).map(Value::F32),
        ValueType::F64 => float::<f64>(text).map(Value::F64),
        ValueType::Bool => parse::<bool>(text),
        ValueType::String => Some(Value::from(text.to_owned())),
        ValueType::Array => None,
    };
    value.ok_or_else(|| format!("`{text}` is not a {ty}"))
}

fn array(ty: ValueType, elements: &[Json]) -> Result<Array, String> {
    fn all<T>(elements: &[Json], of: impl Fn(&Json) -> Option<T>) -> Result<Vec<T>, String> {
        let element =
            |json| of(json).ok_or_else(|| format!("{json} is not an element of this type"));
        elements.iter().map(element).collect()
    }
    macro_rules! integers {
        ($ty:ty) => {
            Array::from(
                &all(elements, |json| {
                    json.as_i64()
                        .and_then(|n| <$ty>::try_from(n).ok())
                        .or_else(|| json.as_u64().and_then(|n| <$ty>::try_from(n).ok()))
                })?[..],
            )
        };
    }
    Ok(match ty {
        ValueType::U8 => integers!(u8),
        ValueType::I8 => integers!(i8),
        ValueType::U16 => integers!(u16),
        ValueType::I16 => integers!(i16),
        ValueType::U32 => integers!(u32),
        ValueType::I32 => integers!(i32),
        ValueType::U64 => integers!(u64),
        ValueType::I64 => integers!(i64),
        ValueType::F32 => {
            let of = |json: &Json| json.as_f64().map(|n| n as f32).filter(|n| n.is_finite());
            Array::from(&all(elements, of)?[..])
        }
        ValueType::F64 => Array::from(&all(elements, Json::as_f64)?[..]),
        ValueType::Bool => Array::from(&all(elements, Json::as_bool)?[..]),
        ValueType::String => {
            Array::from_strings(all(elements, |json| json.as_str().map(str::to_owned))?)
        }
        ValueType::Array => return Err("nested arrays are not supported".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, metadata: &Metadata) -> Result<Value, BadValue> {
        text.parse::<KeyValue>()?.value(metadata)
    }

    #[test]
    fn standard_keys_reject_invalid_numbers() {
        let mut metadata = Metadata::new();
        metadata.set("llama.rope.freq_base", 1e4f32);
        for (text, reason) in [
            (
                "llama.rope.freq_base=nan",
                "`llama.rope.freq_base`: is NaN, not a finite number above 0",
            ),
            (
                "qwen2.rope.freq_base=-inf",
                "`qwen2.rope.freq_base`: is -inf, not a finite number above 0",
            ),
            ("llama.rope.freq_base=0", "`llama.rope.freq_base`: is 0, not a finite number above 0"),
            (
                "llama.rope.freq_base:f64=inf",
                "`llama.rope.freq_base`: is inf, not a finite number above 0",
            ),
            (
                "llama.attention.layer_norm_rms_epsilon=-1e-5",
                "`llama.attention.layer_norm_rms_epsilon`: is -0.000009999999747378752, not a finite \
                 number, 0 or more",
            ),
            ("other.logit_scale=NaN", "`other.logit_scale`: is NaN, not a finite number"),
            (
                "general.sampling.temp=infinity",
                "`general.sampling.temp`: is inf, not a finite number",
            ),
            ("tokenizer.ggml.scores:f32=nan", "`tokenizer.ggml.scores`: is NaN, not a number"),
            ("llama.rope.freq_base=1e39", "`llama.rope.freq_base`: `1e39` is not a FLOAT32"),
            ("mine:f32=1e39", "`mine`: `1e39` is not a FLOAT32"),
            ("mine:f32[]=[1, 1e39]", "`mine`: 1e+39 is not an element of this type"),
            (
                "xielu.beta=[0.5, 1e400]",
                "`xielu.beta`: an array is written as JSON: number out of range at line 1 column 11",
            ),
        ] {
            assert_eq!(value(text, &metadata), Err(BadValue(reason.to_owned())), "{text}");
        }
        for right in ["tokenizer.ggml.scores:f32=-inf", "xielu.eps=-1e-6"] {
            assert!(value(right, &metadata).is_ok(), "{right}");
        }
    }

    #[test]
    fn types_are_given_known_or_guessed() {
        let mut metadata = Metadata::new();
        metadata.set("old", 7u64);
        let of = |text: &str| value(text, &metadata).unwrap();
        assert_eq!(of("old=8"), Value::U64(8));
        assert_eq!(of("old:i8=-1"), Value::I8(-1));
        assert_eq!(of("llama.context_length=4096"), Value::U32(4096));
        assert_eq!(of("llama.rope.freq_base=10000"), Value::F32(10000.0));
        assert_eq!(of("general.name=true"), Value::from("true"));
        assert_eq!(of("mine=true"), Value::Bool(true));
        assert_eq!(of("mine=-5"), Value::I32(-5));
        assert_eq!(of("mine=0.5"), Value::F32(0.5));
        assert_eq!(of("mine=a=b"), Value::from("a=b"));
        assert_eq!(of("mine:str[]=[\"a\",\"b\"]"), Array::from_strings(["a", "b"]).into());
        assert_eq!(of("mine:i32[]=[1,-2]"), Array::from(&[1i32, -2][..]).into());
        // Custom keys accept any value.
        assert_eq!(of("mine:f32=-inf"), Value::F32(f32::NEG_INFINITY));
        assert!(matches!(of("mine:f64=nan"), Value::F64(x) if x.is_nan()));
        for wrong in
            ["mine", "=1", "mine:u8=256", "old=x", "mine:u8[]=[256]", "mine:z=1", "mine:u8[]=1"]
        {
            assert!(value(wrong, &metadata).is_err(), "{wrong}");
        }
    }
}
