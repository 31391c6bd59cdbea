//! Moe: each token goes through those of its best scores.

use gguf_graph::{ActivationFunction, Gating, Moe};
use rayon::prelude::*;

use super::elementwise::{apply, gated, softmax};
use crate::product::{self, Input, Kept};
use crate::run::Run;
use crate::value::Value;

/// The tokens of an expert, and what their results count.
type Assigned = Vec<(usize, f32)>;

pub(super) fn experts(run: &Run<'_>, experts: &Moe, out: &mut Value) {
    let weights = &run.executor.weights;
    let (x, scores) = (run.value(experts.x), run.value(experts.router_logits));
    let bias = weights.optional(experts.selection_bias);
    let scales = weights.optional(experts.expert_scales);
    let share = experts.experts_per_network.max(1) as usize;
    let mut assigned: Vec<Assigned> = vec![Vec::new(); scores.width / share];
    let chosen = experts.expert_ids.map(|chosen| run.value(chosen));
    for row in 0..scores.rows {
        let chosen = chosen.map(|chosen| chosen.row(row));
        for (expert, weight) in choose(experts, scores.row(row), chosen, bias, scales) {
            assigned[expert / share].push((row, weight));
        }
    }
    // Of each token the results are added in the order of its experts, however many there are.
    for (expert, tokens) in assigned.iter().enumerate().filter(|(_, tokens)| !tokens.is_empty()) {
        let made = network(run, experts, expert, x, tokens);
        for ((row, weight), made) in tokens.iter().zip(made.data.chunks_exact(made.width)) {
            let factor = if experts.weight_before_ffn { 1.0 } else { *weight };
            let out = &mut out.data[row * made.len()..(row + 1) * made.len()];
            out.iter_mut().zip(made).for_each(|(out, made)| *out += factor * made);
        }
    }
}

/// What an expert makes of its tokens.
fn network(
    run: &Run<'_>,
    experts: &Moe,
    expert: usize,
    x: &Value,
    tokens: &[(usize, f32)],
) -> Value {
    let weights = &run.executor.weights;
    let mut input = Value::zeros(tokens.len(), x.width, Vec::new());
    for ((row, weight), input) in tokens.iter().zip(input.data.chunks_exact_mut(x.width)) {
        let factor = if experts.weight_before_ffn { *weight } else { 1.0 };
        input.iter_mut().zip(x.row(*row)).for_each(|(input, x)| *input = x * factor);
    }
    let multiply = |x: Input<'_>, id, bias| {
        let matrix = weights.matrix(id);
        let mut made = Value::zeros(x.value.rows, matrix.rows_of_one, Vec::new());
        product::multiply_expert(run.how(), matrix, expert, x, &mut made);
        if let Some(bias) = weights.optional(bias) {
            let bias = &bias[expert * made.width..(expert + 1) * made.width];
            super::elementwise::add_row(Some(bias), &mut made);
        }
        made
    };
    let kept = Kept::default();
    let input = Input { value: &input, kept: Some(&kept) };
    let mut up = multiply(input, experts.up, experts.up_bias);
    let inner = weights.matrix(experts.down).row_len;
    match experts.gate {
        Some(gate) => {
            let gate = multiply(input, gate, experts.gate_bias);
            up.data
                .par_iter_mut()
                .with_min_len(super::WORTHWHILE)
                .zip(&gate.data)
                .for_each(|(up, gate)| *up = gated(experts.function, *gate, *up));
        }
        None if up.width == 2 * inner => {
            let mut made = Value::zeros(up.rows, inner, Vec::new());
            super::each_row(&mut made, |row, made| {
                let (gate, up) = up.row(row).split_at(inner);
                for ((made, gate), up) in made.iter_mut().zip(gate).zip(up) {
                    *made = gated(experts.function, *gate, *up);
                }
            });
            up = made;
        }
        None => {
            let function = experts.function.activation();
            up.data.iter_mut().for_each(|up| *up = apply(function, *up));
        }
    }
    multiply((&up).into(), experts.down, experts.down_bias)
}

