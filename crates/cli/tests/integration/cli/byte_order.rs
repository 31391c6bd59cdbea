//! Commands treat a model and its copy in the other byte order alike.

use std::path::Path;

use crate::cli::support::{Dir, fails, gguf, json, succeeds};

/// Writes a big-endian copy beside a file.
fn twin(path: &str) -> String {
    let big = path.replace(".gguf", "-big.gguf");
    succeeds(&["convert-endian", path, "big", "-o", &big]);
    big
}

/// All files below two paths are equal.
#[track_caller]
fn same(a: &str, b: &str) {
    if Path::new(a).is_dir() {
        let names = |dir: &str| {
            let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(names(a), names(b));
        return names(a)
            .iter()
            .for_each(|name| same(&format!("{a}/{name}"), &format!("{b}/{name}")));
    }
    assert!(std::fs::read(a).unwrap() == std::fs::read(b).unwrap(), "{a} and {b} differ");
}

#[test]
fn byte_order_is_not_a_difference() {
    let dir = Dir::new();
    let f16 = dir.f16();
    for mix in ["f16", "q5_k_m", "q5_1", "iq4_xs"] {
        let little = dir.path(&format!("{mix}-little.gguf"));
        succeeds(&["quantize", &f16, &little, mix]);
        let big = twin(&little);
        for (a, b) in [(&little, &big), (&big, &little), (&big, &big)] {
            assert!(succeeds(&["diff", a, b]).contains("same tensors and metadata"), "{mix}");
        }
    }
    let (q8, big) = (dir.path("q8.gguf"), twin(&f16));
    for command in [&["tokenize", "-p", "In the beginning"][..], &["recipe"]] {
        let says = |model: &str| succeeds(&[command, &[model]].concat());
        assert_eq!(says(&f16), says(&big));
    }
    succeeds(&["quantize", &f16, &q8, "q8_0"]);
    let figures = |a: &str, b: &str| gguf(&["diff", a, b, "--json"]).stdout;
    assert_eq!(figures(&f16, &q8), figures(&big, &twin(&q8)));
}

#[test]
fn outputs_do_not_depend_on_byte_order() {
    let dir = Dir::new();
    let little = dir.f16();
    let big = twin(&little);
    let q4 = dir.path("q4.gguf");
    succeeds(&["quantize", &little, &q4, "q4_0"]);
    let lora = dir.path("lora.gguf");
    succeeds(&["lora", "extract", &little, &q4, "--rank", "4", "-o", &lora]);
    let (q4_big, lora_big) = (twin(&q4), twin(&lora));
    let imatrix = crate::cli::quantize::imatrix(&dir);
    let imatrix_big = twin(&imatrix);

    // `A` is the output, `{...}` an input in either order.
    let commands: [&[&str]; 12] = [
        &["quantize", "{model}", "A", "q4_k_m"],
        &["quantize", "{model}", "A", "copy"],
        &["quantize", "--allow-requantize", "{q4}", "A", "q8_0"],
        &["quantize", "{model}", "A", "q6_k", "--part", "2/3"],
        &["quantize", "{model}", "A", "--target-bpw", "6"],
        &["export", "{model}", "A"],
        &["export", "{q4}", "A", "--to", "safetensors", "--keep-names"],
        &["export", "{q4}", "A", "--to", "safetensors", "--raw"],
        &["lora", "extract", "{model}", "{q4}", "--rank", "4", "-o", "A"],
        &["lora", "merge", "{model}", "{lora}", "-o", "A", "--outtype", "q8_0"],
        &["imatrix", "--in-file", "{imatrix}", "-o", "A"],
        &["imatrix", "--in-file", "{imatrix}", "-o", "A", "--output-format", "dat"],
    ];
    for (i, command) in commands.into_iter().enumerate() {
        let run = |order: &str, files: [&str; 4]| {
            // Some outputs contain names, so both orders use the same.
            let at = dir.path(&format!("{i}-{order}"));
            std::fs::create_dir(&at).unwrap();
            let place = |word: &&str| {
                let names = ["{model}", "{q4}", "{lora}", "{imatrix}"];
                match names.iter().position(|name| name == word) {
                    Some(n) => files[n].to_owned(),
                    None if *word == "A" => format!("{at}/out"),
                    None => (*word).to_owned(),
                }
            };
            let words: Vec<String> = command.iter().map(place).collect();
            succeeds(&words.iter().map(String::as_str).collect::<Vec<_>>());
            at
        };
        let little = run("little", [&little, &q4, &lora, &imatrix]);
        same(&little, &run("big", [&big, &q4_big, &lora_big, &imatrix_big]));
        assert!(std::fs::read_dir(&little).unwrap().next().is_some());
    }
}

/// Verification accepts either byte order of model and source.
#[test]
fn both_byte_orders_are_verified() {
    let dir = Dir::new();
    let (little, q8) = (dir.f16(), dir.path("q8.gguf"));
    succeeds(&["quantize", &little, &q8, "q8_0"]);
    let (big, q8_big) = (twin(&little), twin(&q8));
    let output_text = succeeds(&["verify", &q8, "--source", &little]);
    assert_eq!(succeeds(&["verify", &q8_big, "--source", &big]).replace("-big", ""), output_text);
    assert_eq!(
        succeeds(&["verify", &q8_big, "--source", &little]).replace("-big", ""),
        output_text
    );
}

#[test]
fn damage_is_found_in_both_orders() {
    let dir = Dir::new();
    let f16 = dir.f16();
    for (mix, bytes) in [("f16", [0x00, 0x7e]), ("q8_0", [0x00, 0x7c])] {
        let little = dir.path(&format!("damaged-{mix}.gguf"));
        succeeds(&["quantize", &f16, &little, mix]);
        // First value of the embedding: a weight, or the scale of a block.
        let at =
            gguf_store::Model::open(little.as_ref()).unwrap().index()["token_embd.weight"].offset;
        let mut file = std::fs::read(&little).unwrap();
        file[at as usize..][..2].copy_from_slice(&bytes);
        std::fs::write(&little, file).unwrap();
        let big = twin(&little);
        let findings = |path: &str| {
            let output = gguf(&["check", "--data", path, "--json"]);
            assert_eq!(output.status.code(), Some(1), "{path}");
            let mut shown = json(&String::from_utf8(output.stdout).unwrap());
            shown["findings"].take()
        };
        let found = findings(&big);
        assert_eq!(found, findings(&little));
        let all = found.as_array().unwrap();
        assert!(all.iter().any(|one| one["code"] == "data-not-finite"), "{found}");
        assert!(!all.iter().any(|one| one["code"] == "data-unread"), "{found}");
    }
}

/// Edits keep the byte order, and the data.
#[test]
fn edits_keep_the_byte_order() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let big = twin(&f16);
    let order = |path: &str| gguf_store::Model::open(path.as_ref()).unwrap().order();
    let fixed = dir.path("fixed.gguf");
    let wrong = dir.path("wrong.gguf");
    succeeds(&["edit", &big, "-o", &wrong, "--set", "general.file_type=15"]);
    succeeds(&["check", &wrong, "--fix", "-o", &fixed]);
    assert_eq!(order(&fixed), gguf::ByteOrder::Big);
    assert!(succeeds(&["diff", &f16, &fixed]).contains("same tensors and metadata"));

    for drop in [vec!["--drop", "output_norm"], vec![]] {
        let (a, b) = (dir.path("a.gguf"), dir.path("b.gguf"));
        // Tensors from a file in the other order are byte-swapped.
        let graft = ["--graft-from", &f16, "attn_q", "--force", "-o"];
        let edit = |from: &str, to: &str| {
            succeeds(&[&["edit", from], &drop[..], &graft, &[to]].concat());
        };
        edit(&f16, &a);
        edit(&big, &b);
        assert_eq!((order(&a), order(&b)), (gguf::ByteOrder::Little, gguf::ByteOrder::Big));
        assert!(succeeds(&["diff", &a, &b]).contains("same tensors and metadata"));
    }
    succeeds(&["edit", &big, "--drop", "output_norm"]);
    assert_eq!(order(&big), gguf::ByteOrder::Big);
    succeeds(&["edit", &f16, "--drop", "output_norm"]);
    assert!(succeeds(&["diff", &f16, &big]).contains("same tensors and metadata"));
}

