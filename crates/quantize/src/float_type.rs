//! Types of tensors in unquantized files.
//!
//! Follows `prepare_tensors` in `base.py` of llama.cpp's converter: programs expect these tensors
//! in F32.

use gguf::{Shape, TensorType};

/// Name parts of matrices that are always F32.
const F32_NAMES: &[&str] = &[
    "ffn_gate_inp.weight",
    "ffn_gate_inp_shexp.weight",
    "position_embd.weight",
    "token_types.weight",
    "ssm_conv1d.weight",
    "ssm_conv1d_q.weight",
    "ssm_conv1d_k.weight",
    "ssm_conv1d_v.weight",
    "shortconv.conv.weight",
    "indexer.proj.weight",
    "hc_attn_fn.weight",
    "hc_ffn_fn.weight",
    "output_hc_fn.weight",
    "altup_correct_coef.weight",
    "altup_predict_coef.weight",
    "time_mix_first.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
];

/// Name suffixes of matrices, including those of built-in adapters.
const MATRICES: [&str; 3] = [".weight", ".lora_a", ".lora_b"];

/// Returns the type of a tensor if matrices have type `matrices`.
pub fn float_type(name: &str, shape: &Shape, matrices: TensorType) -> TensorType {
    let is_f32 = shape.len() <= 1
        || name.ends_with("_norm.weight")
        || !MATRICES.iter().any(|end| name.ends_with(end))
        || F32_NAMES.iter().any(|part| name.ends_with(part));
    if is_f32 { TensorType::F32 } else { matrices }
}
