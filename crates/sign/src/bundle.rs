//! Sigstore bundle with a DSSE envelope.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gguf::Error;
use serde_json::{Value as Json, json};

use crate::key::SigningKey;
use crate::{Trust, certificate, invalid};

const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// Signs a payload and returns the bundle.
pub fn write(payload: &[u8], key: &SigningKey, certificates: &[Vec<u8>]) -> Vec<u8> {
    let signature = key.sign(&encoding(payload));
    let material = match certificates {
        [] => json!({ "publicKey": { "hint": key.public_key().hint() }, "tlogEntries": [] }),
        chain => {
            let chain: Vec<_> =
                chain.iter().map(|der| json!({ "rawBytes": STANDARD.encode(der) })).collect();
            json!({ "x509CertificateChain": { "certificates": chain }, "tlogEntries": [] })
        }
    };
    let bundle = json!({
        "mediaType": BUNDLE_TYPE,
        "verificationMaterial": material,
        "dsseEnvelope": {
            "payload": STANDARD.encode(payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{ "sig": STANDARD.encode(signature), "keyid": "" }],
        },
    });
    format!("{bundle}\n").into_bytes()
}

/// Verifies a bundle, and returns the signed payload and the signer.
pub fn verify(bundle: &[u8], trust: &Trust) -> Result<(Vec<u8>, String), Error> {
    let bundle: Json = serde_json::from_slice(bundle)
        .map_err(|_| invalid("the signature is not a JSON document"))?;
    let is_type = |value: &Json, expected: &str| match value.as_str() {
        Some(found) if found == expected => Ok(()),
        found => Err(invalid(format!("the signature has the type {found:?}; expected {expected}"))),
    };
    is_type(&bundle["mediaType"], BUNDLE_TYPE)?;
    let envelope = &bundle["dsseEnvelope"];
    is_type(&envelope["payloadType"], PAYLOAD_TYPE)?;
    let bytes = |value: &Json, what: &str| {
        let decoded = value.as_str().and_then(|text| STANDARD.decode(text).ok());
        decoded.ok_or_else(|| invalid(format!("the signature has no valid `{what}`")))
    };
    let payload = bytes(&envelope["payload"], "payload")?;
    let signature = bytes(&envelope["signatures"][0]["sig"], "sig")?;
    let material = &bundle["verificationMaterial"];
    let (key, signer) = match trust {
        Trust::Key(key) => {
            let hint = key.hint();
            if let Some(found) = material["publicKey"]["hint"].as_str()
                && found != hint
            {
                return Err(invalid(format!(
                    "the model was signed with another key, {found}; the given key is {hint}"
                )));
            }
            (key.clone(), hint)
        }
        Trust::Authorities(authorities) => {
            let chain = material["x509CertificateChain"]["certificates"].as_array();
            let chain = chain.ok_or_else(|| {
                invalid("the signature has no certificates: it was made with a key alone")
            })?;
            let chain: Result<Vec<_>, _> = chain
                .iter()
                .map(|certificate| bytes(&certificate["rawBytes"], "rawBytes"))
                .collect();
            certificate::verify(&chain?, authorities)?
        }
    };
    match key.verifies(&encoding(&payload), &signature) {
        true => Ok((payload, signer)),
        false => Err(invalid(
            "the signature does not match its content and the key: one of them was changed",
        )),
    }
}

/// Returns the bytes that are signed: the pre-authentication encoding of DSSE 1.
fn encoding(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    [head.as_bytes(), payload].concat()
}
