//! `gguf divergence`: logits files, positions, tokens with the largest KLD, and NaN detection.

use std::fs;
use std::path::Path;

use gguf_store::Model;
use serde_json::Value;

use crate::cli::evaluation::{number, text};
use crate::cli::support::{Dir, fails, json, succeeds};

/// Returns a model in F16 and in Q4_0.
fn models(dir: &Dir) -> (String, String) {
    let (model, small) = (dir.f16(), dir.path("q4_0.gguf"));
    succeeds(&["quantize", &model, &small, "Q4_0"]);
    (model, small)
}

/// Returns the results for one model.
fn results(words: &[&str]) -> Value {
    let found = json(&succeeds(&[&["divergence"], words, &["--json"]].concat()));
    found["models"][0].clone()
}

#[test]
fn logits_files_round_trip() {
    let dir = Dir::new();
    let ((model, small), text, logits) = (models(&dir), text(), dir.path("f16.logits"));
    // Odd, so that halves differ.
    let flags = ["-f", &text, "-c", "65", "--chunks", "4"];
    let side_by_side =
        results(&[&["-r", &model, &small, "--save-logits", &logits], &flags[..]].concat());
    let of_perplexity = dir.path("perplexity.logits");
    succeeds(
        &[&["perplexity", &model, "--kl-divergence-base", &of_perplexity], &flags[..]].concat(),
    );
    assert!(fs::read(&logits).unwrap() == fs::read(&of_perplexity).unwrap());
    let found = results(&["--reference-logits", &logits, &small]);
    // The file omits the first of each 33 predictions.
    assert_eq!((&side_by_side["tokens"], &found["tokens"]), (&132.into(), &128.into()));
    assert_eq!(found["by_position"][0]["tokens_before"], 33);
    // 16 bits for a range of 16: log-probabilities are off by at most 0.00013.
    let (ours, theirs) = (&side_by_side["by_position"], &found["by_position"]);
    for (ours, theirs) in ours.as_array().unwrap()[1..].iter().zip(theirs.as_array().unwrap()) {
        assert_eq!(ours["tokens_before"], theirs["tokens_before"]);
        let (ours, theirs) = (number(ours, "mean_kld"), number(theirs, "mean_kld"));
        assert!((ours - theirs).abs() < 1.3e-4 * (1.0 + ours), "{ours} {theirs}");
    }
    let fewer = results(&["--kl-divergence-base", &logits, &small, "--chunks", "2"]);
    assert_eq!(fewer["chunks"], 2);

    let again = ["perplexity", &model, "-f", &text, "--save-logits", &logits];
    fails(&again, 2, &["f16.logits exists already"]);
    fails(&[&again[..], &["--stride", "9"]].concat(), 2, &["--stride"]);
    fails(&["perplexity", &model, &small, "-f", &text, "--save-logits", "x"], 2, &["one model"]);
    fails(&["divergence", &small, "-f", &text], 2, &["--reference"]);
    fails(&["divergence", "-r", &model, &small], 2, &["--file"]);
    let both = ["divergence", "-r", &model, "--reference-logits", &logits, &small];
    fails(&both, 2, &["cannot be used with"]);
}

/// Writes a logits file in llama.cpp's format, independently of the library: the log-probabilities of all
/// tokens at each position `p` of the second half of a chunk.
fn write_logits(
    len: u32,
    vocabulary: i32,
    ids: &[i32],
    row: impl Fn(usize) -> (f32, f32, Vec<u16>),
) -> Vec<u8> {
    let windows = ids.len() / len as usize;
    let mut bytes = b"_logits_".to_vec();
    bytes.extend(len.to_le_bytes());
    bytes.extend(vocabulary.to_le_bytes());
    bytes.extend((windows as i32).to_le_bytes());
    bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
    for place in 0..windows * (len - 1 - len / 2) as usize {
        let (step, least, levels) = row(place);
        bytes.extend(step.to_le_bytes());
        bytes.extend(least.to_le_bytes());
        bytes.extend(levels.iter().flat_map(|level| level.to_le_bytes()));
        if levels.len() % 2 == 1 {
            bytes.extend([0xaa; 2]);
        }
    }
    bytes
}