#[test]
fn split_and_merge_keep_the_byte_order() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let big = twin(&f16);
    succeeds(&["split", "--split-max-tensors", "10", &big, &dir.path("part")]);
    let first = dir.path("part-00001-of-00004.gguf");
    let (whole, hash) = (dir.path("whole.gguf"), ["hash", "--no-layer", "--json"]);
    assert!(succeeds(&["diff", &f16, &first]).contains("same tensors and metadata"));
    // Stored bytes are hashed, as in llama.cpp's tool.
    let digest =
        |path: &str| json(&succeeds(&[&hash[..], &[path]].concat()))["digests"][0]["digest"].take();
    assert_eq!(digest(&first), digest(&big));
    assert_ne!(digest(&f16), digest(&big));

    // Keeps the shards of the input, each with the same tensors.
    let (retained, kept_big) = (dir.path("kept.gguf"), dir.path("kept-big.gguf"));
    succeeds(&["quantize", &first, &kept_big, "q8_0", "--keep-split"]);
    succeeds(&["split", "--split-max-tensors", "10", &f16, &dir.path("little")]);
    succeeds(&[
        "quantize",
        &dir.path("little-00001-of-00004.gguf"),
        &retained,
        "q8_0",
        "--keep-split",
    ]);
    for i in 1..=4 {
        let shard = |prefix: &str| dir.path(&format!("{prefix}-0000{i}-of-00004.gguf"));
        same(&shard("kept"), &shard("kept-big"));
    }

    succeeds(&["merge", &first, &whole, "--delete-shards"]);
    same(&whole, &big);
    assert!(!Path::new(&first).exists());
    fails(&["hash", &first], 3, &["part-00001-of-00004.gguf"]);
}
