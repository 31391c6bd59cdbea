//! Findings that one cause gives to many tensors, told once.

use std::collections::HashMap;
use std::ops::ControlFlow;

use gguf::{Finding, Sink};

use crate::rules::fit::pattern;

/// Findings about tensors: those of one code and message, about tensors whose names differ in
/// numbers only, become one, which stands where the first of them stood.
#[derive(Default)]
pub(super) struct Grouped {
    groups: Vec<Group>,
    index: HashMap<(&'static str, String, Box<str>), usize>,
    /// The first finding that there was no room for, and how many there were.
    beyond: Option<(Finding, u64)>,
}

struct Group {
    first: Finding,
    /// How many others there are, and the names of the first and the last of them.
    others: u64,
    names: [Box<str>; 2],
}

/// Kept apart at most: a forged directory must not make a list without end.
const MOST_GROUPS: usize = 1000;

impl Grouped {
    pub fn add(&mut self, finding: Finding) {
        let name = finding.tensor.clone().unwrap_or_default();
        let key = (finding.code, pattern(&name), finding.message.clone());
        if let Some(group) = self.index.get(&key).and_then(|i| self.groups.get_mut(*i)) {
            group.others += 1;
            if group.others == 1 {
                group.names[0] = name.clone();
            }
            group.names[1] = name;
        } else if self.groups.len() < MOST_GROUPS {
            self.index.insert(key, self.groups.len());
            self.groups.push(Group { first: finding, others: 0, names: Default::default() });
        } else {
            self.beyond.get_or_insert((finding, 0)).1 += 1;
        }
    }

    pub fn report(self, sink: &mut dyn Sink) -> ControlFlow<()> {
        for Group { first, others, names: [second, last] } in self.groups {
            let said = &first.message;
            let message = match others {
                0 => said.clone(),
                1 => format!("{said}; also `{second}`").into(),
                _ => format!("{said}; also {others} more, `{second}` to `{last}`").into(),
            };
            sink.report(Finding { message, ..first })?;
        }
        match self.beyond {
            Some((first, count)) => {
                let message =
                    format!("{}; with it, {count} findings that are not listed", first.message)
                        .into();
                sink.report(Finding { message, ..first })
            }
            None => ControlFlow::Continue(()),
        }
    }
}