#[test]
fn foreign_logits_files() {
    let dir = Dir::new();
    let (model, path) = (dir.f16(), dir.path("by-hand.logits"));
    let ids = [1, 500, 600, 700, 800, 900, 1, 501, 601, 701, 801, 901];
    // Uniform probabilities, except for the actual token with 1/2.
    let came = [800, 900, 801, 901];
    let (half, rest) = (0.5f64.ln(), (0.5f64 / 2047.0).ln());
    let row = |place: usize| {
        let mut levels = vec![0; 2048];
        levels[came[place] as usize] = 40000;
        (((half - rest) / 40000.0) as f32, rest as f32, levels)
    };
    let bytes = write_logits(6, 2048, &ids, row);
    fs::write(&path, &bytes).unwrap();
    let found = results(&["--reference-logits", &path, &model, "--worst", "9"]);
    assert_eq!((&found["chunks"], &found["tokens"]), (&2.into(), &4.into()));
    assert!((number(&found, "ppl_base") - 2.0).abs() < 1e-5, "{found}");
    let misses = found["worst"].as_array().unwrap();
    assert_eq!(misses.len(), 4);
    for miss in misses {
        // Per chunk, the fourth and the fifth token after the first.
        let (window, position) =
            (miss["chunk"].as_u64().unwrap(), miss["tokens_before"].as_u64().unwrap());
        let place = (window - 1) * 2 + position - 4;
        assert_eq!(miss["actual"]["id"], came[place as usize]);
        assert_eq!(miss["top_base"], miss["actual"]);
        assert!((number(&miss["actual"], "probability_base") - 0.5).abs() < 1e-5);
    }

    // Invalid files are reported.
    let broken: [(usize, [u8; 4], &str); 6] = [
        (0, *b"_lag", "does not begin with `_logits_`"),
        (8, [2, 0, 0, 0], "2 chunks of 2 tokens and 2048 vocabulary entries"),
        (8, [0xff; 4], "2 chunks of -1 tokens"),
        (16, [0xff, 0xff, 0xff, 0x7f], "are needed for 2147483647 chunks of 6 tokens of 2048"),
        (24, 2048i32.to_le_bytes(), "has token 2048 at place 1, of 2048"),
        (68, f32::NAN.to_le_bytes(), "NaN or infinity in chunk 1, token 3"),
    ];
    let bad = dir.path("bad.logits");
    for (at, with, what) in broken {
        let mut bytes = bytes.clone();
        bytes[at..at + 4].copy_from_slice(&with);
        fs::write(&bad, bytes).unwrap();
        fails(&["divergence", "--reference-logits", &bad, &model], 1, &["bad.logits", what]);
    }
    for len in [0, 19, bytes.len() - 1] {
        fs::write(&bad, &bytes[..len]).unwrap();
        fails(&["divergence", "--reference-logits", &bad, &model], 1, &["bad.logits"]);
    }
    fs::write(&bad, write_logits(6, 3, &[0; 6], |_| (1.0, -2.0, vec![0, 1, 2]))).unwrap();
    let words = ["divergence", "--reference-logits", &bad, &model];
    fails(&words, 2, &["f16.gguf has 2048 tokens, the reference 3"]);
}

