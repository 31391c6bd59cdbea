//! Fixtures for the files that documentation names: the small trained model in several forms, and short texts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::sandbox::{GGUF, shell};
use crate::{legacy_files, whisper};

/// Small trained model.
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");

/// File names, and the shell command that creates `$NAME` for `$SCRIPT` from the files in `$BASE`.
const FIXTURES: &[(&[&str], &str)] = &[
    (
        &[
            "f16.gguf",
            "in-f16.gguf",
            "model-f16.gguf",
            "base-f16.gguf",
            "mine-f16.gguf",
            "llama-f16.gguf",
            "model.gguf",
            "base.gguf",
            "original.gguf",
            "whole-f16.gguf",
            "MODEL",
            "all-MiniLM-L6-v2.gguf",
        ],
        // Commands that evaluate many types or tensors get a smaller model, and calibrate on a repeated text.
        "case $SCRIPT in *quality*|*sensitivity*|*bench*|*verify*--calibrate*|*--target-*) cp $BASE/small.gguf $NAME ;; *) cp $BASE/f16.gguf $NAME ;; esac",
    ),
    (&["tuned-f16.gguf", "other.gguf"], "cp $BASE/tuned.gguf $NAME"),
    (
        &[
            "q4_k_m.gguf",
            "q3_k_m.gguf",
            "q4_0.gguf",
            "b.gguf",
            "model-q4.gguf",
            "model-q4_k_m.gguf",
        ],
        "cp $BASE/q4.gguf $NAME",
    ),
    // With the imatrix or text that it is verified with.
    (
        &["llama-q4.gguf"],
        "case $SCRIPT in
            *--imatrix*) gguf quantize --imatrix $BASE/imatrix.gguf $BASE/f16.gguf $NAME Q4_K_M ;;
            *--calibrate*) head -c 1500 $BASE/text.txt > read.txt; gguf quantize --calibrate read.txt $BASE/small.gguf $NAME Q4_K_M ;;
            *) gguf quantize $BASE/f16.gguf $NAME Q4_K_M ;;
        esac",
    ),
    (&["q8_0.gguf", "llama-q8.gguf"], "cp $BASE/q8.gguf $NAME"),
    // Also an importance matrix.
    (
        &["a.gguf"],
        "case $SCRIPT in *--in-file*) cp $BASE/imatrix.gguf $NAME ;; *bench*) cp $BASE/small.gguf $NAME ;; *) cp $BASE/f16.gguf $NAME ;; esac",
    ),
    (&["model-Q4_K_M.gguf"], "gguf convert $BASE/Tiny-KJV-Llama-4M -o $NAME --outtype q4_k_m"),
    (&["*.gguf"], "cp $BASE/q4.gguf Tiny-KJV-Llama-4M-Q4_K_M.gguf"),
    (
        &["model-00001-of-00003.gguf", "a-00001-of-00003.gguf"],
        "gguf split $BASE/f16.gguf ${NAME%-*-*-*} --split-max-tensors 14",
    ),
    (&["ggml-vocab-qwen2.gguf"], "gguf convert $BASE/checkpoint -o $NAME --vocab-only"),
    (&["adapter.gguf", "one.gguf", "two.gguf", "l.gguf"], "cp $BASE/adapter.gguf $NAME"),
    (&["Llama-3.2-1B", "Qwen3-0.6B", "SmolLM2-135M/", "BASE", "checkpoint"], "cp -r $BASE/checkpoint $NAME"),
    (&["Qwen3-VL-2B"], "cp -r $BASE/seeing $NAME"),
    (
        &["out"],
        "case $SCRIPT in *'card out'*) mkdir $NAME; cp $BASE/q4.gguf $BASE/q8.gguf $NAME ;; esac",
    ),
    (&["Llama-3.2-1B-GGUF"], "mkdir $NAME; cp $BASE/q4.gguf $BASE/q8.gguf $NAME"),
    (&["mmproj-model.gguf", "MMPROJ"], "cp $BASE/mmproj.gguf $NAME"),
    // An adapter if there is a base model.
    (
        &["DIR"],
        "case $SCRIPT in *--base*) cp -r $BASE/peft $NAME ;; *) cp -r $BASE/checkpoint $NAME ;; esac",
    ),
    (&["ggml-model-q4_0.bin"], "cp $BASE/old.bin $NAME"),
    (&["llama-7b-hf"], r#"mkdir $NAME; echo '{"rms_norm_eps": 1e-5}' > $NAME/config.json"#),
    (&["imatrix.gguf"], "cp $BASE/imatrix.gguf $NAME"),
    (&["b.dat"], "gguf imatrix --in-file $BASE/imatrix.gguf -o $NAME"),
    (
        &["imatrix-*.part"],
        "for i in 1 2; do gguf imatrix $BASE/f16.gguf -f $BASE/text.txt -c 64 --chunks 2 --part $i/2 -o imatrix-$i.part; done",
    ),
    (
        &["q4_0-*.part"],
        "for i in 1 2; do gguf divergence -r $BASE/f16.gguf $BASE/q4.gguf -f $BASE/text.txt -c 64 --chunks 2 --part $i/2 -o q4_0-$i.part; done",
    ),
    (
        &["model-1.part", "model-2.part", "model-3.part"],
        "gguf perplexity $BASE/f16.gguf -f $BASE/text.txt -c 64 --chunks 3 --part ${NAME//[^0-9]/}/3 -o $NAME",
    ),
    (
        &["f16.logits", "a.kld"],
        "gguf perplexity $BASE/f16.gguf -f $BASE/text.txt -c 64 --chunks 2 --save-logits $NAME",
    ),
    (&["sensitivity.json"], "cp $BASE/sensitivity.json $NAME"),
    (&["recipe.txt"], "gguf recipe $BASE/q4.gguf > $NAME"),
    (&["key.pem"], "cp $BASE/key.pem $NAME"),
    (&["key.pub"], r"printf -- '-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEWyPLyGHoHikt/WYhzUeko3p++8hD\nhW+4W+hoPdD1D/s/Lg4C99kufwIAjmgPFt3vmeZ5fQTw46nUMuG/EyiczQ==\n-----END PUBLIC KEY-----\n' > $NAME"),
    (&["model.gguf.sig"], "[ -e model.gguf ] || cp $BASE/f16.gguf model.gguf; gguf sign model.gguf --key $BASE/key.pem"),
    (&["model.sha256"], "gguf hash --sha256 model.gguf > $NAME"),
    (
        &["text.txt", "calibration.txt", "wiki.test.raw", "prompt.txt", "TEXT"],
        "case $SCRIPT in *--part*) cp $BASE/text.txt $NAME ;; *) head -c 1500 $BASE/text.txt > $NAME ;; esac",
    ),
    (&["lines.txt"], "printf 'A text.\\nAnother one.\\n' > $NAME"),
    (&["lines.jsonl"], r#"printf '"A text."\n"Another one."\n' > $NAME"#),
    (
        &["hellaswag_val_full.txt"],
        "printf 'Then Peter answered\\n1\\nstones\\nand said\\nseven\\nthe the\\n' > $NAME",
    ),
    (
        &["winogrande-debiased-eval.csv"],
        "echo '0,And the people went after _ to the sea.,Moses,bread,1' > $NAME",
    ),
    (&["arc-challenge-validation.bin"], "cp $BASE/questions.bin $NAME"),
    (
        &["conversation.json"],
        r#"echo '[{"role": "user", "content": "Who made the sea?"}]' > $NAME"#,
    ),
    (&["tools.json"], "echo '[]' > $NAME"),
    (&["chat.jinja"], "echo '{{ messages[0].content }}' > $NAME"),
    (&["ollama/template"], "mkdir -p $NAME; echo '[]' > $NAME/index.json"),
    (&["tokenizer.json"], "gguf export $BASE/f16.gguf hf; cp hf/tokenizer.json $NAME"),
    (&["whisper-base.gguf", "whisper.gguf"], "cp $BASE/whisper.gguf $NAME"),
    // The audio format is detected from the content.
    (
        &["talk.mp3", "film.flac", "talk.ogg", "a.wav", "b.wav", "speech.wav"],
        "cp $BASE/sound.wav $NAME",
    ),
    (&["mel.npy"], "cp $BASE/mel.npy $NAME"),
    // Directories of a home; the file belongs to the user.
    (
        &["~/.local/share/bash-completion/completions/gguf"],
        "mkdir -p ~/.local/share/bash-completion/completions",
    ),
    (&["~/.config/fish/completions/gguf.fish"], "mkdir -p ~/.config/fish/completions"),
    (&["~/.zfunc/_gguf"], "mkdir ~/.zfunc"),
    // Foreign programs: read their input to the end.
    (&["dot"], "mkdir -p ~/.local/bin; echo cat > ~/.local/bin/dot; chmod +x ~/.local/bin/dot"),
    // Compatibility links for scripts that use them.
    (
        &[
            "llama-quantize",
            "llama-gguf-split",
            "llama-imatrix",
            "llama-perplexity",
            "llama-tokenize",
            "llama-gguf-hash",
            "llama-bench",
            "llama-export-lora",
            "gguf-dump",
            "gguf-set-metadata",
            "gguf-new-metadata",
            "gguf-convert-endian",
            "gguf-hash",
            "convert_hf_to_gguf.py",
            "convert_lora_to_gguf.py",
        ],
        "mkdir -p ~/.local/bin; gguf links ~/.local/bin",
    ),
];

/// Base files.
const BASE: &str = "
gguf convert checkpoint -o f16.gguf --outtype f16
gguf convert seeing -o mmproj.gguf --mmproj
gguf edit f16.gguf --set general.url=https://localhost --set llama.pooling_type=1
gguf quantize f16.gguf small.gguf copy --prune-layers 1,2,3
gguf quantize f16.gguf q4.gguf Q4_K_M
gguf quantize f16.gguf q8.gguf Q8_0
gguf quantize q4.gguf tuned.gguf F16 --allow-requantize
gguf lora extract f16.gguf tuned.gguf --rank 2 -o adapter.gguf
gguf imatrix f16.gguf -f text.txt -c 64 --chunks 4 -o imatrix.gguf
gguf sensitivity f16.gguf -f text.txt -c 64 --chunks 1 --by role -o sensitivity.json
";

/// Flags before outputs, and commands whose second file is the output.
const BEFORE_OUTPUTS: &[&str] =
    &["-o", "--output", "--outfile", "--save-logits", "hf", "safetensors"];
const SECOND_IS_OUTPUT: &[&str] = &[
    "gguf quantize ",
    "llama-quantize ",
    "gguf merge ",
    "--merge ",
    "gguf-new-metadata ",
    "gguf export ",
];

/// Creates the input files of a script in a directory.
pub fn create(script: &str, directory: &Path) -> Result<(), String> {
    let outputs = outputs(script);
    let words: Vec<_> = script.split([' ', '\n', '\'', '"', '=', ':', ',', ';']).collect();
    for (names, made) in FIXTURES {
        for name in names
            .iter()
            .filter(|name| words.contains(name) && !outputs.iter().any(|output| output == *name))
        {
            let base = base().to_str().unwrap();
            let output =
                shell(made, directory, &[("NAME", name), ("SCRIPT", script), ("BASE", base)]);
            let output_text = String::from_utf8_lossy(&output.stderr);
            if !output.status.success() {
                return Err(format!("{name} cannot be made: {output_text}"));
            }
        }
    }
    Ok(())
}

/// Returns the outputs of a script. Loop variables in names match any text.
fn outputs(script: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in script.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let pairs = words.windows(2).filter(|pair| BEFORE_OUTPUTS.contains(&pair[0]));
        found.extend(pairs.map(|pair| pair[1].replace("$i", "*")));
        found.extend(
            line.strip_prefix("gguf sign ")
                .and_then(|rest| rest.split(' ').next().map(|model| format!("{model}.sig"))),
        );
        if SECOND_IS_OUTPUT.iter().any(|command| line.contains(command)) {
            let arguments =
                words.windows(2).filter(|pair| pair[0] != "--imatrix").map(|pair| pair[1]);
            let files = arguments.filter(|word| word.contains(".gguf") || *word == "DIR");
            found.extend(files.skip(1).take(1).map(str::to_owned));
        }
    }
    found
}

