//! Memory at run time, vocabularies and tables whose lengths contradict each other, and outputs that are no numbers.

use gguf::{Array, Metadata, TensorType};
use gguf_store::Model;

use crate::cli::support::{Dir, fails, gguf, json, succeeds};
use crate::whisper;

/// Writes a copy of a model whose header and data are changed.
pub(super) fn changed(
    dir: &Dir,
    change: impl FnOnce(&mut gguf::RawHeader, &mut Vec<Vec<u8>>),
) -> String {
    let model = Model::open(dir.f16().as_ref()).unwrap();
    let mut header = model.to_raw_header().unwrap();
    let data = model.tensors().iter().map(|tensor| tensor.data().unwrap().to_vec());
    let mut data: Vec<Vec<u8>> = data.collect();
    change(&mut header, &mut data);
    header.lay_out().unwrap();
    let header = gguf::Header::new(header).unwrap();
    let mut bytes = gguf::write_header(&header).unwrap();
    let start = bytes.len();
    for (tensor, data) in header.tensors().iter().zip(&data) {
        bytes.resize(start + tensor.offset as usize, 0);
        bytes.extend(data);
    }
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    let path = dir.path("changed.gguf");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn strings(metadata: &Metadata, key: &str) -> Vec<String> {
    let strings = metadata.array(key).unwrap().strings().unwrap();
    strings.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

#[test]
fn the_memory_limit_is_named_and_can_be_changed() {
    let dir = Dir::new();
    let (model, out) = (dir.f16(), dir.path("out.npy"));
    let limited = ["generate", &model, "-p", "a", "-n", "3", "--temp", "0", "--memory-limit"];
    let with = |limit: &'static str| [&limited[..], &[limit]].concat();
    fails(&with("10K"), 2, &["are allowed", "`--memory-limit SIZE`"]);
    succeeds(&with("100M"));
    let logits = ["logits", &model, "-p", "In the beginning", "-o", &out, "--memory-limit", "30K"];
    fails(&logits, 2, &["are allowed", "`--memory-limit SIZE`"]);
    fails(&["bench", &model, "--memory-limit", "10K"], 2, &["`--memory-limit SIZE`"]);
    // A long prompt takes the values of 512 tokens; those of 2,000 are 33 MB.
    succeeds(&["bench", &model, "-p", "2000", "-n", "0", "-r", "1", "--memory-limit", "20M"]);
}

#[test]
fn a_stored_graph_with_huge_states_is_refused() {
    let dir = Dir::new();
    let (model, stored, out) = (dir.f16(), dir.path("stored.gguf"), dir.path("out.npy"));
    succeeds(&["graph", &model, "--store", "-o", &stored]);
    let mut graph = json(&succeeds(&["graph", &stored, "--json"]))["graph"].take();
    let state = serde_json::json!({"kind": "row_history", "width": 1 << 24, "len": 1 << 20});
    graph["states"].as_array_mut().unwrap().push(state);
    let text = format!("gguf_kit.graph:str={graph}");
    succeeds(&["edit", &stored, "--set", &text, "--force"]);
    let stored_graph = ["--graph", "stored"];
    for command in [
        vec!["generate", &stored, "-p", "a", "-n", "1"],
        vec!["logits", &stored, "--ids", "1", "-o", &out],
        vec!["bench", &stored, "-p", "1", "-n", "1"],
    ] {
        let command = [&command[..], &stored_graph].concat();
        fails(&command, 2, &["caches and states of", "70.4 TB", "`--memory-limit SIZE`"]);
    }
}

#[test]
fn scores_and_types_of_other_lengths_never_panic() {
    let dir = Dir::new();
    for key in ["tokenizer.ggml.scores", "tokenizer.ggml.token_type"] {
        for longer in [true, false] {
            let model = changed(&dir, |header, _| {
                let metadata = &mut header.metadata;
                let tokens = strings(metadata, "tokenizer.ggml.tokens").len();
                let count = if longer { tokens + 7 } else { tokens - 7 };
                let value = match key.ends_with("scores") {
                    true => Array::from(&vec![-1f32; count][..]),
                    false => Array::from(&vec![1i32; count][..]),
                };
                metadata.set("tokenizer.ggml.model", "llama");
                metadata.set(key, value);
            });
            let tokenize = gguf(&["tokenize", &model, "-p", "In the beginning"]);
            let message = String::from_utf8_lossy(&tokenize.stderr).into_owned();
            match longer {
                true => assert!(tokenize.status.success(), "{key}: {message}"),
                false => assert_eq!(tokenize.status.code(), Some(1), "{key}: {message}"),
            }
        }
    }
}

#[test]
fn an_output_projection_with_too_few_rows_is_refused() {
    let dir = Dir::new();
    let text = dir.path("text.txt");
    std::fs::write(&text, "And God said, Let there be light: and there was light. ".repeat(40))
        .unwrap();
    let model = changed(&dir, |header, data| {
        let names = |header: &gguf::RawHeader, name: &str| {
            header.tensors.iter().position(|tensor| &*tensor.name == name)
        };
        let place = names(header, "output.weight").unwrap_or_else(|| {
            let embedding = names(header, "token_embd.weight").unwrap();
            let mut output = header.tensors[embedding].clone();
            output.name = "output.weight".into();
            header.tensors.push(output);
            data.push(data[embedding].clone());
            data.len() - 1
        });
        let tensor = &mut header.tensors[place];
        tensor.shape = gguf::Shape::new(&[tensor.shape[0], 20]).unwrap();
        data[place].truncate(tensor.byte_len().unwrap() as usize);
    });
    let stored = dir.path("stored.gguf");
    for graph in ["built", "stored"] {
        let model = match graph {
            "built" => &model,
            _ => {
                let made = gguf(&["graph", &model, "--store", "-o", &stored]);
                if !made.status.success() {
                    continue;
                }
                &stored
            }
        };
        let run = ["perplexity", model, "-f", &text, "-c", "32", "--graph", graph];
        let output = gguf(&run);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{graph}: {message}");
        assert!(!message.contains("panicked"), "{message}");
    }
}

#[test]
fn logits_that_are_no_numbers_are_not_written() {
    let dir = Dir::new();
    let out = dir.path("out.npy");
    let model = changed(&dir, |header, data| {
        let place =
            header.tensors.iter().position(|tensor| &*tensor.name == "blk.1.ffn_down.weight");
        let place = place.unwrap();
        assert_eq!(header.tensors[place].tensor_type, TensorType::F16);
        data[place][..2].copy_from_slice(&[0, 0x7e]);
    });
    fails(&["logits", &model, "-p", "In the beginning", "-o", &out], 1, &["NaN"]);
    fails(&["generate", &model, "-p", "In the beginning", "-n", "2"], 1, &["NaN"]);
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn logits_are_exact_by_default() {
    let dir = Dir::new();
    let model = dir.f16();
    let logits = |more: &[&str]| {
        let out = dir.path("out.npy");
        let args = ["logits", &model, "-p", "In the beginning God created", "-o", &out, "--force"];
        succeeds(&[&args[..], more].concat());
        std::fs::read(out).unwrap()
    };
    assert!(logits(&[]) == logits(&["--cache-type", "f32"]));
    assert!(logits(&[]) != logits(&["--cache-type", "f16"]));
    let fast = ["--precision", "fast"];
    assert!(logits(&fast) == logits(&["--precision", "fast", "--cache-type", "f16"]));
}

#[test]
fn whisper_is_held_against_its_tables() {
    let dir = Dir::new();
    let (model, sound) = (dir.path("whisper.gguf"), dir.path("a.wav"));
    std::fs::write(&model, whisper::model()).unwrap();
    std::fs::write(&sound, whisper::sound(1.0)).unwrap();
    for len in ["4294967295", "2000000", "1000"] {
        let set = format!("whisper.encoder.context_length={len}");
        succeeds(&["edit", &model, "--set", &set, "--force"]);
        fails(
            &["transcribe", &model, &sound],
            2,
            &["enc.position_embd.weight", "rows, and none for"],
        );
    }
}

#[test]
fn parts_of_a_file_are_recognized() {
    let dir = Dir::new();
    let bytes = std::fs::read(dir.f16()).unwrap();
    for names in [["m.gguf-split-a", "m.gguf-split-b"], ["n.gguf.part1of2", "n.gguf.part2of2"]] {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let paths = names.map(|name| dir.path(name));
        std::fs::write(&paths[0], first).unwrap();
        std::fs::write(&paths[1], second).unwrap();
        let advice = format!("join the parts with cat, in order: `cat {} {} >", names[0], names[1]);
        for path in &paths {
            fails(&["inspect", path], 1, &[&advice]);
            let check = gguf(&["check", path]);
            assert!(String::from_utf8_lossy(&check.stdout).contains(&advice), "{check:?}");
        }
    }
}

#[test]
fn patterns_of_names_are_those_of_llama_cpp() {
    let dir = Dir::new();
    let (model, out) = (dir.f16(), dir.path("q.gguf"));
    let pattern = r"blk\.(?!0\.)\d+\.ffn_down=q8_0";
    succeeds(&["quantize", &model, &out, "q4_0", "--tensor-type", pattern]);
    let model = Model::open(out.as_ref()).unwrap();
    let ty = |name: &str| model.index()[name].info.tensor_type;
    assert_eq!(ty("blk.1.ffn_down.weight"), TensorType::Q8_0);
    assert_ne!(ty("blk.0.ffn_down.weight"), TensorType::Q8_0);
}

#[test]
fn tensors_of_unknown_types_are_copied() {
    let dir = Dir::new();
    let name = "blk.1.ffn_down.weight";
    let mut expected = Vec::new();
    let model = changed(&dir, |header, data| {
        let place = header.tensors.iter().position(|tensor| &*tensor.name == name).unwrap();
        header.tensors[place].tensor_type = TensorType::from_id(139);
        data[place].truncate(64 * 1001);
        header.tensors[place].opaque_len = Some(64 * 1001);
        expected = data[place].clone();
    });
    let bytes_of = |path: &str| {
        let model = Model::open(path.as_ref()).unwrap();
        let tensor = model.index()[name];
        assert_eq!(tensor.info.tensor_type, TensorType::from_id(139));
        tensor.data().unwrap().to_vec()
    };
    assert!(bytes_of(&model) == expected);
    // The names of tensors begin with the path.
    let hash = |path: &str| succeeds(&["hash", path]).replace(path, "model.gguf");
    let (edited, merged) = (dir.path("edited.gguf"), dir.path("merged.gguf"));
    succeeds(&["edit", &model, "--set", "general.name=Another", "-o", &edited]);
    assert!(bytes_of(&edited) == expected);
    succeeds(&["split", &model, &dir.path("s"), "--split-max-tensors", "7"]);
    let first = std::fs::read_dir(dir.path("")).unwrap().filter_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.starts_with("s-00001-of-").then_some(name)
    });
    succeeds(&["merge", &dir.path(&first.last().unwrap()), &merged]);
    assert!(bytes_of(&merged) == expected);
    assert_eq!(hash(&merged), hash(&model));
    succeeds(&["diff", &model, &merged]);
    let quantized = dir.path("q.gguf");
    let out = gguf(&["quantize", &model, &quantized, "q8_0", "--pure"]);
    assert!(out.status.success() == std::path::Path::new(&quantized).exists());
    if out.status.success() {
        assert!(bytes_of(&quantized) == expected);
    }
}
