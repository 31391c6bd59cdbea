//! Validates the output of `--json` against the schemas in `docs/json/`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use crate::cli::quantize::imatrix;
use crate::cli::signatures::{KEY, PUBLIC};
use crate::cli::support::{Dir, MODEL, gguf, json, succeeds};
use crate::server::{Reply, Server};
use crate::upload_hub::answer;
use crate::whisper;

const SCHEMAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json");

/// Returns all schemas, and their indices by name, such as `gguf-kit/inspect/2`.
fn schemas() -> (Schemas, BTreeMap<String, SchemaIndex>) {
    let mut schemas = Schemas::new();
    let mut compiler = Compiler::new();
    let mut indices = BTreeMap::new();
    for entry in fs::read_dir(SCHEMAS).unwrap() {
        let path = entry.unwrap().path();
        let schema = json(&fs::read_to_string(&path).unwrap());
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let (name, version) = stem.rsplit_once('-').unwrap();
        let name = format!("gguf-kit/{name}/{version}");
        assert_eq!(schema["title"], name);
        // A list has no `schema` field.
        assert!(
            schema["type"] == "array" || schema["properties"]["schema"]["const"] == name,
            "{name}"
        );
        compiler.add_resource(stem, schema).unwrap();
        indices.insert(name, compiler.compile(stem, &mut schemas).unwrap());
    }
    (schemas, indices)
}

/// Parses the documents of an output: one, or one per line.
fn documents(stdout: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stdout).unwrap();
    let stream = serde_json::Deserializer::from_str(text).into_iter();
    stream.map(|document| document.unwrap_or_else(|fault| panic!("{fault}: {text}"))).collect()
}

/// Commands that print JSON. Upper-case words are files.
const COMMANDS: &[&str] = &[
    "inspect F16 --json",
    "inspect F16 --json --keys",
    "inspect F16 --json --tensors --arrays",
    "inspect SHARD --json",
    "inspect F16 --json --memory --values token_embd.weight:2",
    "inspect F16 --json --tensors --diffable",
    "inspect CHECKPOINT --json",
    "chat-template CHAT --json",
    "chat-template CHAT --messages MESSAGES --json",
    "tokenize F16 hello --json",
    "detokenize F16 1 2 3 --json",
    "list --json",
    "check F16 --json",
    "check F16 --json --data --strict",
    "check BAD --json",
    "check F16 --json --against hf:org/repo:f16.gguf",
    "name m-7B-v1.0-F16.gguf odd --json",
    "name m-7B-v1.0-F16.gguf --json",
    "name F16 --canonical --json",
    "hash F16 --json",
    "hash F16 --json --check MANIFEST",
    "hash F16 --json --check TEXT",
    "diff F16 Q4 --json",
    "diff F16 EDITED --json",
    "diff F16 F16 --json",
    "verify Q4 --source CHECKPOINT --json",
    "verify Q4 --source Q8 --json",
    "sign F16 --key KEY -o SIGNATURE --json",
    "verify F16 --signature SIGNATURE --public-key PUBLIC --json",
    "check F16 --scan --json",
    "recipe Q4 --json",
    "graph F16 --json",
    "graph F16 --json --measure",
    "edit F16 --dry-run --json --set a=b --remove general.name --set llama.block_count=4",
    "edit F16 --dry-run --json --drop blk.1 --graft F16:blk.2 --rename-tensor output.weight=other",
    "convert-endian F16 big --dry-run --json",
    "edit F16 --set general.name=b -o OUT4 --json",
    "edit EDITED --set general.name=c --json",
    "edit EDITED --set general.name=c --json",
    "convert-endian F16 big -o OUT5 --json",
    "split F16 OUT --dry-run --json",
    "split F16 OUT --json",
    "merge SHARD OUT6 --dry-run --json",
    "merge SHARD OUT6 --json",
    "export F16 --to safetensors OUT7 --json",
    "export F16 OUT8 --json",
    "lora merge F16 ADAPTER -o OUT9 --json",
    "convert CHECKPOINT --outtype q8_0,q4_0 -o DIR --dry-run --json",
    "convert CHECKPOINT --outtype q8_0 -o OUT1 --json",
    "convert OLD -o OUT --dry-run --json",
    "quantize F16 OUT q4_0 --dry-run --json",
    "quantize F16 --out q4_0=OUT2 --out q8_0=OUT3 --json",
    "imatrix --in-file IMATRIX --json",
    "lora check F16 ADAPTER --json",
    "lora extract F16 OTHER --rank 2 -o ADAPTER2 --json",
    "perplexity F16 Q4 -f TEXT -c 32 --chunks 2 --json",
    "perplexity F16 -f QUESTIONS --hellaswag --json",
    "divergence -r F16 Q4 -f TEXT -c 32 --chunks 2 --worst 2 --json",
    "bench F16 -p 8 -n 4 -r 1 --json",
    "recommend F16 --memory 1G --json",
    "generate F16 -p In -n 3 --json",
    "embed F16 -p In --pooling mean --json",
    "embed F16 -p In --pooling none",
    "tokenize F16 -f LINES --jsonl",
    "quality F16 --types q8_0 -f TEXT -c 32 --chunks 1 --no-speed --json",
    "sensitivity F16 --types q8_0 --by block -f TEXT -c 32 --chunks 1 --json",
    "links DIR --json",
    "card REPOSITORY --json",
    "list --json",
    "upload TEXT hf:me/repo --json",
    "demo CHECKPOINT --json",
    "transcribe WHISPER SOUND --json --no-fallback",
    // Errors of a library, the command line, clap and the environment.
    "inspect BAD --json",
    "inspect MISSING --json",
    "inspect F16 --json --no-such-flag",
    "diff F16 --json",
    "quantize F16 Q4 q4_0 --json",
    "quantize F16 q4km --json",
    "quantize Q4 OUT q6_k --json",
    "merge F16 --json",
];