/// Returns the directory with base files. The first test of a build creates it, in whichever process; the others
/// wait, and only read it.
pub fn base() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("documentation");
        fs::create_dir_all(base.parent().unwrap()).unwrap();
        let lock = fs::File::create(base.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        let build = [Path::new(GGUF), &std::env::current_exe().unwrap()]
            .map(|program| fs::metadata(program).unwrap().modified().unwrap());
        let (build, made_by) = (format!("{build:?}"), base.join("made-by"));
        if fs::read_to_string(&made_by).ok().as_ref() != Some(&build) {
            let _ = fs::remove_dir_all(&base);
            fs::create_dir(&base).unwrap();
            make(&base);
            fs::write(made_by, build).unwrap();
        }
        base
    })
}

/// Writes a checkpoint with a minimal vision encoder: one norm.
fn write_vision_checkpoint(directory: &Path) {
    let vision = json!({"hidden_size": 4, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "patch_size": 2});
    let config = json!({"architectures": ["KimiVLForConditionalGeneration"],
        "text_config": {"hidden_size": 256}, "vision_config": vision});
    let prepared = json!({"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]});
    let header = json!({"vision_tower.encoder.blocks.0.norm0.weight":
        {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}});
    let header = header.to_string();
    let weights = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 16]].concat();
    fs::create_dir(directory).unwrap();
    fs::write(directory.join("config.json"), config.to_string()).unwrap();
    fs::write(directory.join("preprocessor_config.json"), prepared.to_string()).unwrap();
    fs::write(directory.join("model.safetensors"), weights).unwrap();
}

