//! `moe`

use gguf_graph::{ActivationFunction, Gating, Moe};
use gguf_store::Advice;
use rayon::prelude::*;

use super::Kernel;
use super::activation::activate;
use super::elementwise::add_to_rows;
use super::gated_activation::{activate_gate, activate_gates};
use super::parallel::each_row;
use super::softmax::softmax;
use crate::matmul::{Input, QuantizedInput, matmul_id};
use crate::portable::exp;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

/// Minimum sum that weights are divided by: half the smallest normal FP16 number. Where all weights are 0, they stay 0.
const MIN_SUM: f32 = 6.103_515_6e-5;

/// Maximum number of tokens whose networks all run at the same time.
const FEW_TOKENS: usize = 4;

/// Networks that run at the same time, if there are more tokens: their results are held until all are done.
const NETWORKS_PER_THREAD: usize = 2;

/// Rows of the tokens of an expert, with the weights of its output.
type Assigned = Vec<(usize, f32)>;

impl Kernel for Moe {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let weights = &run.executor.weights;
        let (x, logits) = (run.value(self.x), run.value(self.router_logits));
        let bias = weights.optional(self.selection_bias);
        let scales = weights.optional(self.expert_scales);
        let per_network = self.experts_per_network.max(1) as usize;
        let mut assigned: Vec<Assigned> = vec![Vec::new(); logits.width / per_network];
        let ids = self.expert_ids.map(|ids| run.value(ids));
        for row in 0..logits.rows {
            let ids = ids.map(|ids| ids.row(row));
            for (expert, weight) in route(self, logits.row(row), ids, bias, scales) {
                assigned[expert / per_network].push((row, weight));
            }
        }
        let networks: Vec<(usize, Assigned)> =
            assigned.into_iter().enumerate().filter(|(_, tokens)| !tokens.is_empty()).collect();
        // Products of few tokens are too short for all threads, and threads wait for each other after each product: so
        // each takes a network.
        let together = match run.watch.observer.is_none() {
            true if x.rows <= FEW_TOKENS => networks.len().max(1),
            true => NETWORKS_PER_THREAD * rayon::current_num_threads(),
            false => 1,
        };
        if run.executor.read_ahead.exceeds_memory {
            for (network, _) in &networks {
                for id in self.gate.into_iter().chain([self.up, self.down]) {
                    let matrix = weights.matrix(id);
                    let rows = matrix.rows_per_matrix;
                    matrix.advise(network * rows, rows, Advice::WillNeed);
                }
            }
        }
        // Networks with the same input share its quantized activations.
        let same = QuantizedInput::default();
        // Outputs of a token are added in the order of its experts, however many tokens there are.
        for networks in networks.chunks(together) {
            let results: Vec<Value> = networks
                .par_iter()
                .map(|(network, tokens)| {
                    if x.rows == 1 && !self.weight_before_ffn {
                        return run_network(run, self, *network, x, &same);
                    }
                    let input = gather(self, x, tokens);
                    run_network(run, self, *network, &input, &QuantizedInput::default())
                })
                .collect();
            for ((_, tokens), result) in networks.iter().zip(results) {
                let rows = result.data.chunks_exact(result.width);
                for ((row, weight), result) in tokens.iter().zip(rows) {
                    let factor = if self.weight_before_ffn { 1.0 } else { *weight };
                    let out = &mut out.data[row * result.len()..(row + 1) * result.len()];
                    out.iter_mut().zip(result).for_each(|(out, x)| *out += factor * x);
                }
            }
        }
    }
}

/// Returns the input of a network: the rows of its tokens.
fn gather(moe: &Moe, x: &Value, tokens: &Assigned) -> Value {
    let mut input = Value::zeros(tokens.len(), x.width, Vec::new());
    for ((row, weight), input) in tokens.iter().zip(input.data.chunks_exact_mut(x.width)) {
        let factor = if moe.weight_before_ffn { *weight } else { 1.0 };
        input.iter_mut().zip(x.row(*row)).for_each(|(input, x)| *input = x * factor);
    }
    input
}

