//! Roles of special tokens.

use gguf_models::token;

/// Roles of every vocabulary, as in `bos_token` and `bos_token_id`.
pub(super) const ROLES: [&str; 7] = ["bos", "eos", "unk", "sep", "pad", "cls", "mask"];

/// Roles whose tokens runtimes can add to a text.
pub(crate) const FLAGS: [&str; 3] = token::ADDED_ROLES;

/// Whether runtimes add the token of each role, in the order of the decisions.
#[derive(Debug, Default)]
pub(crate) struct Flags(Vec<(&'static str, bool)>);

impl Flags {
    pub fn get(&self, role: &str) -> Option<bool> {
        self.0.iter().find(|(r, _)| *r == role).map(|&(_, add)| add)
    }

    /// Returns the flags in the order of the decisions.
    pub fn in_order(self) -> impl Iterator<Item = (&'static str, bool)> {
        self.0.into_iter()
    }

    pub fn set(&mut self, role: &'static str, add: bool) {
        match self.0.iter_mut().find(|(r, _)| *r == role) {
            Some(entry) => entry.1 = add,
            None => self.0.push((role, add)),
        }
    }

    pub fn set_default(&mut self, role: &'static str, add: bool) {
        if self.get(role).is_none() {
            self.set(role, add);
        }
    }
}
