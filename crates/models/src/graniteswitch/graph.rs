//! Computation graph of Granite Switch: built-in LoRA adapters that control tokens activate.

use std::collections::BTreeMap;

use gguf::{Finding, Value};
use gguf_graph::{
    ActivationFunction, Embedding, GatedActivation, Index, MatmulId, TokenConstant, ValueId,
};

use crate::blocks::{
    Attend, Heads, attend, attend_qkv, attend_to, finish, layers, normed, project_qkv,
};
use crate::granite::graph::granite_decoder;
use crate::graph::{Builder, Norm};
use crate::schema::key;

/// Builds a Granite decoder whose projections add the LoRA adapter of each token.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = granite_decoder(builder)?;
    let switch = Switch::of(builder)?;
    let embedded = switch.embedding(builder)?;
    let mut x = builder.scale(embedded, decoder.embedding_scale);
    let adapter = switch.adapter(builder, decoder.norm);
    for layer in 0..layers(builder)? {
        builder.set_layer("blk.", Some(layer));
        let input = normed(builder, x, "attn_norm", &decoder);
        let attend = attend(builder, layer, &decoder)?;
        let attended = adapter.attention(builder, input, &attend)?;
        let attended = builder.scale(attended, decoder.residual_scale);
        x = builder.add(x, attended);
        let input = normed(builder, x, "ffn_norm", &decoder);
        let fed = adapter.ffn(builder, input, decoder.function)?;
        let fed = builder.scale(fed, decoder.residual_scale);
        x = builder.add(x, fed);
    }
    builder.set_layer("", None);
    finish(builder, x, &decoder)
}

/// Default of `adapters.router_gain`.
const DEFAULT_GAIN: f32 = 15.0;

/// Control tokens of the adapters.
struct Switch {
    /// Adapter number of each control token, from 1, and the token whose embedding replaces its
    /// own.
    tokens: BTreeMap<u32, (f32, u32)>,
    /// Magnitude of the keys of the routing head.
    gain: f32,
}

impl Switch {
    /// Reads the lists of tokens.
    fn of(builder: &Builder<'_>) -> Result<Self, Finding> {
        let control = tokens(builder, "adapters.token_ids_activate")?;
        let substitutes = tokens(builder, "adapters.token_ids_substitute")?;
        let adapters = builder.hparams.u64(key::ADAPTERS_COUNT)?;
        if [&control, &substitutes].iter().any(|list| list.len() as u64 != adapters) {
            let message = format!(
                "{} control tokens and {} substitute tokens for {adapters} adapters",
                control.len(),
                substitutes.len()
            );
            return Err(Finding::error("key-value", message)
                .key("graniteswitch.adapters.count")
                .help("convert the model again"));
        }
        let gain = builder.f32_if_present(key::ADAPTERS_ROUTER_GAIN)?.unwrap_or(DEFAULT_GAIN);
        let adapters = (1u32..).map(|number| number as f32).zip(substitutes);
        Ok(Self { tokens: control.into_iter().zip(adapters).collect(), gain })
    }

    /// Adds the token embedding, with substitutes for control tokens.
    fn embedding(&self, builder: &mut Builder<'_>) -> Result<ValueId, Finding> {
        let table = builder.weight("token_embd.weight")?;
        let substitutes = self.tokens.iter().map(|(token, (_, other))| (*token, *other));
        Ok(builder.op(Embedding { table, index: Index::MappedToken(substitutes.collect()) }))
    }

    /// Adds the adapter number of each token, 0 before the first control token: an attention head
    /// of one dimension whose keys are `gain` for control tokens and `-gain` for others, so that
    /// only control tokens count. After several control tokens the result is the mean of their
    /// numbers.
    fn adapter(&self, builder: &mut Builder<'_>, norm: Norm) -> Adapter {
        let query = builder.op(TokenConstant { values: Vec::new(), default: 1.0 });
        let keys = self.tokens.keys().map(|token| (*token, self.gain)).collect();
        let key = builder.op(TokenConstant { values: keys, default: -self.gain });
        let numbers = self.tokens.iter().map(|(token, (number, _))| (*token, *number)).collect();
        let value = builder.op(TokenConstant { values: numbers, default: 0.0 });
        let heads = Heads { heads: 1, heads_kv: 1, key_len: 1, value_len: 1 };
        Adapter(attend_to(builder, [query, key, value], &Attend::plain(heads, norm)))
    }
}

/// Reads a list of token IDs from the hyper-parameters.
fn tokens(builder: &Builder<'_>, name: &str) -> Result<Vec<u32>, Finding> {
    let error = |code, message| {
        let key = format!("graniteswitch.{name}");
        Finding::error(code, message).key(key).help("convert the model again")
    };
    let list = builder.hparams.value(name).and_then(|value| value.as_array());
    let list = list.ok_or_else(|| {
        error("key-missing", "the list is missing; expected a token ID per adapter")
    })?;
    let token = |value: Value| value.to_u64().and_then(|token| u32::try_from(token).ok());
    let tokens: Option<Vec<u32>> = list.iter().map(token).collect();
    tokens.ok_or_else(|| {
        error(
            "key-value",
            "the list has an integer that is not a token ID; expected 32-bit unsigned integers",
        )
    })
}

/// Adapter number of each token.
#[derive(Clone, Copy)]
struct Adapter(ValueId);

impl Adapter {
    /// Adds `B (A x)` of the adapter to the output of a projection of `x`.
    fn add_lora(
        self,
        builder: &mut Builder<'_>,
        x: ValueId,
        projected: ValueId,
        name: &str,
    ) -> Result<ValueId, Finding> {
        let mut lora = x;
        for suffix in ["lora_a", "lora_b"] {
            let weight = builder.weight(&format!("{name}.{suffix}"))?;
            lora = builder.op(MatmulId { x: lora, ids: self.0, weight });
        }
        Ok(builder.add(projected, lora))
    }

    /// Adds a projection with its adapter.
    fn projection(
        self,
        builder: &mut Builder<'_>,
        x: ValueId,
        name: &str,
    ) -> Result<ValueId, Finding> {
        let projected = builder.matmul(x, name)?;
        self.add_lora(builder, x, projected, name)
    }

    /// Adds attention of a layer.
    fn attention(
        self,
        builder: &mut Builder<'_>,
        x: ValueId,
        attend: &Attend,
    ) -> Result<ValueId, Finding> {
        let mut qkv = project_qkv(builder, x, attend)?;
        for (projected, name) in qkv.iter_mut().zip(["attn_q", "attn_k", "attn_v"]) {
            *projected = self.add_lora(builder, x, *projected, name)?;
        }
        let attended = attend_qkv(builder, qkv, attend);
        self.projection(builder, attended, "attn_output")
    }

    /// Adds the FFN of a layer.
    fn ffn(
        self,
        builder: &mut Builder<'_>,
        x: ValueId,
        function: ActivationFunction,
    ) -> Result<ValueId, Finding> {
        let gate = self.projection(builder, x, "ffn_gate")?;
        let up = self.projection(builder, x, "ffn_up")?;
        let gated = builder.op(GatedActivation { gate, up, function: function.into() });
        self.projection(builder, gated, "ffn_down")
    }
}
