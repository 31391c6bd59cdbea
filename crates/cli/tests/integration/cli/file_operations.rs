//! Editing, naming, splitting, comparing, hashing, byte swapping and repairing files, and reading remote files.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use crate::cli::support::{Dir, MODEL, fails, gguf, json, succeeds};

fn metadata(path: &str) -> Value {
    json(&succeeds(&["inspect", path, "--json", "--keys"]))["metadata"].take()
}

#[test]
fn keys_are_edited_in_place_where_they_fit() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let before = json(&succeeds(&["hash", "--no-layer", "--json", &f16]));
    succeeds(&[
        "edit",
        &f16,
        "--set",
        "general.name=Another",
        "--set",
        "mine:u16=7",
        "--set",
        "list:str[]=[\"a\",\"b\"]",
        "--rename",
        "general.license=general.license.name",
        "--remove",
        "general.tags",
        "--special-token",
        "eos=<unk>",
        "--special-token-by-id",
        "pad=5",
    ]);
    let keys = metadata(&f16);
    assert_eq!(keys["general.name"]["value"], "Another");
    assert_eq!(keys["mine"], serde_json::json!({ "type": "UINT16", "value": 7 }));
    assert_eq!(keys["list"]["value"], serde_json::json!(["a", "b"]));
    assert_eq!(keys["general.license.name"]["value"], "apache-2.0");
    assert_eq!(keys["tokenizer.ggml.eos_token_id"]["value"], 0);
    assert_eq!(keys["tokenizer.ggml.padding_token_id"]["value"], 5);
    assert!(keys.get("general.tags").is_none() && keys.get("general.license").is_none());
    // A second edit fits into the padding.
    let output =
        gguf(&["edit", &f16, "--set", &format!("general.description={}", "x".repeat(5000))]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("changed in place"));
    assert_eq!(json(&succeeds(&["hash", "--no-layer", "--json", &f16])), before);
    fails(&["edit", &f16, "--remove", "no.such.key"], 2, &["no.such.key"]);
    fails(&["edit", &f16, "--set", "mine:u8=300"], 2, &["mine"]);
    fails(&["edit", &f16, "--special-token", "eos=no such token"], 2, &["no such token"]);
}

#[test]
fn padding_allows_the_first_edit_in_place() {
    let dir = Dir::new();
    let out = dir.path("out.gguf");
    succeeds(&["convert", MODEL, "-o", &out, "--outtype", "q8_0", "--reserve", "16K"]);
    assert!(succeeds(&["inspect", &out, "--keys", "gguf_kit.*"]).contains("header padding"));
    let without = dir.path("without.gguf");
    succeeds(&["convert", MODEL, "-o", &without, "--outtype", "q8_0"]);
    assert!(succeeds(&["diff", &out, &without]).contains("same tensors and metadata"));
    let template = dir.path("chat.jinja");
    std::fs::write(&template, "{{ messages[0].content }}".repeat(100)).unwrap();
    let output = gguf(&["edit", &out, "--chat-template-file", &template]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("changed in place"));
    assert!(metadata(&out)["tokenizer.chat_template"]["value"].as_str().unwrap().len() == 2500);
}

