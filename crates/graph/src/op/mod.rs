//! Operations of a graph, one file per operation.
//!
//! A file holds the fields of the operation with their stored names, its formula, its shape rule and
//! its cost. `docs/graph.md` has a section for each; the runtime has a kernel in a file of the same
//! name. The table at the end of this file lists them all.
//!
//! A value is a matrix of floats: its rows stand for tokens (see [`RowDim`](crate::RowDim)), its width
//! is fixed. Heads and groups are equal consecutive parts of a row. Shapes of weights are those of the
//! tensor directory, fastest dimension first.

mod norm;

use serde::{Deserialize, Serialize};

pub use self::activation::ActivationFunction;
pub use self::attention::{BlockSelection, CompressedKv, KvSource, Mask, PositionBias};
pub use self::embedding::Index;
pub use self::gated_activation::GluFunction;
pub use self::linear_attention::Decay;
pub use self::moe::Gating;
pub use self::ngram_embedding::HashHead;
pub use self::norm::NormKind;
pub use self::pool::Pooling;
pub use self::rope::{FreqFactors, RopeLayout, RopeParameters, RopeScaling};
use crate::cost::{CostScope, Work};
use crate::id::{StateId, ValueId, WeightId};
use crate::scope::{Result, Scope};
use crate::tensor::Shape;

/// The definition of an operation: inputs, weights, states, shape, cost and drawing.
pub trait Operation {
    /// Returns the values that it reads.
    fn inputs(&self) -> Vec<ValueId>;

    /// Returns the weights that it reads.
    fn weights(&self) -> Vec<WeightId> {
        Vec::new()
    }

    /// Returns those of its weights that it multiplies by or looks rows up in. A runtime may leave them quantized.
    fn matrices(&self) -> Vec<WeightId> {
        Vec::new()
    }

    /// Returns the states that it reads or writes.
    fn states(&self) -> Vec<StateId> {
        Vec::new()
    }

    /// Returns the states that it writes. Only one operation may write a state, except that several may
    /// write the same keys and values.
    fn writes(&self) -> Vec<StateWrite> {
        self.states().into_iter().map(|state| StateWrite { state, key_value: None }).collect()
    }

    /// Returns the shape of its output.
    ///
    /// # Errors
    /// `graph-invalid` if inputs, weights, states or attributes do not fit.
    fn shape(&self, scope: &Scope<'_>) -> Result<Shape>;

    /// Returns the work of computing its output; by default one multiply-add per element.
    fn cost(&self, scope: &CostScope<'_>) -> Work {
        Work::dense(scope.elementwise())
    }

    /// Whether the output of a token depends on later tokens, so that a batch must not be split.
    fn needs_whole_batch(&self) -> bool {
        false
    }
}

/// A state that an operation writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateWrite {
    /// The state.
    pub state: StateId,
    /// Key and value that attention appends to it.
    pub key_value: Option<(ValueId, ValueId)>,
}

/// Defines [`Op`] from one row per operation: its type, and the file that is its stored name.
macro_rules! operations {
    ($($operation:ident: $name:ident),* $(,)?) => {
        $(mod $name; pub use self::$name::$operation;)*

        /// An operation. It computes one value from earlier ones.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "op", rename_all = "snake_case")]
        pub enum Op {
            $(#[doc = concat!("`", stringify!($name), "`")] $operation($operation),)*
        }

        impl Op {
            /// Stored names of all operations.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// Returns the name in the stored form.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$operation(_) => stringify!($name),)*
                }
            }

            /// Returns the definition of the operation.
            pub fn definition(&self) -> &dyn Operation {
                match self {
                    $(Self::$operation(operation) => operation,)*
                }
            }
        }

        $(impl From<$operation> for Op {
            fn from(operation: $operation) -> Self {
                Self::$operation(operation)
            }
        })*
    };
}

operations! {
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

impl Op {
    /// Returns the values that it reads.
    pub fn inputs(&self) -> Vec<ValueId> {
        self.definition().inputs()
    }

    /// Returns the weights that it reads.
    pub fn weights(&self) -> Vec<WeightId> {
        self.definition().weights()
    }

    /// Returns those of its weights that it multiplies by or looks rows up in. A runtime may leave them quantized.
    pub fn matrices(&self) -> Vec<WeightId> {
        self.definition().matrices()
    }

    /// Returns the states that it reads or writes.
    pub fn states(&self) -> Vec<StateId> {
        self.definition().states()
    }

    /// Whether the output of a token depends on later tokens, so that a batch must not be split.
    pub fn needs_whole_batch(&self) -> bool {
        self.definition().needs_whole_batch()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::tensor::{RowDim, State, Weight};

    /// Parts of a graph for tests of one operation.
    #[derive(Default)]
    pub(crate) struct Parts {
        pub weights: Vec<Vec<u64>>,
        pub states: Vec<State>,
        pub shapes: Vec<Shape>,
        pub is_encoder: bool,
        pub features_width: Option<u32>,
    }

    /// Returns a value with one row per token.
    pub(crate) fn tokens(width: u32) -> Shape {
        Shape { rows: RowDim::Tokens, width }
    }

    impl Parts {
        /// Returns parts with values of these widths, one row per token, and weights of these shapes.
        pub(crate) fn new(widths: &[u32], weights: &[&[u64]]) -> Self {
            Self {
                shapes: widths.iter().copied().map(tokens).collect(),
                weights: weights.iter().map(|shape| shape.to_vec()).collect(),
                ..Self::default()
            }
        }

        /// Returns the parts with states.
        pub(crate) fn with(self, states: &[State]) -> Self {
            Self { states: states.to_vec(), ..self }
        }

        /// Returns the shape of the output of an operation, or what is wrong with it.
        pub(crate) fn shape(&self, op: Json) -> String {
            let op: Op = match serde_json::from_value(op) {
                Ok(op) => op,
                Err(error) => return error.to_string(),
            };
            let weights = self
                .weights
                .iter()
                .map(|shape| Weight { name: "w".to_owned(), shape: shape.clone() });
            let scope = Scope {
                weights: &weights.collect::<Vec<_>>(),
                states: &self.states,
                shapes: &self.shapes,
                is_encoder: self.is_encoder,
                features_width: self.features_width,
            };
            match op.definition().shape(&scope) {
                Ok(shape) => shape.to_string(),
                Err(finding) => finding.message.into(),
            }
        }
    }

    #[test]
    fn names_are_stored_names() {
        let sum = json!({"op": "sum", "x": 3});
        let op: Op = serde_json::from_value(sum.clone()).unwrap();
        assert_eq!(op.name(), "sum");
        assert_eq!(serde_json::to_value(&op).unwrap(), sum);
        for name in Op::NAMES {
            // An object without the fields of the operation is refused for its first field, not for its name.
            let error = serde_json::from_value::<Op>(json!({ "op": name })).unwrap_err();
            assert!(error.to_string().starts_with("missing field"), "{name}: {error}");
        }
    }
}
