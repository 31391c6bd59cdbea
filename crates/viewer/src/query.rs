//! Parameters of the query string.

use std::collections::HashMap;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Query as AxumQuery};
use axum::http::request::Parts;

use crate::response::ApiError;

/// Parameters of the query string by name.
pub struct Query(HashMap<String, String>);

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub offset: u64,
    pub limit: u64,
}

/// Selects a key or a tensor by its index (`n`) or its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    Index(u64),
    Name(String),
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = AxumQuery::from_request_parts(parts, state).await;
        Ok(Self(query.map_err(|error| ApiError::bad_request(error.body_text()))?.0))
    }
}

impl Query {
    /// Returns a parameter that is present and not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Parses an optional parameter.
    pub fn parsed<T: FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let invalid = || {
            let text: String = text.chars().take(40).collect();
            ApiError::bad_request(format!("`{text}` is not a valid value of `{name}`"))
        };
        text.parse().map(Some).map_err(|_| invalid())
    }

    /// Parses a required parameter.
    pub fn required<T: FromStr>(&self, name: &str) -> Result<T, ApiError> {
        self.parsed(name)?.ok_or_else(|| ApiError::bad_request(format!("`{name}` is missing")))
    }

    /// Parses a parameter that has a default value.
    pub fn parsed_or<T: FromStr>(&self, name: &str, default: T) -> Result<T, ApiError> {
        Ok(self.parsed(name)?.unwrap_or(default))
    }

    /// Returns the page of at most 1000 entries that `offset` and `limit` select.
    pub fn page(&self) -> Result<Page, ApiError> {
        self.page_with_limit(100, 1000)
    }

    /// Returns the page that `offset` and `limit` select, with a default and a maximum of `limit`.
    pub fn page_with_limit(&self, default: u64, max: u64) -> Result<Page, ApiError> {
        let limit = self.parsed_or("limit", default)?;
        if limit > max {
            return Err(ApiError::bad_request(format!("`limit` is {limit}; the maximum is {max}")));
        }
        Ok(Page { offset: self.parsed_or("offset", 0)?, limit })
    }

    /// Returns the key or tensor that `n` or `name` selects.
    pub fn selector(&self) -> Result<Selector, ApiError> {
        match (self.parsed("n")?, self.0.get("name")) {
            (Some(n), None) => Ok(Selector::Index(n)),
            // An empty name is valid.
            (None, Some(name)) => Ok(Selector::Name(name.clone())),
            _ => Err(ApiError::bad_request("expected either `n` or `name`")),
        }
    }

    /// Returns `search` in lower case.
    pub fn search(&self) -> Option<String> {
        self.text("search").map(str::to_lowercase)
    }
}

impl Page {
    /// Returns the entries of this page and the total number of entries.
    pub fn slice<T>(self, all: impl Iterator<Item = T>) -> (Vec<T>, u64) {
        let (mut page, mut total) = (Vec::new(), 0);
        for entry in all {
            if total >= self.offset && total - self.offset < self.limit {
                page.push(entry);
            }
            total += 1;
        }
        (page, total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(pairs: &[(&str, &str)]) -> Query {
        Query(pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect())
    }

    #[test]
    fn invalid_numbers_are_rejected() {
        for wrong in ["-1", "1.5", "x", "18446744073709551616", "99999999999999999999999"] {
            let error = query(&[("level", wrong)]).required::<u64>("level").unwrap_err();
            assert_eq!(error.status, 400);
            assert!(error.error["message"].as_str().unwrap().contains(wrong), "{wrong}");
        }
        assert!(query(&[]).required::<u64>("level").is_err());
        assert_eq!(query(&[("level", "")]).parsed_or("level", 3u64).unwrap(), 3);
        assert!(query(&[("limit", "1001")]).page().is_err());
    }

    #[test]
    fn selector_is_an_index_or_a_name() {
        assert_eq!(query(&[("name", "")]).selector().unwrap(), Selector::Name(String::new()));
        assert_eq!(query(&[("n", "7")]).selector().unwrap(), Selector::Index(7));
        assert!(query(&[]).selector().is_err());
        assert!(query(&[("n", "7"), ("name", "a")]).selector().is_err());
    }

    #[test]
    fn page_of_a_list() {
        let page = |offset, limit| Page { offset, limit }.slice(0..10);
        assert_eq!(page(8, 5), (vec![8, 9], 10));
        assert_eq!(page(u64::MAX, 5), (vec![], 10));
        assert_eq!(page(0, 0), (vec![], 10));
    }
}
