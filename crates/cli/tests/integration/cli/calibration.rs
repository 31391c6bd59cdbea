//! Calibrated quantization (`--calibrate`, `--calibration-data`, `--effort`).

use std::fs;
use std::path::Path;

use crate::cli::support::{Dir, MODEL, fails, gguf, json, succeeds};
use crate::whisper;

/// Returns two halves of a text: the calibration set and the held-out set.
fn texts(dir: &Dir) -> [String; 2] {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../LICENSE-APACHE");
    let text = fs::read_to_string(path).unwrap();
    let (first, second) = text.split_at(text.len() / 2);
    [("first.txt", first), ("second.txt", second)].map(|(name, text)| {
        let path = dir.path(name);
        fs::write(&path, text).unwrap();
        path
    })
}

/// A few chunks.
const SHORT_CALIBRATION: [&str; 4] = ["--calibrate-ctx", "64", "--calibrate-tokens", "1024"];

fn divergence(model: &str, out: &str, text: &str) -> f64 {
    let words = ["divergence", "-r", model, out, "-f", text, "-c", "64", "--chunks", "8", "--json"];
    json(&succeeds(&words))["models"][0]["mean_kld"].as_f64().unwrap()
}

/// Calibration keeps the size, reduces the KL divergence on held-out text, and gives the same bytes on any
/// number of threads.
#[test]
fn calibration_reduces_divergence_at_the_same_size() {
    let dir = Dir::new();
    let (model, plain, out) = (dir.f16(), dir.path("plain.gguf"), dir.path("out.gguf"));
    let [read, heldout] = texts(&dir);
    succeeds(&["quantize", &model, &plain, "Q3_K_M"]);
    let quantize = |threads: &str| {
        let words = ["quantize", "--calibrate", &read, &model, &out, "Q3_K_M", "--force"];
        notes(&[&words[..], &SHORT_CALIBRATION, &["--threads", threads]].concat())
    };
    let notes_text = quantize("1");
    for what in ["fewer than 4 calibration tokens per column", "on 2 held-out chunks"] {
        assert!(notes_text.contains(what), "{notes_text}");
    }
    assert!(!notes_text.contains("importance matrix"), "no imatrix was given: {notes_text}");
    let bytes = fs::read(&out).unwrap();
    quantize("3");
    assert!(bytes == fs::read(&out).unwrap(), "other bytes on three threads");
    let data = |path: &str| gguf_store::Model::open(path.as_ref()).unwrap().parts()[0].data_start;
    assert_eq!(
        fs::metadata(&out).unwrap().len() - data(&out),
        fs::metadata(&plain).unwrap().len() - data(&plain)
    );
    let (ours, official) =
        (divergence(&model, &out, &heldout), divergence(&model, &plain, &heldout));
    // A thousand tokens are few; a good text halves the divergence.
    assert!(ours < 0.9 * official, "{ours} of {official}");
    let written = gguf_store::Model::open(out.as_ref()).unwrap();
    let key = |name: &str| written.metadata().get(&format!("gguf_kit.calibration.{name}")).cloned();
    assert_eq!(key("method"), Some("moments-6".to_owned().into()));
    assert_eq!((key("tokens"), key("window")), (Some(896u32.into()), Some(64u32.into())));
    assert!(key("text_sha256").is_some() && key("version").is_some());
    succeeds(&["check", &out]);
}

/// Returns the standard error of a successful command.
#[track_caller]
fn notes(words: &[&str]) -> String {
    let output = gguf(words);
    let notes_text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{notes_text}");
    notes_text
}

