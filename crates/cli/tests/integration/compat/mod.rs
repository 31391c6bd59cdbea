//! Compatibility mode: programs of llama.cpp and scripts of the Python package under their own names.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::cli::support::{Dir, MODEL, adapter, fails, gguf, json, succeeds};

/// Directory with compatibility links.
struct Linked {
    dir: Dir,
}

impl Linked {
    /// Creates the directory, with the small model as `model.gguf`.
    fn new() -> Self {
        let dir = Dir::new();
        std::fs::create_dir(dir.path("bin")).unwrap();
        succeeds(&["links", &dir.path("bin")]);
        std::fs::rename(dir.f16(), dir.path("model.gguf")).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path(name)
    }

    fn call(&self, name: &str, args: &[&str], answer: &str) -> Output {
        let program = self.path(&format!("bin/{name}{}", std::env::consts::EXE_SUFFIX));
        let mut command = Command::new(program);
        command.args(args).current_dir(self.path("")).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A program that does not prompt may exit before reading.
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), answer.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Returns standard output and standard error, after checking the exit code.
    #[track_caller]
    fn exits(&self, code: i32, name: &str, args: &[&str]) -> (String, String) {
        let output = self.call(name, args, "");
        let output_text = |bytes| String::from_utf8(bytes).unwrap();
        let (out, err) = (output_text(output.stdout), output_text(output.stderr));
        assert_eq!(output.status.code(), Some(code), "{name} {args:?}: {err}");
        (out, err)
    }

