//! Part files: safetensors with tables of numbers, and JSON for everything else in the metadata key `gguf_kit.part`.
//!
//! | tensor | type | of model N |
//! |---|---|---|
//! | `N.chunks` | F64 | a row of sums per chunk |
//! | `N.divergences`, `N.changes` | F32 | a row per chunk, a number per evaluated token |
//! | `N.worst` | F64 | a row per prediction |
//! | `N.TENSOR.high`, `.low`, `.counts` | F64 | sums of squares per column, number of rows |

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use gguf::Error;
use gguf_store::{AtomicFile, Overwrite};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use super::tally::{Divergences, Importance, Perplexities, Tally};
use super::{Part, Portion};
use crate::divergence::SUMS;
use crate::sums::{Squares, Sums};
use crate::{Candidate, Divergence, Mean, Miss, Perplexity, Worst};

const KEY: &str = "gguf_kit.part";
const VERSION: u32 = 2;
/// Numbers of a prediction in `N.worst`, without the preceding tokens.
const MISS: usize = 12;

#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    run: BTreeMap<String, String>,
    reference: Option<String>,
    tokens: BTreeMap<u32, Vec<u8>>,
    models: Vec<Model>,
}

#[derive(Serialize, Deserialize)]
struct Model {
    name: String,
    digest: String,
    #[serde(default)]
    tensor_digest: Option<String>,
    first: usize,
    end: usize,
    total: usize,
    figures: Figures,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Figures {
    Perplexity,
    Divergence { first_position: usize, worst: usize },
    Importance { dataset: String, len: usize, chunks: usize },
}

/// A table of numbers.
struct Table {
    rows: usize,
    dtype: Dtype,
    bytes: Vec<u8>,
}

impl Table {
    fn of_f64(rows: usize, numbers: impl IntoIterator<Item = f64>) -> Self {
        let bytes = numbers.into_iter().flat_map(f64::to_le_bytes).collect();
        Self { rows, dtype: Dtype::F64, bytes }
    }

    fn of_f32(rows: usize, numbers: &[f32]) -> Self {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        Self { rows, dtype: Dtype::F32, bytes }
    }

    fn view(&self) -> Option<TensorView<'_>> {
        let size = if self.dtype == Dtype::F64 { 8 } else { 4 };
        let width = (self.bytes.len() / size).checked_div(self.rows).unwrap_or(0);
        TensorView::new(self.dtype, vec![self.rows, width], &self.bytes).ok()
    }
}

