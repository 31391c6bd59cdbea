//! JSON files of a checkpoint directory, with errors that name the file and position.

use std::fmt;
use std::path::Path;

use gguf::Error;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};

/// Parses the JSON file at `path`.
///
/// # Errors
/// If it cannot be read, or is not JSON; the error has line and column.
pub fn read(path: &Path) -> Result<Value, Error> {
    let bytes = std::fs::read(path).map_err(|source| Error::read(path, source))?;
    parse(path, &bytes)
}

/// Returns what is wrong with a JSON text, and where.
pub fn described(fault: &serde_json::Error) -> String {
    let (line, column) = (fault.line(), fault.column());
    match fault.classify() {
        Category::Eof => format!("it ends too early, in line {line}"),
        Category::Syntax if fault.to_string().starts_with("recursion limit") => {
            format!("it is nested too deeply, in line {line}")
        }
        Category::Syntax => format!("line {line}, column {column}"),
        // Of a value of another type, the parser says what it expects.
        Category::Data | Category::Io => fault.to_string(),
    }
}

/// Parses the content of the JSON file at `path`.
///
/// # Errors
/// If it is not JSON; the error has line and column.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Value, Error> {
    let Lean(value) = serde_json::from_slice(bytes).map_err(|fault| {
        let what = format!("not valid JSON: {}", described(&fault));
        Error::input("json-invalid", path, what, "download the file again")
    })?;
    Ok(value)
}

/// Like [`read`]; `None` if the file does not exist.
pub fn read_optional(path: &Path) -> Result<Option<Value>, Error> {
    if path.is_file() { read(path).map(Some) } else { Ok(None) }
}

/// A value whose lists have no spare capacity. A list allocates four elements with the first, so
/// that two bytes, `[]` around another list, would become three hundred.
struct Lean(Value);

impl<'de> Deserialize<'de> for Lean {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LeanVisitor).map(Self)
    }
}

struct LeanVisitor;

impl<'de> Visitor<'de> for LeanVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Lean(value)) = list.next_element()? {
            values.push(value);
        }
        values.shrink_to_fit();
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Lean(value))) = entries.next_entry::<String, _>()? {
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_match_serde_json() {
        let text = r#"{"b":[1,-2,2.5e3,18446744073709551615,"x\n",null,true,[],{}],"a":{"b":[[[]]]},"b":0.1,"":"ü"}"#;
        let value = parse(Path::new("t.json"), text.as_bytes()).unwrap();
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(value, expected);
        assert_eq!(value.to_string(), expected.to_string());
        let fault =
            |text: &str| parse(Path::new("t.json"), text.as_bytes()).unwrap_err().to_string();
        assert!(fault("[1] 2").contains("not valid JSON: line 1, column 5"));
        assert!(
            fault(&"[".repeat(200)).contains("not valid JSON: it is nested too deeply, in line 1")
        );
    }
}
