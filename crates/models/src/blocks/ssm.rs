//! State-space models (SSM): Mamba 1 and 2.

use gguf::Finding;
use gguf_graph::{
    Activation, ActivationFunction, Bias, GatedActivation, GluFunction, SelectiveScan, State,
    ValueId,
};

use super::short_convolution;
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Sizes of a state space.
#[derive(Clone, Copy)]
pub(crate) struct SsmSizes {
    pub inner: u32,
    /// State size per channel.
    pub numbers: u32,
    /// Rank of the time steps (Mamba 1), or number of heads (Mamba 2).
    pub rank: u32,
}

impl SsmSizes {
    /// Reads the hyper-parameters.
    pub fn of(builder: &Builder<'_>) -> Result<Self, Finding> {
        Ok(Self {
            inner: builder.size(key::SSM_INNER_SIZE)?,
            numbers: builder.size(key::SSM_STATE_SIZE)?,
            rank: builder.size(key::SSM_TIME_STEP_RANK)?,
        })
    }

    /// Adds a Mamba 1 mixer: one channel per head; time steps, B and C are projections of the convolved input,
    /// with RMS norms in some models.
    pub fn mamba1(
        self,
        builder: &mut Builder<'_>,
        x: ValueId,
        inner_norm: Option<Norm>,
    ) -> Result<ValueId, Finding> {
        let Self { inner, numbers, rank } = self;
        let both = builder.matmul(x, "ssm_in")?;
        let [x, gate] = builder.split(both, [inner, inner]);
        let x = short_convolution(builder, x, "ssm_conv1d", inner)?;
        let made = builder.matmul(x, "ssm_x")?;
        let mut parts = builder.split(made, [rank, numbers, numbers]);
        if let Some(norm) = inner_norm {
            let names = ["ssm_dt_norm", "ssm_b_norm", "ssm_c_norm"];
            for (part, name) in parts.iter_mut().zip(names) {
                *part = builder.norm(*part, name, norm);
            }
        }
        let [dt, b, c] = parts;
        let dt = builder.matmul(dt, "ssm_dt")?;
        let y = self.scan(builder, x, dt, [b, c], 1)?;
        let y = gated(builder, gate, y);
        builder.matmul(y, "ssm_out")
    }

    /// Adds a Mamba 2 mixer: one input projection, a convolution over x, B and C, and a gated group RMS norm of the
    /// output in most models.
    pub fn mamba2(
        self,
        builder: &mut Builder<'_>,
        x: ValueId,
        norm: Norm,
    ) -> Result<ValueId, Finding> {
        let Self { inner, numbers, rank } = self;
        let groups = builder.size(key::SSM_GROUP_COUNT)?;
        let shared = groups.saturating_mul(numbers);
        let channels = shared.saturating_mul(2).saturating_add(inner);
        let made = builder.matmul(x, "ssm_in")?;
        let [gate, x, dt] = builder.split(made, [inner, channels, rank]);
        let x = short_convolution(builder, x, "ssm_conv1d", channels)?;
        let [x, b, c] = builder.split(x, [inner, shared, shared]);
        let bias = builder.weight("ssm_dt.bias")?;
        let dt = builder.op(Bias { x: dt, weight: bias });
        let y = self.scan(builder, x, dt, [b, c], groups)?;
        let mut y = gated(builder, gate, y);
        if builder.has_norm("ssm_norm") {
            y = builder.group_norm(y, "ssm_norm", norm, groups);
        }
        builder.matmul(y, "ssm_out")
    }

    /// Adds the selective scan, from time steps before softplus.
    pub fn scan(
        self,
        builder: &mut Builder<'_>,
        x: ValueId,
        dt: ValueId,
        [b, c]: [ValueId; 2],
        groups: u32,
    ) -> Result<ValueId, Finding> {
        let dt = builder.op(Activation { x: dt, function: ActivationFunction::Softplus });
        let (a, d) = (builder.weight("ssm_a")?, builder.weight("ssm_d")?);
        let state =
            builder.state(State::Recurrent { len: self.inner.saturating_mul(self.numbers) });
        Ok(builder.op(SelectiveScan { x, dt, b, c, a, d, groups, state }))
    }
}

/// Adds the output of the scan times SiLU of the gate.
fn gated(builder: &mut Builder<'_>, gate: ValueId, up: ValueId) -> ValueId {
    builder.op(GatedActivation { gate, up, function: GluFunction::Plain(ActivationFunction::Silu) })
}

/// Returns whether the layer has a state space instead of attention.
pub(crate) fn is_state_space(builder: &Builder<'_>) -> bool {
    builder.has("ssm_in.weight")
}
