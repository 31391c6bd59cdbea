//! What single tokens are for.

/// A role that a token of a vocabulary can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its usual name, as in `bos_token` of Hugging Face's files.
    pub name: &'static str,
    /// The key of the token's id.
    pub id_key: &'static str,
    /// A key that files of other times or spellings have instead.
    pub other_key: Option<&'static str>,
}

const fn named(name: &'static str, id_key: &'static str) -> Role {
    Role { name, id_key, other_key: None }
}

const fn renamed(name: &'static str, id_key: &'static str, other_key: &'static str) -> Role {
    Role { name, id_key, other_key: Some(other_key) }
}

/// All roles.
#[rustfmt::skip]
pub const ROLES: [Role; 15] = [
    named("bos", "tokenizer.ggml.bos_token_id"),
    named("eos", "tokenizer.ggml.eos_token_id"),
    named("eot", "tokenizer.ggml.eot_token_id"),
    named("eom", "tokenizer.ggml.eom_token_id"),
    named("unk", "tokenizer.ggml.unknown_token_id"),
    // Misspelt in the format; programs do not read the right spelling.
    renamed("sep", "tokenizer.ggml.seperator_token_id", "tokenizer.ggml.separator_token_id"),
    named("pad", "tokenizer.ggml.padding_token_id"),
    named("cls", "tokenizer.ggml.cls_token_id"),
    named("mask", "tokenizer.ggml.mask_token_id"),
    renamed("fim_pre", "tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"),
    renamed("fim_suf", "tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"),
    renamed("fim_mid", "tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"),
    named("fim_pad", "tokenizer.ggml.fim_pad_token_id"),
    named("fim_rep", "tokenizer.ggml.fim_rep_token_id"),
    named("fim_sep", "tokenizer.ggml.fim_sep_token_id"),
];

/// The roles whose tokens programs can put around a text, with the key that says whether they do.
const ADDED: [(&str, &str); 3] = [
    ("bos", "tokenizer.ggml.add_bos_token"),
    ("eos", "tokenizer.ggml.add_eos_token"),
    ("sep", "tokenizer.ggml.add_sep_token"),
];

/// The names of these roles.
pub const ADDED_ROLES: [&str; 3] = [ADDED[0].0, ADDED[1].0, ADDED[2].0];

/// The role with this name; `None` if there is none.
pub fn role(name: &str) -> Option<&'static Role> {
    const { &ROLES }.iter().find(|role| role.name == name)
}

/// The key of the id of the token with a role, by the name of the role; `None` if there is no such
/// role.
pub fn id_key(name: &str) -> Option<&'static str> {
    role(name).map(|role| role.id_key)
}

/// The key that says whether programs put the token with a role around a text; `None` if they never
/// do.
pub fn add_key(name: &str) -> Option<&'static str> {
    ADDED.iter().find(|(role, _)| *role == name).map(|(_, key)| *key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn every_key_is_in_the_schema() {
        for role in ROLES {
            assert!(schema::key(role.id_key).is_some(), "{role:?}");
            assert!(role.other_key.is_none_or(|key| schema::key(key).is_some()), "{role:?}");
        }
        assert!(ADDED.iter().all(|(_, key)| schema::key(key).is_some()));
        assert_eq!(id_key("sep"), Some("tokenizer.ggml.seperator_token_id"));
        assert_eq!((id_key("unknown"), add_key("pad")), (None, None));
    }
}