/// The experts of a token with their weights, in the order of their numbers; they may be chosen before.
fn choose(
    experts: &Moe,
    scores: &[f32],
    chosen: Option<&[f32]>,
    bias: Option<&[f32]>,
    scales: Option<&[f32]>,
) -> Vec<(usize, f32)> {
    let mut weights = scores.to_vec();
    match experts.gating {
        Gating::Softmax => softmax(&mut weights),
        Gating::Sigmoid => weights.iter_mut().for_each(|x| *x = 1.0 / (1.0 + (-*x).exp())),
        Gating::SqrtSoftplus => {
            weights.iter_mut().for_each(|x| *x = apply(ActivationFunction::Softplus, *x).sqrt());
        }
        Gating::SoftmaxAfterTopk | Gating::SparseMixer { .. } => {}
    }
    let mut merits = weights.clone();
    if let Some(bias) = bias {
        merits.iter_mut().zip(bias).for_each(|(merit, bias)| *merit += bias);
    }
    if experts.groups > 1 {
        keep_best_groups(&mut merits, experts);
    }
    let mut order: Vec<usize> = (0..scores.len()).collect();
    match chosen {
        // A number that is none, or that no expert has, stands for none.
        Some(chosen) => {
            let number = |x: &f32| order.get(*x as usize).filter(|number| **number as f32 == *x);
            order = chosen.iter().filter_map(number).copied().collect();
        }
        // The first of equals, as everywhere.
        None => order.sort_by(|a, b| merits[*b].total_cmp(&merits[*a])),
    }
    if let Gating::SparseMixer { margin } = experts.gating {
        weights = shares_of_close(scores, &order, experts.experts_per_token as usize, margin);
    }
    order.truncate(experts.experts_per_token as usize);
    order.sort_unstable();
    let mut chosen: Vec<f32> = order.iter().map(|expert| weights[*expert]).collect();
    if experts.gating == Gating::SoftmaxAfterTopk {
        softmax(&mut chosen);
    }
    let sum: f32 = chosen.iter().sum();
    // Half the least normal half-precision number: where all weights are 0 they stay so.
    let divisor = if experts.normalize_weights { sum.max(6.103_515_6e-5) } else { 1.0 };
    let weighed = order.into_iter().zip(chosen);
    let weighed = weighed.map(|(expert, weight)| {
        let own = scales.map_or(1.0, |scales| scales[expert]);
        (expert, weight / divisor * experts.weights_scale * own)
    });
    weighed.collect()
}

/// Of the first experts in the order, the share of each among those behind it that are close.
fn shares_of_close(scores: &[f32], order: &[usize], used: usize, margin: f32) -> Vec<f32> {
    let mut shares = vec![0.0; scores.len()];
    for (place, expert) in order.iter().enumerate().take(used) {
        let best = scores[*expert];
        let rest = order[place..].iter().map(|other| scores[*other]);
        let close = rest.filter(|score| best - score <= margin * score.abs().max(best));
        let sum: f32 = close.map(|score| (score - best).exp()).sum();
        shares[*expert] = if sum > 0.0 { 1.0 / sum } else { 0.0 };
    }
    shares
}

/// Leaves no merit to the experts outside of the groups whose best are best.
fn keep_best_groups(merits: &mut [f32], experts: &Moe) {
    let (groups, used) = (experts.groups as usize, experts.groups_per_token as usize);
    let len = merits.len() / groups;
    let merit = |group: &[f32]| {
        let mut best = group.to_vec();
        best.sort_by(|a, b| b.total_cmp(a));
        best.iter().take(experts.group_top_k as usize).sum::<f32>()
    };
    let of_groups: Vec<f32> = merits.chunks_exact(len).map(merit).collect();
    let mut order: Vec<usize> = (0..groups).collect();
    order.sort_by(|a, b| of_groups[*b].total_cmp(&of_groups[*a]));
    for group in &order[used..] {
        merits[group * len..(group + 1) * len].fill(f32::NEG_INFINITY);
    }
}

#[cfg(test)]
mod tests {
    use gguf_graph::{GluFunction, ValueId, WeightId};

    use super::*;

    fn experts(gating: Gating) -> Moe {
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
    fn those_that_are_close_share_the_weight() {
        let experts = experts(Gating::SparseMixer { margin: 0.02 });
        let share = 1.0 / (1.0 + (-0.01f32).exp());
        let scores = [0.5, 2.0, 1.99];
        let chosen = choose(&experts, &scores, None, None, None);
        assert_eq!(chosen.iter().map(|(expert, _)| *expert).collect::<Vec<_>>(), [1, 2]);
        // Behind the best the next has nobody close.
        assert!((chosen[0].1 - 2.0 * share).abs() < 1e-6 && chosen[1].1 == 2.0, "{chosen:?}");
        let scaled = choose(&experts, &scores, None, None, Some(&[1.0, 1.0, 3.0]));
        assert_eq!(scaled[1].1, 6.0);
    }

    #[test]
    fn those_chosen_before_have_the_weights_of_their_scores() {
        let mut experts = experts(Gating::SqrtSoftplus);
        experts.normalize_weights = true;
        let scores = [0.5f32, -3.0, 1.5, 30.0];
        let root = |x: f32| x.exp().ln_1p().sqrt();
        let chosen = choose(&experts, &scores, Some(&[2.0, 0.0]), None, None);
        let sum = root(0.5) + root(1.5);
        let wanted = [(0, 2.0 * root(0.5) / sum), (2, 2.0 * root(1.5) / sum)];
        for ((expert, weight), wanted) in chosen.iter().zip(wanted) {
            assert!(*expert == wanted.0 && (weight - wanted.1).abs() < 1e-6, "{chosen:?}");
        }
        assert_eq!(choose(&experts, &scores, Some(&[3.0, 3.0]), None, None), [(3, 1.0); 2]);
        let strange = [f32::NAN, -1.0, 4.0, 0.5, f32::INFINITY, 1e30];
        assert_eq!(choose(&experts, &scores, Some(&strange), None, None), []);
    }
}
