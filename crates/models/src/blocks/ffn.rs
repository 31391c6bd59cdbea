//! Feed-forward network (FFN) of a layer.

use gguf::Finding;
use gguf_graph::{Activation, GatedActivation, GluFunction, MulWeight, Slice, ValueId};

use crate::graph::{Builder, Norm};

/// Adds the FFN of a layer: gated by `ffn_gate`, gated by the first half of a fused `ffn_up`, or without a
/// gate, as its tensors tell.
///
/// `suffix` follows the tensor names, such as `_shexp` for shared experts.
pub(crate) fn feed_forward(
    builder: &mut Builder<'_>,
    x: ValueId,
    function: impl Into<GluFunction>,
    suffix: &str,
) -> Result<ValueId, Finding> {
    let [gate, up, down] = ["gate", "up", "down"].map(|part| format!("ffn_{part}{suffix}"));
    let function = function.into();
    let inner = u32::try_from(builder.extent(&format!("{down}.weight"), 0)).unwrap_or(0);
    let mut made = if builder.has(&format!("{gate}.weight")) {
        let gate = builder.matmul(x, &gate)?;
        let up = builder.matmul(x, &up)?;
        builder.op(GatedActivation { gate, up, function })
    } else if builder.extent(&format!("{up}.weight"), 1) == 2 * u64::from(inner) {
        let both = builder.matmul(x, &up)?;
        let gate = builder.op(Slice { x: both, groups: 1, start: 0, len: inner });
        let up = builder.op(Slice { x: both, groups: 1, start: inner, len: inner });
        builder.op(GatedActivation { gate, up, function })
    } else {
        let up = builder.matmul(x, &up)?;
        let mut made = builder.op(Activation { x: up, function: function.activation() });
        if let Some(scales) = builder.find("ffn.act.scales") {
            made = builder.op(MulWeight { x: made, weight: scales });
        }
        made
    };
    let sub_norm = format!("ffn_sub_norm{suffix}");
    if builder.has_norm(&sub_norm) {
        let norm = Norm::rms(builder)?;
        made = builder.norm(made, &sub_norm, norm);
    }
    builder.matmul(made, &down)
}
