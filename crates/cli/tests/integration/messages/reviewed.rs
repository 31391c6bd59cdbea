//! Messages for mistakes that people make, as snapshots in `../snapshots`.

use std::fs;

use crate::server::{Reply, Server};
use crate::transcripts::session::{MODEL, Session};
use crate::whisper;

/// Host name that no resolver knows.
const OFFLINE: (&str, &str) = ("HF_ENDPOINT", "http://no-such-host.invalid");

/// Copies the checkpoint of the small model under a name.
fn checkpoint(session: &Session, name: &str) {
    fs::create_dir(session.path(name)).unwrap();
    for entry in fs::read_dir(MODEL).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), session.path(name).join(entry.file_name())).unwrap();
    }
}

/// Changes a file of the session.
fn change(session: &Session, file: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(session.path(file)).unwrap();
    change(&mut bytes);
    fs::write(session.path(file), bytes).unwrap();
}

fn replace(session: &Session, file: &str, old: &str, new: &str) {
    change(session, file, |bytes| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.contains(old), "{file} has no {old}");
        *bytes = text.replace(old, new).into();
    });
}

#[test]
fn converting() {
    let mut session = Session::new();
    for name in ["bare", "shard", "pointer", "cut", "config", "unknown", "json", "rope"] {
        checkpoint(&session, name);
    }
    fs::remove_file(session.path("bare/tokenizer.model")).unwrap();
    fs::remove_file(session.path("shard/model.safetensors")).unwrap();
    let index = r#"{"weight_map": {"model.norm.weight": "model-00002-of-00003.safetensors"}}"#;
    fs::write(session.path("shard/model.safetensors.index.json"), index).unwrap();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n";
    fs::write(session.path("pointer/model.safetensors"), pointer).unwrap();
    change(&session, "cut/model.safetensors", |bytes| bytes.truncate(2_000_000));
    fs::remove_file(session.path("config/config.json")).unwrap();
    replace(&session, "unknown/config.json", "LlamaForCausalLM", "UnheardOfForCausalLM");
    fs::write(session.path("json/config.json"), "{\"architectures\": [").unwrap();
    replace(
        &session,
        "rope/config.json",
        "\"hidden_act\"",
        "\"rope_scaling\": {\"rope_type\": \"foo\", \"factor\": 2.0}, \"hidden_act\"",
    );
    fs::create_dir(session.path("empty")).unwrap();
    fs::create_dir(session.path("parent")).unwrap();
    fs::create_dir(session.path("parent/child")).unwrap();
    let refusing = Server::start(|_| Reply::status(401));
    let port = refusing.url("");
    session
        .run("convert bare -o x.gguf")
        .run("convert shard -o x.gguf")
        .run("convert pointer -o x.gguf")
        .run("convert cut -o x.gguf")
        .run("convert config -o x.gguf")
        .run("convert unknown -o x.gguf")
        .run("convert json -o x.gguf")
        .run("convert rope -o x.gguf")
        .run("convert empty -o x.gguf")
        .run("convert cut/model.safetensors -o x.gguf")
        .run("convert Qwen/Qwen3-0.6B -o x.gguf")
        .run_in(&[OFFLINE], "convert hf:org/repo -o x.gguf")
        .run_in(&[("HF_ENDPOINT", &port)], "convert hf:org/repo -o x.gguf")
        .run("convert parent -o x.gguf")
        .run("convert m.gguf -o x.gguf")
        .run("convert bare -o x.gguf --outtype q4_k_x")
        .run("convert bare -o x.gguf --outtype q4")
        .run("convert bare -o x.gguf --outtype int4")
        .run("convert bare -o no/such/x.gguf")
        .run("convert bare --type q8_0")
        .run("convert bare --quant q8_0")
        .run("convert bare --output-type q8_0")
        .run("convert bare --mmproj")
        .assert_matches("messages_converting");
}

#[test]
fn commands() {
    let mut session = Session::new();
    session
        .run("llama-cli")
        .run("serve")
        .run("chat")
        .run("upload")
        .run("pull")
        .run("ps")
        .run("quantise")
        .run("m.gguf")
        .run("org/model")
        .run("help kdl")
        .run("help server")
        .run("help foo")
        .assert_matches("messages_commands");
}

#[test]
fn quantizing() {
    let mut session = Session::new();
    fs::write(session.path("types.txt"), "attn_q").unwrap();
    session
        .run("quantize m.gguf")
        .run("quantize m.gguf x.gguf iq2_xxs")
        .run("quality m.gguf -f text.txt --types iq2_xxs")
        .run("llama-quantize m.gguf x.gguf iq2_xxs")
        .run("llama-quantize")
        .run("quantize q4.gguf x.gguf q8_0")
        .run("quantize m.gguf q4.gguf q8_0")
        .run("quantize m.gguf m.gguf q8_0 --force")
        .run("quantize m.gguf q4_k_m q8_0")
        .run("quantize m.gguf x.gguf q4_k_m --target-size 1M")
        .run("quantize m.gguf x.gguf --target-size 1M")
        .run("quantize m.gguf x.gguf --target-size 3X")
        .run("quantize m.gguf x.gguf q4_k_m --imatrix none.gguf")
        .run("quantize m.gguf x.gguf q4_k_m --imatrix m.gguf")
        .run("quantize m.gguf x.gguf q4_k_m --tensor-type fnn_down=q8_0 --dry-run")
        .run("quantize m.gguf x.gguf q4_k_m --tensor-type [=q8_0")
        .run("quantize m.gguf x.gguf q4_k_m --tensor-type attn_q")
        .run("quantize m.gguf x.gguf q4_k_m --tensor-type-file types.txt")
        .run("convert m --part 3/2")
        .run("quantize m.gguf x.gguf q4_k_m --threads two")
        .run("convert m --threads two")
        .run("bench m.gguf -r 0")
        .run("quantize m.gguf x.gguf q4_k_m --override-kv a=int:two")
        .run("quantize m.gguf x.gguf q4_k_m --override-kv a=bool:maybe")
        .assert_matches("messages_quantizing");
}

