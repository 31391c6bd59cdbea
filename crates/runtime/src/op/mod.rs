//! Kernels of the operations, one file per operation. Formulas are in the files of the same names of `gguf-graph`.

mod elementwise;
mod norm;
mod parallel;
mod position_bias;

use gguf::Error;
use gguf_graph::Op;

use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

/// Kernel of an operation.
pub(crate) trait Kernel {
    /// Refuses inputs that only a run can check.
    ///
    /// # Errors
    /// `context-full` for positions beyond a table.
    fn check(&self, _run: &Run<'_>, _rows: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Computes the output. `out` has its shape, and is all zeros unless the kernel overwrites it.
    fn compute(&self, run: &Run<'_>, sequences: &mut [Sequence], out: &mut Value);

    /// Whether the kernel overwrites every element of the output, so that nobody has to zero it. Kernels that
    /// take most of the time of a run do.
    fn overwrites(&self) -> bool {
        false
    }
}

/// Defines [`kernel`] from one row per operation: its type, and the file of its kernel.
macro_rules! kernels {
    ($($operation:ident: $name:ident),* $(,)?) => {
        $(mod $name;)*

        /// Returns the kernel of an operation.
        pub(crate) fn kernel(op: &Op) -> &dyn Kernel {
            match op {
                $(Op::$operation(operation) => operation,)*
            }
        }
    };
}

kernels! {
    Features: features,
    TokenFeatures: token_features,
    Embedding: embedding,
    NgramEmbedding: ngram_embedding,
    TokenConstant: token_constant,
    Matmul: matmul,
    BatchedMatmul: batched_matmul,
    MatmulId: matmul_id,
    LayerNorm: layer_norm,
    RmsNorm: rms_norm,
    L2Norm: l2_norm,
    Add: add,
    Mul: mul,
    Bias: bias,
    MulWeight: mul_weight,
    Lerp: lerp,
    Scale: scale,
    AddScalar: add_scalar,
    AttentionTemperature: attention_temperature,
    Clamp: clamp,
    SoftCap: soft_cap,
    Activation: activation,
    GatedActivation: gated_activation,
    Softmax: softmax,
    Sinkhorn: sinkhorn,
    StreamMix: stream_mix,
    Slice: slice,
    Concat: concat,
    Sum: sum,
    Rope: rope,
    Attention: attention,
    TopkIndexer: topk_indexer,
    BlockCompress: block_compress,
    KvStore: kv_store,
    Moe: moe,
    Conv1d: conv1d,
    CausalConv1d: causal_conv1d,
    TokenShift: token_shift,
    SelectiveScan: selective_scan,
    Wkv: wkv,
    LinearAttention: linear_attention,
    SelectOutputs: select_outputs,
    Pool: pool,
}
