//! Files byte by byte.

use gguf::ByteOrder;
use gguf_kit::file_map::{Named, Region, named, regions};
use serde_json::{Value as Json, json};

use super::Question;
use super::tensors::LISTED;
use crate::answer::{Answer, Answered, Failure};

/// Bytes of one answer at most.
const MOST: u64 = 64 << 10;

/// Bytes at most of which the meaning is told at a time.
const MOST_NAMED: u64 = 16 << 10;

/// `GET map`.
pub fn map(question: &Question) -> Answered {
    let model = &question.model;
    let mut before = 0;
    let file = |number: usize| {
        let (file, gguf) = model.file(number)?;
        let span = |region: &Region| {
            json!({
                "start": region.span.start,
                "end": region.span.end,
                "kind": region.kind.name(),
                "n": region.tensor.map(|n| before + n),
            })
        };
        let regions = regions(gguf, file.source().byte_len());
        let mut spans: Vec<Json> = regions.iter().take(LISTED as usize).map(span).collect();
        if let Some(rest) = regions.get(LISTED as usize) {
            let end = file.source().byte_len();
            let rest = json!({ "start": rest.span.start, "end": end, "kind": "more", "n": null });
            spans.push(rest);
        }
        before += gguf.map_or(0, |gguf| gguf.tensors().len());
        let order = gguf.map(|gguf| match gguf.header().order() {
            ByteOrder::Little => "little",
            ByteOrder::Big => "big",
        });
        Ok(json!({
            "name": file.name().display().to_string(),
            "bytes": file.source().byte_len(),
            "version": gguf.map(|gguf| gguf.header().version()),
            "order": order,
            "alignment": gguf.map(|gguf| gguf.header().alignment().get()),
            "data_start": gguf.map(|gguf| gguf.data_start()),
            "spans": spans,
        }))
    };
    let files = (0..model.files.files().len()).map(file).collect::<Result<Json, Failure>>()?;
    Ok(Answer::Json(json!({ "files": files })))
}

/// What part of which file is asked for: its number, where, how much.
fn part(question: &Question, most: u64) -> Result<(usize, u64, u64), Failure> {
    let ask = question.ask;
    let number = ask.or("file", 0)?;
    let (file, _) = question.model.file(number)?;
    let offset: u64 = ask.or("offset", 0)?;
    let length: u64 = ask.or("length", 4096)?;
    if length > most {
        return Err(Failure::request(format!("`length` is {length}, and at most {most}")));
    }
    let left = file.source().byte_len().checked_sub(offset).ok_or_else(|| {
        let bytes = file.source().byte_len();
        Failure::request(format!("`offset` is {offset}, and the file has {bytes} bytes"))
    })?;
    Ok((number, offset, length.min(left)))
}

/// `GET bytes`.
pub fn bytes(question: &Question) -> Answered {
    let (number, offset, length) = part(question, MOST)?;
    let mut bytes = vec![0; length as usize];
    question.model.file(number)?.0.source().read_at(&mut bytes, offset)?;
    Ok(Answer::bytes(bytes))
}

/// `GET spans`.
pub fn spans(question: &Question) -> Answered {
    let (number, offset, length) = part(question, MOST_NAMED)?;
    let model = &question.model;
    let (file, gguf) = model.file(number)?;
    let earlier = (0..number).filter_map(|earlier| model.file(earlier).ok()?.1);
    let before: usize = earlier.map(|gguf| gguf.tensors().len()).sum();
    // Keys are those of the first file, without those that place it among others.
    let key_n = |entry: usize| {
        let (name, _) = gguf?.metadata().iter().nth(entry)?;
        model.model().ok()?.metadata().iter().position(|(other, _)| other == name)
    };
    let span = |named: &Named| {
        json!({
            "start": named.span.start,
            "end": named.span.end,
            "kind": named.kind.name(),
            "text": named.text,
            "key_n": named.entry.filter(|_| number == 0).and_then(key_n),
            "tensor_n": named.tensor.map(|n| before + n),
            "block": named.block,
        })
    };
    let found = named(gguf, file.source().byte_len(), offset..offset + length);
    Ok(Answer::Json(json!({ "spans": found.iter().map(span).collect::<Json>() })))
}