fn files(dir: &Dir) -> BTreeMap<&'static str, String> {
    let f16 = dir.f16();
    let path = |name: &str| dir.path(name);
    succeeds(&["quantize", &f16, &path("q4.gguf"), "q4_k_m"]);
    succeeds(&["quantize", &f16, &path("q8.gguf"), "q8_0"]);
    succeeds(&["edit", &f16, "--set", "general.name=x", "--drop", "attn_q", "-o", &path("e.gguf")]);
    succeeds(&["split", &f16, &path("s"), "--split-max-tensors", "30"]);
    fs::write(path("bad.gguf"), b"not a model at all").unwrap();
    fs::write(path("manifest"), succeeds(&["hash", &f16])).unwrap();
    fs::write(path("text"), include_str!("../../../../../ARCHITECTURE.md")).unwrap();
    fs::write(path("whisper.gguf"), whisper::model()).unwrap();
    fs::write(path("sound.wav"), whisper::sound(1.0)).unwrap();
    fs::write(path("lines"), "\"In\"\n\"the beginning\"\n").unwrap();
    let question = "A person reads\n0\nsome\nwords\nof\nit\n".repeat(2);
    fs::write(path("questions"), question).unwrap();
    let old = crate::legacy_files::llama(
        crate::legacy_files::GGJT,
        Some(3),
        64,
        crate::legacy_files::plain,
    );
    fs::write(path("old.bin"), old.bytes).unwrap();
    let template = "{{ messages[0].content }}";
    let template = format!("tokenizer.chat_template:str={template}");
    succeeds(&["edit", &f16, "--set", &template, "-o", &path("chat.gguf")]);
    fs::write(path("messages"), r#"[{"role": "user", "content": "Hi"}]"#).unwrap();
    fs::create_dir(path("dir")).unwrap();
    fs::create_dir(path("repository")).unwrap();
    fs::copy(path("q4.gguf"), path("repository/q4.gguf")).unwrap();
    let imatrix = imatrix(dir);
    fs::copy(&imatrix, path("repository/imatrix.gguf")).unwrap();
    let measured = ["quality", &f16, "--files", &path("q4.gguf"), "-f", &path("text")];
    let measured = [&measured[..], &["-c", "32", "--chunks", "1", "--no-speed", "--json"]].concat();
    fs::write(path("repository/report.json"), succeeds(&measured)).unwrap();
    let other = crate::cli::support::other_weights(dir);
    succeeds(&["lora", "extract", &f16, &other, "--rank", "1", "-o", &path("adapter.gguf")]);
    BTreeMap::from([
        ("F16", f16),
        ("Q4", path("q4.gguf")),
        ("Q8", path("q8.gguf")),
        ("CHAT", path("chat.gguf")),
        ("MESSAGES", path("messages")),
        ("EDITED", path("e.gguf")),
        ("SHARD", path("s-00001-of-00002.gguf")),
        ("BAD", path("bad.gguf")),
        ("MANIFEST", path("manifest")),
        ("TEXT", path("text")),
        ("QUESTIONS", path("questions")),
        ("OLD", path("old.bin")),
        ("DIR", path("dir")),
        ("OTHER", other),
        ("REPOSITORY", path("repository")),
        ("ADAPTER", path("adapter.gguf")),
        ("ADAPTER2", path("adapter2.gguf")),
        ("IMATRIX", imatrix),
        ("CHECKPOINT", MODEL.to_owned()),
        ("MISSING", path("missing.gguf")),
        ("OUT", path("out.gguf")),
        ("OUT1", path("out1.gguf")),
        ("OUT2", path("out2.gguf")),
        ("OUT3", path("out3.gguf")),
        ("OUT4", path("out4.gguf")),
        ("OUT5", path("out5.gguf")),
        ("OUT6", path("out6.gguf")),
        ("OUT7", path("out7.safetensors")),
        ("OUT8", path("out8")),
        ("SIGNATURE", path("signature")),
        ("KEY", KEY.to_owned()),
        ("PUBLIC", PUBLIC.to_owned()),
        ("OUT9", path("out9.gguf")),
        ("LINES", path("lines")),
        ("WHISPER", path("whisper.gguf")),
        ("SOUND", path("sound.wav")),
    ])
}

