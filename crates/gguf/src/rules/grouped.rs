//! Findings that one cause gives to many tensors, told once.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::finding::{Finding, Sink};
use crate::rules::fit::pattern;

/// Findings about tensors: those of one code and message, about tensors whose names differ in
/// numbers only, become one, which stands where the first of them stood.
#[derive(Default)]
pub(super) struct Grouped {
    groups: Vec<Group>,
    index: HashMap<(&'static str, String, Box<str>), usize>,
}

struct Group {
    first: Finding,
    /// The tensors of the others.
    others: Vec<Box<str>>,
}

impl Grouped {
    pub fn add(&mut self, finding: Finding) {
        let name = finding.tensor.clone().unwrap_or_default();
        let key = (finding.code, pattern(&name), finding.message.clone());
        match self.index.get(&key).and_then(|i| self.groups.get_mut(*i)) {
            Some(group) => group.others.push(name),
            None => {
                self.index.insert(key, self.groups.len());
                self.groups.push(Group { first: finding, others: Vec::new() });
            }
        }
    }

    pub fn report(self, sink: &mut dyn Sink) -> ControlFlow<()> {
        for Group { first, others } in self.groups {
            let message = match &others[..] {
                [] => first.message,
                [one] => format!("{}; so it is with `{one}`", first.message).into(),
                [one, .., last] => format!(
                    "{}; so it is with {} more, `{one}` to `{last}`",
                    first.message,
                    others.len()
                )
                .into(),
            };
            sink.report(Finding { message, ..first })?;
        }
        ControlFlow::Continue(())
    }
}
