//! Granite with adapters built in, of which tokens of the text switch one on.

use std::collections::BTreeMap;

use gguf::{Finding, Value};
use gguf_graph::{
    ActivationFunction, Embedding, GatedActivation, Index, MatmulId, TokenConstant, ValueId,
};

use crate::blocks::{
    Attend, Heads, attend, attend_to, attended, finish, layers, normed, queries_keys_values,
};
use crate::granite::graph::usual;
use crate::graph::{Builder, Norm};
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = usual(builder)?;
    let switch = Switch::of(builder)?;
    let embedded = switch.embedding(builder)?;
    let mut x = builder.scale(embedded, family.embedding_scale);
    let adapter = switch.adapter(builder, family.norm);
    for layer in 0..layers(builder)? {
        builder.at("blk.", Some(layer));
        let input = normed(builder, x, "attn_norm", &family);
        let attend = attend(builder, layer, &family)?;
        let made = adapter.attention(builder, input, &attend)?;
        let made = builder.scale(made, family.residual_scale);
        x = builder.add(x, made);
        let input = normed(builder, x, "ffn_norm", &family);
        let made = adapter.network(builder, input, family.function)?;
        let made = builder.scale(made, family.residual_scale);
        x = builder.add(x, made);
    }
    builder.at("", None);
    finish(builder, x, &family)
}

/// The gain of models that do not state it.
const GAIN: f32 = 15.0;

/// The tokens that switch adapters on.
struct Switch {
    /// The adapter of each, from 1, and the token that stands in for it.
    tokens: BTreeMap<u32, (f32, u32)>,
    gain: f32,
}

impl Switch {
    fn of(builder: &Builder<'_>) -> Result<Self, Finding> {
        let switching = tokens(builder, "adapters.token_ids_activate")?;
        let replacing = tokens(builder, "adapters.token_ids_substitute")?;
        let adapters = builder.hyper.u64(key::ADAPTERS_COUNT)?;
        if [&switching, &replacing].iter().any(|all| all.len() as u64 != adapters) {
            let message = format!(
                "{} tokens switch {adapters} adapters on, and {} stand in for them",
                switching.len(),
                replacing.len()
            );
            return Err(Finding::error("key-value", message)
                .key("graniteswitch.adapters.count")
                .help("convert the model anew"));
        }
        let gain = builder.stated(key::ADAPTERS_ROUTER_GAIN)?.unwrap_or(GAIN);
        let adapters = (1u32..).map(|number| number as f32).zip(replacing);
        Ok(Self { tokens: switching.into_iter().zip(adapters).collect(), gain })
    }

    /// The embedding of tokens, or of what stands in for them.
    fn embedding(&self, builder: &mut Builder<'_>) -> Result<ValueId, Finding> {
        let table = builder.weight("token_embd.weight")?;
        let others = self.tokens.iter().map(|(token, (_, other))| (*token, *other));
        Ok(builder.op(Embedding { table, index: Index::MappedToken(others.collect()) }))
    }

    /// The number of each token's adapter, 0 before one is switched on. A head of attention finds it, whose
    /// keys are so far apart that only tokens that switch count: of several it gives the mean.
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

/// Tokens in a list among the hyper-parameters.
fn tokens(builder: &Builder<'_>, name: &str) -> Result<Vec<u32>, Finding> {
    let fault = |code, message| {
        let key = format!("graniteswitch.{name}");
        Finding::error(code, message).key(key).help("convert the model anew")
    };
    let all = builder.hyper.stated(name).and_then(|value| value.as_array());
    let all = all.ok_or_else(|| fault("key-missing", "the model cannot run without this list"))?;
    let token = |value: Value| value.to_u64().and_then(|token| u32::try_from(token).ok());
    let all: Option<Vec<u32>> = all.iter().map(token).collect();
    all.ok_or_else(|| fault("key-value", "has a number that is no token"))
}

/// The number of each token's adapter.
#[derive(Clone, Copy)]
struct Adapter(ValueId);

impl Adapter {
    /// What was made of `x` with a matrix, and what the adapter adds to it.
    fn added(
        self,
        builder: &mut Builder<'_>,
        x: ValueId,
        made: ValueId,
        name: &str,
    ) -> Result<ValueId, Finding> {
        let mut low = x;
        for end in ["lora_a", "lora_b"] {
            let weight = builder.weight(&format!("{name}.{end}"))?;
            let product = MatmulId { x: low, ids: self.0, weight };
            low = builder.op(product);
        }
        Ok(builder.add(made, low))
    }

    /// `x` times a matrix, with what the adapter adds.
    fn product(
        self,
        builder: &mut Builder<'_>,
        x: ValueId,
        name: &str,
    ) -> Result<ValueId, Finding> {
        let made = builder.product(x, name)?;
        self.added(builder, x, made, name)
    }

    fn attention(
        self,
        builder: &mut Builder<'_>,
        x: ValueId,
        attend: &Attend,
    ) -> Result<ValueId, Finding> {
        let mut given = queries_keys_values(builder, x, attend)?;
        for (made, name) in given.iter_mut().zip(["attn_q", "attn_k", "attn_v"]) {
            *made = self.added(builder, x, *made, name)?;
        }
        let attended = attended(builder, given, attend);
        self.product(builder, attended, "attn_output")
    }

    fn network(
        self,
        builder: &mut Builder<'_>,
        x: ValueId,
        function: ActivationFunction,
    ) -> Result<ValueId, Finding> {
        let gate = self.product(builder, x, "ffn_gate")?;
        let up = self.product(builder, x, "ffn_up")?;
        let made = builder.op(GatedActivation { gate, up, function: function.into() });
        self.product(builder, made, "ffn_down")
    }
}