#[test]
fn running() {
    let mut session = Session::new();
    session.run("edit m.gguf -o nobos.gguf --set tokenizer.ggml.add_bos_token=false");
    session.run("edit m.gguf -o cut.gguf --set general.name=Cut");
    fs::copy(session.path("m.gguf"), session.path("nan.gguf")).unwrap();
    let model = gguf_store::Model::open(&session.path("nan.gguf")).unwrap();
    let at = model.index()["output_norm.weight"].offset as usize;
    drop(model);
    change(&session, "nan.gguf", |bytes| bytes[at..at + 4].copy_from_slice(&[0, 0, 0xc0, 0x7f]));
    change(&session, "cut.gguf", |bytes| bytes.truncate(5_000_000));
    fs::write(session.path("text.gguf"), "Entry not found").unwrap();
    fs::create_dir(session.path("two")).unwrap();
    for name in ["a.gguf", "b.gguf"] {
        fs::copy(session.path("m.gguf"), session.path("two").join(name)).unwrap();
    }
    checkpoint(&session, "checkpoint");
    session
        .run("generate m.gguf -p a --temp 0 -n 3 -ngl")
        .run("generate none.gguf -sys Pirate -p Hi")
        .run("generate none.gguf -p Hi -n -2")
        .run("generate -m none.gguf -p Hi")
        .run("bench -m none.gguf")
        .run("split -m none.gguf out")
        .run("generate m.gguf -p Hi --temp hot")
        .run("generate m.gguf -p Hi --temp -1")
        .run("generate m.gguf -p Hi --top-p 2")
        .run("generate m.gguf -p Hi --mirostat 2")
        .run("generate m.gguf -p Hi --json-schema {}")
        .run("generate m.gguf -p Hi --image cat.png")
        .run("generate m.gguf -p Hi -md draft.gguf")
        .run("generate m.gguf -hff x")
        .run("generate m.gguf --chat -p Hi")
        .run("generate nobos.gguf -p ''")
        .run("generate m.gguf -p 'In the beginning' -c 2")
        .run("generate nan.gguf -p Hi")
        .run("generate cut.gguf -p Hi")
        .run("generate text.gguf -p Hi")
        .run("generate two -p Hi")
        .run("generate checkpoint -p Hi")
        .run("check checkpoint")
        .run("edit checkpoint --set general.name=x")
        .run("view checkpoint --no-open")
        .run("tokenize m.gguf --jsonl -p x")
        .run("chat-template m.gguf --messages m.gguf")
        .assert_matches("messages_running");
}

#[test]
fn looking_and_editing() {
    let mut session = Session::new();
    session.run("split m.gguf part --split-max-tensors 20 --no-tensor-first-split");
    fs::create_dir(session.path("lone")).unwrap();
    let part = "part-00001-of-00003.gguf";
    fs::rename(session.path(part), session.path("lone").join(part)).unwrap();
    fs::write(session.path("broken.jinja"), "{% if %}").unwrap();
    fs::write(session.path("audio.txt"), "not audio").unwrap();
    fs::write(session.path("whisper.gguf"), whisper::model()).unwrap();
    fs::write(session.path("a.wav"), whisper::sound(1.0)).unwrap();
    session
        .run("inspect part-00002-of-00003.gguf")
        .run(&format!("generate lone/{part} -p Hi"))
        .run(&format!("inspect lone/{part} --keys general.name"))
        .run("inspect m.gguf --values blk.0.atn_q.weight")
        .run("inspect m.gguf --values blk.0.attn_q.weight:9999")
        .run("edit m.gguf --set general.alignment=abc")
        .run("edit m.gguf --special-token eos=<nothing>")
        .run("edit m.gguf --special-token-by-id eos=9999")
        .run("edit m.gguf --chat-template-file broken.jinja")
        .run("edit m.gguf --set general.nam=x")
        .run("inspect ftp://host/m.gguf")
        .run("inspect -")
        .run("inspect /dev/null")
        .run("transcribe whisper.gguf audio.txt")
        .run("transcribe m.gguf a.wav")
        .run_in(&[OFFLINE], "inspect hf:org/repo")
        .run("inspect https://no-such-host.invalid/m.gguf")
        .run("hash --file hf:org/repo")
        .assert_matches("messages_looking");
}
