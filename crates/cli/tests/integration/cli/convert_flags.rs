//! Every flag of `gguf convert` has an effect or is refused, for every kind of source.

use std::collections::BTreeMap;
use std::path::Path;

use gguf_quantize::imatrix::{Entry, Imatrix};
use serde_json::json;

use crate::cli::support::{Dir, adapter, fails, gguf, succeeds};
use crate::legacy_files;

/// Kinds of sources, with the letters used in `goes_with`.
const KINDS: [(char, &str); 4] =
    [('c', "checkpoint"), ('a', "adapter"), ('l', "lone.safetensors"), ('o', "old.bin")];

/// Flag with the kinds of sources that it applies to, and arguments without and with it. `{...}` is a file
/// beside the sources.
struct Flag {
    name: &'static str,
    goes_with: &'static str,
    without: &'static [&'static str],
    with: &'static [&'static str],
}

const fn flag(
    name: &'static str,
    goes_with: &'static str,
    without: &'static [&'static str],
    with: &'static [&'static str],
) -> Flag {
    Flag { name, goes_with, without, with }
}

const FLAGS: &[Flag] = &[
    flag("architecture", "lo", &[], &["gpt2"]),
    flag("output", "calo", &["--dry-run"], &["{elsewhere.gguf}"]),
    flag("outtype", "calo", &[], &["bf16"]),
    flag("split-max-tensors", "calo", &["--force"], &["1"]),
    flag("split-max-size", "calo", &["--force"], &["1K"]),
    flag("no-tensor-first-split", "calo", &["--force"], &[]),
    flag("part", "calo", &["--force"], &["2/2"]),
    flag("vocab-only", "c", &[], &[]),
    flag("bigendian", "calo", &[], &[]),
    flag("pure", "clo", &[], &[]),
    flag("leave-output-tensor", "clo", &[], &[]),
    flag("output-tensor-type", "clo", &[], &["f16"]),
    flag("token-embedding-type", "clo", &[], &["f16"]),
    flag("tensor-type", "clo", &[], &["attn_q=q8_0"]),
    flag("tensor-type-file", "clo", &[], &["{types.txt}"]),
    flag("imatrix", "clo", &[], &["{imatrix.gguf}"]),
    flag("include-weights", "clo", &["--imatrix", "{imatrix.gguf}"], &["attn_q"]),
    flag("exclude-weights", "clo", &["--imatrix", "{imatrix.gguf}"], &["attn_q"]),
    flag("imatrix-missing", "clo", &["--tensor-type", "ffn_down=iq2_xxs"], &["uniform"]),
    flag("calibrate", "c", &[], &["{text.txt}"]),
    flag("calibrate-ctx", "c", &["--calibrate", "{text.txt}"], &["64"]),
    flag("calibrate-tokens", "c", &["--calibrate", "{text.txt}"], &["512"]),
    flag("effort", "c", &[], &[]),
    flag("calibration-data", "c", &[], &["{hessian.gguf}"]),
    flag("override-kv", "calo", &[], &["mine=int:7"]),
    flag("pre", "", &[], &["llama-bpe"]),
    flag("model-name", "calo", &[], &["Another"]),
    flag("base", "a", &[], &["{checkpoint}"]),
    flag("metadata", "ca", &[], &["{meta.json}"]),
    flag("provenance", "c", &[], &[]),
    flag("like", "ca", &[], &["BloomForCausalLM"]),
    flag("reserve", "calo", &[], &["4K"]),
    flag("dry-run", "calo", &[], &[]),
    flag("json", "calo", &["--dry-run"], &[]),
    flag("force", "calo", &[], &[]),
    flag("metadata-dir", "o", &[], &["{config}"]),
    flag("context-length", "o", &[], &["77"]),
    flag("eps", "o", &[], &["0.01"]),
    flag("rope-base", "o", &[], &["5000"]),
    flag("gqa", "o", &[], &["3"]),
    flag("head-count", "o", &[], &["2"]),
];

/// Flags tested elsewhere (`conversion.rs`, `help.rs`).
const ELSEWHERE: [&str; 7] =
    ["mmproj", "target-model-dir", "out", "resume", "threads", "print-supported-models", "quiet"];

