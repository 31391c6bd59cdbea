//! What a request asks for: the part of its address after `?`.

use std::collections::HashMap;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;

use crate::answer::Failure;

/// Names and what they are set to.
pub struct Ask(HashMap<String, String>);

/// A part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub offset: u64,
    pub limit: u64,
}

/// A key or a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    Number(u64),
    Name(String),
}

impl<S: Send + Sync> FromRequestParts<S> for Ask {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let query = Query::from_request_parts(parts, state).await;
        Ok(Self(query.map_err(|fault| Failure::request(fault.body_text()))?.0))
    }
}

impl Ask {
    /// A text; empty ones count for nothing.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// A number, or a word such as `true`.
    pub fn parsed<T: FromStr>(&self, name: &str) -> Result<Option<T>, Failure> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let wrong = || {
            let text: String = text.chars().take(40).collect();
            Failure::request(format!("`{text}` is nothing that `{name}` can be"))
        };
        text.parse().map(Some).map_err(|_| wrong())
    }

    /// The same, which has to be there.
    pub fn needed<T: FromStr>(&self, name: &str) -> Result<T, Failure> {
        self.parsed(name)?.ok_or_else(|| Failure::request(format!("`{name}` is missing")))
    }

    /// The same, or something else.
    pub fn or<T: FromStr>(&self, name: &str, default: T) -> Result<T, Failure> {
        Ok(self.parsed(name)?.unwrap_or(default))
    }

    /// A part of a list: at most 1000 of its entries.
    pub fn page(&self) -> Result<Page, Failure> {
        self.page_of(100, 1000)
    }

    /// The same with other bounds.
    pub fn page_of(&self, default: u64, most: u64) -> Result<Page, Failure> {
        let limit = self.or("limit", default)?;
        if limit > most {
            return Err(Failure::request(format!("`limit` is {limit}, and at most {most}")));
        }
        Ok(Page { offset: self.or("offset", 0)?, limit })
    }

    /// A key or a tensor, by `n` or by `name`.
    pub fn named(&self) -> Result<Named, Failure> {
        match (self.parsed("n")?, self.0.get("name")) {
            (Some(n), None) => Ok(Named::Number(n)),
            // A name may be empty.
            (None, Some(name)) => Ok(Named::Name(name.clone())),
            _ => Err(Failure::request("exactly one of `n` and `name` is needed")),
        }
    }

    /// What is searched for, in small letters.
    pub fn search(&self) -> Option<String> {
        self.text("search").map(str::to_lowercase)
    }
}

impl Page {
    /// The entries of this part, and how many there are in all.
    pub fn of<T>(self, all: impl Iterator<Item = T>) -> (Vec<T>, u64) {
        let (mut page, mut found) = (Vec::new(), 0);
        for one in all {
            if found >= self.offset && found - self.offset < self.limit {
                page.push(one);
            }
            found += 1;
        }
        (page, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(pairs: &[(&str, &str)]) -> Ask {
        Ask(pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect())
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        for wrong in ["-1", "1.5", "x", "18446744073709551616", "99999999999999999999999"] {
            let failure = ask(&[("level", wrong)]).needed::<u64>("level").unwrap_err();
            assert_eq!(failure.status, 400);
            assert!(failure.error["message"].as_str().unwrap().contains(wrong), "{wrong}");
        }
        assert!(ask(&[]).needed::<u64>("level").is_err());
        assert_eq!(ask(&[("level", "")]).or("level", 3u64).unwrap(), 3);
        assert!(ask(&[("limit", "1001")]).page().is_err());
    }

    #[test]
    fn one_name_is_enough() {
        assert_eq!(ask(&[("name", "")]).named().unwrap(), Named::Name(String::new()));
        assert_eq!(ask(&[("n", "7")]).named().unwrap(), Named::Number(7));
        assert!(ask(&[]).named().is_err());
        assert!(ask(&[("n", "7"), ("name", "a")]).named().is_err());
    }

    #[test]
    fn pages_of_a_list() {
        let page = |offset, limit| Page { offset, limit }.of(0..10);
        assert_eq!(page(8, 5), (vec![8, 9], 10));
        assert_eq!(page(u64::MAX, 5), (vec![], 10));
        assert_eq!(page(0, 0), (vec![], 10));
    }
}