impl Part {
    /// Reads a part.
    ///
    /// # Errors
    /// `part-invalid` if the file is not a part or has another version; if it cannot be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(|source| Error::read(path, source))?;
        Self::parse(&bytes).map_err(|what| {
            Error::input("part-invalid", path, what, "create it again with this version of gguf")
        })
    }

    /// Writes the part to a file.
    ///
    /// # Errors
    /// As [`Overwrite::check`]; if it cannot be written. An existing file is then unchanged.
    pub fn write(&self, path: &Path, overwrite: &Overwrite) -> Result<(), Error> {
        let (head, tables) = self.tables();
        let failed =
            |fault: String| Error::environment("write", path, std::io::Error::other(fault));
        let head = serde_json::to_string(&head).map_err(|fault| failed(fault.to_string()))?;
        let views = tables.iter().filter_map(|(name, table)| Some((name, table.view()?)));
        let metadata = HashMap::from([(KEY.to_owned(), head)]);
        let bytes = safetensors::serialize(views, Some(metadata))
            .map_err(|fault| failed(fault.to_string()))?;
        AtomicFile::write(path, &bytes, overwrite)
    }

    fn tables(&self) -> (Head, Vec<(String, Table)>) {
        let mut tables = Vec::new();
        let models = self.portions.iter().enumerate().map(|(number, portion)| {
            let mut add = |name: &str, table| tables.push((format!("{number}.{name}"), table));
            let figures = match &portion.tally {
                Tally::Perplexity(all) => {
                    let of = |one: &Perplexity| {
                        let Mean { count, sum, squares } = one.surprise;
                        [one.chunks as f64, count as f64, sum, squares]
                    };
                    add("chunks", Table::of_f64(all.chunks.len(), all.chunks.iter().flat_map(of)));
                    Figures::Perplexity
                }
                Tally::Divergence(all) => {
                    let (rows, total) = (all.chunks.len(), all.total());
                    add("chunks", Table::of_f64(rows, all.chunks.as_flattened().iter().copied()));
                    add("divergences", Table::of_f32(rows, &total.divergences));
                    add("changes", Table::of_f32(rows, &total.changes));
                    let misses = total.worst.misses();
                    let before = misses.iter().map(|miss| miss.before.len()).max().unwrap_or(0);
                    let numbers = misses.iter().flat_map(|miss| of_miss(miss, before));
                    add("worst", Table::of_f64(misses.len(), numbers));
                    let first_position = total.first_position;
                    Figures::Divergence { first_position, worst: total.worst.max() }
                }
                Tally::Importance(all) => {
                    for (name, sums) in &all.sums.0 {
                        add(&format!("{name}.high"), Table::of_f64(1, sums.high.iter().copied()));
                        add(&format!("{name}.low"), Table::of_f64(1, sums.low.iter().copied()));
                        let counts = sums.counts.iter().map(|count| *count as f64);
                        add(&format!("{name}.counts"), Table::of_f64(1, counts));
                    }
                    let Importance { dataset, len, chunks, .. } = all.clone();
                    Figures::Importance { dataset, len, chunks }
                }
            };
            Model {
                name: portion.name.clone(),
                digest: portion.digest.clone(),
                tensor_digest: portion.tensor_digest.clone(),
                first: portion.chunks.start,
                end: portion.chunks.end,
                total: portion.total,
                figures,
            }
        });
        let head = Head {
            version: VERSION,
            run: self.run.clone(),
            reference: self.reference.clone(),
            tokens: self.tokens.clone(),
            models: models.collect(),
        };
        (head, tables)
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let none = "is not a part of an evaluation";
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|_| none)?;
        let head = metadata.metadata().as_ref().and_then(|all| all.get(KEY)).ok_or(none)?;
        let version = serde_json::from_str::<serde_json::Value>(head).ok();
        let version = version.as_ref().and_then(|head| head["version"].as_u64()).ok_or(none)?;
        if version != u64::from(VERSION) {
            return Err(format!("has version {version}; expected {VERSION}"));
        }
        let head: Head = serde_json::from_str(head).map_err(|fault| fault.to_string())?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|fault| fault.to_string())?;
        let mut portions = Vec::new();
        for (number, model) in head.models.into_iter().enumerate() {
            let tally = read_tally(&Reader { tensors: &tensors, number }, &model.figures)?;
            let Model { name, digest, tensor_digest, first, end, total, .. } = model;
            if first > end || end > total || tally.chunks() > end - first {
                return Err(format!("has {} of the chunks {first} to {end}", tally.chunks()));
            }
            let chunks = first..end;
            portions.push(Portion { name, digest, tensor_digest, chunks, total, tally });
        }
        if portions.is_empty() {
            return Err("has no model".to_owned());
        }
        Ok(Self { run: head.run, reference: head.reference, portions, tokens: head.tokens })
    }
}

/// Reads the tables of a model.
struct Reader<'t> {
    tensors: &'t SafeTensors<'t>,
    number: usize,
}

impl Reader<'_> {
    /// Returns the number of rows and the values of an F64 table.
    fn f64(&self, name: &str) -> Result<(usize, Vec<f64>), String> {
        let (rows, bytes) = self.table(name, Dtype::F64)?;
        let number = |bytes: &[u8]| bytes.try_into().map_or(f64::NAN, f64::from_le_bytes);
        Ok((rows, bytes.chunks_exact(8).map(number).collect()))
    }

    fn f32(&self, name: &str) -> Result<(usize, Vec<f32>), String> {
        let (rows, bytes) = self.table(name, Dtype::F32)?;
        let number = |bytes: &[u8]| bytes.try_into().map_or(f32::NAN, f32::from_le_bytes);
        Ok((rows, bytes.chunks_exact(4).map(number).collect()))
    }

    fn table(&self, name: &str, dtype: Dtype) -> Result<(usize, &[u8]), String> {
        let name = format!("{}.{name}", self.number);
        let view = self.tensors.tensor(&name).map_err(|_| format!("has no table `{name}`"))?;
        match view.shape() {
            [rows, _] if view.dtype() == dtype => Ok((*rows, view.data())),
            _ => Err(format!("has no table of the expected type under `{name}`")),
        }
    }
}

