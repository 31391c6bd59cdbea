//! Texts that a model writes for its own calibration (`gguf calibration-text`, `--calibrate self`).

use std::fs;

use crate::cli::support::{Dir, MODEL, fails, json, succeeds};
use crate::whisper;

/// Writes 2,048 tokens of the model with a seed.
fn write(dir: &Dir, model: &str, name: &str, seed: &str, more: &[&str]) -> String {
    let path = dir.path(name);
    let words = ["calibration-text", model, "-o", &path, "--tokens", "2048", "--seed", seed];
    succeeds(&[&words[..], more].concat());
    path
}

fn divergence(model: &str, out: &str, text: &str) -> f64 {
    let words =
        ["divergence", "-r", model, out, "-f", text, "-c", "64", "--chunks", "16", "--json"];
    json(&succeeds(&words))["models"][0]["mean_kld"].as_f64().unwrap()
}

/// The text depends on the seed, and not on the number of threads.
#[test]
fn a_seed_gives_one_text() {
    let dir = Dir::new();
    let model = dir.f16();
    let read = |name: &str, seed: &str, threads: &str| {
        fs::read_to_string(write(&dir, &model, name, seed, &["--threads", threads])).unwrap()
    };
    let text = read("1.txt", "1", "1");
    assert_eq!(text, read("2.txt", "1", "3"));
    assert_ne!(text, read("3.txt", "2", "3"));
    let printed = succeeds(&["calibration-text", &model, "--tokens", "2048", "--seed", "1"]);
    assert_eq!(text, printed);
    // Control tokens are not part of the text, so that a little less is left.
    let ids = json(&succeeds(&["tokenize", &model, "-f", &dir.path("1.txt"), "--json"]));
    let count = ids["tokens"].as_array().unwrap().len();
    assert!((1_600..2_400).contains(&count), "{count} tokens");
    fails(&["calibration-text", &model, "-o", &dir.path("1.txt")], 2, &["1.txt exists", "--force"]);
    assert_eq!(fs::read_to_string(dir.path("1.txt")).unwrap(), text);
}

/// Messages and answers of the chat template are part of the text; its control tokens and fixed parts are not.
#[test]
fn half_of_the_conversations_are_chats() {
    let dir = Dir::new();
    let (model, chat) = (dir.f16(), dir.path("chat.gguf"));
    let template =
        "{{ bos_token }}{% for m in messages %}@@{{ m.content }}@@{% endfor %}And he said,";
    let edit =
        ["edit", &model, "-o", &chat, "--set", &format!("tokenizer.chat_template={template}")];
    succeeds(&edit);
    let [plain, chats] = [&model, &chat].map(|model| {
        let path = write(&dir, model, "text.txt", "3", &["--force"]);
        fs::read_to_string(path).unwrap()
    });
    assert_ne!(plain, chats);
    assert!(!chats.contains('@'), "{chats}");
    // A template that fails is no reason to stop.
    let broken = dir.path("broken.gguf");
    let template = "tokenizer.chat_template={{ raise_exception('no users') }}";
    succeeds(&["edit", &model, "-o", &broken, "--set", template]);
    let path = write(&dir, &broken, "text.txt", "3", &["--force"]);
    assert_eq!(fs::read_to_string(path).unwrap(), plain);
}

/// `--calibrate self` keeps the text beside the output, and uses one that is there.
#[test]
fn a_model_calibrates_itself() {
    let dir = Dir::new();
    let (model, plain, out) = (dir.f16(), dir.path("plain.gguf"), dir.path("out.gguf"));
    succeeds(&["quantize", &model, &plain, "Q3_K_M"]);
    let words = ["quantize", "--calibrate", "self", &model, &out, "Q3_K_M"];
    let size = ["--calibrate-ctx", "64", "--calibrate-tokens", "2048"];
    let quantize = |more: &[&str]| succeeds(&[&words[..], &size, more].concat());
    let text = model.strip_suffix(".gguf").unwrap().to_owned() + ".calibration.txt";
    quantize(&["--dry-run"]);
    assert!(!fs::exists(&text).unwrap() && !fs::exists(&out).unwrap());
    quantize(&[]);
    let kept = fs::read(&text).unwrap();
    // The model's own texts are what it should predict best; a thousand tokens are few.
    let held_out = write(&dir, &model, "held_out.txt", "9", &[]);
    let (ours, official) =
        (divergence(&model, &out, &held_out), divergence(&model, &plain, &held_out));
    assert!(ours < 0.9 * official, "{ours} of {official}");
    succeeds(&["verify", &out, "--source", &model, "--calibrate", &text]);
    fs::write(&text, &kept[..kept.len() / 2]).unwrap();
    let again = dir.path("again.gguf");
    succeeds(&[&words[..4], &[&again, "Q3_K_M"], &size].concat());
    assert_eq!(fs::read(&text).unwrap(), &kept[..kept.len() / 2]);
    assert!(fs::read(&again).unwrap() != fs::read(&out).unwrap());
}

#[test]
fn impossible_texts_are_refused() {
    let dir = Dir::new();
    let model = dir.f16();
    let out = dir.path("out.gguf");
    let convert = ["convert", MODEL, "--outtype", "q4_0", "-o", &out, "--calibrate", "self"];
    fails(&convert, 2, &["gguf calibration-text"]);
    let target =
        ["quantize", "--calibrate", "self", &model, &out, "--target-size", "3M", "--dry-run"];
    fails(&target, 2, &["gguf calibration-text"]);
    fails(&["calibration-text", &model, "--tokens", "0"], 2, &["not a positive number"]);
    let speech = dir.path("whisper.gguf");
    fs::write(&speech, whisper::model()).unwrap();
    fails(&["calibration-text", &speech], 2, &["the model does not generate text"]);
}

/// `--calibrate` without a value uses the bundled text, whose chats are in the chat template of the model.
#[test]
fn the_bundled_text_calibrates_and_verifies() {
    let dir = Dir::new();
    let (model, out) = (dir.f16(), dir.path("out.gguf"));
    let short = ["--calibrate-ctx", "64", "--calibrate-tokens", "1024"];
    succeeds(&[&["quantize", &model, &out, "Q3_K_M"], &short[..], &["--calibrate"]].concat());
    let same = "39 of 39 tensors match the source";
    for value in [&["--calibrate"][..], &["--calibrate", "bundled"]] {
        let verified = succeeds(&[&["verify", &out, "--source", &model], value].concat());
        assert!(verified.contains(same), "{verified}");
    }
    let other = dir.path("other.txt");
    fs::write(&other, "In the beginning").unwrap();
    let words = ["verify", &out, "--source", &model, "--calibrate", &other];
    fails(&words, 2, &["another text than", "other.txt"]);
    // The flag takes the next word.
    let help = ["--calibrate", "bundled", "at the end of the line"];
    fails(&["quantize", "--calibrate", &model, &out, "Q3_K_M"], 2, &help);
    let chat = dir.path("chat.gguf");
    let template = "tokenizer.chat_template=\
                    {% for m in messages %}[({{ m.role }})]{{ m.content }}{% endfor %}";
    succeeds(&["edit", &model, "-o", &chat, "--set", template]);
    let [plain, chats] =
        [&model, &chat].map(|model| succeeds(&["calibration-text", model, "--bundled"]));
    assert!(!plain.contains("[(assistant)]"));
    assert!(chats.matches("[(assistant)]").count() > 100);
    fails(&["calibration-text", &model, "--bundled", "--seed", "1"], 2, &["--seed"]);
}