/// A text that repeats itself, or that the model cannot predict, is reported before the work begins.
#[test]
fn texts_that_hardly_help_are_reported() {
    let dir = Dir::new();
    let (model, text, out) = (dir.f16(), dir.path("text.txt"), dir.path("out.gguf"));
    let plan = ["quantize", "--calibrate", &text, &model, &out, "Q3_K_M", "--dry-run"];
    let plan = || notes(&[&plan[..], &SHORT_CALIBRATION].concat());
    fs::write(&text, "In the beginning God created the heaven and the earth. ".repeat(200))
        .unwrap();
    let found = plan();
    assert!(found.contains("the calibration text repeats itself: "), "{found}");
    assert!(!found.contains("improbable"), "{found}");
    let words = (0u32..900).map(|i| format!("{:x} ", i.wrapping_mul(2_654_435_761)));
    fs::write(&text, words.collect::<String>()).unwrap();
    let found = plan();
    assert!(found.contains("the model finds the calibration text improbable"), "{found}");
    assert!(!found.contains("repeats itself"), "{found}");
}

/// With `--calibrate`, a size target uses the measured KL divergence.
#[test]
fn size_target_uses_measured_sensitivity() {
    let dir = Dir::new();
    let (model, [text, heldout]) = (dir.f16(), texts(&dir));
    let [plain, out] = ["plain.gguf", "out.gguf"].map(|name| dir.path(name));
    let of_plain = notes(&["quantize", &model, &plain, "Q3_K_M"]);
    let size = fs::metadata(&plain).unwrap().len();
    let calibrate = ["quantize", "--calibrate", &text, &model];
    let notes_text = notes(
        &[&calibrate[..], &[&out, "--target-size", &size.to_string()], &SHORT_CALIBRATION].concat(),
    );
    assert!(notes_text.contains("expected KL divergence"), "{notes_text}");
    // The size is compared with the model, not with the intermediate file.
    let from =
        |notes_text: &str| Some(notes_text.split_once(" -> ")?.0.rsplit_once('(')?.1.to_owned());
    assert_eq!(
        (from(&notes_text), from(&of_plain).is_some()),
        (from(&of_plain), true),
        "{notes_text}"
    );
    let result = fs::metadata(&out).unwrap().len();
    assert!(result <= size && result > size - size / 20, "{result} of {size}");
    let (chosen, official) =
        (divergence(&model, &out, &heldout), divergence(&model, &plain, &heldout));
    assert!(chosen < official, "{chosen} of {official}");
    succeeds(&["verify", &out, "--source", &model, "--calibrate", &text]);
    // A given sensitivity file is used: here no type has a cost.
    let file = dir.path("s.json");
    let measure = ["sensitivity", &model, "-f", &text, "-c", "64", "--chunks", "2", "--by", "role"];
    succeeds(&[&measure[..], &["-o", &file]].concat());
    let mut changed = json(&fs::read_to_string(&file).unwrap());
    for (_, tensor) in changed["tensors"].as_object_mut().unwrap() {
        let types = tensor["divergence"].as_object_mut().unwrap();
        types.values_mut().for_each(|does| *does = 0.0.into());
    }
    fs::write(&file, changed.to_string()).unwrap();
    let given = ["--target-size", &size.to_string(), "--sensitivity", &file, "--dry-run"];
    let notes_text =
        notes(&[&calibrate[..], &[&out, "--force"], &given, &SHORT_CALIBRATION].concat());
    assert!(notes_text.contains("expected KL divergence 0.000000"), "{notes_text}");
}

