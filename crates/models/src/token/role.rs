//! Roles of special tokens.

/// Role of a special token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// Name, as in `bos_token` of Hugging Face's files.
    pub name: &'static str,
    /// Key of the token id.
    pub id_key: &'static str,
    /// Alternative key, deprecated or spelled differently.
    pub alternative_key: Option<&'static str>,
}

const fn role_with_key(name: &'static str, id_key: &'static str) -> Role {
    Role { name, id_key, alternative_key: None }
}

const fn role_with_keys(
    name: &'static str,
    id_key: &'static str,
    alternative_key: &'static str,
) -> Role {
    Role { name, id_key, alternative_key: Some(alternative_key) }
}

/// All roles.
#[rustfmt::skip]
pub const ROLES: [Role; 15] = [
    role_with_key("bos", "tokenizer.ggml.bos_token_id"),
    role_with_key("eos", "tokenizer.ggml.eos_token_id"),
    role_with_key("eot", "tokenizer.ggml.eot_token_id"),
    role_with_key("eom", "tokenizer.ggml.eom_token_id"),
    role_with_key("unk", "tokenizer.ggml.unknown_token_id"),
    // Misspelled in the format; loaders do not read the correct spelling.
    role_with_keys("sep", "tokenizer.ggml.seperator_token_id", "tokenizer.ggml.separator_token_id"),
    role_with_key("pad", "tokenizer.ggml.padding_token_id"),
    role_with_key("cls", "tokenizer.ggml.cls_token_id"),
    role_with_key("mask", "tokenizer.ggml.mask_token_id"),
    role_with_keys("fim_pre", "tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"),
    role_with_keys("fim_suf", "tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"),
    role_with_keys("fim_mid", "tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"),
    role_with_key("fim_pad", "tokenizer.ggml.fim_pad_token_id"),
    role_with_key("fim_rep", "tokenizer.ggml.fim_rep_token_id"),
    role_with_key("fim_sep", "tokenizer.ggml.fim_sep_token_id"),
];

/// Roles whose tokens the tokenizer can add to a text, with the key that enables it.
const ADDED: [(&str, &str); 3] = [
    ("bos", "tokenizer.ggml.add_bos_token"),
    ("eos", "tokenizer.ggml.add_eos_token"),
    ("sep", "tokenizer.ggml.add_sep_token"),
];

/// Names of the roles whose tokens the tokenizer can add to a text.
pub const ADDED_ROLES: [&str; 3] = [ADDED[0].0, ADDED[1].0, ADDED[2].0];

/// Returns the role with this name; `None` if there is none.
pub fn role(name: &str) -> Option<&'static Role> {
    const { &ROLES }.iter().find(|role| role.name == name)
}

/// Returns the key of the token id of a role; `None` if there is no such role.
pub fn id_key(name: &str) -> Option<&'static str> {
    role(name).map(|role| role.id_key)
}

/// Returns the key that makes the tokenizer add the token of a role; `None` if it never does.
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
            assert!(role.alternative_key.is_none_or(|key| schema::key(key).is_some()), "{role:?}");
        }
        assert!(ADDED.iter().all(|(_, key)| schema::key(key).is_some()));
        assert_eq!(id_key("sep"), Some("tokenizer.ggml.seperator_token_id"));
        assert_eq!((id_key("unknown"), add_key("pad")), (None, None));
    }
}
