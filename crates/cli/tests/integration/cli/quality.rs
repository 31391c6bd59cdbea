//! `gguf quality`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::cli::support::{Dir, fails, gguf, json, succeeds};

/// Returns a text from the repository.
fn text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../LICENSE-APACHE");
    path.to_str().unwrap().to_owned()
}

/// A few chunks, without speeds, which vary.
fn measured(model: &str, more: &[&str]) -> String {
    let text = text();
    let words = ["quality", model, "-f", &text, "-c", "64", "--chunks", "3", "--no-speed"];
    succeeds(&[&words[..], more].concat())
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

fn entry<'r>(report: &'r Value, name: &str) -> &'r Value {
    let mut types = report["types"].as_array().unwrap().iter();
    types.find(|entry| entry["type"] == name).unwrap_or_else(|| panic!("{name} in {report}"))
}

/// The results for a type equal those of the other commands on its file.
#[test]
fn results_match_files() {
    let dir = Dir::new();
    let (model, page, text) = (dir.f16(), dir.path("report.html"), text());
    let types = ["q8_0", "q4_k_m", "mxfp4_moe", "q5_0"];
    let mut report = json(&measured(&model, &["--types", &types.join(","), "-o", &page, "--json"]));
    // The document has a `schema`, the file a `version`.
    assert_eq!(report.as_object_mut().unwrap().remove("schema").unwrap(), "gguf-kit/quality/3");
    for name in types {
        let file = dir.path(&format!("{name}.gguf"));
        succeeds(&["quantize", &model, &file, name]);
        let found = entry(&report, &name.to_uppercase());
        assert_eq!(number(found, "file_bytes"), fs::metadata(&file).unwrap().len() as f64);
        let flags = ["-f", &text, "-c", "64", "--chunks", "3", "--json"];
        let words = [&["divergence", "-r", &model, &file], &flags[..]].concat();
        let wanted = json(&succeeds(&words))["models"][0].clone();
        for key in ["ppl_q", "ppl_ratio", "mean_kld", "mean_kld_error", "max_kld"] {
            assert_eq!(number(found, key), number(&wanted, key), "{name} {key}");
        }
        assert_eq!(number(found, "top1_agreement"), number(&wanted, "top1_agreement"), "{name}");
        assert_eq!(number(&report["reference"], "ppl"), number(&wanted, "ppl_base"));
        // Position ranges have equal numbers of tokens here: 32 positions in 16 ranges.
        let runs = found["kld_by_position"].as_array().unwrap();
        let mean: f64 = runs.iter().map(|run| number(run, "mean_kld")).sum::<f64>() / 16.0;
        assert_eq!((runs.len(), &runs[0]["from"], &runs[15]["to"]), (16, &32.into(), &64.into()));
        // There each KLD is rounded to F32.
        assert!((mean / number(found, "mean_kld") - 1.0).abs() < 1e-6, "{name}");
    }
    let summary = json(&succeeds(&["inspect", &dir.path("q4_k_m.gguf"), "--json"]));
    let bits = number(entry(&report, "Q4_K_M"), "bits_per_weight");
    assert!((bits - number(&summary, "bits_per_weight")).abs() < 1e-9, "{summary}");

    // Without experts MXFP4_MOE equals Q8_0; dominated types are marked.
    assert_eq!(entry(&report, "MXFP4_MOE")["dominated_by"], "Q8_0");
    assert_eq!(entry(&report, "Q8_0")["dominated_by"], Value::Null);
    // Error of Q8_0: half a step of 1/127 of the largest of 32 weights; a third of its square.
    let tensors = entry(&report, "Q8_0")["tensors"].as_array().unwrap();
    assert_eq!(tensors.len(), 7 * 4 + 2);
    for tensor in tensors {
        assert_eq!(tensor["type"], "Q8_0");
        assert!((0.003..0.009).contains(&number(tensor, "error")), "{tensor}");
    }

    // The other files.
    assert_eq!(json(&fs::read_to_string(dir.path("report.json")).unwrap()), report);
    let csv = fs::read_to_string(dir.path("report.csv")).unwrap();
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 2 + types.len());
    assert!(lines.iter().all(|line| line.len() == 16), "{csv}");
    assert_eq!((lines[0][1], lines[1][0], lines[2][0]), ("file_bytes", "reference", "Q8_0"));
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("Tiny KJV Llama 4M") && html.ends_with("</html>\n"));
    // XML namespace, never fetched.
    let html = html.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http:", "https:", "src=", "url(", "@import", "<link"] {
        assert!(!html.contains(outside), "{outside} is in the page");
    }
    // Each chart has an accessible title.
    let pictures: Vec<_> = html.split("<svg ").skip(1).collect();
    let titles: Vec<_> = pictures.iter().map(|svg| svg.split("id=\"").nth(1).unwrap()).collect();
    assert!(pictures.len() >= 7 && pictures.iter().all(|svg| svg.contains("role=\"img\"")));
    let mut ids: Vec<_> = titles.iter().map(|title| title.split('"').next().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), pictures.len());
}