/// Returns the arguments of a command, with files filled in.
fn words(command: &str, files: &BTreeMap<&str, String>) -> Vec<String> {
    let place = |word: &str| match word.split_once('=') {
        Some((name, file)) if files.contains_key(file) => format!("{name}={}", files[file]),
        _ => files.get(word).cloned().unwrap_or_else(|| word.to_owned()),
    };
    command.split(' ').map(place).collect()
}

#[test]
fn every_document_matches_its_schema() {
    let dir = Dir::new();
    let files = files(&dir);
    let (schemas, indices) = schemas();
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    let hub = Server::start(|request| answer(request).unwrap_or_else(|| Reply::status(404)));
    for command in COMMANDS {
        let words = words(command, &files);
        let mut program = Command::new(env!("CARGO_BIN_EXE_gguf"));
        program.env("HF_ENDPOINT", hub.url("")).env("HF_TOKEN", "hf_secret");
        program.env("XDG_CACHE_HOME", dir.path("cache")).env("HF_HOME", dir.path("cache"));
        let output = program.args(words).output().unwrap();
        let documents = documents(&output.stdout);
        if documents.is_empty() {
            let output_text = String::from_utf8_lossy(&output.stderr);
            wrong.push(format!("{command}: prints nothing: {output_text}"));
        }
        if let Some(dump) = std::env::var_os("GGUF_DUMP_DOCUMENTS") {
            let name = command.replace([' ', '/'], "_");
            fs::write(Path::new(&dump).join(name), &output.stdout).unwrap();
        }
        for document in &documents {
            let name = match document {
                Value::Array(_) => "gguf-kit/tokenize/1",
                document => document["schema"].as_str().unwrap_or("no schema"),
            };
            seen.insert(name.to_owned());
            let Some(index) = indices.get(name) else {
                wrong.push(format!("{command}: {name} is not in docs/json/"));
                continue;
            };
            if let Err(fault) = schemas.validate(document, *index) {
                wrong.push(format!("{command}: {fault}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Every schema was tested.
    let untried: Vec<_> = indices.keys().filter(|name| !seen.contains(*name)).collect();
    assert!(untried.is_empty(), "{untried:?}");
}

#[test]
fn every_json_command_is_tested_and_documented() {
    let page = fs::read_to_string(Path::new(SCHEMAS).with_extension("md")).unwrap();
    for command in crate::cli::commands::commands() {
        let help = crate::cli::commands::help(&command);
        if !help.lines().any(|line| line.split_whitespace().next() == Some("--json")) {
            continue;
        }
        // Prints the document of the merged command.
        let is_own = command == "eval-merge";
        let is_tried = COMMANDS.iter().any(|words| words.starts_with(&format!("{command} ")));
        assert!(is_own || is_tried, "gguf {command} --json is not tried");
        assert!(page.contains(&format!("| `{command}`")), "docs/json.md has no row for {command}");
    }
    for name in schemas().1.keys() {
        let file = name.trim_start_matches("gguf-kit/").replace('/', "-");
        assert!(
            page.contains(&format!("(json/{file}.json)")),
            "docs/json.md has no link to {file}"
        );
    }
}

/// Errors are JSON documents.
#[test]
fn errors_are_documents() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let error = |words: &[&str]| {
        let output = gguf(words);
        let [document] = &documents(&output.stdout)[..] else { panic!("{words:?}") };
        assert_eq!(document["error"]["exit_code"], output.status.code().unwrap());
        assert!(!output.stderr.is_empty(), "standard error is empty: {words:?}");
        document["error"].clone()
    };
    let exists = error(&["quantize", &f16, &f16, "q8_0", "--json"]);
    assert_eq!((&exists["fault"], &exists["exit_code"]), (&"caller".into(), &2.into()));
    let missing = dir.path("missing.gguf");
    let gone = error(&["inspect", &missing, "--json"]);
    assert_eq!(gone["code"], "environment");
    assert_eq!(gone["file"], missing.as_str());
    let bad = dir.path("bad.gguf");
    fs::write(&bad, b"not a model at all").unwrap();
    let bad_one = error(&["inspect", &bad, "--json"]);
    assert_eq!((&bad_one["code"], &bad_one["fault"]), (&"magic".into(), &"input".into()));
    assert_eq!((&bad_one["file"], &bad_one["offset"]), (&bad.as_str().into(), &0.into()));
    assert!(!bad_one["help"].as_str().unwrap().is_empty());
    let usage = error(&["inspect", "--json"]);
    assert_eq!(usage["code"], "usage");
    let message = usage["message"].as_str().unwrap();
    assert_eq!(message, "SOURCE is missing: expected a model, as in gguf inspect model.gguf");
    // The tip of the argument parser is the help.
    let misspelled = error(&["inspect", &f16, "--tensor", "--json"]);
    assert_eq!(misspelled["message"], "unexpected argument '--tensor' found");
    assert_eq!(misspelled["help"], "a similar argument exists: '--tensors'");
    let unknown = error(&["quantize", &f16, "q4km", "--json"]);
    assert!(unknown["message"].as_str().unwrap().ends_with("did you mean Q4_K_M?"));
    let twice = error(&["convert", MODEL, "--outtype", "q9", "--json"]);
    assert_eq!((&twice["code"], &twice["key"]), (&"usage".into(), &Value::Null));
}