fn read_tally(reader: &Reader<'_>, figures: &Figures) -> Result<Tally, String> {
    let finite = |numbers: &[f64]| match numbers.iter().all(|number| number.is_finite()) {
        true => Ok(()),
        false => Err("has sums that are not finite".to_owned()),
    };
    // Sums of counts up to this limit are exact.
    let is_count = |count: f64| (0.0..=1e12).contains(&count) && count.fract() == 0.0;
    let require_counts = |all: Vec<f64>| match all.into_iter().all(is_count) {
        true => Ok(()),
        false => Err("has invalid counts".to_owned()),
    };
    match figures {
        Figures::Perplexity => {
            let (_, numbers) = reader.f64("chunks")?;
            finite(&numbers)?;
            require_counts(numbers.chunks_exact(4).flat_map(|one| [one[0], one[1]]).collect())?;
            let mut all = Perplexities::default();
            for one in numbers.chunks_exact(4) {
                let surprise = Mean { count: one[1] as u64, sum: one[2], squares: one[3] };
                all.add(&Perplexity { chunks: one[0] as usize, surprise });
            }
            Ok(Tally::Perplexity(all))
        }
        Figures::Divergence { first_position, worst } => {
            let (rows, numbers) = reader.f64("chunks")?;
            finite(&numbers)?;
            let (divergences, changes) = (reader.f32("divergences")?, reader.f32("changes")?);
            let chunks: Vec<[f64; SUMS]> = numbers.as_chunks().0.to_vec();
            let of_chunk = |one: &[f64; SUMS]| [0, 3, 6, 9, 12, 15, 16].map(|at| one[at]);
            require_counts(chunks.iter().flat_map(of_chunk).collect())?;
            if [chunks.len(), divergences.0, changes.0] != [rows; 3] {
                return Err("has tables of different lengths".to_owned());
            }
            let lists = Divergence {
                first_position: *first_position,
                divergences: divergences.1,
                changes: changes.1,
                worst: read_worst(reader, *worst)?,
                ..Default::default()
            };
            Ok(Tally::Divergence(Divergences::new(chunks, lists)))
        }
        Figures::Importance { dataset, len, chunks } => {
            let prefix = format!("{}.", reader.number);
            let mut sums = Sums::default();
            for name in reader.tensors.names() {
                let name = name.strip_prefix(&prefix).and_then(|name| name.strip_suffix(".high"));
                let Some(name) = name else { continue };
                let table = |end: &str| reader.f64(&format!("{name}.{end}"));
                let (high, low, counts) = (table("high")?.1, table("low")?.1, table("counts")?.1);
                finite(&high)?;
                finite(&low)?;
                require_counts(counts.clone())?;
                if high.len() != low.len() || high.len() % counts.len().max(1) != 0 {
                    return Err("has tables of different lengths".to_owned());
                }
                let counts = counts.iter().map(|count| *count as u64).collect();
                sums.0.insert(name.to_owned(), Squares { high, low, counts });
            }
            let (dataset, len, chunks) = (dataset.clone(), *len, *chunks);
            Ok(Tally::Importance(Importance { dataset, len, chunks, sums }))
        }
    }
}

/// Returns the numbers of a prediction, padded to `before` preceding tokens.
fn of_miss(miss: &Miss, before: usize) -> Vec<f64> {
    let mut numbers = vec![miss.chunk as f64, miss.position as f64, miss.divergence];
    for one in [&miss.actual, &miss.by_reference, &miss.by_model] {
        numbers.extend([f64::from(one.id), one.reference, one.model]);
    }
    numbers.extend(miss.before.iter().map(|id| f64::from(*id)));
    numbers.resize(MISS + before, -1.0);
    numbers
}

