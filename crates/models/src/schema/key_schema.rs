//! Schema of a metadata key: its name, type, default and meaning.

use std::fmt;

use gguf::{Metadata, Value, ValueType};

/// Titled group of keys.
#[derive(Debug)]
pub struct Section {
    /// Title in `docs/metadata.md`.
    pub title: &'static str,
    /// Keys in display order.
    pub keys: &'static [KeySchema],
}

/// Standard key.
#[derive(Debug, PartialEq)]
pub struct KeySchema {
    /// Key. `{arch}` stands for the name of the architecture, `{id}` for an index counted from 0,
    /// `{name}` for any name.
    pub name: &'static str,
    /// Type and range of its values.
    pub value: ValueSchema,
    /// Whether a file must have it.
    pub requirement: Requirement,
    /// Unit of its values, such as `tokens`; may be empty.
    pub unit: &'static str,
    /// Default for files without the key.
    pub default: DefaultValue,
    /// Meaning, in one sentence.
    pub meaning: &'static str,
}

/// Default of a key. Architectures can override it
/// (see [`Architecture::defaults`](crate::schema::Architecture::defaults)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DefaultValue {
    /// No default: the key is required, or its absence disables a feature.
    None,
    /// Integer: an expression of symbols (see [`evaluate`](crate::schema::evaluate)).
    Size(&'static str),
    /// Number.
    Number(f32),
    /// Boolean.
    Flag(bool),
    /// String.
    Text(&'static str),
}

/// Formats the default as Markdown code; empty for [`DefaultValue::None`].
impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Number(number) => write!(f, "`{number}`"),
            Self::Flag(flag) => write!(f, "`{flag}`"),
            Self::Size(text) | Self::Text(text) => write!(f, "`{text}`"),
        }
    }
}

/// Whether a file must have a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Required in every file.
    Always,
    /// Required under a condition: `key is value`, which the rules evaluate, or prose.
    When(&'static str),
    /// Optional, unless the architecture requires it.
    Optional,
    /// Deprecated, with the key that replaces it; empty if none does.
    Deprecated(&'static str),
}

impl Requirement {
    /// Returns true if a condition on another key makes the key required in files with these metadata.
    pub fn holds(&self, metadata: &Metadata) -> bool {
        let Self::When(condition) = self else { return false };
        let Some((key, expected)) = condition.split_once(" is ") else { return false };
        match metadata.get(key) {
            Some(Value::Bool(found)) => found.to_string() == expected,
            Some(found) => found.as_str() == Some(expected),
            None => false,
        }
    }
}

/// Type, arity and range of the values of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSchema {
    /// Type that writers use for the value or its elements.
    pub value_type: ValueType,
    /// Number of values.
    pub arity: Arity,
    /// Range of floats.
    pub range: Range,
}

/// Range of the floats of a key; other types have no range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Excludes NaN and infinity.
    Finite,
    /// Finite and at least 0.
    NotNegative,
    /// Finite and above 0.
    Positive,
    /// Excludes NaN only: for values that are compared.
    Ordered,
}

impl Range {
    fn holds(self, number: f64) -> bool {
        match self {
            Self::Finite => number.is_finite(),
            Self::NotNegative => number.is_finite() && number >= 0.0,
            Self::Positive => number.is_finite() && number > 0.0,
            Self::Ordered => !number.is_nan(),
        }
    }
}

/// Formats the range as in `a finite number above 0`.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Finite => "a finite number",
            Self::NotNegative => "a finite number, 0 or more",
            Self::Positive => "a finite number above 0",
            Self::Ordered => "a number",
        })
    }
}

/// Number of values of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// One value.
    One,
    /// Array.
    Many,
    /// One value for all layers, or an array with one value per layer.
    PerLayer,
}

impl ValueSchema {
    /// Returns true if readers accept the type of this value for the key.
    ///
    /// UINT32 and UINT64 are interchangeable, as the specification requires, and so are INT32 and
    /// INT64; signed keys accept unsigned values. In arrays, llama.cpp accepts signed and unsigned
    /// integers alike.
    pub fn accepts(&self, value: &Value) -> bool {
        match (self.arity, value) {
            (Arity::One, Value::Array(_)) => false,
            (Arity::Many | Arity::PerLayer, Value::Array(array)) => {
                self.accepts_element(array.element_type())
            }
            (Arity::Many, _) => false,
            (Arity::One | Arity::PerLayer, value) => self.accepts_one(value.value_type()),
        }
    }

    /// Returns a message about the first number that is out of range; `None` if there is none. Does not
    /// check the type.
    pub fn out_of_range(&self, value: &Value) -> Option<String> {
        let wrong = |value: &Value| match value {
            Value::F32(_) | Value::F64(_) => value.to_f64().filter(|x| !self.range.holds(*x)),
            _ => None,
        };
        match value {
            Value::Array(array) if is_float(array.element_type()) => {
                let mut elements = array.iter().enumerate();
                let (i, x) = elements.find_map(|(i, element)| Some((i, wrong(&element)?)))?;
                Some(format!("element {i} is {x}, not {}", self.range))
            }
            value => wrong(value).map(|x| format!("is {x}, not {}", self.range)),
        }
    }

    /// Returns a message about a type that the key cannot have; `None` if readers accept it.
    pub fn mismatch(&self, value: &Value) -> Option<String> {
        let found = match value {
            Value::Array(array) => format!("array of {}", array.element_type()),
            value => value.value_type().to_string(),
        };
        (!self.accepts(value)).then(|| format!("is {found} instead of {self}"))
    }

    fn accepts_one(&self, found: ValueType) -> bool {
        use ValueType::{I32, I64, U16, U32, U64};
        match self.value_type {
            U16 => matches!(found, U16 | U32 | U64),
            U32 | U64 => matches!(found, U32 | U64),
            I32 => matches!(found, I32 | I64 | U32 | U64),
            expected => found == expected,
        }
    }