/// Returns the output of a network, given its input and the cache of its quantized activations.
fn run_network(
    run: &Run<'_>,
    moe: &Moe,
    network: usize,
    input: &Value,
    quantized: &QuantizedInput,
) -> Value {
    let weights = &run.executor.weights;
    let linear = |x: Input<'_>, id, bias| {
        let matrix = weights.matrix(id);
        let mut out = Value::zeros(x.value.rows, matrix.rows_per_matrix, Vec::new());
        matmul_id(run.matmul_context(), matrix, network, x, &mut out);
        run.executor.adapters.add(run.watch, id, network, x.value, &mut out);
        if let Some(bias) = weights.optional(bias) {
            add_to_rows(Some(&bias[network * out.width..(network + 1) * out.width]), &mut out);
        }
        out
    };
    let input = Input { value: input, quantized: Some(quantized) };
    let mut up = linear(input, moe.up, moe.up_bias);
    let inner = weights.matrix(moe.down).row_len;
    match moe.gate {
        Some(gate) => {
            let gate = linear(input, gate, moe.gate_bias);
            let mut hidden = Value::zeros(up.rows, inner, Vec::new());
            activate_gates(moe.function, &gate, &up, &mut hidden);
            up = hidden;
        }
        None if up.width == 2 * inner => {
            let mut hidden = Value::zeros(up.rows, inner, Vec::new());
            each_row(&mut hidden, |row, hidden| {
                let (gate, up) = up.row(row).split_at(inner);
                for ((hidden, gate), up) in hidden.iter_mut().zip(gate).zip(up) {
                    *hidden = activate_gate(moe.function, *gate, *up);
                }
            });
            up = hidden;
        }
        None => {
            let function = moe.function.activation();
            up.data.iter_mut().for_each(|up| *up = activate(function, *up));
        }
    }
    linear((&up).into(), moe.down, moe.down_bias)
}

/// Returns the experts of a token with their weights, in ascending order.
fn route(
    moe: &Moe,
    logits: &[f32],
    ids: Option<&[f32]>,
    bias: Option<&[f32]>,
    scales: Option<&[f32]>,
) -> Vec<(usize, f32)> {
    let mut weights = logits.to_vec();
    match moe.gating {
        Gating::Softmax => softmax(&mut weights),
        Gating::Sigmoid => weights.iter_mut().for_each(|x| *x = 1.0 / (1.0 + exp(-*x))),
        Gating::SqrtSoftplus => {
            weights.iter_mut().for_each(|x| *x = activate(ActivationFunction::Softplus, *x).sqrt());
        }
        Gating::SoftmaxAfterTopk | Gating::SparseMixer { .. } => {}
    }
    let mut scores = weights.clone();
    if let Some(bias) = bias {
        scores.iter_mut().zip(bias).for_each(|(score, bias)| *score += bias);
    }
    if moe.groups > 1 {
        exclude_groups(&mut scores, moe);
    }
    let mut order: Vec<usize> = (0..logits.len()).collect();
    match ids {
        // NaN and numbers that no expert has select nothing.
        Some(ids) => {
            let expert = |x: &f32| order.get(*x as usize).filter(|expert| **expert as f32 == *x);
            order = ids.iter().filter_map(expert).copied().collect();
        }
        // The sort is stable: among equals the lower number comes first.
        None => order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a])),
    }
    let count = moe.experts_per_token as usize;
    if let Gating::SparseMixer { margin } = moe.gating {
        weights = sparse_mixer(logits, &order, count, margin);
    }
    order.truncate(count);
    order.sort_unstable();
    let mut selected: Vec<f32> = order.iter().map(|expert| weights[*expert]).collect();
    if moe.gating == Gating::SoftmaxAfterTopk {
        softmax(&mut selected);
    }
    let sum: f32 = selected.iter().sum();
    let divisor = if moe.normalize_weights { sum.max(MIN_SUM) } else { 1.0 };
    let weighted = order.into_iter().zip(selected).map(|(expert, weight)| {
        let scale = scales.map_or(1.0, |scales| scales[expert]);
        (expert, weight / divisor * moe.weights_scale * scale)
    });
    weighted.collect()
}

