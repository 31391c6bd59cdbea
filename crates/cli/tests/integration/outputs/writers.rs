//! All commands that write files, with small inputs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use gguf::{Header, RawHeader, Shape, TensorInfo, TensorType, write_header};
use gguf_quantize::imatrix::{Entry, Imatrix};
use gguf_store::Overwrite;

/// Small trained model.
pub const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");

/// Command that writes files.
pub struct Writer {
    /// Name in test messages.
    pub name: &'static str,
    /// Arguments after `gguf`.
    pub words: &'static str,
    /// Output files.
    pub outputs: &'static [&'static str],
    /// Input files.
    pub inputs: &'static [&'static str],
}

const fn writer(
    name: &'static str,
    words: &'static str,
    outputs: &'static [&'static str],
    inputs: &'static [&'static str],
) -> Writer {
    Writer { name, words, outputs, inputs }
}

/// Commands with separate outputs.
pub const WRITERS: &[Writer] = &[
    writer(
        "convert",
        "convert checkpoint --outtype q8_0 --metadata meta.json --tensor-type-file types.txt -o out.gguf",
        &["out.gguf"],
        &["checkpoint/model.safetensors", "checkpoint/config.json", "meta.json", "types.txt"],
    ),
    writer(
        "convert weights",
        "convert w.safetensors --architecture llama -o out.gguf",
        &["out.gguf"],
        &["w.safetensors"],
    ),
    writer(
        "convert, resumable",
        "convert checkpoint --resume --outtype q8_0 -o out.gguf",
        &["out.gguf"],
        &["checkpoint/model.safetensors", "checkpoint/config.json"],
    ),
    writer(
        "convert to several in shards",
        "convert w.safetensors --architecture llama --out q8_0=out.gguf --out f16=half.gguf \
         --split-max-tensors 2",
        &[
            "out-00001-of-00002.gguf",
            "out-00002-of-00002.gguf",
            "half-00001-of-00002.gguf",
            "half-00002-of-00002.gguf",
        ],
        &["w.safetensors"],
    ),
    writer("quantize", "quantize model.gguf out.gguf q8_0", &["out.gguf"], &["model.gguf"]),
    writer(
        "quantize with a recipe",
        "quantize --imatrix i.gguf --tensor-type-file types.txt --save-recipe recipe.txt \
         s-00002-of-00002.gguf out.gguf q8_0",
        &["out.gguf", "recipe.txt"],
        &["s-00001-of-00002.gguf", "s-00002-of-00002.gguf", "i.gguf", "types.txt"],
    ),
    writer(
        "quantize to several",
        "quantize model.gguf --out q8_0=out.gguf --out f16=half.gguf",
        &["out.gguf", "half.gguf"],
        &["model.gguf"],
    ),
    writer(
        "quantize a part",
        "quantize --part 2/2 model.gguf out.gguf q8_0",
        &["out-00002-of-00002.gguf"],
        &["model.gguf"],
    ),
    writer(
        "quantize, resumable",
        "quantize --resume model.gguf out.gguf q8_0",
        &["out.gguf"],
        &["model.gguf"],
    ),
    writer(
        "edit to another file",
        "edit model.gguf --graft tuned.gguf:attn_q --chat-template-file chat.jinja -o out.gguf",
        &["out.gguf"],
        &["model.gguf", "tuned.gguf", "chat.jinja"],
    ),
    writer(
        "split",
        "split model.gguf out --split-max-tensors 2",
        &["out-00001-of-00002.gguf", "out-00002-of-00002.gguf"],
        &["model.gguf"],
    ),
    writer(
        "merge",
        "merge s-00001-of-00002.gguf out.gguf",
        &["out.gguf"],
        &["s-00001-of-00002.gguf", "s-00002-of-00002.gguf"],
    ),
    writer(
        "convert-endian",
        "convert-endian model.gguf big -o out.gguf",
        &["out.gguf"],
        &["model.gguf"],
    ),
    writer(
        "export to safetensors",
        "export model.gguf --to safetensors --keep-names out.safetensors",
        &["out.safetensors"],
        &["model.gguf"],
    ),
    writer("imatrix", "imatrix --in-file i.gguf -o out.gguf", &["out.gguf"], &["i.gguf"]),
    writer("imatrix, legacy", "imatrix --in-file i.gguf -o out.dat", &["out.dat"], &["i.gguf"]),
    writer(
        "lora merge",
        "lora merge model.gguf adapter.gguf -o out.gguf",
        &["out.gguf"],
        &["model.gguf", "adapter.gguf"],
    ),
    writer(
        "lora extract",
        "lora extract model.gguf tuned.gguf --rank 2 -o out.gguf",
        &["out.gguf"],
        &["model.gguf", "tuned.gguf"],
    ),
    writer("graph --store", "graph whole.gguf --store -o out.gguf", &["out.gguf"], &["whole.gguf"]),
    writer("graph --svg", "graph whole.gguf --svg out.svg", &["out.svg"], &["whole.gguf"]),
    writer("logits", "logits whole.gguf --ids 1,2 -o out.npy", &["out.npy"], &["whole.gguf"]),
    writer(
        "embed",
        "embed whole.gguf -p a --pooling mean --output out.npy",
        &["out.npy"],
        &["whole.gguf"],
    ),
    writer(
        "transcribe",
        "transcribe whisper.gguf sound.wav -o out.txt",
        &["out.txt"],
        &["whisper.gguf", "sound.wav"],
    ),
    writer(
        "perplexity --save-logits",
        "perplexity whole.gguf -f chat.jinja -c 8 --chunks 2 --save-logits out.logits",
        &["out.logits"],
        &["whole.gguf", "chat.jinja"],
    ),
    writer(
        "perplexity --part",
        "perplexity whole.gguf -f chat.jinja -c 8 --chunks 2 --part 1/2 -o out.part",
        &["out.part"],
        &["whole.gguf", "chat.jinja"],
    ),
    writer(
        "divergence, kept",
        "divergence -r whole.gguf whole.gguf -f chat.jinja -c 8 --chunks 2 -o out.part",
        &["out.part"],
        &["whole.gguf", "chat.jinja"],
    ),
    writer(
        "divergence --save-logits",
        "divergence -r whole.gguf whole.gguf -f chat.jinja -c 8 --chunks 2 --save-logits out.logits",
        &["out.logits"],
        &["whole.gguf", "chat.jinja"],
    ),
    writer(
        "imatrix of a text",
        "imatrix whole.gguf -f chat.jinja -c 8 --chunks 2 -o out.gguf",
        &["out.gguf"],
        &["whole.gguf", "chat.jinja"],
    ),
    writer(
        "calibration-text",
        "calibration-text whole.gguf --tokens 32 -o out.txt",
        &["out.txt"],
        &["whole.gguf"],
    ),
    writer(
        "imatrix --part",
        "imatrix whole.gguf -f chat.jinja -c 8 --chunks 2 --part 2/2 -o out.part",
        &["out.part"],
        &["whole.gguf", "chat.jinja"],
    ),
    writer("eval-merge", "eval-merge i.part -o out.gguf", &["out.gguf"], &["i.part"]),
    writer("view", "view model.gguf --export out.html", &["out.html"], &["model.gguf"]),
    writer(
        "quality",
        "quality whole.gguf -f types.txt -c 4 --types q8_0 --no-speed -o out.html",
        &["out.json", "out.csv", "out.html"],
        &["whole.gguf", "types.txt"],
    ),
    writer(
        "sensitivity",
        "sensitivity whole.gguf -f types.txt -c 4 --by role --types q4_0 -o out.json",
        &["out.json"],
        &["whole.gguf", "types.txt"],
    ),
    writer(
        "sign",
        "sign model.gguf --key key.pem -o out.sig",
        &["out.sig"],
        &["model.gguf", "key.pem"],
    ),
    writer("card", "card repository -o out.md", &["out.md"], &["repository/model.gguf"]),
    writer("check --fix", "check broken.gguf --fix -o out.gguf", &["out.gguf"], &["broken.gguf"]),
];

