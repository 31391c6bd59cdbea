//! What a metadata key is: its name, the values it takes, its meaning.

use std::fmt;

use gguf::Metadata;
use gguf::{Value, ValueType};

/// Keys that belong together.
#[derive(Debug)]
pub struct Section {
    /// Title for people.
    pub title: &'static str,
    /// The keys, in the order in which to show them.
    pub keys: &'static [KeySchema],
}

/// A standard key.
#[derive(Debug, PartialEq)]
pub struct KeySchema {
    /// The key. `{arch}` stands for the architecture's name, `{id}` for a number counted from 0,
    /// `{name}` for any name.
    pub name: &'static str,
    /// What it holds.
    pub value: ValueSchema,
    /// Whether a file must have it.
    pub requirement: Requirement,
    /// What its numbers count, such as `tokens`; empty where they count nothing.
    pub unit: &'static str,
    /// What holds where a file does not have it.
    pub absent: Absent,
    /// What it means, in one sentence.
    pub meaning: &'static str,
}

/// What holds where a file does not have a key. Architectures can differ
/// (see [`Architecture::defaults`](crate::schema::Architecture::defaults)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Absent {
    /// Nothing: either the file must have the key, or what it is about does not happen.
    Nothing,
    /// A whole number: an expression of sizes (see [`evaluate`](crate::schema::evaluate)).
    Size(&'static str),
    /// A number.
    Number(f32),
    /// A truth value.
    Flag(bool),
    /// A word.
    Text(&'static str),
}

/// As it stands in tables; nothing for [`Absent::Nothing`].
impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::Number(number) => write!(f, "`{number}`"),
            Self::Flag(flag) => write!(f, "`{flag}`"),
            Self::Size(text) | Self::Text(text) => write!(f, "`{text}`"),
        }
    }
}

/// Whether a file must have a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Every file.
    Always,
    /// Files that this describes: `key is value`, which the rules can tell, or prose.
    When(&'static str),
    /// No file, or as the architecture says.
    Optional,
    /// None: readers still know it; write this key instead, if there is one.
    Deprecated(&'static str),
}

impl Requirement {
    /// Whether files with these metadata must have the key, as far as a condition on another key
    /// says so.
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

/// The values that a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSchema {
    /// The type that writers choose for it, or for its elements.
    pub value_type: ValueType,
    /// One value or several.
    pub arity: Arity,
    /// Which numbers, of those that the type has.
    pub range: Range,
}

/// Which floats make sense for a key; of other types all do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// All but NaN and infinities.
    Finite,
    /// Finite, 0 or more.
    NotNegative,
    /// Finite, above 0.
    Positive,
    /// All but NaN: what is compared only.
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

/// As `a finite number above 0`.
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

/// How many values a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// One.
    One,
    /// An array.
    Many,
    /// One for all layers, or an array with one for each layer.
    PerLayer,
}

impl ValueSchema {
    /// True if readers take this value for the key.
    ///
    /// UINT32 and UINT64 stand for each other, as the specification asks; so do their signed
    /// fellows, and signed keys take unsigned values. Within arrays llama.cpp takes
    /// signed and unsigned integers alike.
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

    /// Which number in a value the key cannot hold, and what it can; `None` if it can hold all.
    /// Whether it can have the type is another question.
    pub fn refuses(&self, value: &Value) -> Option<String> {
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

    /// How a value's type differs from what the key holds; `None` if readers take it.
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
                // A pattern over layers may be spelled as flags.
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

/// As `STRING`, `array of INT32`, `UINT32 or array per layer`.
impl fmt::Display for ValueSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.arity {
            Arity::One => write!(f, "{}", self.value_type),
            Arity::Many => write!(f, "array of {}", self.value_type),
            Arity::PerLayer => write!(f, "{} or array per layer", self.value_type),
        }
    }
}

/// Writes a table of keys, and a constant for each name: requirement, constant, name, value, unit in brackets, what holds where the key is
/// absent, meaning.
macro_rules! keys {
    ($(#[$doc:meta])* $table:ident; $($need:ident $(($detail:literal))? $ident:ident $name:literal $value:ident $([$unit:ident])? $(= $absent:ident($default:literal))? $meaning:literal)*) => {
        $(#[$doc])*
        pub(crate) const $table: &[$crate::schema::KeySchema] = &[$(
            $crate::schema::KeySchema {
                name: $name,
                value: $crate::schema::key_schema::types::$value,
                requirement: $crate::schema::key_schema::keys!(@ $need $(($detail))?),
                unit: $crate::schema::key_schema::keys!(@ unit $($unit)?),
                absent: $crate::schema::key_schema::keys!(@ absent $($absent($default))?),
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
    (@ absent) => { $crate::schema::Absent::Nothing };
    (@ absent size($default:literal)) => { $crate::schema::Absent::Size($default) };
    (@ absent number($default:literal)) => { $crate::schema::Absent::Number($default) };
    (@ absent flag($default:literal)) => { $crate::schema::Absent::Flag($default) };
    (@ absent text($default:literal)) => { $crate::schema::Absent::Text($default) };
    (@ always) => { $crate::schema::Requirement::Always };
    (@ when($detail:literal)) => { $crate::schema::Requirement::When($detail) };
    (@ optional) => { $crate::schema::Requirement::Optional };
    (@ deprecated($detail:literal)) => { $crate::schema::Requirement::Deprecated($detail) };
}
pub(crate) use keys;

/// Returns a key without its architecture: `expert_count` for `{arch}.expert_count`, `has_vision_encoder`
/// for `clip.has_vision_encoder`.
pub(crate) const fn without_architecture(name: &'static str) -> &'static str {
    let bytes = name.as_bytes();
    match bytes {
        [b'{', b'a', b'r', b'c', b'h', b'}', b'.', ..] => name.split_at(7).1,
        [b'c', b'l', b'i', b'p', b'.', ..] => name.split_at(5).1,
        _ => name,
    }
}

/// Names for the values of the key tables.
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