/// Returns the weights of SparseMixer for the first `count` experts of an order.
fn sparse_mixer(logits: &[f32], order: &[usize], count: usize, margin: f32) -> Vec<f32> {
    let mut weights = vec![0.0; logits.len()];
    for (place, expert) in order.iter().enumerate().take(count) {
        let best = logits[*expert];
        let rest = order[place..].iter().map(|other| logits[*other]);
        let close = rest.filter(|logit| best - logit <= margin * logit.abs().max(best));
        let sum: f32 = close.map(|logit| exp(logit - best)).sum();
        weights[*expert] = if sum > 0.0 { 1.0 / sum } else { 0.0 };
    }
    weights
}

/// Excludes the experts outside of the best groups from the selection.
fn exclude_groups(scores: &mut [f32], moe: &Moe) {
    let (groups, count) = (moe.groups as usize, moe.groups_per_token as usize);
    let len = scores.len() / groups;
    let group_score = |group: &[f32]| {
        let mut best = group.to_vec();
        best.sort_by(|a, b| b.total_cmp(a));
        best.iter().take(moe.group_top_k as usize).sum::<f32>()
    };
    let group_scores: Vec<f32> = scores.chunks_exact(len).map(group_score).collect();
    let mut order: Vec<usize> = (0..groups).collect();
    order.sort_by(|a, b| group_scores[*b].total_cmp(&group_scores[*a]));
    for group in &order[count..] {
        scores[group * len..(group + 1) * len].fill(f32::NEG_INFINITY);
    }
}

#[cfg(test)]
mod tests {
    use gguf_graph::{GluFunction, ValueId, WeightId};

    use super::*;

    fn moe(gating: Gating) -> Moe {
        Moe {
            x: ValueId(0),
            router_logits: ValueId(1),
            experts_per_token: 2,
            expert_ids: None,
            gating,
            selection_bias: None,
            groups: 1,
            groups_per_token: 1,
            group_top_k: 1,
            normalize_weights: false,
            weights_scale: 2.0,
            weight_before_ffn: false,
            gate: None,
            up: WeightId(0),
            down: WeightId(1),
            gate_bias: None,
            up_bias: None,
            down_bias: None,
            expert_scales: None,
            experts_per_network: 1,
            function: GluFunction::Plain(ActivationFunction::Silu),
        }
    }

    #[test]
    fn sparse_mixer_weighs_close_logits() {
        let moe = moe(Gating::SparseMixer { margin: 0.02 });
        let weight = 1.0 / (1.0 + (-0.01f32).exp());
        let logits = [0.5, 2.0, 1.99];
        let routed = route(&moe, &logits, None, None, None);
        assert_eq!(routed.iter().map(|(expert, _)| *expert).collect::<Vec<_>>(), [1, 2]);
        // After the best expert is taken, no other is close to the next.
        assert!((routed[0].1 - 2.0 * weight).abs() < 1e-6 && routed[1].1 == 2.0, "{routed:?}");
        let scaled = route(&moe, &logits, None, None, Some(&[1.0, 1.0, 3.0]));
        assert_eq!(scaled[1].1, 6.0);
    }

    #[test]
    fn hash_routing_keeps_the_weights_of_the_logits() {
        let mut moe = moe(Gating::SqrtSoftplus);
        moe.normalize_weights = true;
        let logits = [0.5f32, -3.0, 1.5, 30.0];
        let root = |x: f32| x.exp().ln_1p().sqrt();
        let routed = route(&moe, &logits, Some(&[2.0, 0.0]), None, None);
        let sum = root(0.5) + root(1.5);
        let expected = [(0, 2.0 * root(0.5) / sum), (2, 2.0 * root(1.5) / sum)];
        for ((expert, weight), expected) in routed.iter().zip(expected) {
            assert!(*expert == expected.0 && (weight - expected.1).abs() < 1e-6, "{routed:?}");
        }
        assert_eq!(route(&moe, &logits, Some(&[3.0, 3.0]), None, None), [(3, 1.0); 2]);
        let invalid = [f32::NAN, -1.0, 4.0, 0.5, f32::INFINITY, 1e30];
        assert_eq!(route(&moe, &logits, Some(&invalid), None, None), []);
    }
}
