//! A model whose header is valid.

use gguf::{Gguf, TensorInfo, Value};
use js_sys::Array as JsArray;
use serde_json::json;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use crate::array::{description, elements};
use crate::chat_template;
use crate::error::Thrown;
use crate::scalar::scalar;
use crate::tokenizer::Tokenizer;

/// Header of a valid file.
#[wasm_bindgen]
pub struct Model {
    header: Gguf,
    file_len: u64,
}

impl Model {
    /// Wraps a header of a file of this length.
    pub(crate) fn new(header: Gguf, file_len: u64) -> Self {
        Self { header, file_len }
    }
}

#[wasm_bindgen]
impl Model {
    /// Returns version, byte order, file length and start of the tensor data as JSON.
    pub fn format(&self) -> String {
        let raw = self.header.header();
        json!({
            "version": raw.version(),
            "byteOrder": match raw.order() {
                gguf::ByteOrder::Little => "little",
                gguf::ByteOrder::Big => "big",
            },
            "fileLength": self.file_len,
            "dataStart": self.header.data_start(),
        })
        .to_string()
    }

    /// Returns keys, types and values of all entries, one after the other. The value of an array is its element type and length.
    pub fn metadata(&self) -> JsArray {
        let entries = JsArray::new();
        for (key, value) in self.header.metadata().iter() {
            entries.push(&key.into());
            entries.push(&value.value_type().name().into());
            entries.push(&match value {
                Value::Array(array) => description(array).into(),
                value => scalar(value),
            });
        }
        entries
    }

    /// Returns elements in a range of the array that is the value of this entry: a typed array of numbers, a list of booleans or
    /// of nested arrays, or for strings the units of all texts in UTF-16 and the number of those of each.
    pub fn elements(&self, entry: usize, start: usize, end: usize) -> JsValue {
        let value =
            self.header.metadata().iter().nth(entry).and_then(|(_, value)| value.as_array());
        value.map_or(JsValue::UNDEFINED, |array| elements(array, start, end))
    }

    /// Returns the tensors as a JSON list. Offsets count from the start of the file.
    pub fn tensors(&self) -> String {
        let tensor = |tensor: &TensorInfo| {
            json!({
                "name": tensor.name,
                "type": tensor.tensor_type.name(),
                "shape": &*tensor.shape,
                "offset": self.header.data_range(tensor).map(|range| range.start),
                "byteLength": tensor.byte_len(),
            })
        };
        serde_json::Value::Array(self.header.tensors().iter().map(tensor).collect()).to_string()
    }

    /// Returns the tokenizer, as llama.cpp implements it or as the model was trained with.
    ///
    /// # Errors
    /// If keys are missing or inconsistent, or the tokenizer model is not supported.
    pub fn tokenizer(&self, llama_cpp: bool) -> Result<Tokenizer, Thrown> {
        Tokenizer::new(self.header.metadata(), llama_cpp)
    }

    /// Returns the text of the default chat template, or of that with this name; `undefined` if there is none.
    ///
    /// # Errors
    /// If it is not text.
    #[wasm_bindgen(js_name = chatTemplate)]
    pub fn chat_template(&self, name: Option<String>) -> Result<Option<String>, Thrown> {
        chat_template::text(self.header.metadata(), name.as_deref())
    }

    /// Renders a conversation with a chat template. `variables` is a JSON object with `messages`; `now` are milliseconds
    /// since 1970.
    ///
    /// # Errors
    /// If the model has no such template, or the template rejects the conversation, fails or exceeds a limit.
    #[wasm_bindgen(js_name = renderChat)]
    pub fn render_chat(
        &self,
        variables: &str,
        name: Option<String>,
        llama_cpp: bool,
        now: f64,
    ) -> Result<String, Thrown> {
        chat_template::render(self.header.metadata(), name.as_deref(), llama_cpp, variables, now)
    }
}