    #[track_caller]
    fn succeeds(&self, name: &str, args: &[&str]) -> (String, String) {
        self.exits(0, name, args)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    fn has(&self, name: &str) -> bool {
        Path::new(&self.path(name)).exists()
    }

    fn inspected(&self, name: &str) -> Value {
        json(&succeeds(&["inspect", &self.path(name), "--json"]))
    }

    fn write_text(&self) -> String {
        let text = "In the beginning God created the heaven and the earth. ".repeat(60);
        std::fs::write(self.path("text.txt"), text).unwrap();
        "text.txt".to_owned()
    }
}

#[test]
fn links_replace_nothing_but_links_to_gguf() {
    let dir = Dir::new();
    let program = |name: &str| dir.path(&format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let (into, quantize) = (dir.path(""), program("llama-quantize"));
    let result = succeeds(&["links", &into]);
    assert_eq!(result.lines().count(), 20, "{result}");
    assert!(result.lines().all(|line| line.starts_with("created ")), "{result}");
    let again = succeeds(&["links", &into]);
    assert!(again.lines().all(|line| line.starts_with("exists ")), "{again}");
    #[cfg(unix)]
    {
        // Link to a removed program.
        std::fs::remove_file(&quantize).unwrap();
        std::os::unix::fs::symlink("/nowhere/bin/gguf", &quantize).unwrap();
        let result = succeeds(&["links", &into]);
        assert_eq!(
            result.lines().filter(|line| line.starts_with("created ")).count(),
            1,
            "{result}"
        );
        std::fs::remove_file(&quantize).unwrap();
        std::os::unix::fs::symlink("/bin/sh", &quantize).unwrap();
        fails(&["links", &into], 2, &["llama-quantize", "not a link to gguf"]);
        assert_eq!(std::fs::read_link(&quantize).unwrap(), Path::new("/bin/sh"));
    }
    std::fs::remove_file(&quantize).unwrap();
    std::fs::write(&quantize, "mine").unwrap();
    std::fs::remove_file(program("gguf-dump")).unwrap();
    fails(&["links", &into], 2, &["llama-quantize", "not a link to gguf"]);
    assert_eq!(std::fs::read(&quantize).unwrap(), b"mine");
    assert!(!Path::new(&program("gguf-dump")).exists());
    // A missing directory is created; a file is refused.
    succeeds(&["links", &dir.path("new/bin")]);
    assert!(Path::new(&program("new/bin/llama-bench")).exists());
    fails(&["links", &quantize], 3, &["cannot create", "llama-quantize"]);
}

#[test]
fn llama_quantize() {
    let at = Linked::new();
    let (out, err) = at.succeeds("llama-quantize", &["model.gguf", "q4_k_m", "2"]);
    assert_eq!(at.inspected("ggml-model-Q4_K_M.gguf")["file_type"], "Q4_K_M");
    assert!(out.contains("\nllama_quantize: quantize time = "), "{out}");
    let line = "output.weight                        - [   256,   2048,      1,      1], type =    f16, \
                converting to q6_K .. size =     1.00 MiB ->     0.41 MiB";
    assert!(err.contains(line), "{err}");
    assert!(err.contains("model size  =     8.01 MiB (16.01 BPW)\n"), "{err}");
    assert!(err.contains("quant size  =     2.50 MiB (5.00 BPW)\n"), "{err}");
    // For a type by number, the original uses the shorter name.
    at.succeeds("llama-quantize", &["model.gguf", "15"]);
    assert!(at.has("ggml-model-Q4_K.gguf"));
    // Existing outputs are overwritten, inputs are not; underscores equal dashes; patterns are lower case.
    at.succeeds("llama-quantize", &["--leave_output_tensor", "model.gguf", "out.gguf", "q4_0"]);
    let words = ["--tensor-type", r"BLK\.\d\.ATTN_Q=q8_0", "model.gguf", "out.gguf", "q5_0"];
    at.succeeds("llama-quantize", &words);
    let shown = at.inspected("out.gguf");
    let of = |name: &str| {
        let mut tensors = shown["tensors"].as_array().unwrap().iter();
        tensors.find(|tensor| tensor["name"] == name).unwrap()["type"].clone()
    };
    assert_eq!(
        (of("blk.1.attn_q.weight"), of("blk.1.attn_k.weight")),
        ("Q8_0".into(), "Q5_0".into())
    );
    let before = at.read("model.gguf");
    let (_, err) = at.exits(1, "llama-quantize", &["model.gguf", "model.gguf", "q4_0"]);
    assert!(err.contains("llama-quantize: model.gguf is an input"), "{err}");
    assert_eq!(at.read("model.gguf"), before);
    let (out, err) =
        at.succeeds("llama-quantize", &["--dry-run", "model.gguf", "dry.gguf", "q4_k_m"]);
    assert!(
        err.contains("quant size  =     2.50 MiB (5.00 BPW)\n") && !at.has("dry.gguf"),
        "{err}"
    );
    assert!(!out.contains("bits per weight"), "{out}");
    let (_, err) = at.exits(1, "llama-quantize", &["--no-such-flag", "model.gguf", "q4_0"]);
    assert!(err.contains("unknown argument --no-such-flag"), "{err}");
    at.exits(1, "llama-quantize", &[]);
}

#[test]
fn llama_gguf_split() {
    let at = Linked::new();
    let split = ["--split-max-size", "2M", "model.gguf", "part"];
    let (out, err) = at.succeeds("llama-gguf-split", &split);
    let first = "n_split: 5\nsplit 00001: n_tensors = 1, total_size = 1M\n";
    assert!(out.starts_with(first), "{out}");
    assert!(out.contains("Writing file part-00005-of-00005.gguf ... done\n"), "{out}");
    assert_eq!(err, "gguf_split: 5 gguf split written with a total of 39 tensors.\n");
    // Shards are overwritten, a merged file is not.
    at.succeeds("llama-gguf-split", &split);
    let merge = ["--merge", "part-00001-of-00005.gguf", "whole.gguf"];
    at.succeeds("llama-gguf-split", &["--merge", "--dry-run", merge[1], merge[2]]);
    assert!(!at.has("whole.gguf"));
    let (_, err) = at.succeeds("llama-gguf-split", &merge);
    assert!(err.contains("gguf_merge: whole.gguf merged from 5 split with 39 tensors."), "{err}");
    let (_, err) = at.exits(1, "llama-gguf-split", &merge);
    assert!(err.contains("output file whole.gguf already exists"), "{err}");
    at.succeeds("llama-gguf-split", &["--merge", "--delete-splits", merge[1], "other.gguf"]);
    assert!(!at.has(merge[1]) && at.read("other.gguf") == at.read("whole.gguf"));
    at.exits(1, "llama-gguf-split", &["--split", "--merge", "model.gguf", "x"]);
    at.exits(1, "llama-gguf-split", &["model.gguf"]);
}

#[test]
fn llama_gguf_hash() {
    let at = Linked::new();
    let (out, _) = at.succeeds("llama-gguf-hash", &["--sha256", "--no-layer", "model.gguf"]);
    let (kind, rest) = out.trim_end().split_at(10);
    assert_eq!((kind, rest.len(), &rest[64..]), ("sha256    ", 64 + 12, "  model.gguf"), "{out}");
    let (manifest, _) = at.succeeds("llama-gguf-hash", &["--all", "model.gguf"]);
    let check = |text: &str, code: i32| {
        std::fs::write(at.path("manifest"), text).unwrap();
        at.exits(code, "llama-gguf-hash", &["--check", "manifest", "model.gguf"]).0
    };
    let out = check(&manifest, 0);
    assert!(out.starts_with("manifest  manifest  sha256  sha1  xxh64\nsha256    "), "{out}");
    assert!(out.ends_with("  model.gguf  -  Ok\n\nVerification results for manifest - Success\n"));
    assert!(check(&manifest.replace("256    ", "256    z"), 1).ends_with("manifest - Failure\n"));
    let out = check(&manifest.replace("model.gguf", "other.gguf"), 3);
    assert!(out.ends_with("manifest - Manifest Missing Entry\n"), "{out}");
    assert!(check("nothing", 4).starts_with("ERROR manifest does not have any known hash format"));
    let args = ["--check", "missing", "model.gguf"];
    let (out, _) = at.exits(5, "llama-gguf-hash", &args);
    assert_eq!(out, "ERROR cannot open manifest missing");
    // Script of the Python package.
    let (out, _) = at.succeeds("gguf-hash", &["--no-layer", "model.gguf"]);
    let kinds: Vec<_> = out.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(kinds, ["sha1", "sha256", "uuid"]);
    let (lines, _) = at.succeeds("gguf-hash", &["model.gguf"]);
    assert_eq!(lines.lines().count(), 2 * 39 + 3);
}

#[test]
fn llama_tokenize() {
    let at = Linked::new();
    let ids = |more: &[&str]| {
        let args = [&["-m", "model.gguf", "--ids"], more].concat();
        at.succeeds("llama-tokenize", &args).0
    };
    let plain = ids(&["-p", "God said"]);
    let list: Vec<u32> = serde_json::from_str(&plain).unwrap();
    assert!(plain.starts_with("[1, ") && plain.ends_with("]\n") && list.len() > 1, "{plain}");
    assert_eq!(ids(&["-p", "God\\nsaid"]), ids(&["-p", "God\nsaid", "--no-escape"]));
    assert_ne!(ids(&["-p", "God\\nsaid"]), ids(&["-p", "God\\nsaid", "--no-escape"]));
    std::fs::write(at.path("text.txt"), "God\\nsaid").unwrap();
    assert_eq!(ids(&["-f", "text.txt"]), ids(&["-p", "God\nsaid"]));
    let stdin = at.call("llama-tokenize", &["-m", "model.gguf", "--stdin", "--ids"], "God said");
    assert_eq!(String::from_utf8(stdin.stdout).unwrap(), plain);
    let (out, _) =
        at.succeeds("llama-tokenize", &["-m", "model.gguf", "-p", "God", "--show-count"]);
    assert!(out.starts_with("     1 -> '<s>'\n"), "{out}");
    assert!(out.contains("\nTotal number of tokens: "), "{out}");
    let (_, err) = at.exits(1, "llama-tokenize", &["-m", "model.gguf"]);
    assert!(err.contains("llama-tokenize: the text is missing"), "{err}");
    at.exits(1, "llama-tokenize", &["-m", "nothing.gguf", "-p", "x"]);
}

#[test]
fn llama_perplexity() {
    let at = Linked::new();
    let text = at.write_text();
    let words = ["-m", "model.gguf", "-f", &text, "-c", "64", "--chunks", "4"];
    let (out, err) = at.succeeds("llama-perplexity", &[&words[..], &["-ngl", "99"]].concat());
    assert!(err.contains("note: -ngl is ignored: models run on the CPU"), "{err}");
    let chunks: Vec<_> = out.trim_end().split(',').filter(|chunk| !chunk.is_empty()).collect();
    let starts = ["[1]", "[2]", "[3]", "[4]"];
    assert!(chunks.iter().zip(starts).all(|(chunk, start)| chunk.starts_with(start)), "{out}");
    assert_eq!(chunks.len(), 4, "{out}");
    let model = at.path("model.gguf");
    let ours = ["perplexity", &model, "-f", &at.path(&text), "-c", "64", "--chunks", "4", "--json"];
    let found = &json(&succeeds(&ours))["models"][0];
    let (value, error) = (&found["perplexity"], &found["perplexity_error"]);
    let (value, error) = (value.as_f64().unwrap(), error.as_f64().unwrap());
    let last = format!("Final estimate: PPL = {value:.4} +/- {error:.5}\n");
    assert!(err.ends_with(&last), "{err}{last}");
    assert_eq!(chunks[3], format!("[4]{value:.4}"));
    let (out, _) =
        at.succeeds("llama-perplexity", &[&words[..], &["--ppl-output-type", "1"]].concat());
    assert!(out.starts_with("       0  "), "{out}");

    // The logits file is overwritten, and read.
    let base = [&words[..], &["--kl-divergence-base", "base.kld"]].concat();
    at.succeeds("llama-perplexity", &base);
    at.succeeds("llama-perplexity", &base);
    at.succeeds("llama-quantize", &["model.gguf", "small.gguf", "q4_0"]);
    let small = ["-m", "small.gguf", "--kl-divergence-base", "base.kld", "--kl-divergence"];
    let (out, _) = at.succeeds("llama-perplexity", &small);
    for line in [
        "chunk             PPL               ln(PPL(Q)/PPL(base))",
        "====== Perplexity statistics ======",
        "Mean PPL(Q)                   : ",
        "Cor(ln(PPL(Q)), ln(PPL(base))): ",
        "Mean PPL(Q)-PPL(base)         : ",
        "====== KL divergence statistics ======",
        "Mean    KLD: ",
        "99.9%   KLD: ",
        "Median  KLD: ",
        " 0.1%   KLD: ",
        "====== Token probability statistics ======",
        "75.0%   Δp: ",
        "RMS Δp    : ",
        "Same top p: ",
    ] {
        assert!(out.lines().any(|known| known.starts_with(line)), "{line}: {out}");
    }
    let (_, err) = at.exits(1, "llama-perplexity", &["-m", "model.gguf", "-p", "text"]);
    assert!(err.contains("-p: put the text in a file and use -f"), "{err}");
    at.exits(1, "llama-perplexity", &["-m", "model.gguf", "--kl-divergence"]);
}

#[test]
fn llama_perplexity_benchmarks() {
    let at = Linked::new();
    let rows = "0,The man fed the dog because the _ was hungry,man,dog,2\n\
                1,The man ate the bread because the _ was good,bread,man,1\n";
    std::fs::write(at.path("winogrande.csv"), rows).unwrap();
    let words = ["-m", "model.gguf", "-f", "winogrande.csv", "--winogrande"];
    let (out, _) = at.succeeds("llama-perplexity", &words);
    let rows: Vec<Vec<_>> = out
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 2, "{out}");
    let numbers: Vec<_> = rows.iter().map(|row| row[0]).collect();
    assert_eq!((numbers, rows[0].len()), (vec!["1", "2"], 6), "{out}");
    let mut answers: Vec<_> = rows.iter().map(|row| row[5]).collect();
    answers.sort_unstable();
    assert_eq!(answers, ["1", "2"], "{out}");
}

#[test]
fn llama_imatrix() {
    let at = Linked::new();
    let text = at.write_text();
    let words =
        ["-m", "model.gguf", "-f", &text, "-c", "64", "--chunks", "2", "--save-frequency", "0"];
    let (out, err) = at.succeeds("llama-imatrix", &words);
    // The same text, chunks and positions as llama-perplexity.
    let words_of_perplexity = ["-m", "model.gguf", "-f", &text, "-c", "64", "--chunks", "2"];
    let (_, estimate) = at.succeeds("llama-perplexity", &words_of_perplexity);
    let after = |text: &str, word: &str| {
        let rest = text.split_once(word).unwrap_or_else(|| panic!("{word}: {text}")).1;
        rest.split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(after(&out, "perplexity "), after(&estimate, "PPL = "));
    assert!(at.has("imatrix.gguf") && err.contains("[1]") && err.contains(",[2]"), "{err}");
    // Existing outputs are overwritten.
    at.succeeds("llama-imatrix", &[&words[..], &["--no-ppl"]].concat());
    at.succeeds(
        "llama-imatrix",
        &["--in-file", "imatrix.gguf,imatrix.gguf", "-c", "64", "-o", "both.gguf"],
    );
    let (out, _) = at.succeeds("llama-imatrix", &["--in-file", "both.gguf", "--show-statistics"]);
    assert!(out.starts_with("28 matrices, 4 chunks of 64 tokens"), "{out}");
    // The format does not depend on the name.
    let legacy = ["--in-file", "imatrix.gguf", "-o", "old", "--output-format", "dat"];
    at.succeeds("llama-imatrix", &legacy);
    at.succeeds("llama-imatrix", &["--in-file", "imatrix.gguf", "-o", "new.dat"]);
    assert!(at.read("new.dat").starts_with(b"GGUF") && !at.read("old").starts_with(b"GGUF"));
    at.succeeds("llama-quantize", &["--imatrix", "imatrix.gguf", "model.gguf", "iq2_xs"]);
    let (_, err) = at.exits(1, "llama-imatrix", &["-m", "model.gguf"]);
    assert!(err.contains("llama-imatrix: the text is missing"), "{err}");
}

#[test]
fn llama_bench() {
    let at = Linked::new();
    let words = ["-m", "model.gguf", "-p", "4,8", "-n", "2", "-r", "2", "-t", "1"];
    let form = |form: &str| at.succeeds("llama-bench", &[&words[..], &["-o", form]].concat()).0;
    let tests = json(&form("json"));
    let tests = tests.as_array().unwrap();
    let numbers: Vec<_> =
        tests.iter().map(|t| (t["n_prompt"].as_u64(), t["n_gen"].as_u64())).collect();
    let expected = [(4, 0), (8, 0), (0, 2)].map(|(p, n)| (Some(p), Some(n)));
    assert_eq!(numbers, expected);
    assert_eq!(tests[0]["model_filename"], "model.gguf");
    assert_eq!((&tests[0]["model_size"], &tests[0]["n_threads"]), (&8_397_824.into(), &1.into()));
    assert_eq!(tests[0]["samples_ts"].as_array().unwrap().len(), 2);
    assert!(tests[0]["avg_ts"].as_f64().unwrap() > 0.0);
    assert_eq!(form("jsonl").lines().map(|line| json(line)["n_prompt"].clone()).next().unwrap(), 4);
    let csv = form("csv");
    assert!(
        csv.starts_with("build_commit,build_number,cpu_info,gpu_info,backends,model_filename,")
    );
    assert_eq!(csv.lines().count(), 4);
    assert!(
        form("sql").starts_with("CREATE TABLE IF NOT EXISTS llama_bench (\n  build_commit TEXT,")
    );
    let table = form("md");
    let head = "| model                          |       size |     params | backend    | threads |            \
                test |                  t/s |\n";
    assert!(table.starts_with(head), "{table}");
    let tests: Vec<_> = table.lines().filter_map(|line| line.split('|').nth(6)).collect();
    let tests: Vec<_> = tests.iter().skip(2).map(|cell| cell.trim()).collect();
    assert_eq!(tests, ["pp4", "pp8", "tg2"]);
    let words =
        ["-m", "model.gguf", "-p", "0", "-n", "2", "-pg", "4,2", "-d", "0,8", "-r", "1", "-o"];
    let (out, _) = at.exits(0, "llama-bench", &[&words[..], &["md"]].concat());
    let tests: Vec<_> = out.lines().filter_map(|line| line.split('|').nth(6)).collect();
    let tests: Vec<_> = tests.iter().skip(2).map(|cell| cell.trim()).collect();
    assert_eq!(tests, ["tg2", "pp4+tg2", "tg2 @ d8", "pp4+tg2 @ d8"]);
    let (out, _) = at.exits(0, "llama-bench", &[&words[..], &["json"]].concat());
    let tests = json(&out);
    let tests = tests.as_array().unwrap().iter();
    let numbers: Vec<_> =
        tests.map(|t| ["n_prompt", "n_gen", "n_depth"].map(|n| t[n].as_u64().unwrap())).collect();
    assert_eq!(numbers, [[0, 2, 0], [4, 2, 0], [0, 2, 8], [4, 2, 8]]);
    let (_, err) = at.exits(1, "llama-bench", &["-m", "model.gguf", "-pg", "4"]);
    assert!(err.contains("-pg: `4` is not a pair of numbers such as 512,128"), "{err}");
    at.exits(1, "llama-bench", &["-m", "model.gguf", "-o", "yaml"]);
}

#[test]
fn llama_export_lora() {
    let at = Linked::new();
    let (model, tuned, adapter) = (at.path("model.gguf"), at.path("tuned.gguf"), at.path("a.gguf"));
    let mut bytes = at.read("model.gguf");
    let len = bytes.len();
    bytes[len - 400_000..].iter_mut().step_by(64).for_each(|byte| *byte ^= 1);
    std::fs::write(&tuned, bytes).unwrap();
    succeeds(&["lora", "extract", &model, &tuned, "--rank", "2", "-o", &adapter]);
    for (words, file) in [
        (["--lora", "a.gguf", "-t", "1"], "ggml-lora-merged-f16.gguf"),
        (["--lora-scaled", "a.gguf:0.5", "-o", "half.gguf"], "half.gguf"),
    ] {
        let (out, _) =
            at.succeeds("llama-export-lora", &[&["-m", "model.gguf"], &words[..]].concat());
        assert_eq!(out, format!("done, output file is {file}\n"));
        assert_eq!(at.inspected(file)["tensors"].as_array().unwrap().len(), 39);
        assert_eq!(at.inspected(file)["file_type"], "F16");
    }
    // Merged tensors become F16, others keep their type.
    at.succeeds("llama-quantize", &["model.gguf", "q8.gguf", "q8_0"]);
    let words = ["-m", "q8.gguf", "--lora", "a.gguf", "-o", "half.gguf"];
    at.succeeds("llama-export-lora", &words);
    let types = at.inspected("half.gguf");
    let types = types["tensor_types"].as_object().unwrap();
    let counts = ["F16", "F32", "Q8_0"].map(|ty| types[ty]["tensors"].as_u64().unwrap());
    assert_eq!((counts[0] > 0, counts[1]), (true, 9), "{types:?}");
    assert_eq!(counts[0] + counts[2], 30, "{types:?}");
    let (_, err) = at.exits(1, "llama-export-lora", &["-m", "model.gguf"]);
    assert!(err.contains("the adapter is missing"), "{err}");
}

#[test]
fn gguf_dump() {
    let at = Linked::new();
    let (out, err) = at.succeeds("gguf-dump", &["model.gguf"]);
    assert_eq!(err, "INFO:gguf-dump:* Loading: model.gguf\n");
    let mut lines = out.lines();
    let first = "* File is LITTLE endian, script is running on a LITTLE endian host.";
    assert_eq!(lines.next(), Some(first));
    assert_eq!(lines.next(), Some("* Dumping 35 key/value pair(s)"));
    assert_eq!(lines.next(), Some("      1: UINT32     |        1 | GGUF.version = 3"));
    for line in [
        "     19: FLOAT32    |        1 | llama.attention.layer_norm_rms_epsilon = 9.999999747378752e-06",
        "     29: [STRING]   |     2048 | tokenizer.ggml.tokens = ['<unk>', '<s>', '</s>', '<0x00>', \
         '<0x01>', '<0x02>', ...]",
        "     34: BOOL       |        1 | tokenizer.ggml.add_bos_token = True",
        "* Dumping 39 tensor(s)",
        "      1:     524288 |   256,  2048,     1,     1 | F16     | output.weight",
    ] {
        assert!(out.lines().any(|found| found == line), "{line}\n{out}");
    }
    let (out, _) = at.succeeds("gguf-dump", &["--json", "model.gguf"]);
    let shown = json(&out);
    assert_eq!(shown["filename"], "model.gguf");
    let version = r#"{"filename": "model.gguf", "endian": "LITTLE", "metadata": {"GGUF.version": {"index": 0, "type": "UINT32", "offset": 4, "value": 3}, "#;
    assert!(out.starts_with(version), "{out}");
    assert_eq!(shown["metadata"]["llama.block_count"]["value"], 4);
    assert_eq!(shown["metadata"]["tokenizer.ggml.tokens"]["array_types"][0], "STRING");
    assert!(shown["metadata"]["tokenizer.ggml.tokens"].get("value").is_none());
    assert_eq!(shown["tensors"]["output.weight"]["shape"], serde_json::json!([256, 2048]));
    // The offset is that of the name, after its length.
    let offset = shown["tensors"]["output.weight"]["offset"].as_u64().unwrap() as usize;
    assert!(at.read("model.gguf")[offset + 8..].starts_with(b"output.weight"));
    let (out, _) =
        at.succeeds("gguf-dump", &["--json", "--json-array", "--no-tensors", "model.gguf"]);
    let shown = json(&out);
    assert_eq!(shown["metadata"]["tokenizer.ggml.tokens"]["value"].as_array().unwrap().len(), 2048);
    assert!(shown["tensors"].as_object().unwrap().is_empty());
    let (out, _) = at.succeeds("gguf-dump", &["--markdown", "model.gguf"]);
    assert!(out.starts_with("# model.gguf - GGUF Internal File Dump\n"), "{out}");
    assert!(out.contains("\n- Total elements in blk.0: (~787K) 786944\n"), "{out}");
    assert!(out.ends_with("Total BPW for model.gguf: 16.0088 bits\n"), "{out}");
    let (out, _) = at.succeeds("gguf-dump", &["--data-alignment", "model.gguf"]);
    assert_eq!(out, "32\n");
    at.succeeds("gguf-dump", &["--data-offset", "model.gguf"]);
    // Flags may be abbreviated; unknown arguments are wrong usage, as in Python.
    at.succeeds("gguf-dump", &["--mark", "model.gguf"]);
    at.exits(2, "gguf-dump", &["--jso", "model.gguf"]);
    at.exits(2, "gguf-dump", &["model.gguf", "model.gguf"]);
    at.exits(1, "gguf-dump", &["nothing.gguf"]);
    let (out, _) = at.succeeds("gguf-dump", &[]);
    assert!(out.starts_with("usage: gguf-dump [flags] model\n"), "{out}");
}

#[test]
fn gguf_set_metadata() {
    let at = Linked::new();
    let set = |code: i32, args: &[&str], answer: &str| {
        let args = [&["model.gguf"], args].concat();
        let output = at.call("gguf-set-metadata", &args, answer);
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let length = || at.inspected("model.gguf")["context_length"].clone();
    let before = at.read("model.gguf").len();
    let err = set(0, &["--force", "llama.context_length", "256"], "");
    let reported = "* Preparing to change field 'llama.context_length' from 512 to 256\n";
    assert!(
        err.contains(reported) && err.ends_with("* Field changed. Successful completion.\n"),
        "{err}"
    );
    assert_eq!((length(), at.read("model.gguf").len()), (256.into(), before));
    set(0, &["llama.context_length", "1", "--dry-run"], "");
    let err = set(0, &["llama.context_length", "1"], "yes\n");
    assert!(err.ends_with("You didn't enter YES. Okay then, see ya!\n"), "{err}");
    set(1, &["llama.context_length", "1"], "");
    assert_eq!(length(), 256);
    set(0, &["llama.context_length", "128"], "YES\n");
    assert_eq!(length(), 128);
    assert!(
        set(0, &["llama.context_length", "128"], "").contains("already set to requested value 128")
    );
    set(0, &["--force", "tokenizer.ggml.add_bos_token", "False"], "");
    assert_eq!(
        at.inspected("model.gguf")["metadata"]["tokenizer.ggml.add_bos_token"]["value"],
        false
    );
    assert!(
        set(1, &["--force", "no.such.key", "1"], "").contains("key `no.such.key` does not exist")
    );
    assert!(
        set(1, &["--force", "general.name", "x"], "").contains("`general.name` has type STRING")
    );
    set(1, &["--force", "llama.context_length", "many"], "");
    set(2, &["--force", "llama.context_length"], "");
}

#[test]
fn gguf_new_metadata() {
    let at = Linked::new();
    let new = |code: i32, args: &[&str], answer: &str| {
        let args = [args, &["model.gguf", "new.gguf"]].concat();
        let output = at.call("gguf-new-metadata", &args, answer);
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {err}");
        err
    };
    let key = |key: &str| at.inspected("new.gguf")["metadata"][key]["value"].clone();
    new(0, &["--general-name", "My model"], "");
    assert_eq!(key("general.name"), "My model");
    // Asks before overwriting or removing.
    let err = new(0, &["--general-name", "Another"], "no\n");
    assert!(err.contains("The \"new.gguf\" GGUF file already exists"), "{err}");
    assert_eq!(key("general.name"), "My model");
    new(0, &["--general-name", "Another"], "YES\n");
    assert_eq!(key("general.name"), "Another");
    new(0, &["--remove-metadata", "general.name"], "no\n");
    assert_eq!(key("general.name"), "Another");
    let removed = ["--force", "--remove-metadata", "general.name", "--remove-metadata", "nothing"];
    new(0, &removed, "");
    assert_eq!(key("general.name"), Value::Null);
    let templates =
        r#"[{"name": "default", "template": "a"}, {"name": "tool use", "template": "b"}]"#;
    std::fs::write(at.path("config.json"), format!(r#"{{"chat_template": {templates}}}"#)).unwrap();
    new(0, &["--force", "--chat-template-config", "config.json"], "");
    assert_eq!(key("tokenizer.chat_template"), "a");
    assert_eq!(key("tokenizer.chat_template.tool_use"), "b");
    assert_eq!(key("tokenizer.chat_templates"), serde_json::json!(["tool_use"]));
    let tokens = ["--special-token", "eos", "<unk>", "--special-token-by-id", "padding", "5"];
    new(0, &[&["--force"], &tokens[..]].concat(), "");
    assert_eq!(
        (key("tokenizer.ggml.eos_token_id"), key("tokenizer.ggml.padding_token_id")),
        (0.into(), 5.into())
    );
    let err = new(0, &["--force", "--special-token", "nope", "x"], "");
    assert!(err.contains("Unknown special token \"nope\", ignoring..."), "{err}");
    new(1, &["--force", "--special-token", "bos", "no such token"], "");
    new(1, &["--force", "--special-token-by-id", "bos", "2048"], "");
    // Inputs are never overwritten.
    let before = at.read("model.gguf");
    at.exits(2, "gguf-new-metadata", &["--force", "model.gguf", "model.gguf"]);
    assert_eq!(at.read("model.gguf"), before);
}

#[test]
fn gguf_convert_endian() {
    let at = Linked::new();
    let before = at.read("model.gguf");
    at.succeeds("gguf-convert-endian", &["model.gguf", "big", "--dry-run"]);
    let output = at.call("gguf-convert-endian", &["model.gguf", "big"], "no\n");
    assert!(output.status.success() && at.read("model.gguf") == before);
    at.exits(1, "gguf-convert-endian", &["model.gguf", "big"]);
    assert_eq!(at.read("model.gguf"), before);
    for (order, same) in [("big", false), ("little", true)] {
        let output = at.call("gguf-convert-endian", &["model.gguf", order], "YES\n");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && err.contains("* Completion"), "{err}");
        assert_eq!(at.read("model.gguf") == before, same, "{order}");
    }
    at.exits(2, "gguf-convert-endian", &["model.gguf", "middle", "--dry-run"]);
}

#[test]
fn converters() {
    let at = Linked::new();
    let (_, err) = at.succeeds(
        "convert_hf_to_gguf.py",
        &[MODEL, "--outfile", "x-{ftype}.gguf", "--outtype", "q8_0", "--use-temp-file"],
    );
    assert!(err.contains("note: --use-temp-file is ignored: conversion always streams"), "{err}");
    assert!(err.ends_with("INFO:hf-to-gguf:Model successfully exported to x-q8_0.gguf\n"), "{err}");
    assert_eq!(at.inspected("x-q8_0.gguf")["file_type"], "Q8_0");
    // The name contains the chosen type; existing outputs are overwritten.
    for _ in 0..2 {
        at.succeeds("convert_hf_to_gguf.py", &[MODEL, "--outfile=x-{ftype}.gguf", "--no-lazy"]);
    }
    assert!(at.has("x-f16.gguf") && !at.has("x-auto.gguf"));
    // Regression: another name was said to be written.
    let (_, err) = at.succeeds("convert_hf_to_gguf.py", &[MODEL, "--outfile=y-{ftype}.gguf"]);
    assert!(err.ends_with("exported to y-f16.gguf\n") && !err.contains("wrote"), "{err}");
    let (out, _) =
        at.succeeds("convert_hf_to_gguf.py", &[MODEL, "--dry-run", "--outfile", "dry.gguf"]);
    assert!(out.contains("would write dry.gguf") && !at.has("dry.gguf"), "{out}");
    let (_, err) = at.exits(2, "convert_hf_to_gguf.py", &[MODEL, "--dspark"]);
    assert!(err.contains("convert_hf_to_gguf.py: --dspark: "), "{err}");
    let (_, err) = at.exits(2, "convert_hf_to_gguf.py", &[]);
    assert!(err.contains("model is missing"), "{err}");
    at.exits(1, "convert_hf_to_gguf.py", &["nothing"]);

    let adapter = adapter(&at.dir);
    let words = [adapter.as_str(), "--base", MODEL, "--outfile", "adapter-{ftype}.gguf"];
    let (_, err) = at.succeeds("convert_lora_to_gguf.py", &words);
    assert!(err.contains("Model successfully exported to adapter-f32.gguf"), "{err}");
    assert_eq!(at.inspected("adapter-f32.gguf")["metadata"]["general.type"]["value"], "adapter");
}

#[test]
fn aliases_are_commands() {
    let dir = Dir::new();
    let model = dir.f16();
    assert!(succeeds(&["dump", "--no-tensors", &model]).contains("* Dumping 35 key/value pair(s)"));
    assert_eq!(succeeds(&["gguf-dump", "--data-alignment", &model]), "32\n");
    for word in ["info", "show", "ls"] {
        assert_eq!(succeeds(&[word, &model]), succeeds(&["inspect", &model]), "{word}");
    }
    let (text, out) = (dir.path("text.txt"), dir.path("out.gguf"));
    std::fs::write(&text, "In the beginning God created the heaven. ".repeat(40)).unwrap();
    let words = [model.as_str(), "-f", &text, "-c", "64", "--chunks", "2"];
    let ppl = |word| succeeds(&[&[word], &words[..]].concat());
    assert_eq!(ppl("ppl"), ppl("perplexity"));
    succeeds(&["llama-quantize", &model, &out, "q8_0"]);
    succeeds(&["set-metadata", "--force", &out, "llama.context_length", "64"]);
    assert_eq!(json(&succeeds(&["inspect", &out, "--json"]))["context_length"], 64);
    succeeds(&["new-metadata", "--force", &model, &out, "--general-name", "New"]);
    assert_eq!(json(&succeeds(&["inspect", &out, "--json"]))["name"], "New");
    assert!(succeeds(&["gguf-split", "--dry-run", &model, &out]).starts_with("n_split: 1\n"));
    // Aliases are not listed.
    let help = succeeds(&["--help"]);
    assert!(!help.contains("set-metadata") && help.contains("links"), "{help}");
    let output = gguf(&["llama-quantize", "--help"]);
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && help.contains("\nExample:\n  llama-quantize "), "{help}");
    assert!(help.contains("  --pure "), "{help}");
}

/// llama.cpp's own programs take variables of the environment for flags.
#[test]
fn environment_variables_set_flags() {
    let at = Linked::new();
    let run = |name: &str, variables: &[(&str, &str)], args: &[&str]| {
        let mut command = Command::new(at.path(&format!("bin/{name}")));
        command.args(args).current_dir(at.path("")).envs(variables.iter().copied());
        let output = command.output().unwrap();
        let output_text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), output_text(output.stdout), output_text(output.stderr))
    };
    let ids = ["-p", "In", "--ids"];
    let (model, other) = (("LLAMA_ARG_MODEL", "model.gguf"), ("LLAMA_ARG_MODEL", "other.gguf"));
    let (wanted, _) = at.succeeds("llama-tokenize", &[&["-m", "model.gguf"], &ids[..]].concat());
    let (code, out, output_text) = run("llama-tokenize", &[model], &ids);
    assert_eq!((code, out), (Some(0), wanted.clone()), "{output_text}");
    // Flags take precedence, including others that set the model location.
    let (_, out, _) = run("llama-tokenize", &[other], &[&["-m", "model.gguf"], &ids[..]].concat());
    assert_eq!(out, wanted);
    let (code, _, output_text) =
        run("llama-tokenize", &[model], &[&["-mu", "ftp://x"], &ids[..]].concat());
    assert!(code == Some(1) && output_text.contains("ftp://x"), "{output_text}");
    let rope = ("LLAMA_ARG_ROPE_SCALE", "2");
    let (code, _, output_text) = run("llama-imatrix", &[model, rope], &["-f", "text"]);
    assert!(
        code == Some(1) && output_text.contains("LLAMA_ARG_ROPE_SCALE: edit a copy"),
        "{output_text}"
    );
    // The program runs no model, so the variable is ignored.
    assert_eq!(run("llama-tokenize", &[model, rope], &ids).1, wanted);
    let (_, _, output_text) =
        run("llama-imatrix", &[model, ("LLAMA_ARG_THREADS", "x")], &["-f", "text"]);
    assert!(output_text.contains("--threads: `x` is not a valid number"), "{output_text}");
    // This program has its own argument parser.
    let (code, _, output_text) = run("llama-quantize", &[model], &["q8_0"]);
    assert!(code == Some(1) && output_text.contains("TYPE is missing"), "{output_text}");
}

#[test]
fn documentation_matches_the_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compatibility.md");
    let page = std::fs::read_to_string(&path).unwrap();
    const START: &str = "<!-- Tables of `gguf links --page`. -->\n\n";
    let (words, tables) = page.split_once(START).unwrap();
    let result = succeeds(&["links", "--page"]);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, format!("{words}{START}{result}")).unwrap();
    } else {
        assert!(tables == result, "run the tests with UPDATE=1");
    }
}