/// `--resume` reuses earlier results; other conditions are refused.
#[test]
fn a_report_is_resumed() {
    let dir = Dir::new();
    let (model, page, whole) = (dir.f16(), dir.path("part.html"), dir.path("whole.html"));
    let all = "q8_0,q5_0,q4_0";
    measured(&model, &["--types", all, "-o", &whole]);
    measured(&model, &["--types", "q8_0", "-o", &page]);
    let again = ["--types", all, "-o", &page];
    let text = text();
    let words = ["quality", &model, "-f", &text, "-c", "64", "--chunks", "3", "--no-speed"];
    fails(&[&words[..], &again].concat(), 2, &["part.json exists already", "--force"]);
    // A value that only an earlier run can have.
    let json_path = dir.path("part.json");
    let before = fs::read_to_string(&json_path).unwrap();
    let place = before.find("\"max_kld\": ").unwrap() + "\"max_kld\": ".len();
    fs::write(&json_path, format!("{}7{}", &before[..place], &before[place..])).unwrap();
    let report = json(&measured(&model, &[&again[..], &["--resume", "--json"]].concat()));
    assert!(number(entry(&report, "Q8_0"), "max_kld") > 1.0);
    fs::write(&json_path, &before).unwrap();
    measured(&model, &[&again[..], &["--resume"]].concat());
    for end in ["json", "csv", "html"] {
        let [part, whole] =
            ["part", "whole"].map(|name| fs::read_to_string(dir.path(&format!("{name}.{end}"))));
        assert_eq!(part.unwrap(), whole.unwrap(), "{end}");
    }
    let resume = [&words[..], &["--resume", "-o", &page]].concat();
    let other = [&["quality", &model, "-f", &text, "-c", "32"], &resume[6..]].concat();
    fails(&other, 2, &["another chunk_size: 64, now 32", "--force"]);
    fs::write(&json_path, "{}").unwrap();
    fails(&resume, 1, &["part.json", "is not a report of `gguf quality`"]);
    assert_eq!(fs::read_to_string(&json_path).unwrap(), "{}");
}

/// An interruption keeps the results of complete groups.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_run_keeps_results() {
    use std::process::{Command, Stdio};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    let dir = Dir::new();
    let (model, page, text) = (dir.f16(), dir.path("report.html"), text());
    let words = [
        "quality",
        &model,
        "-f",
        &text,
        "-c",
        "64",
        "--no-speed",
        "-o",
        &page,
        "--parallel-models",
        "1",
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
    command.args(words).args(["--chunks", "20", "--types", "q8_0,q6_k,q5_0,q4_0,q4_1,q3_k_s"]);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let report = dir.path("report.json");
    while !Path::new(&report).exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("progress is saved: continue with --resume"), "{stderr}");
    let left = json(&fs::read_to_string(&report).unwrap());
    let done = left["types"].as_array().unwrap().len();
    assert!((1..6).contains(&done), "{left}");
    let more = ["--chunks", "20", "--types", "q8_0,q6_k,q5_0,q4_0,q4_1,q3_k_s", "--resume"];
    succeeds(&[&words[..], &more].concat());
    let whole = json(&fs::read_to_string(&report).unwrap());
    assert_eq!(whole["types"].as_array().unwrap().len(), 6);
    assert_eq!(whole["types"].as_array().unwrap()[..done].len(), done);
}

#[test]
fn unavailable_types() {
    let dir = Dir::new();
    let model = dir.f16();
    let shown = measured(&model, &["--types", "iq4_xs,q4_0"]);
    for part in ["reference", "IQ4_XS", "Q4_0", "dominated by IQ4_XS"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let text = text();
    let words = ["quality", &model, "-f", &text, "-c", "64", "--chunks", "1", "--types"];
    let with = |types: &'static str| [&words[..], &[types]].concat();
    fails(&with("iq2_xxs"), 2, &["importance weights"]);
    fails(&with("q4_0,copy"), 2, &["`copy` is lossless"]);
    fails(&with("q9_k"), 2, &["`q9_k` is not a known type"]);
    let page = ["-o", "report.txt"];
    fails(&[&with("q4_0")[..], &page].concat(), 2, &["expected an HTML file, such as report.html"]);
    fails(&[&with("q4_0")[..], &["--resume"]].concat(), 2, &["--output"]);
    // Unless requested, they are skipped with a reason.
    let all = gguf(&[&words[..9], &["all", "--no-speed", "--json"]].concat());
    let report = json(&String::from_utf8(all.stdout).unwrap());
    let skipped = report["skipped"].as_array().unwrap();
    let reason = |name: &str| {
        let one = skipped.iter().find(|one| one["type"] == name);
        one.map(|one| one["reason"].as_str().unwrap())
    };
    assert_eq!(reason("IQ2_XXS"), Some("needs an importance matrix"));
    assert_eq!(reason("F32"), Some("not smaller than the original"));
    assert_eq!(reason("Q4_0"), None);
}
