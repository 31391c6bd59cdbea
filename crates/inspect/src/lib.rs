//! Analysis of one or two models.
//!
//! A [`Summary`](summary::Summary) has the main facts of a model; [`values`] are decoded rows, statistics and image
//! tiles of tensors; [`file_map`] names the bytes of a file. [`hash`](hash()) computes digests of tensor data in the
//! format of `llama-gguf-hash`, and a [`Manifest`] checks them; [`Diff`] compares two models; [`scan`](scan()) finds
//! damaged data. Work runs on the threads of the current rayon pool; a [`Progress`](gguf_store::Progress) can cancel it.
//!
//! ```
//! use gguf_inspect::{Manifest, Match, diff, hash, scan};
//! use gguf_store::Model;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let (a, b) = &(directory.path().join("a.gguf"), directory.path().join("b.gguf"));
//! # for (path, weight) in [(a, 1f32), (b, 1.5)] {
//! #     let mut header = gguf::RawHeader::default();
//! #     header.metadata.set("general.architecture", "llama");
//! #     header.tensors.push(gguf::TensorInfo {
//! #         name: "output_norm.weight".into(),
//! #         shape: gguf::Shape::new(&[8]).unwrap(),
//! #         tensor_type: gguf::TensorType::F32,
//! #         offset: 0,
//! #     opaque_len: None,
//! #     });
//! #     header.lay_out()?;
//! #     let mut file = gguf::write_header(&gguf::Header::new(header)?)?;
//! #     file.extend([weight.to_le_bytes(); 8].concat());
//! #     std::fs::write(path, file)?;
//! # }
//! let (a, b) = (Model::open(a)?, Model::open(b)?);
//! let found = diff(&a, &b, &())?;
//! assert_eq!((found.keys.len(), found.same), (0, 0));
//! assert_eq!(found.tensors[0].name, "output_norm.weight");
//!
//! let mut lines = String::new();
//! hash(&a, "model.gguf", &Default::default(), &(), &mut |entry| {
//!     lines += &format!("{entry}\n");
//!     std::ops::ControlFlow::Continue(())
//! })?;
//! let manifest: Manifest = lines.parse()?;
//! hash(&b, "model.gguf", &Default::default(), &(), &mut |entry| {
//!     assert_eq!(manifest.check(&entry), Match::Mismatch);
//!     std::ops::ControlFlow::Continue(())
//! })?;
//! assert_eq!(scan(&b, &())?, []);
//! # Ok(())
//! # }
//! ```

mod diff;
pub mod file_map;
mod hash;
mod manifest;
mod scan;
pub mod summary;
pub mod values;

pub use diff::{
    Change, Detail, Diff, ElementChange, KeyChange, TensorChange, Verdict, diff, diff_keys,
};
pub use hash::{Algorithm, Entry, HashOptions, UnknownAlgorithm, hash};
pub use manifest::{Manifest, Match, Outcome, Tally};
pub use scan::scan;