/// Returns a copy of the model with another value in an F32 tensor.
fn with_number(dir: &Dir, name: &str, at: u64, number: f32) -> String {
    let (model, path) = (dir.f16(), dir.path("changed.gguf"));
    let place = gguf_store::Model::open(model.as_ref()).unwrap().index()[name].offset + 4 * at;
    let mut bytes = fs::read(&model).unwrap();
    bytes[place as usize..][..4].copy_from_slice(&number.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    path
}

/// Warns about inputs that are always zero; fails on NaN.
#[test]
fn constant_zero_inputs_are_reported() {
    let dir = Dir::new();
    let ([text, _], out) = (texts(&dir), dir.path("out.gguf"));
    let norm = "blk.1.ffn_norm.weight";
    let model = with_number(&dir, norm, 7, 0.0);
    let words = ["quantize", "--calibrate", &text, &model, &out, "Q4_0"];
    let notes_text = notes(&[&words[..], &SHORT_CALIBRATION].concat());
    assert!(
        notes_text.contains("2 tensors have columns that are never activated by the text"),
        "{notes_text}"
    );
    succeeds(&["check", &out]);
    with_number(&dir, norm, 7, f32::NAN);
    fails(&[&words[..], &SHORT_CALIBRATION, &["--force"]].concat(), 1, &[norm, "element 7 is NaN"]);
}

/// A Whisper model is calibrated on audio, encoder and decoder.
#[test]
fn audio_calibrates_a_whisper_model() {
    let dir = Dir::new();
    let [model, sound, data, plain, out] =
        ["w.gguf", "s.wav", "m.gguf", "plain.gguf", "out.gguf"].map(|name| dir.path(name));
    fs::write(&model, whisper::model()).unwrap();
    fs::write(&sound, whisper::sound(7.5)).unwrap();
    let words = ["quantize", "--pure", "--calibrate", &sound, &model, &out, "Q4_0"];
    fails(&words, 2, &["a model with an encoder", "--hessian"]);
    let text = dir.path("text.txt");
    fs::write(&text, "In the beginning God created the heaven and the earth. ".repeat(9)).unwrap();
    fails(
        &["perplexity", &model, "-f", &text, "-c", "8"],
        2,
        &["a model with an encoder", "--hessian"],
    );
    succeeds(&["imatrix", &model, "-f", &sound, "--hessian", "-o", &data]);
    succeeds(&["quantize", "--pure", &model, &plain, "Q4_0"]);
    succeeds(&["quantize", "--pure", "--calibration-data", &data, &model, &out, "Q4_0"]);
    for name in ["enc.blk.0.attn_q", "enc.blk.0.ffn_down", "dec.blk.0.ffn_up"] {
        let name = format!("{name}.weight");
        assert!(bytes_of(&out, &name) != bytes_of(&plain, &name), "{name} was not calibrated");
    }
    succeeds(&["verify", &out, "--source", &model, "--calibration-data", &data]);
}

/// Returns the data of a tensor.
fn bytes_of(path: &str, name: &str) -> Vec<u8> {
    let model = gguf_store::Model::open(path.as_ref()).unwrap();
    let tensor = model.index()[name];
    let mut bytes = vec![0; tensor.info.byte_len().unwrap() as usize];
    tensor.read_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn quality_reports_calibrated_types() {
    let dir = Dir::new();
    let (model, [other, text]) = (dir.f16(), texts(&dir));
    let command =
        ["quality", &model, "-f", &text, "-c", "64", "--chunks", "3", "--no-speed", "--json"];
    let more = ["--types", "q4_0,iq2_xxs", "--calibrate", &other];
    let report = json(&succeeds(&[&command[..], &more, &SHORT_CALIBRATION].concat()));
    let names: Vec<_> = report["types"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["type"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Q4_0", "Q4_0 calibrated", "IQ2_XXS calibrated"]);
    assert_eq!(report["skipped"][0]["type"], "IQ2_XXS");
    let same = [&command[..], &["--calibrate", &text]].concat();
    fails(&same, 2, &["is the calibration text"]);
}

#[test]
fn conflicting_flags_are_refused() {
    let dir = Dir::new();
    let (model, out, [text, _]) = (dir.f16(), dir.path("out.gguf"), texts(&dir));
    let words = ["quantize", "--calibrate", &text, &model, &out, "Q4_0"];
    let refused = |more: &[&str], what: &str| fails(&[&words[..], more].concat(), 2, &[what]);
    refused(&["--calibration-data", &model], "cannot be used with");
    refused(&["--calibrate-ctx", "50000"], "the text has");
    refused(&["--calibrate-tokens", "0"], "not a positive number");
    fails(&["quantize", "--calibrate-ctx", "64", &model, &out, "Q4_0"], 2, &["--calibrate"]);
    fails(&["quantize", "--calibrate", &dir.path("no.txt"), &model, &out, "Q4_0"], 3, &["no.txt"]);
    let binary = dir.path("model.bin");
    fs::copy(&model, &binary).unwrap();
    fails(&["quantize", "--calibrate", &binary, &model, &out, "Q4_0"], 1, &["not valid UTF-8"]);
    fails(&["quantize", "--calibrate", &model, &model, &out, "Q4_0"], 2, &["not a text"]);
    let data = ["quantize", "--calibration-data", &model, &model, &out, "Q4_0"];
    fails(&data, 2, &["is not a file of Hessians", "imatrix"]);
    assert!(!Path::new(&out).exists());
}

/// Parts quantized with saved Hessians equal a single run.
#[test]
fn saved_hessians_give_identical_parts() {
    let dir = Dir::new();
    let (model, [text, heldout]) = (dir.f16(), texts(&dir));
    let [data, whole, out, merged] =
        ["hessian.gguf", "whole.gguf", "p.gguf", "m.gguf"].map(|name| dir.path(name));
    let collect = ["imatrix", &model, "-f", &text, "--hessian", "-o", &data];
    succeeds(&[&collect[..], &["-c", "64", "--chunks", "16"]].concat());
    fails(&collect, 2, &["hessian.gguf"]);
    let with = ["quantize", "--calibration-data", &data, &model];
    succeeds(&[&with[..], &[&whole, "Q3_K_M"]].concat());
    for part in ["2/2", "1/2"] {
        succeeds(&[&with[..], &[&out, "Q3_K_M", "--part", part]].concat());
    }
    succeeds(&["merge", &dir.path("p-00001-of-00002.gguf"), &merged]);
    assert!(fs::read(&merged).unwrap() == fs::read(&whole).unwrap());
    let plain = dir.path("plain.gguf");
    succeeds(&["quantize", &model, &plain, "Q3_K_M"]);
    let (ours, official) =
        (divergence(&model, &whole, &heldout), divergence(&model, &plain, &heldout));
    assert!(ours < official, "{ours} of {official}");
    succeeds(&["verify", &whole, "--source", &model, "--calibration-data", &data]);
    // Calibrated on the evaluation text.
    let command = ["quality", &model, "-f", &text, "--no-speed", "--calibration-data", &data];
    fails(&command, 2, &["is the calibration text"]);
}

/// `--effort` needs no text and reduces the weight error.
#[test]
fn effort_reduces_the_weight_error() {
    let dir = Dir::new();
    let (model, out, plain) = (dir.f16(), dir.path("out.gguf"), dir.path("plain.gguf"));
    for mix in ["Q4_0", "Q4_K_S"] {
        succeeds(&["quantize", "--force", &model, &plain, mix]);
        succeeds(&["quantize", "--force", "--effort", &model, &out, mix]);
        let [ours, official] = [&out, &plain].map(|file| squared_error(&model, file));
        assert!(ours < 0.99 * official, "{mix}: {ours} of {official}");
        succeeds(&["verify", &out, "--source", &model, "--effort"]);
    }
}

/// Returns the squared error of one matrix.
fn squared_error(a: &str, b: &str) -> f64 {
    let weights = |file: &str| {
        let model = gguf_store::Model::open(file.as_ref()).unwrap();
        let tensor = gguf_pipeline::Tensor::of_model(model.index()["blk.1.ffn_up.weight"]);
        tensor.decode_rows(0, tensor.rows()).unwrap()
    };
    let pairs = weights(a).into_iter().zip(weights(b));
    pairs.map(|(a, b)| f64::from(a - b) * f64::from(a - b)).sum()
}

/// The calibration text reproduces a file.
#[test]
fn calibrated_files_can_be_verified() {
    let dir = Dir::new();
    let (model, out, [text, other]) = (dir.f16(), dir.path("out.gguf"), texts(&dir));
    let words = ["quantize", "--calibrate", &text, &model, &out, "IQ4_XS"];
    succeeds(&[&words[..], &SHORT_CALIBRATION].concat());
    let verify = ["verify", &out, "--source", &model];
    let report = succeeds(&[&verify[..], &["--calibrate", &text]].concat());
    assert!(report.contains("tensors match the source"), "{report}");
    fails(&[&verify[..], &["--calibrate", &other]].concat(), 2, &["by another text"]);
    fails(&verify, 1, &["give it with --calibrate"]);
    // A file with a changed byte fails.
    let mut bytes = fs::read(&out).unwrap();
    let len = bytes.len();
    bytes[len / 2] ^= 1;
    fs::write(&out, bytes).unwrap();
    let output = gguf(&[&verify[..], &["--calibrate", &text]].concat());
    assert_eq!(output.status.code(), Some(1));
}

/// Each part compensates the errors of its own matrices.
#[test]
fn parts_are_calibrated_independently() {
    let dir = Dir::new();
    let (model, [text, heldout]) = (dir.f16(), texts(&dir));
    let [out, merged, whole, plain] =
        ["p.gguf", "merged.gguf", "whole.gguf", "plain.gguf"].map(|name| dir.path(name));
    let calibrate = ["quantize", "--calibrate", &text, &model];
    for part in ["3/3", "1/3", "2/3"] {
        let words = [&calibrate[..], &[&out, "Q3_K_M", "--part", part], &SHORT_CALIBRATION];
        let report = notes(&words.concat());
        assert!(report.contains("a single run is closer"), "{report}");
    }
    succeeds(&["merge", &dir.path("p-00001-of-00003.gguf"), &merged]);
    succeeds(&[&calibrate[..], &[&whole, "Q3_K_M"], &SHORT_CALIBRATION].concat());
    succeeds(&["quantize", &model, &plain, "Q3_K_M"]);
    let [in_parts, official] = [&merged, &plain].map(|file| divergence(&model, file, &heldout));
    // As of a single run.
    assert!(in_parts < 0.9 * official, "{in_parts} of {official}");
    for file in [&merged, &whole] {
        let report = succeeds(&["verify", file, "--source", &model, "--calibrate", &text]);
        assert!(report.contains("tensors match the source"), "{report}");
    }
    // Parts of runs with other numbers of parts are not one model.
    let words = [&calibrate[..], &[&out, "Q3_K_M", "--part", "1/2"], &SHORT_CALIBRATION];
    succeeds(&words.concat());
    fs::rename(dir.path("p-00001-of-00002.gguf"), dir.path("p-00001-of-00003.gguf")).unwrap();
    let again = dir.path("again.gguf");
    fails(&["merge", &dir.path("p-00001-of-00003.gguf"), &again], 1, &["p-0000"]);
}

/// The tokens are divided among the texts, whose order belongs to the file.
#[test]
fn several_texts_calibrate_together() {
    let dir = Dir::new();
    let (model, out, [text, other]) = (dir.f16(), dir.path("out.gguf"), texts(&dir));
    let both = ["--calibrate", &text, "--calibrate", &other];
    let words = [&["quantize", &model, &out, "IQ4_XS"], &both[..], &SHORT_CALIBRATION].concat();
    succeeds(&words);
    let key = |path: &str, name: &str| {
        let written = gguf_store::Model::open(path.as_ref()).unwrap();
        written.metadata().get(&format!("gguf_kit.calibration.{name}")).cloned().unwrap()
    };
    assert_eq!(key(&out, "tokens"), 896u32.into(), "an eighth is held out");
    let verify = ["verify", &out, "--source", &model];
    let report = succeeds(&[&verify[..], &both].concat());
    assert!(report.contains("tensors match the source"), "{report}");
    let message = ["first.txt", "by another text"];
    fails(&[&verify[..], &["--calibrate", &text]].concat(), 2, &message);
    let swapped = ["--calibrate", &other, "--calibrate", &text];
    fails(&[&verify[..], &swapped].concat(), 2, &["second.txt and ", "in the same order"]);
    // The text of gguf-kit beside another one.
    let bundled = dir.path("bundled.gguf");
    let texts = ["--calibrate", &text, "--calibrate", "bundled"];
    let words = [&["quantize", &model, &bundled, "IQ4_XS"], &texts[..], &SHORT_CALIBRATION];
    succeeds(&words.concat());
    assert!(key(&bundled, "text_sha256") != key(&out, "text_sha256"));
    let new = dir.path("new.gguf");
    let words = ["quantize", &model, &new, "IQ4_XS", "--calibrate", &text];
    fails(&[&words[..], &["--calibrate", "none.txt"]].concat(), 3, &["none.txt"]);
    let words = ["quantize", &model, &other, "IQ4_XS", "--force"];
    fails(&[&words[..], &both].concat(), 2, &["second.txt"]);
}

/// Converting a checkpoint equals quantizing its GGUF.
#[test]
fn conversion_can_calibrate() {
    let dir = Dir::new();
    let ([text, _], all) = (texts(&dir), dir.path("auto.gguf"));
    let (once, twice) = (dir.path("once.gguf"), dir.path("twice.gguf"));
    succeeds(&["convert", MODEL, "-o", &all]);
    let convert = ["convert", MODEL, "--outtype", "q4_k_m", "-o", &once, "--calibrate", &text];
    succeeds(&[&convert[..], &SHORT_CALIBRATION].concat());
    let quantize = ["quantize", "--calibrate", &text, &all, &twice, "Q4_K_M"];
    succeeds(&[&quantize[..], &SHORT_CALIBRATION].concat());
    let data = |path: &str| {
        let start = gguf_store::Model::open(path.as_ref()).unwrap().parts()[0].data_start;
        fs::read(path).unwrap().split_off(start as usize)
    };
    assert!(data(&once) == data(&twice));
    let part = [&convert[..], &["--part", "1/2", "--force"]].concat();
    fails(&part, 2, &["--part", "gguf quantize --calibrate --part"]);
}

/// Each expert has its own Hessian; experts that no token reaches are reported.
#[test]
fn experts_have_their_own_hessians() {
    let Ok(data) = std::env::var("GGUF_TEST_DATA") else {
        eprintln!("SKIPPED: GGUF_TEST_DATA is not set");
        return;
    };
    let dir = Dir::new();
    let (f16, out, [text, heldout]) = (dir.path("f16.gguf"), dir.path("out.gguf"), texts(&dir));
    let plain = dir.path("plain.gguf");
    let model = Path::new(&data).join("zoo/mixtral");
    succeeds(&["convert", model.to_str().unwrap(), "-o", &f16, "--outtype", "f16"]);
    succeeds(&["quantize", "--pure", &f16, &plain, "Q4_0"]);
    let words = ["quantize", "--pure", "--calibrate", &text, &f16, &out, "Q4_0"];
    succeeds(&[&words[..], &SHORT_CALIBRATION, &["--force"]].concat());
    let (ours, official) = (divergence(&f16, &out, &heldout), divergence(&f16, &plain, &heldout));
    assert!(ours < official, "{ours} of {official}");
    for name in ["ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"] {
        let name = format!("blk.0.{name}.weight");
        assert!(bytes_of(&out, &name) != bytes_of(&plain, &name), "{name} was not calibrated");
    }
    // Two tokens reach few experts.
    let few = ["--calibrate-ctx", "2", "--calibrate-tokens", "2", "--force"];
    let notes_text = notes(&[&words[..], &few].concat());
    assert!(notes_text.contains("their weights count equally"), "{notes_text}");
}
