//! Grouping of findings with one cause that affects many tensors.

use std::collections::HashMap;
use std::ops::ControlFlow;

use gguf::{Finding, Sink};

use crate::rules::detect::pattern;

/// Findings about tensors: those of one code and message, about tensors whose names differ in
/// numbers only, become one, which stands where the first of them stood.
#[derive(Default)]
pub(super) struct GroupedFindings {
    groups: Vec<Group>,
    index: HashMap<(&'static str, String, Box<str>), usize>,
    /// First finding beyond the limit, and the number of further ones.
    dropped: Option<(Finding, u64)>,
}

struct Group {
    first: Finding,
    /// Number of further findings, and the tensor names of the first and last of them.
    others: u64,
    names: [Box<str>; 2],
}

/// Maximum number of groups: a forged directory must not produce an endless list.
const MAX_GROUPS: usize = 1000;

impl GroupedFindings {
    pub fn add(&mut self, finding: Finding) {
        let name = finding.tensor.clone().unwrap_or_default();
        let key = (finding.code, pattern(&name), finding.message.clone());
        if let Some(group) = self.index.get(&key).and_then(|i| self.groups.get_mut(*i)) {
            group.others += 1;
            if group.others == 1 {
                group.names[0] = name.clone();
            }
            group.names[1] = name;
        } else if self.groups.len() < MAX_GROUPS {
            self.index.insert(key, self.groups.len());
            self.groups.push(Group { first: finding, others: 0, names: Default::default() });
        } else {
            self.dropped.get_or_insert((finding, 0)).1 += 1;
        }
    }

    pub fn report(self, sink: &mut dyn Sink) -> ControlFlow<()> {
        for Group { first, others, names: [second, last] } in self.groups {
            let text = &first.message;
            let message = match others {
                0 => text.clone(),
                1 => format!("{text}; also `{second}`").into(),
                _ => format!("{text}; also {others} more, `{second}` to `{last}`").into(),
            };
            sink.report(Finding { message, ..first })?;
        }
        match self.dropped {
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