#[test]
fn tensors_are_dropped_renamed_and_grafted() {
    let dir = Dir::new();
    let (f16, small, whole) = (dir.f16(), dir.path("small.gguf"), dir.path("whole.gguf"));
    succeeds(&["edit", &f16, "-o", &small, "--drop", r"blk\.[23]\."]);
    let shown = json(&succeeds(&["inspect", &small, "--json"]));
    assert_eq!(shown["tensor_count"], 39 - 18);
    succeeds(&["edit", &small, "-o", &whole, "--graft", &format!("{f16}:blk\\.[23]\\.")]);
    let diff = json(&String::from_utf8(gguf(&["diff", &f16, &whole, "--json"]).stdout).unwrap());
    assert_eq!(
        (&diff["verdict"], diff["tensors"].as_array().unwrap().len()),
        (&"same tensors and metadata".into(), 0)
    );
    let graft = format!("{f16}:^(blk\\.2\\.attn_q|output)\\.weight");
    let words =
        ["--drop", "^output", "--graft", &graft, "--rename-tensor", "blk.0.attn_q.weight=q"];
    let plan = [&["edit", &small, "--dry-run", "--json"], &words[..]].concat();
    assert_eq!(
        json(&succeeds(&plan))["tensors"],
        serde_json::json!([
            { "tensor": "output.weight", "change": "dropped" },
            { "tensor": "output_norm.weight", "change": "dropped" },
            { "tensor": "output.weight", "change": "added" },
            { "tensor": "blk.2.attn_q.weight", "change": "added" },
            { "tensor": "blk.0.attn_q.weight", "change": "renamed", "to": "q" },
        ])
    );
    fails(&["edit", &small, "--dry-run", "--drop", "nothing"], 2, &["nothing"]);
    succeeds(&["edit", &f16, "--rename-tensor", "output.weight=other.weight"]);
    let shown = json(&succeeds(&["inspect", &f16, "--json"]));
    assert_eq!(shown["tensors"][0]["name"], "other.weight");
    fails(&["edit", &small, "-o", &whole, "--drop", "nothing", "--force"], 2, &["nothing"]);
}

#[test]
fn shards_are_one_model() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let prefix = dir.path("part");
    let plan = json(&succeeds(&["split", &f16, &prefix, "--split-max-size", "2M", "--json"]));
    let shards = plan["shards"].as_array().unwrap();
    assert_eq!(shards.len(), 5);
    let third = dir.path("part-00003-of-00005.gguf");
    assert_eq!(json(&succeeds(&["inspect", &third, "--json"]))["tensor_count"], 39);
    let pattern = dir.path("part-*.gguf");
    let findings = json(&succeeds(&["check", &pattern, "--json"]));
    assert!(findings["findings"].as_array().unwrap().iter().all(|f| f["severity"] != "error"));
    let (from_shards, from_file) = (dir.path("a.gguf"), dir.path("b.gguf"));
    succeeds(&["quantize", &third, &from_shards, "q4_k_s"]);
    succeeds(&["quantize", &f16, &from_file, "q4_k_s"]);
    assert!(std::fs::read(from_shards).unwrap() == std::fs::read(from_file).unwrap());
    fails(&["merge", &third, &third], 2, &["is an input"]);
    let merged = dir.path("merged.gguf");
    succeeds(&["merge", &third, &merged, "--delete-shards"]);
    assert!(std::fs::read(merged).unwrap() == std::fs::read(&f16).unwrap());
    assert!(!Path::new(&third).exists());
    std::fs::copy(&f16, &third).unwrap();
    let lone = gguf(&["inspect", &third]);
    assert_eq!(lone.status.code(), Some(0));
    assert!(String::from_utf8(lone.stderr).unwrap().contains("4 of 5 shards are missing"));
    fails(&["quantize", &third, &dir.path("c.gguf"), "q4_0"], 1, &["part-00001-of-00005.gguf"]);
    let output = gguf(&["check", &third, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("shard-missing"));
}

#[test]
fn diff_reports_errors_and_a_summary() {
    let dir = Dir::new();
    let (f16, q8) = (dir.f16(), dir.path("q8.gguf"));
    succeeds(&["quantize", &f16, &q8, "q8_0"]);
    let output = gguf(&["diff", &f16, &q8, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let diff = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(diff["verdict"], "B is A quantized to Q8_0");
    let relative = diff["total"]["relative"].as_f64().unwrap();
    assert!((0.001..0.01).contains(&relative), "{relative}");
    assert!(succeeds(&["diff", &f16, &f16]).contains("same tensors and metadata"));
}

#[test]
fn digests_are_verified() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let manifest = dir.path("manifest");
    std::fs::write(&manifest, succeeds(&["hash", "--sha256", &f16])).unwrap();
    assert!(succeeds(&["hash", "--check", &manifest, &f16]).contains("  -  Ok"));
    let mut bytes = std::fs::read(&f16).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&f16, bytes).unwrap();
    fails(&["hash", "--check", &manifest, &f16], 1, &["verification failed"]);
}