    fn accepts_element(&self, found: ValueType) -> bool {
        use ValueType::{Bool, I8, I32, I64, U8, U32, U64};
        match self.value_type {
            U32 | I32 => {
                // A per-layer pattern may be an array of flags.
                matches!(found, U32 | U64 | I32 | I64)
                    || (found == Bool && self.arity == Arity::PerLayer)
            }
            U8 => matches!(found, U8 | I8),
            expected => found == expected,
        }
    }
}

fn is_float(value_type: ValueType) -> bool {
    matches!(value_type, ValueType::F32 | ValueType::F64)
}

/// Formats the type as in `STRING`, `array of INT32` or `UINT32 or array per layer`.
impl fmt::Display for ValueSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.arity {
            Arity::One => write!(f, "{}", self.value_type),
            Arity::Many => write!(f, "array of {}", self.value_type),
            Arity::PerLayer => write!(f, "{} or array per layer", self.value_type),
        }
    }
}

/// Defines a table of keys and a constant for each name. Columns: requirement, constant, name, value schema,
/// unit in brackets, default, meaning.
macro_rules! keys {
    ($(#[$doc:meta])* $table:ident; $($requirement:ident $(($detail:literal))? $ident:ident $name:literal $value:ident $([$unit:ident])? $(= $kind:ident($default:literal))? $meaning:literal)*) => {
        $(#[$doc])*
        pub(crate) const $table: &[$crate::schema::KeySchema] = &[$(
            $crate::schema::KeySchema {
                name: $name,
                value: $crate::schema::key_schema::types::$value,
                requirement: $crate::schema::key_schema::keys!(@ $requirement $(($detail))?),
                unit: $crate::schema::key_schema::keys!(@ unit $($unit)?),
                default: $crate::schema::key_schema::keys!(@ default $($kind($default))?),
                meaning: $meaning,
            },
        )*];
        $(
            #[doc = $meaning]
            pub const $ident: &str = $crate::schema::key_schema::without_architecture($name);
        )*
    };
    (@ unit) => { "" };
    (@ unit $unit:ident) => { stringify!($unit) };
    (@ default) => { $crate::schema::DefaultValue::None };
    (@ default size($default:literal)) => { $crate::schema::DefaultValue::Size($default) };
    (@ default number($default:literal)) => { $crate::schema::DefaultValue::Number($default) };
    (@ default flag($default:literal)) => { $crate::schema::DefaultValue::Flag($default) };
    (@ default text($default:literal)) => { $crate::schema::DefaultValue::Text($default) };
    (@ always) => { $crate::schema::Requirement::Always };
    (@ when($detail:literal)) => { $crate::schema::Requirement::When($detail) };
    (@ optional) => { $crate::schema::Requirement::Optional };
    (@ deprecated($detail:literal)) => { $crate::schema::Requirement::Deprecated($detail) };
}
pub(crate) use keys;

/// Returns a key without the prefix of its architecture: `expert_count` for `{arch}.expert_count`, `has_vision_encoder`
/// for `clip.has_vision_encoder`.
pub(crate) const fn without_architecture(name: &'static str) -> &'static str {
    let bytes = name.as_bytes();
    match bytes {
        [b'{', b'a', b'r', b'c', b'h', b'}', b'.', ..] => name.split_at(7).1,
        [b'c', b'l', b'i', b'p', b'.', ..] => name.split_at(5).1,
        _ => name,
    }
}

/// Value schemas that the key tables use.
#[allow(non_upper_case_globals)]
pub(crate) mod types {
    use super::{Arity, Range, ValueSchema, ValueType};

    const fn one(value_type: ValueType) -> ValueSchema {
        ValueSchema { value_type, arity: Arity::One, range: Range::Finite }
    }

    const fn many(value_type: ValueType) -> ValueSchema {
        ValueSchema { value_type, arity: Arity::Many, range: Range::Finite }
    }

    const fn per_layer(value_type: ValueType) -> ValueSchema {
        ValueSchema { value_type, arity: Arity::PerLayer, range: Range::Finite }
    }

    pub const text: ValueSchema = one(ValueType::String);
    pub const texts: ValueSchema = many(ValueType::String);
    pub const bool: ValueSchema = one(ValueType::Bool);
    pub const bools: ValueSchema = many(ValueType::Bool);
    pub const bool_per_layer: ValueSchema = per_layer(ValueType::Bool);
    pub const u16: ValueSchema = one(ValueType::U16);
    pub const u32: ValueSchema = one(ValueType::U32);
    pub const u64: ValueSchema = one(ValueType::U64);
    pub const u32s: ValueSchema = many(ValueType::U32);
    pub const u64s: ValueSchema = many(ValueType::U64);
    pub const u32_per_layer: ValueSchema = per_layer(ValueType::U32);
    pub const i32: ValueSchema = one(ValueType::I32);
    pub const i32s: ValueSchema = many(ValueType::I32);
    pub const f32: ValueSchema = one(ValueType::F32);
    pub const f32s: ValueSchema = many(ValueType::F32);
    pub const f32_per_layer: ValueSchema = per_layer(ValueType::F32);
    pub const bounds_per_layer: ValueSchema =
        ValueSchema { range: Range::Ordered, ..f32_per_layer };
    pub const bytes: ValueSchema = many(ValueType::U8);
    pub const scores: ValueSchema = ValueSchema { range: Range::Ordered, ..f32s };
    pub const epsilon: ValueSchema = ValueSchema { range: Range::NotNegative, ..f32 };
    pub const f32_above_0: ValueSchema = ValueSchema { range: Range::Positive, ..f32 };
}
