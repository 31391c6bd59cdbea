//! Rules on values: UTF-8 and the quantization version.

use std::ops::ControlFlow;

use crate::finding::{Finding, Sink};
use crate::rules::kind::FileKind;
use crate::rules::subject::Subject;
use crate::tensor_type::QUANTIZATION_VERSION;
use crate::value::{Value, ValueType};

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    for (i, (key, value)) in subject.header.metadata.iter().enumerate() {
        if let Some(what) = not_utf8(value) {
            sink.report(Finding::warning("text-not-utf8", what).key(key).at(subject.value_of(i)))?;
        }
    }
    quantization_version(subject, sink)
}

fn not_utf8(value: &Value) -> Option<String> {
    match value {
        Value::String(bytes) => {
            let fault = std::str::from_utf8(bytes).err()?;
            Some(format!("the text is not UTF-8 from its byte {} on", fault.valid_up_to()))
        }
        Value::Array(array) if array.element_type() == ValueType::String => array
            .strings()?
            .position(|bytes| std::str::from_utf8(bytes).is_err())
            .map(|i| format!("element {i} is not UTF-8")),
        _ => None,
    }
}

fn quantization_version(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    const KEY: &str = "general.quantization_version";
    let mut tensors = subject.header.tensors.iter();
    let quantized = tensors.find(|tensor| tensor.tensor_type.is_quantized());
    match (quantized, subject.header.metadata.get(KEY)) {
        // The first shard has the keys of the model.
        (Some(_), None) if FileKind::detect(subject.header) == FileKind::OtherShard => {
            ControlFlow::Continue(())
        }
        (Some(tensor), None) => sink.report(
            Finding::warning(
                "quantization-version-missing",
                format!(
                    "`{}` is quantized, but general.quantization_version is missing",
                    tensor.name
                ),
            )
            .key(KEY)
            .help(format!("set {KEY} to {QUANTIZATION_VERSION}, the current version")),
        ),
        (_, Some(value)) if value.to_u64().is_none() => sink.report(
            Finding::warning(
                "quantization-version-type",
                format!("is {} instead of UINT32", value.value_type()),
            )
            .key(KEY)
            .at(subject.value_at(KEY)),
        ),
        _ => ControlFlow::Continue(()),
    }
}