fn make(base: &Path) {
    let at = |name: &str| base.join(name);
    write_vision_checkpoint(&at("seeing"));
    for name in ["Tiny-KJV-Llama-4M", "checkpoint"] {
        fs::create_dir(at(name)).unwrap();
        for file in fs::read_dir(MODEL).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), at(name).join(file.file_name())).unwrap();
        }
    }
    // The small model has no chat template.
    let path = at("checkpoint/tokenizer_config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let template = "{% for message in messages %}{{ message.content }}</s>\n{% endfor %}\
                    {% if add_generation_prompt %}<s>{% endif %}";
    let named = |name: &str| json!({ "name": name, "template": template });
    config["chat_template"] = json!([named("default"), named("tool_use")]);
    fs::write(path, config.to_string()).unwrap();
    let text = concat!(env!("CARGO_MANIFEST_DIR"), "/../../LICENSE-APACHE");
    let text: String = fs::read_to_string(text).unwrap().chars().take(6000).collect();
    fs::write(at("text.txt"), text).unwrap();
    fs::write(at("key.pem"), include_str!("../cli/key.pem")).unwrap();
    fs::write(at("whisper.gguf"), whisper::model()).unwrap();
    fs::write(at("sound.wav"), whisper::sound(1.0)).unwrap();
    let old = legacy_files::llama(legacy_files::GGJT, Some(3), 64, legacy_files::plain);
    old.write(base, "old.bin");
    fs::write(at("questions.bin"), question()).unwrap();
    fs::write(at("mel.npy"), features()).unwrap();
    fs::create_dir(at("peft")).unwrap();
    adapter(&at("peft"));
    let output = shell(BASE, base, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns a task with two answers, in the binary benchmark format.
fn question() -> Vec<u8> {
    let number = |n: u32| n.to_le_bytes().to_vec();
    let text = |text: &str| [number(text.len() as u32), text.as_bytes().to_vec()].concat();
    let [answers, right] = [[text("bread"), text("Moses")], [number(0), number(1)]];
    [
        number(1),
        number(0),
        text("And he said unto"),
        number(2),
        answers.concat(),
        right.concat(),
        number(0),
    ]
    .concat()
}

/// Returns a spectrogram of silence as a `.npy` file.
fn features() -> Vec<u8> {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (80, 300), }";
    let header = format!("{header:<117}\n");
    let magic = [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes()].concat();
    [&magic[..], header.as_bytes(), &vec![0; 80 * 300 * 4]].concat()
}

/// Writes a Hugging Face adapter for one matrix of the small model.
fn adapter(directory: &Path) {
    let config =
        json!({ "peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"] });
    fs::write(directory.join("adapter_config.json"), config.to_string()).unwrap();
    let tensor = |shape: [u32; 2], from: u32| json!({ "dtype": "F32", "shape": shape, "data_offsets": [from, from + 4096] });
    let name =
        |side| format!("base_model.model.model.layers.0.self_attn.q_proj.lora_{side}.weight");
    let header =
        json!({ name("A"): tensor([4, 256], 0), name("B"): tensor([256, 4], 4096) }).to_string();
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 8192]].concat();
    fs::write(directory.join("adapter_model.safetensors"), bytes).unwrap();
}
