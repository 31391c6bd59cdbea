//! Pooling of embedding models, and classifier heads.

use gguf::Finding;
use gguf_graph::{Activation, ActivationFunction, OutputKind, Pool, Pooling, ValueId};

use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Dense layers after pooling, by their module folders in `sentence-transformers`.
const DENSE: [&str; 2] = ["dense_2", "dense_3"];

/// Adds the outputs of a sequence: the pooled embedding if the model has a pooling type, and class scores
/// if it has a classifier.
pub(crate) fn pooled(builder: &mut Builder<'_>, hidden: ValueId) -> Result<(), Finding> {
    let dense: Vec<_> =
        DENSE.into_iter().filter(|name| builder.has(&format!("{name}.weight"))).collect();
    // Dense layers imply pooling: mean is the default.
    let usual = (!dense.is_empty()).then_some(Pooling::Mean);
    if let Some(kind) = kind(builder.hparams.u64(key::POOLING_TYPE)?).or(usual) {
        let mut x = builder.op(Pool { x: hidden, kind });
        for name in dense {
            x = builder.matmul(x, name)?;
        }
        builder.output(OutputKind::Pooled, x);
    }
    let is_classifier = ["cls.weight", "cls.output.weight"].iter().any(|name| builder.has(name));
    if !is_classifier {
        return Ok(());
    }
    let stated = match builder.hparams.value(key::CLASSIFIER_POOLING_TYPE) {
        Some(_) => kind(builder.hparams.u64(key::CLASSIFIER_POOLING_TYPE)?),
        None => None,
    };
    // With causal attention only the last token sees the whole text.
    let causal = builder.hparams.bool(key::ATTENTION_CAUSAL)?;
    let kind = stated.unwrap_or(if causal { Pooling::Last } else { Pooling::Cls });
    let mut x = builder.op(Pool { x: hidden, kind });
    if builder.has("cls.weight") {
        let made = builder.matmul(x, "cls")?;
        // ModernBERT has a norm there.
        if builder.has_norm("cls.norm") {
            let norm = Norm::layer(builder)?;
            let made = builder.op(Activation { x: made, function: ActivationFunction::Gelu });
            x = builder.norm(made, "cls.norm", norm);
        } else {
            x = builder.op(Activation { x: made, function: ActivationFunction::Tanh });
        }
    }
    if builder.has("cls.output.weight") {
        x = builder.matmul(x, "cls.output")?;
    }
    builder.output(OutputKind::Classes, x);
    Ok(())
}

/// Returns the pooling type of a value of `pooling_type`.
fn kind(number: u64) -> Option<Pooling> {
    match number {
        1 => Some(Pooling::Mean),
        2 => Some(Pooling::Cls),
        3 => Some(Pooling::Last),
        _ => None,
    }
}
