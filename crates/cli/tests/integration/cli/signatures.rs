//! `gguf sign` and `gguf verify --signature`.

use std::fs;

use crate::cli::support::{Dir, MODEL, fails, json, succeeds};

/// A key pair for tests.
pub const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/cli/key.pem");
pub const PUBLIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/cli/key.pub");

#[test]
fn models_are_signed_and_verified() {
    let dir = Dir::new();
    let (model, signature) = (dir.f16(), dir.path("m.sig"));
    succeeds(&["sign", &model, "--key", KEY, "-o", &signature]);
    let verify = ["verify", &model, "--signature", &signature, "--public-key", PUBLIC];
    assert!(succeeds(&verify).contains("1 file is as signed by d832a45d8575"));
    // Signed, and made from the source.
    let both = json(&succeeds(&[&verify[..], &["--source", MODEL, "--json"]].concat()));
    assert_eq!(both["signature"]["faults"].as_array().unwrap().len(), 0);
    assert_eq!(both["same"], both["tensors"].as_array().unwrap().len());

    let other = dir.path("other.gguf");
    succeeds(&["edit", &model, "--set", "general.name=b", "-o", &other]);
    let changed = ["verify", &other, "--signature", &signature, "--public-key", PUBLIC];
    fails(&changed, 1, &[]);
    fails(&["verify", &model, "--signature", &signature], 2, &["--public-key"]);
    fails(&["verify", &model], 2, &["--source"]);
    fails(
        &["verify", &model, "--signature", &model, "--public-key", PUBLIC],
        1,
        &["not a JSON document"],
    );
    fails(
        &["verify", &model, "--signature", &signature, "--public-key", KEY],
        2,
        &["not a public key"],
    );
    fails(&["sign", &model, "--key", PUBLIC, "-o", &dir.path("x")], 2, &["not a private key"]);
    fails(&["sign", &model, "--key", KEY, "-o", &signature], 2, &["exists already"]);
}

#[test]
fn directories_and_shards_are_signed() {
    let dir = Dir::new();
    let checkpoint = dir.path("checkpoint");
    fs::create_dir(&checkpoint).unwrap();
    for name in ["config.json", "tokenizer.model"] {
        fs::copy(format!("{MODEL}/{name}"), format!("{checkpoint}/{name}")).unwrap();
    }
    let signed = json(&succeeds(&["sign", &checkpoint, "--key", KEY, "--json"]));
    assert_eq!(signed["files"], serde_json::json!(["config.json", "tokenizer.model"]));
    let signature = format!("{checkpoint}/model.sig");
    let verify =
        ["verify", &checkpoint, "--signature", &signature, "--public-key", PUBLIC, "--json"];
    succeeds(&verify);
    fs::write(format!("{checkpoint}/extra.py"), "").unwrap();
    fs::remove_file(format!("{checkpoint}/config.json")).unwrap();
    let output = crate::cli::support::gguf(&verify);
    let faults = json(std::str::from_utf8(&output.stdout).unwrap())["signature"]["faults"].clone();
    assert_eq!(
        faults,
        serde_json::json!([
            { "file": "extra.py", "message": "is not signed" },
            { "file": "config.json", "message": "is missing" },
        ])
    );

    let prefix = dir.path("s");
    succeeds(&["split", &dir.f16(), &prefix, "--split-max-tensors", "14"]);
    let shard = fs::read_dir(std::path::Path::new(&prefix).parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("s-00001-of-"));
    let shard = shard.unwrap().to_str().unwrap().to_owned();
    let signature = dir.path("s.sig");
    let signed = json(&succeeds(&["sign", &shard, "--key", KEY, "-o", &signature, "--json"]));
    assert!(signed["files"].as_array().unwrap().len() > 1);
    succeeds(&["verify", &shard, "--signature", &signature, "--public-key", PUBLIC]);
}
