//! Multimodal projector files (mmproj): vision and audio encoders beside a language model.
//!
//! `clip` is not a language model. The schema lists the keys `clip.*` and the tensors of a CLIP
//! vision transformer, which most encoders share: patch embedding, class embedding, pre- and
//! post-layer norm, and layers with multi-head attention and an FFN. Other encoders and projectors
//! have other tensors; `mmproj/` converts them. There is no graph.

pub(crate) mod schema;
