//! Choice of one type per tensor within a byte budget: the multiple-choice knapsack problem.

/// One candidate type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Size in bytes.
    pub bytes: u64,
    /// Loss of quality: finite, in any additive unit.
    pub cost: f64,
}

/// The budget is smaller than the smallest choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{budget} bytes are too few: the minimum is {minimum}")]
pub struct BudgetTooSmall {
    /// The budget.
    pub budget: u64,
    /// Smallest possible size.
    pub minimum: u64,
}

/// Number of steps into which the budget is divided.
const STEPS: usize = 1 << 16;

/// Returns the index of a choice per tensor such that the total size fits the budget and the total
/// cost is low.
///
/// Sizes above the smallest choices are rounded up to 1/65536 of the remaining budget, and the
/// resulting problem is solved exactly by dynamic programming over tensors and bytes. So the result
/// costs no more than the optimum for a budget that is smaller by one such step per tensor. The
/// result is deterministic.
///
/// # Errors
/// Returns an error if the smallest choices exceed the budget. A tensor without choices takes no
/// space and gets index 0.
pub fn allocate(choices: &[Vec<Choice>], budget: u64) -> Result<Vec<usize>, BudgetTooSmall> {
    let smallest: Vec<u64> =
        choices.iter().map(|all| all.iter().map(|c| c.bytes).min().unwrap_or(0)).collect();
    let minimum = smallest.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    let Some(left) = budget.checked_sub(minimum) else {
        return Err(BudgetTooSmall { budget, minimum });
    };
    let step = (left / STEPS as u64).max(1);
    // The largest choices bound the usable size.
    let max = choices.iter().zip(&smallest).map(|(all, minimum)| {
        all.iter().map(|c| (c.bytes - minimum).div_ceil(step)).max().unwrap_or(0)
    });
    let room = (left / step).min(max.fold(0u64, u64::saturating_add)) as usize;

    // costs[r]: the lowest cost of the tensors so far with at most r steps.
    let mut costs = vec![0.0; room + 1];
    let mut choices_taken: Vec<Vec<u8>> = Vec::with_capacity(choices.len());
    for (all, minimum) in choices.iter().zip(&smallest) {
        let mut next = vec![f64::INFINITY; room + 1];
        let mut choice_at = vec![0u8; room + 1];
        for (i, choice) in all.iter().enumerate().take(usize::from(u8::MAX)) {
            let steps = (choice.bytes - minimum).div_ceil(step);
            let Some(steps) = usize::try_from(steps).ok().filter(|steps| *steps <= room) else {
                continue;
            };
            for (r, cost) in costs[..=room - steps].iter().enumerate() {
                let total = cost + choice.cost;
                if total < next[r + steps] {
                    (next[r + steps], choice_at[r + steps]) = (total, i as u8);
                }
            }
        }
        if !all.is_empty() {
            costs = next;
        }
        choices_taken.push(choice_at);
    }

    let mut r = room;
    let mut chosen = vec![0; choices.len()];
    for (i, choice_at) in choices_taken.iter().enumerate().rev() {
        chosen[i] = usize::from(choice_at[r]);
        if let Some(choice) = choices[i].get(chosen[i]) {
            r -= (choice.bytes - smallest[i]).div_ceil(step) as usize;
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(choices: &[Vec<Choice>], chosen: &[usize]) -> Choice {
        let picked = choices.iter().zip(chosen).map(|(all, &i)| all[i]);
        picked.fold(Choice { bytes: 0, cost: 0.0 }, |sum, c| Choice {
            bytes: sum.bytes + c.bytes,
            cost: sum.cost + c.cost,
        })
    }

    /// Finds the lowest cost within the budget by brute force.
    fn brute_force(choices: &[Vec<Choice>], budget: u64) -> Option<f64> {
        let Some((first, rest)) = choices.split_first() else { return Some(0.0) };
        first
            .iter()
            .filter_map(|c| Some(brute_force(rest, budget.checked_sub(c.bytes)?)? + c.cost))
            .min_by(f64::total_cmp)
    }

    #[test]
    fn small_problems_are_solved_exactly() {
        let mut state = 7u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for _ in 0..300 {
            let mut choices = vec![Vec::new(); 1 + random(5) as usize];
            for all in &mut choices {
                for _ in 0..1 + random(4) {
                    all.push(Choice { bytes: random(90), cost: random(1000) as f64 });
                }
            }
            let budget = random(300);
            match (allocate(&choices, budget), brute_force(&choices, budget)) {
                (Ok(chosen), Some(best)) => {
                    let total = totals(&choices, &chosen);
                    assert!(total.bytes <= budget);
                    assert_eq!(total.cost, best);
                }
                (Err(BudgetTooSmall { minimum, .. }), None) => assert!(minimum > budget),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn large_sizes_fit_the_budget() {
        // The cost halves with every step of size, as with bits.
        let choices: Vec<Vec<Choice>> = (1..200u64)
            .map(|n| {
                let choice = |bits: u64| Choice {
                    bytes: n * 1_000_003 * bits,
                    cost: n as f64 * 0.25f64.powi(bits as i32),
                };
                (2..=8).map(choice).collect()
            })
            .collect();
        let budget = 4_500_000_000 * 20;
        let chosen = allocate(&choices, budget).unwrap();
        let total = totals(&choices, &chosen);
        assert!(total.bytes <= budget && total.bytes > budget - budget / 1000, "{total:?}");
        // All tensors have the same trade-off, so no two differ by more than one step.
        let (min, max) = (chosen.iter().min().unwrap(), chosen.iter().max().unwrap());
        assert!(max - min <= 1, "{chosen:?}");
    }

    #[test]
    fn no_choices_take_no_space() {
        assert_eq!(allocate(&[], 0), Ok(vec![]));
        assert_eq!(allocate(&[vec![]], 5), Ok(vec![0]));
        let one = vec![vec![Choice { bytes: 6, cost: 1.0 }]];
        assert_eq!(allocate(&one, 5), Err(BudgetTooSmall { budget: 5, minimum: 6 }));
    }
}