#[test]
fn byte_order_round_trip() {
    let dir = Dir::new();
    let f16 = dir.f16();
    for mix in ["f16", "q4_k_m", "q5_1", "q2_k"] {
        let (little, big, back) = (dir.path("l.gguf"), dir.path("b.gguf"), dir.path("k.gguf"));
        succeeds(&["quantize", "--force", &f16, &little, mix]);
        succeeds(&["convert-endian", &little, "big", "-o", &big, "--force"]);
        assert_ne!(std::fs::read(&little).unwrap(), std::fs::read(&big).unwrap());
        let (a, b) = (metadata(&little), metadata(&big));
        assert_eq!(a, b);
        succeeds(&["convert-endian", &big, "little", "-o", &back, "--force"]);
        assert!(std::fs::read(&little).unwrap() == std::fs::read(&back).unwrap(), "{mix}");
    }
    succeeds(&["convert-endian", &f16, "big", "--in-place"]);
    fails(&["convert-endian", &f16, "little"], 2, &["--output"]);
}

#[test]
fn names_follow_the_convention() {
    let dir = Dir::new();
    let parts = json(&succeeds(&["name", "Mixtral-8x7B-v0.1-KQ2.gguf", "--json"]));
    assert_eq!(parts["parts"]["size_label"], "8x7B");
    assert_eq!(gguf(&["name", "model.gguf"]).status.code(), Some(1));
    let f16 = dir.f16();
    succeeds(&["name", &f16, "--rename"]);
    assert!(Path::new(&dir.path("Tiny-KJV-Llama-4M-F16.gguf")).is_file());
    let again = dir.f16();
    fails(&["name", &again, "--rename"], 2, &["Tiny-KJV-Llama-4M-F16.gguf"]);
}

/// Default names of gguf follow its own convention.
#[test]
fn default_names_are_valid() {
    let dir = Dir::new();
    let (f16, here) = (dir.f16(), dir.path(""));
    for ty in ["f32", "bf16", "q8_0", "q4_k_m", "mxfp4_moe"] {
        succeeds(&["convert", MODEL, "-o", &here, "--outtype", ty]);
        succeeds(&["quantize", &f16, ty]);
    }
    succeeds(&["quantize", &f16, "copy"]);
    let whole = dir.path("Tiny-KJV-Llama-4M-Q8_0.gguf");
    succeeds(&["split", &whole, &dir.path("Tiny-KJV-Llama-4M-Q8_0")]);
    let prefix = dir.path("Tiny-KJV-Llama-4M-Q4_K_M");
    succeeds(&[
        "split",
        &dir.path("Tiny-KJV-Llama-4M-Q4_K_M.gguf"),
        &prefix,
        "--split-max-size",
        "1M",
    ]);
    // Named by the user.
    std::fs::remove_file(&f16).unwrap();
    // A model name with dots and underscores.
    let odd = dir.path("Qwen2.5_x-0.5B");
    std::fs::create_dir(&odd).unwrap();
    for entry in std::fs::read_dir(MODEL).unwrap().map(Result::unwrap) {
        if entry.file_name() != "README.md" {
            std::fs::copy(entry.path(), Path::new(&odd).join(entry.file_name())).unwrap();
        }
    }
    succeeds(&["convert", &odd, "-o", &here]);
    let mut seen = 0;
    for entry in std::fs::read_dir(&here).unwrap().map(Result::unwrap) {
        let path = entry.path().to_str().unwrap().to_owned();
        if !path.ends_with(".gguf") {
            continue;
        }
        succeeds(&["name", &path]);
        let found = json(&succeeds(&["check", &path, "--json"]));
        let codes = found["findings"].as_array().unwrap().iter();
        let of_names = codes.filter(|found| found["code"].as_str().unwrap().starts_with("name-"));
        assert_eq!(of_names.collect::<Vec<_>>(), Vec::<&Value>::new(), "{path}");
        seen += 1;
    }
    assert!(seen >= 14, "{seen}");
}