/// Commands that change their inputs as requested, and export to a directory.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub const IN_PLACE: &[Writer] = &[
    writer(
        "generate --prompt-cache",
        "generate whole.gguf --raw -p light -n 1 --temp 0 --prompt-cache cache.gguf",
        &["cache.gguf"],
        &["whole.gguf"],
    ),
    writer("edit in place", "edit model.gguf --set general.name=b", &["model.gguf"], &[]),
    writer("edit, rebuilding", "edit model.gguf --set-file x=chat.jinja", &["model.gguf"], &[]),
    writer("edit --drop", "edit model.gguf --drop attn_k", &["model.gguf"], &[]),
    writer("graph --store, in place", "graph whole.gguf --store", &["whole.gguf"], &[]),
    writer(
        "convert-endian --in-place",
        "convert-endian model.gguf big --in-place",
        &["model.gguf"],
        &[],
    ),
    writer("name --rename", "name --rename model.gguf", &["model.gguf", "a-256-F32.gguf"], &[]),
    writer(
        "export",
        "export whole.gguf new --max-shard-size 5M",
        &[
            "new/README.md",
            "new/config.json",
            "new/generation_config.json",
            "new/model-00001-of-00002.safetensors",
            "new/model-00002-of-00002.safetensors",
            "new/model.safetensors.index.json",
            "new/tokenizer.json",
            "new/tokenizer.model",
            "new/tokenizer_config.json",
        ],
        &["whole.gguf"],
    ),
];

/// Foreign files that resemble temporary files of gguf.
pub const BYSTANDERS: &[&str] = &[
    ".out.gguf.new.unfinished.gguf-kit-part",
    ".out.gguf.new.abcdefghijkl.gguf-kit-part",
    ".out.gguf.users-own-file.part",
    ".model.gguf.users-own-file.part",
    ".model.gguf.new.unfinished.gguf-kit-part",
    ".model.gguf.mine.gguf-kit-part",
    "out.gguf.bak",
];

pub fn gguf(dir: &Path, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
    command.args(words.split_whitespace()).current_dir(dir).output().unwrap()
}

