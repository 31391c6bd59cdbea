//! ECDSA keys on the curves P-256, P-384 and P-521, in PEM files.

use gguf::Error;
use gguf_store::digest;
use p256::ecdsa::signature::{Signer, Verifier};
use p256::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePublicKey, LineEnding};

/// A private key. Signatures are deterministic (RFC 6979).
pub struct SigningKey(Secret);

enum Secret {
    P256(p256::SecretKey),
    P384(p384::SecretKey),
    P521(p521::SecretKey),
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(Public);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Public {
    P256(p256::PublicKey),
    P384(p384::PublicKey),
    P521(p521::PublicKey),
}

impl SigningKey {
    /// Reads a private key in PEM: PKCS #8 (`PRIVATE KEY`) or SEC 1 (`EC PRIVATE KEY`), not encrypted.
    ///
    /// # Errors
    /// `signature-key` if it is not such a key.
    pub fn from_pem(pem: &str) -> Result<Self, Error> {
        if pem.contains("ENCRYPTED") {
            let help = "decrypt it: openssl pkcs8 -in key.pem -out plain.pem";
            return Err(Error::request("signature-key", "the key is encrypted", help));
        }
        // OpenSSL writes the parameters of the curve before the key.
        let start =
            pem.find("-----BEGIN EC PRIVATE KEY").or_else(|| pem.find("-----BEGIN PRIVATE KEY"));
        let pem = &pem[start.unwrap_or_default()..];
        let secret = None
            .or_else(|| p256::SecretKey::from_pkcs8_pem(pem).ok().map(Secret::P256))
            .or_else(|| p256::SecretKey::from_sec1_pem(pem).ok().map(Secret::P256))
            .or_else(|| p384::SecretKey::from_pkcs8_pem(pem).ok().map(Secret::P384))
            .or_else(|| p384::SecretKey::from_sec1_pem(pem).ok().map(Secret::P384))
            .or_else(|| p521::SecretKey::from_pkcs8_pem(pem).ok().map(Secret::P521))
            .or_else(|| p521::SecretKey::from_sec1_pem(pem).ok().map(Secret::P521));
        secret.map(Self).ok_or_else(|| unusable("a private key"))
    }

    /// Returns the public key.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(match &self.0 {
            Secret::P256(key) => Public::P256(key.public_key()),
            Secret::P384(key) => Public::P384(key.public_key()),
            Secret::P521(key) => Public::P521(key.public_key()),
        })
    }

    /// Signs a message with the hash function of the curve's size. Returns the signature in DER.
    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        match &self.0 {
            Secret::P256(key) => {
                let signature: p256::ecdsa::Signature =
                    p256::ecdsa::SigningKey::from(key).sign(message);
                signature.to_der().as_bytes().to_vec()
            }
            Secret::P384(key) => {
                let signature: p384::ecdsa::Signature =
                    p384::ecdsa::SigningKey::from(key).sign(message);
                signature.to_der().as_bytes().to_vec()
            }
            Secret::P521(key) => {
                let key = p521::ecdsa::SigningKey::from_bytes(&key.to_bytes());
                // The bytes of a key are a key.
                let signature = key.map(|key| -> p521::ecdsa::Signature { key.sign(message) });
                signature
                    .map(|signature| signature.to_der().as_bytes().to_vec())
                    .unwrap_or_default()
            }
        }
    }
}

impl PublicKey {
    /// Reads a public key in PEM (`PUBLIC KEY`).
    ///
    /// # Errors
    /// `signature-key` if it is not such a key.
    pub fn from_pem(pem: &str) -> Result<Self, Error> {
        let public = None
            .or_else(|| p256::PublicKey::from_public_key_pem(pem).ok().map(Public::P256))
            .or_else(|| p384::PublicKey::from_public_key_pem(pem).ok().map(Public::P384))
            .or_else(|| p521::PublicKey::from_public_key_pem(pem).ok().map(Public::P521));
        public.map(Self).ok_or_else(|| unusable("a public key"))
    }

    /// Reads a public key in DER, as certificates have it.
    pub(crate) fn from_der(der: &[u8]) -> Option<Self> {
        let public = None
            .or_else(|| p256::PublicKey::from_public_key_der(der).ok().map(Public::P256))
            .or_else(|| p384::PublicKey::from_public_key_der(der).ok().map(Public::P384))
            .or_else(|| p521::PublicKey::from_public_key_der(der).ok().map(Public::P521));
        public.map(Self)
    }

    /// Returns the SHA-256 of the key in PEM, by which bundles name a key.
    pub fn hint(&self) -> String {
        let pem = match &self.0 {
            Public::P256(key) => key.to_public_key_pem(LineEnding::LF),
            Public::P384(key) => key.to_public_key_pem(LineEnding::LF),
            Public::P521(key) => key.to_public_key_pem(LineEnding::LF),
        };
        digest::sha256(pem.unwrap_or_default().as_bytes())
    }

    /// Returns true if the signature in DER was made with this key.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.0 {
            Public::P256(key) => {
                p256::ecdsa::Signature::from_der(signature).is_ok_and(|signature| {
                    p256::ecdsa::VerifyingKey::from(key).verify(message, &signature).is_ok()
                })
            }
            Public::P384(key) => {
                p384::ecdsa::Signature::from_der(signature).is_ok_and(|signature| {
                    p384::ecdsa::VerifyingKey::from(key).verify(message, &signature).is_ok()
                })
            }
            Public::P521(key) => {
                let verifier = p521::ecdsa::VerifyingKey::from_affine(*key.as_affine());
                let signature = p521::ecdsa::Signature::from_der(signature);
                verifier
                    .ok()
                    .zip(signature.ok())
                    .is_some_and(|(key, signature)| key.verify(message, &signature).is_ok())
            }
        }
    }
}

fn unusable(what: &str) -> Error {
    let message = format!("the file is not {what} on the curve P-256, P-384 or P-521 in PEM");
    let help = "make one: openssl ecparam -name prime256v1 -genkey -noout -out key.pem; \
                openssl ec -in key.pem -pubout -out key.pub";
    Error::request("signature-key", message, help)
}