#[test]
fn unambiguous_problems_are_fixed() {
    let dir = Dir::new();
    let (f16, fixed) = (dir.f16(), dir.path("fixed.gguf"));
    succeeds(&[
        "edit",
        &f16,
        "--force",
        "--set",
        "tokenizer.ggml.scores:f32[]=[0.5]",
        "--set",
        "general.file_type=15",
    ]);
    let findings = |path: &str| {
        let shown = json(&String::from_utf8(gguf(&["check", path, "--json"]).stdout).unwrap());
        let codes = shown["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["code"].as_str().unwrap().to_owned());
        codes.collect::<Vec<_>>()
    };
    assert!(findings(&f16).contains(&"tokenizer-length".to_owned()));
    // Programs would read past the end of the scores.
    fails(&["check", &f16], 1, &[]);
    fails(&["check", &f16, "--fix"], 2, &["--output"]);
    succeeds(&["check", &f16, "--fix", "-o", &fixed]);
    assert!(!findings(&fixed).contains(&"tokenizer-length".to_owned()));
    assert_eq!(metadata(&fixed)["general.file_type"]["value"], 1);
    assert_eq!(metadata(&f16)["general.file_type"]["value"], 15);
    succeeds(&["check", &f16, "--fix", "--in-place"]);
    assert_eq!(metadata(&f16)["general.file_type"]["value"], 1);
}

#[test]
fn nan_in_data_is_reported() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let mut bytes = std::fs::read(&f16).unwrap();
    // In the last tensor, a norm of 256 F32 values.
    let at = bytes.len() - 128 * 4;
    bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&f16, bytes).unwrap();
    let shown = |form: &str| {
        let output = gguf(&["check", &f16, "--data", form]);
        assert_eq!(output.status.code(), Some(1));
        json(&String::from_utf8(output.stdout).unwrap())
    };
    let findings = shown("--json");
    let found =
        findings["findings"].as_array().unwrap().iter().find(|f| f["code"] == "data-not-finite");
    assert_eq!(found.unwrap()["offset"].as_u64(), Some(at as u64));
    assert_eq!(found.unwrap()["severity"], "error");
    let sarif = shown("--sarif");
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let result = results.iter().find(|result| result["ruleId"] == "data-not-finite");
    assert_eq!(result.unwrap()["level"], "error");
    // Without the data there is no finding.
    succeeds(&["check", &f16, "--no-data"]);
}

/// Serves one file with range requests, and counts the bytes sent.
pub(super) fn serve(bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut range = None;
            for line in BufReader::new(stream.try_clone().unwrap()).lines() {
                let line = line.unwrap().to_lowercase();
                if let Some(text) = line.strip_prefix("range: bytes=") {
                    let (first, last) = text.split_once('-').unwrap();
                    let last = last.parse().unwrap_or(usize::MAX).min(bytes.len() - 1);
                    range = Some((first.parse::<usize>().unwrap(), last));
                }
                if line.is_empty() {
                    break;
                }
            }
            let (first, last) = range.unwrap_or((0, bytes.len() - 1));
            let body = &bytes[first..=last];
            let head = format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes \
                 {first}-{last}/{}\r\nConnection: close\r\n\r\n",
                body.len(),
                bytes.len()
            );
            // The client may close the connection early.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    format!("http://{address}/model.gguf")
}

#[test]
fn remote_files_are_read_partially() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let url = serve(std::fs::read(&f16).unwrap());
    let output = gguf(&["inspect", &url, "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut far = json(&String::from_utf8(output.stdout).unwrap());
    let mut near = json(&succeeds(&["inspect", &f16, "--json"]));
    (far["file"], near["file"]) = (Default::default(), Default::default());
    assert_eq!(far, near);
    assert!(String::from_utf8_lossy(&output.stderr).contains("262.1 kB transferred"));
    assert!(succeeds(&["check", &url]).contains("no errors"));
    assert!(succeeds(&["diff", &f16, &url]).contains("same tensors and metadata"));
    fails(&["edit", &url, "--set", "a=b"], 2, &["remote file"]);
    fails(&["inspect", "http://127.0.0.1:1/x.gguf"], 3, &["127.0.0.1"]);
    fails(&["inspect", "ftp://host/x.gguf"], 2, &["ftp"]);
}