#[track_caller]
pub fn succeeds(dir: &Path, words: &str) {
    let output = gguf(dir, words);
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
}

#[track_caller]
pub fn fails(dir: &Path, words: &str, code: i32, parts: &[&str]) {
    let output = gguf(dir, words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words}: {stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{words}: `{part}` is not in: {stderr}");
    }
}

/// Content and permissions of every file in a directory, by path. For a link, its target path.
pub type Files = BTreeMap<String, (Vec<u8>, u32)>;

pub fn files(dir: &Path) -> Files {
    fn add(dir: &Path, prefix: &str, files: &mut Files) {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                add(&entry.path(), &format!("{name}/"), files);
            } else if kind.is_symlink() {
                let link = fs::read_link(entry.path()).unwrap();
                files.insert(name, (link.into_os_string().into_encoded_bytes(), 0));
            } else {
                let content = fs::read(entry.path()).unwrap();
                files.insert(name, (content, mode(&entry.path())));
            }
        }
    }
    let mut all = Files::new();
    add(dir, "", &mut all);
    all
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().unwrap().permissions().mode() & 0o7777
}

#[cfg(not(unix))]
fn mode(_: &Path) -> u32 {
    0
}

/// Returns a directory with inputs for all writers; large inputs only if `words` names them.
pub fn workshop(words: &str) -> tempfile::TempDir {
    static MADE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let result = MADE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path());
        dir
    });
    let dir = tempfile::tempdir().unwrap();
    copy(result.path(), dir.path(), &|name| !LARGE.contains(&name) || words.contains(name));
    dir
}

/// Large inputs.
const LARGE: [&str; 3] = ["checkpoint", "whole.gguf", "broken.gguf"];

/// Copies selected files of a directory, with permissions.
fn copy(from: &Path, to: &Path, is_chosen: &dyn Fn(&str) -> bool) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if !is_chosen(entry.file_name().to_str().unwrap()) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target, is_chosen);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn make(dir: &Path) {
    let at = |name: &str| -> PathBuf { dir.join(name) };
    fs::write(at("model.gguf"), model(1.0)).unwrap();
    fs::write(at("tuned.gguf"), model(2.0)).unwrap();
    succeeds(dir, "split model.gguf s --split-max-tensors 2");
    succeeds(dir, "export model.gguf --to safetensors --keep-names w.safetensors");
    succeeds(dir, "lora extract model.gguf tuned.gguf --rank 2 -o adapter.gguf");
    let entry = Entry { sums: vec![1.0; 256], counts: vec![3] };
    let imatrix = Imatrix {
        datasets: vec!["text".into()],
        chunk_count: 1,
        chunk_size: Some(512),
        fingerprint: None,
        entries: BTreeMap::from([("blk.0.attn_q.weight".to_owned(), entry)]),
    };
    imatrix.write_gguf(&at("i.gguf"), &Overwrite::default()).unwrap();
    fs::write(at("whisper.gguf"), crate::whisper::model()).unwrap();
    fs::write(at("sound.wav"), crate::whisper::sound(1.0)).unwrap();
    fs::write(at("types.txt"), "attn_v=f16\n").unwrap();
    fs::write(at("key.pem"), include_str!("../cli/key.pem")).unwrap();
    fs::write(at("meta.json"), "{}").unwrap();
    fs::write(at("chat.jinja"), "{{ messages[0].content }}".repeat(9)).unwrap();
    for name in BYSTANDERS {
        fs::write(at(name), name).unwrap();
    }
    fs::create_dir(at("repository")).unwrap();
    fs::copy(at("model.gguf"), at("repository/model.gguf")).unwrap();
    fs::create_dir(at("checkpoint")).unwrap();
    copy(Path::new(MODEL), &at("checkpoint"), &|_| true);
    succeeds(dir, "convert checkpoint -o whole.gguf");
    succeeds(dir, "edit whole.gguf --set general.file_type=7 -o broken.gguf");
    succeeds(dir, "imatrix whole.gguf -f chat.jinja -c 8 --chunks 2 --part 1/1 -o i.part");
}

/// Returns a model of four small tensors, with header padding.
fn model(factor: f32) -> Vec<u8> {
    let mut draft = RawHeader::default();
    draft.metadata.set("general.architecture", "llama");
    draft.metadata.set("general.name", "a");
    draft.metadata.set("general.size_label", "256");
    draft.metadata.set("general.file_type", 0u32);
    gguf_store::edit::reserve(&mut draft.metadata, 100);
    for name in ["attn_q", "attn_k", "attn_v", "attn_output"] {
        draft.tensors.push(TensorInfo {
            name: format!("blk.0.{name}.weight"),
            shape: Shape::new(&[256, 4]).unwrap(),
            tensor_type: TensorType::F32,
            offset: 0,
            opaque_len: None,
        });
    }
    draft.lay_out().unwrap();
    let mut file = write_header(&Header::new(draft).unwrap()).unwrap();
    let values = (0..4 * 4 * 256).map(|i| factor * ((i * 7919 % 1009) as f32 / 1009.0 - 0.5));
    file.extend(values.flat_map(f32::to_le_bytes));
    file
}
