//! `ModelHandle`: the open files that a model, its metadata and its tensors share.

use std::sync::{Arc, PoisonError, RwLock};

use gguf_kit::Opened;
use pyo3::prelude::*;

use crate::error::request;

/// A shared handle of an open model. Closing it closes the model for all of its objects.
#[derive(Clone)]
pub struct ModelHandle(Arc<RwLock<Option<Arc<Opened>>>>);

impl ModelHandle {
    pub fn new(opened: Opened) -> Self {
        Self(Arc::new(RwLock::new(Some(Arc::new(opened)))))
    }

    /// Returns the model, or an error if it is closed.
    pub fn get(&self) -> PyResult<Arc<Opened>> {
        let opened = self.0.read().unwrap_or_else(PoisonError::into_inner);
        opened.clone().ok_or_else(|| request("closed", "the model is closed"))
    }

    pub fn close(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