/// Writes sources of every kind, with one block each.
fn sources(dir: &Dir) {
    let (whole, short) = (dir.f16(), dir.path("short.gguf"));
    succeeds(&["quantize", "--prune-layers", "1,2,3", &whole, &short, "copy"]);
    succeeds(&["export", &short, &dir.path("checkpoint")]);
    let lone = dir.path("lone.safetensors");
    succeeds(&["export", &short, "--to", "safetensors", "--keep-names", &lone]);
    let old = legacy_files::llama(legacy_files::GGJT, Some(3), 64, legacy_files::plain);
    std::fs::write(dir.path("old.bin"), old.bytes).unwrap();

    let text = dir.path("text.txt");
    let licence = concat!(env!("CARGO_MANIFEST_DIR"), "/../../LICENSE-APACHE");
    std::fs::copy(licence, &text).unwrap();
    let moments = dir.path("hessian.gguf");
    succeeds(&["imatrix", &short, "-f", &text, "--hessian", "-c", "64", "-o", &moments]);

    adapter(dir);
    std::fs::write(dir.path("types.txt"), "attn_v=q8_0\n").unwrap();
    std::fs::write(dir.path("meta.json"), r#"{"general.author": "Somebody"}"#).unwrap();
    std::fs::create_dir(dir.path("config")).unwrap();
    let config = json!({ "rope_theta": 5000.0, "hidden_size": 64, "num_hidden_layers": 1 });
    std::fs::write(dir.path("config/config.json"), config.to_string()).unwrap();
}

/// Writes an importance matrix for two matrices with this number of columns.
fn imatrix(path: &str, columns: usize) {
    let sums: Vec<f32> = (0..columns).map(|i| (1 + i % 7 * 100) as f32).collect();
    let entry = Entry { sums, counts: vec![3] };
    let names = ["attn_q", "attn_k"].map(|name| (format!("blk.0.{name}.weight"), entry.clone()));
    let (datasets, entries) = (vec!["text".into()], BTreeMap::from(names));
    Imatrix { datasets, chunk_count: 1, chunk_size: Some(3), fingerprint: None, entries }
        .write_gguf(Path::new(path), &gguf_store::Overwrite::new(gguf_store::Existing::Replace))
        .unwrap();
}

/// Result of a run: exit code, messages and written files.
type Outcome = (Option<i32>, String, Option<Vec<u8>>);

fn run(dir: &Dir, source: &str, flag: &Flag, with: bool) -> Outcome {
    let output = dir.path("out.gguf");
    let _ = std::fs::remove_file(&output);
    let source_path = dir.path(source);
    let mut words = vec!["convert", &source_path];
    if flag.name != "output" {
        words.extend(["-o", &output]);
    }
    if flag.name != "outtype" {
        words.extend(["--outtype", if source == "adapter" { "f16" } else { "q4_0" }]);
    }
    if source == "lone.safetensors" && flag.name != "architecture" {
        words.extend(["--architecture", "llama"]);
    }
    let checkpoint = dir.path("checkpoint");
    if source == "adapter" && flag.name != "base" {
        words.extend(["--base", &checkpoint]);
    }
    words.extend(flag.without);
    let name = format!("--{}", flag.name);
    if with {
        words.push(&name);
        words.extend(flag.with);
    }
    if flag.name == "force" {
        std::fs::write(&output, "mine").unwrap();
    }
    let beside = |word: &&str| match word.strip_prefix('{') {
        Some(rest) => dir.path(rest.trim_end_matches('}')),
        None => (*word).to_owned(),
    };
    let words: Vec<String> = words.iter().map(beside).collect();
    let done = gguf(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let output_text =
        [done.stdout, done.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    // The last line contains the elapsed time.
    let output_text =
        output_text.lines().filter(|line| !line.starts_with("wrote ")).collect::<Vec<_>>();
    (done.status.code(), output_text.join("\n"), std::fs::read(&output).ok())
}

#[test]
fn no_flag_is_silently_ignored() {
    let dir = Dir::new();
    sources(&dir);
    let mut wrong = Vec::new();
    for flag in FLAGS {
        for (letter, source) in KINDS {
            imatrix(&dir.path("imatrix.gguf"), if letter == 'o' { 64 } else { 256 });
            let (without, with) = (run(&dir, source, flag, false), run(&dir, source, flag, true));
            let name = format!("--{}", flag.name);
            let mut given = flag.without.iter().copied().chain([name.as_str()]);
            let named = given.any(|word| word.starts_with("--") && with.1.contains(word));
            let is_refused = with.0 == Some(2) && named;
            let differs = without != with;
            let fits = match flag.goes_with.contains(letter) {
                true => differs && !with.1.contains("applies to"),
                false => is_refused,
            };
            if !fits {
                wrong.push(format!("{name} with {source}: {:?} {}", with.0, with.1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Every flag has a row in the table.
#[test]
fn every_flag_is_tried() {
    let help = succeeds(&["convert", "--help"]);
    let flags = help.lines().filter_map(|line| {
        let line = line.trim_start();
        let long =
            line.strip_prefix("--").or_else(|| line.split_once(", --").map(|(_, long)| long))?;
        let is_row = line.starts_with('-');
        is_row.then(|| long.split([' ', ',']).next().unwrap_or_default())
    });
    let mut flags: Vec<_> = flags
        // Global flags.
        .filter(|name| !["help", "color", "progress", "verbose"].contains(name))
        .collect();
    let mut tried: Vec<_> = FLAGS.iter().map(|flag| flag.name).chain(ELSEWHERE).collect();
    flags.sort_unstable();
    tried.sort_unstable();
    assert_eq!(flags, tried);
}

/// Also with other commands.
#[test]
fn conflicting_flags_are_refused() {
    let dir = Dir::new();
    let model = dir.f16();
    let out = dir.path("out");
    imatrix(&dir.path("imatrix.gguf"), 256);
    std::fs::write(dir.path("types.txt"), "attn_v=q8_0\n").unwrap();
    let commands: [(&str, &str); 11] = [
        (
            "export MODEL OUT --to safetensors --max-shard-size 1M",
            "--max-shard-size requires --to hf",
        ),
        ("split MODEL OUT --split-max-tensors 3 --split-max-size 1M", "--split-max-size"),
        ("quantize MODEL OUT copy --pure", "--pure needs a quantized type"),
        (
            "quantize MODEL OUT copy --tensor-type attn_q=q8_0",
            "--tensor-type needs a quantized type",
        ),
        (
            "quantize MODEL OUT copy --tensor-type-file types.txt",
            "--tensor-type-file needs a quantized type",
        ),
        ("quantize MODEL OUT copy --imatrix imatrix.gguf", "--imatrix needs a quantized type"),
        (
            "quantize MODEL OUT copy --output-tensor-type q8_0",
            "--output-tensor-type needs a quantized type",
        ),
        (
            "quantize MODEL OUT copy --token-embedding-type f32",
            "--token-embedding-type needs a quantized type",
        ),
        (
            "quantize MODEL OUT copy --leave-output-tensor",
            "--leave-output-tensor needs a quantized type",
        ),
        ("quantize MODEL OUT --target-bpw 6 --pure", "--pure"),
        ("quantize MODEL OUT --target-size 3M --pure", "--pure"),
    ];
    for (command, says) in commands {
        let place = |word: &str| match word {
            "MODEL" => model.clone(),
            "OUT" => out.clone(),
            _ if word.contains(".txt") || word.ends_with(".gguf") => dir.path(word),
            _ => word.to_owned(),
        };
        let words: Vec<String> = command.split(' ').map(place).collect();
        fails(&words.iter().map(String::as_str).collect::<Vec<_>>(), 2, &[says]);
        assert!(!Path::new(&out).exists(), "{command}");
    }
    let none = dir.path("none.safetensors");
    fails(&["convert", &none, "--architecture", "llama"], 3, &["none.safetensors"]);
    fails(
        &["convert", "hf:org/repo", "--architecture", "llama"],
        2,
        &["--architecture applies to"],
    );
    // With a second, quantized type they have an effect.
    let q8 = format!("q8_0={}", dir.path("q8.gguf"));
    let copy = format!("copy={}", dir.path("copy.gguf"));
    succeeds(&["quantize", &model, "--out", &q8, "--out", &copy, "--pure"]);
    // Header padding is present, also in a new file.
    let (small, large) = (dir.path("small.gguf"), dir.path("large.gguf"));
    succeeds(&["edit", &model, "--set", "a=b", "-o", &small]);
    succeeds(&["edit", &model, "--set", "a=b", "-o", &large, "--reserve", "1M"]);
    let len = |path: &str| Path::new(path).metadata().unwrap().len();
    assert!((1_000_000 - 64..=1_000_064).contains(&(len(&large) - len(&small))));
}

/// An invalid text file is an input error, not a usage or environment error.
#[test]
fn invalid_text_files_are_input_errors() {
    let dir = Dir::new();
    let (model, broken) = (dir.f16(), dir.path("broken.txt"));
    std::fs::write(&broken, [0x61, 0xff, 0x62]).unwrap();
    let says = ["broken.txt: is not valid UTF-8"];
    let out = dir.path("out.gguf");
    fails(&["quantize", &model, &out, "q8_0", "--tensor-type-file", &broken], 1, &says);
    fails(&["hash", &model, "--check", &broken], 1, &says);
    fails(&["edit", &model, "--chat-template-file", &broken], 1, &says);
    fails(&["edit", &model, "--set-file", &format!("a={broken}")], 1, &says);
    fails(&["hash", &model, "--check", &dir.path("none")], 3, &["none"]);
}
