//! Signatures with keys on three curves.

use std::fs;
use std::path::PathBuf;

use gguf_sign::{PublicKey, SignedFiles, SigningKey, Trust, sign, verify};

/// Private keys in SEC 1 and PKCS #8, and their public keys, of OpenSSL.
const KEYS: [(&str, &str); 4] = [
    (include_str!("keys/p256-sec1.pem"), include_str!("keys/p256.pub")),
    (include_str!("keys/p256.pem"), include_str!("keys/p256.pub")),
    (include_str!("keys/p384.pem"), include_str!("keys/p384.pub")),
    (include_str!("keys/p521.pem"), include_str!("keys/p521.pub")),
];

fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let model = directory.path().join("m");
    fs::create_dir_all(model.join("d")).unwrap();
    fs::write(model.join("a"), "a").unwrap();
    fs::write(model.join("d/b"), "b").unwrap();
    fs::write(model.join(".gitignore"), "x").unwrap();
    (directory, model)
}

#[test]
fn signatures_are_verified() {
    let (_directory, model) = directory();
    for (private, public) in KEYS {
        let key = SigningKey::from_pem(private).unwrap();
        let public = PublicKey::from_pem(public).unwrap();
        assert_eq!(key.public_key(), public);
        let files = SignedFiles::find(&model, None).unwrap();
        let signature = sign(&files, None, &key, &[], &()).unwrap();
        let hint = public.hint();
        let trust = Trust::Key(public);
        let verified = verify(&signature, &model, &trust, &()).unwrap();
        assert_eq!((verified.signer, verified.model.as_str()), (hint, "m"));
        assert_eq!(
            (verified.files, verified.faults),
            (vec!["a".to_owned(), "d/b".to_owned()], vec![])
        );

        for other in KEYS.iter().map(|(_, public)| PublicKey::from_pem(public).unwrap()) {
            if other != key.public_key() {
                let error = verify(&signature, &model, &Trust::Key(other), &()).unwrap_err();
                assert_eq!(error.code(), "signature-invalid");
            }
        }
        // Every changed character of the signature is noticed.
        for at in (0..signature.len()).step_by(7) {
            let mut changed = signature.clone();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            if let Ok(verified) = verify(&changed, &model, &trust, &()) {
                assert_eq!(verified.model, "m", "{at}");
            }
        }
    }
}

#[test]
fn changed_files_are_named() {
    let (_directory, model) = directory();
    let key = SigningKey::from_pem(KEYS[1].0).unwrap();
    let files = SignedFiles::find(&model, None).unwrap();
    let signature = sign(&files, None, &key, &[], &()).unwrap();
    fs::write(model.join("a"), "c").unwrap();
    fs::rename(model.join("d/b"), model.join("d/c")).unwrap();
    let verified = verify(&signature, &model, &Trust::Key(key.public_key()), &()).unwrap();
    let faults = ["a", "d/c", "d/b"].map(String::from);
    let why = ["differs from the signed file", "is not signed", "is missing"];
    assert_eq!(verified.faults, faults.into_iter().zip(why).collect::<Vec<_>>());
}

#[test]
fn other_files_are_no_keys() {
    for text in ["", "x", KEYS[0].1, "-----BEGIN ENCRYPTED PRIVATE KEY-----"] {
        assert_eq!(SigningKey::from_pem(text).map(|_| ()).unwrap_err().code(), "signature-key");
    }
    assert_eq!(PublicKey::from_pem(KEYS[0].0).unwrap_err().code(), "signature-key");
}

#[cfg(unix)]
#[test]
fn links_are_refused() {
    let (_directory, model) = directory();
    std::os::unix::fs::symlink("/etc/passwd", model.join("l")).unwrap();
    assert_eq!(SignedFiles::find(&model, None).unwrap_err().code(), "signature-link");
}