#[test]
fn positions_and_tokens_with_the_largest_kld() {
    let dir = Dir::new();
    let ((model, small), text) = (models(&dir), text());
    let flags = ["-r", &model, &small, "-f", &text, "-c", "64", "--chunks", "5"];
    let found = results(&[&flags[..], &["--worst", "160"]].concat());
    let list = |key: &str| found[key].as_array().unwrap().clone();
    let (positions, worst) = (list("by_position"), list("worst"));
    assert_eq!((positions.len(), worst.len()), (32, 160));
    // All tokens are listed: mean and extremes follow from them.
    let mean =
        |of: &[Value], key| of.iter().map(|one| number(one, key)).sum::<f64>() / of.len() as f64;
    assert!((mean(&worst, "kld") - number(&found, "mean_kld")).abs() < 1e-9);
    assert!((mean(&positions, "mean_kld") - number(&found, "mean_kld")).abs() < 1e-9);
    assert_eq!(number(&worst[0], "kld") as f32, number(&found, "max_kld") as f32);
    assert!(worst.is_sorted_by(|a, b| number(a, "kld") >= number(b, "kld")));
    for (number_of, position) in positions.iter().enumerate() {
        let before = 32 + number_of as u64;
        assert_eq!(position["tokens_before"], before);
        let there: Vec<_> =
            worst.iter().filter(|miss| miss["tokens_before"] == before).cloned().collect();
        assert_eq!(there.len(), 5);
        assert!((mean(&there, "kld") - number(position, "mean_kld")).abs() < 1e-6);
    }
    let same = worst.iter().filter(|one| one["top_base"]["id"] == one["top_q"]["id"]);
    assert!((same.count() as f64 / 1.6 - number(&found, "top1_agreement")).abs() < 1e-9);
    let surprise = |of: &str| {
        let sum: f64 = worst.iter().map(|one| number(&one["actual"], of).ln()).sum();
        (-sum / 160.0).exp()
    };
    assert!((surprise("probability_q") / number(&found, "ppl_q") - 1.0).abs() < 1e-9);
    assert!((surprise("probability_base") / number(&found, "ppl_base") - 1.0).abs() < 1e-9);
    // The context and the actual token are in the text.
    let text = fs::read_to_string(&text).unwrap();
    let miss = &worst[0];
    let read = |value: &Value| value.as_str().unwrap().to_owned();
    let passage = read(&miss["context"]) + &read(&miss["actual"]["text"]);
    assert!(text.contains(&passage), "{passage:?}");

    let fewer = results(&[&flags[..], &["--worst", "3"]].concat());
    assert_eq!(fewer["worst"].as_array().unwrap()[..], worst[..3]);
    let shown = succeeds(&[&["divergence"], &flags[..], &["--worst", "1"]].concat());
    let place = format!("chunk {}, token {}", miss["chunk"], miss["tokens_before"]);
    for part in
        ["  32 to 39 ", "  56 to 63 ", &place, &format!("after {:?}", read(&miss["context"]))]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// Writes a copy of a model with changed bytes in a tensor.
fn corrupted(model: &str, tensor: &str, at: usize, bytes: &[u8], path: &str) {
    let opened = Model::open(model.as_ref()).unwrap();
    let found = opened.tensors().iter().find(|one| one.info.name == *tensor).unwrap();
    let start = (opened.parts()[0].data_start + found.info.offset) as usize + at;
    let mut all = fs::read(model).unwrap();
    all[start..start + bytes.len()].copy_from_slice(bytes);
    fs::write(path, all).unwrap();
}

#[test]
fn the_origin_of_nan_is_reported() {
    let dir = Dir::new();
    let (model, text) = (dir.f16(), text());
    let path = |name: &str| dir.path(name);
    // One F16 weight in a middle block.
    let nan = path("nan.gguf");
    corrupted(&model, "blk.2.ffn_up.weight", 0, &0x7e00u16.to_le_bytes(), &nan);
    let of_weight = "it begins at token 0 in the operation `matmul` with blk.2.ffn_up.weight";
    let flags = ["-f", &text, "-c", "64", "--chunks", "3"];
    let parts = ["nan.gguf", "chunk 1, token 31", of_weight, "blk.2.ffn_up.weight"];
    fails(&[&["perplexity", &nan], &flags[..]].concat(), 1, &parts);
    fails(&[&["divergence", "-r", &model, &nan], &flags[..]].concat(), 1, &parts);
    fails(&[&["divergence", "-r", &nan, &model], &flags[..]].concat(), 1, &parts);
    let words = ["imatrix", &nan, "-o", &path("out.imatrix")];
    fails(&[&words[..], &flags[..]].concat(), 1, &["nan.gguf", "chunk 1", of_weight]);
    assert!(!Path::new(&path("out.imatrix")).exists());

    // Weights that overflow.
    let (wide, huge) = (path("f32.gguf"), path("huge.gguf"));
    succeeds(&["quantize", &model, &wide, "F32"]);
    let large: Vec<u8> = (0..256).flat_map(|_| 3e38f32.to_le_bytes()).collect();
    corrupted(&wide, "blk.1.attn_v.weight", 0, &large, &huge);
    let of_weight = "in the operation `matmul` with blk.1.attn_v.weight";
    fails(&[&["perplexity", &huge], &flags[..]].concat(), 1, &["huge.gguf", of_weight]);

    // The embedding of a token that occurs late in the first chunk.
    let ids = json(&succeeds(&["tokenize", &model, "-f", &text, "--ids"]));
    let ids: Vec<u64> = ids.as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
    let place = (40..64).find(|place| !ids[1..*place].contains(&ids[*place])).unwrap();
    let late = path("late.gguf");
    let row = ids[place] as usize * 256 * 2;
    corrupted(&model, "token_embd.weight", row, &0x7e00u16.to_le_bytes(), &late);
    let what =
        format!("it begins at token {place} in the operation `embedding` with token_embd.weight");
    fails(&[&["perplexity", &late], &flags[..]].concat(), 1, &["late.gguf", &what]);
}