fn read_worst(reader: &Reader<'_>, most: usize) -> Result<Worst, String> {
    let (rows, numbers) = reader.f64("worst")?;
    let width = numbers.len().checked_div(rows).unwrap_or(0);
    if rows > most || rows > 0 && width < MISS {
        return Err("has an invalid table of predictions".to_owned());
    }
    let mut worst = Worst::new(most);
    for one in numbers.chunks_exact(width.max(MISS)) {
        let candidate = |at: usize| Candidate {
            id: one[at] as u32,
            reference: one[at + 1],
            model: one[at + 2],
        };
        let before = one[MISS..].iter().filter(|id| **id >= 0.0);
        worst.add(Miss {
            chunk: one[0] as usize,
            position: one[1] as usize,
            divergence: one[2],
            actual: candidate(3),
            by_reference: candidate(6),
            by_model: candidate(9),
            before: before.map(|id| *id as u32).collect(),
        });
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(number: usize) -> Divergence {
        let mut found = Divergence::of_chunk(4, 3);
        for place in 0..3 {
            let x = ((number * 3 + place) as f64 * 0.7).sin();
            let candidate = |id: u32| Candidate { id, reference: -1.5 - x, model: -2.0 + 0.3 * x };
            found.add(Miss {
                chunk: number,
                position: 4 + place,
                divergence: 1.0 / 3.0 + x * x,
                actual: candidate(7),
                by_reference: candidate(8),
                by_model: candidate(8 + place as u32),
                before: vec![1; place],
            });
        }
        found
    }

    fn part(chunks: std::ops::Range<usize>, text: &str) -> Part {
        let mut tally = Divergences::default();
        chunks.clone().for_each(|number| tally.add(&chunk(number)));
        Part {
            run: BTreeMap::from([("text".to_owned(), text.to_owned())]),
            reference: Some("original".to_owned()),
            portions: vec![Portion {
                name: "model".to_owned(),
                digest: "d".to_owned(),
                tensor_digest: Some("t".to_owned()),
                chunks,
                total: 10,
                tally: Tally::Divergence(tally),
            }],
            tokens: BTreeMap::from([(8, vec![0xff, b'x'])]),
        }
    }

    #[test]
    fn round_trip_and_merge() {
        let dir = tempfile::tempdir().unwrap();
        let whole = part(0..10, "t");
        let names = ["a", "b", "c"];
        let mut parts = Vec::new();
        for (name, chunks) in names.into_iter().zip([4..7, 0..4, 7..10]) {
            let path = dir.path().join(name);
            part(chunks.clone(), "t").write(&path, &Overwrite::default()).unwrap();
            let read = Part::open(&path).unwrap();
            assert_eq!(read, part(chunks, "t"));
            parts.push((name.to_owned(), read));
        }
        assert_eq!(Part::merge(parts.clone()).unwrap(), whole);
        // A part that was interrupted before its first chunk.
        let mut begun = part(4..7, "t");
        begun.portions[0].tally = Tally::Divergence(Divergences::default());
        begun.write(&dir.path().join("begun"), &Overwrite::default()).unwrap();
        let begun_again = Part::open(&dir.path().join("begun")).unwrap();
        assert_eq!((begun_again.portions[0].rest(), begun_again), (4..7, begun));
        let refused = |parts: Vec<(String, Part)>, code: &str, what: &str| {
            let error = Part::merge(parts).unwrap_err();
            assert_eq!(error.code(), code);
            assert!(error.to_string().contains(what), "{error}");
        };
        let with = |number: usize, other: Part| {
            let mut parts = parts.clone();
            parts[number].1 = other;
            parts
        };
        refused(parts[1..].to_vec(), "part-missing", "chunks 5 to 7 before c are in no part");
        refused(parts[..2].to_vec(), "part-missing", "chunks 8 to 10 before the end");
        refused(vec![parts[0].clone(), parts[2].clone()], "part-missing", "chunks 1 to 4 before a");
        refused(with(2, part(4..7, "t")), "part-missing", "in another part");
        refused(with(2, part(7..10, "u")), "part-other-run", "the text of c is not that of b");
        let mut other = part(7..10, "t");
        other.portions[0].digest = "e".to_owned();
        refused(with(2, other), "part-other-run", "the model");
        let mut early = part(7..10, "t");
        early.portions[0].tally = part(7..9, "t").portions[0].tally.clone();
        assert_eq!(early.portions[0].rest(), 9..10);
        refused(with(2, early), "part-missing", "c has 2 of its 3 chunks");
    }

    #[test]
    fn invalid_parts_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        part(0..4, "t").write(&path, &Overwrite::default()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}"));
        let mut broken = vec![Vec::new(), bytes[..bytes.len() - 1].to_vec(), b"GGUF".to_vec()];
        let version = at(r#"version\":2"#);
        let end = at(r#"end\":4"#);
        for (place, digit) in [(version + 10, b'3'), (end + 6, b'3'), (at("F32"), b'I')] {
            let mut bytes = bytes.clone();
            bytes[place] = digit;
            broken.push(bytes);
        }
        // Counts that would overflow, and a sum that is not finite.
        let three = 3f64.to_le_bytes();
        let first = bytes.windows(8).position(|bytes| bytes == three).unwrap();
        for number in [1e300, -1.0, 0.5, f64::NAN] {
            let mut bytes = bytes.clone();
            bytes[first..first + 8].copy_from_slice(&f64::to_le_bytes(number));
            broken.push(bytes);
        }
        for bytes in broken {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(Part::open(&path).unwrap_err().code(), "part-invalid");
        }
        std::fs::write(&path, bytes).unwrap();
        assert!(Part::open(&path).is_ok());
    }
}
