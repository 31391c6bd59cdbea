//! Tokens of a vocabulary: types, roles of special tokens, and encodings of bytes.

mod byte_level;
mod byte_token;
mod role;
mod token_type;

pub use byte_level::{byte_of, char_of};
pub use byte_token::{byte_of_token, byte_token};
pub use role::{ADDED_ROLES, ROLES, Role, add_key, id_key, role};
pub use token_type::TokenType;
