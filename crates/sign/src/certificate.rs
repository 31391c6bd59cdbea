//! Certificates of signers and of their authorities.

use std::time::Duration;

use gguf::Error;
use rustls_pki_types::UnixTime;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_cert::Certificate;
use x509_cert::der::{Decode, DecodePem, Encode};
use x509_cert::ext::pkix::{ExtendedKeyUsage, KeyUsage as Usage};

use crate::invalid;
use crate::key::PublicKey;

/// Object identifier of code signing, 1.3.6.1.5.5.7.3.3, encoded.
const CODE_SIGNING: &[u8] = &[43, 6, 1, 5, 5, 7, 3, 3];
const CODE_SIGNING_NAME: &str = "1.3.6.1.5.5.7.3.3";

/// Certificates of trusted authorities.
pub struct Authorities(Vec<Vec<u8>>);

impl Authorities {
    /// Reads one or more certificates in PEM.
    ///
    /// # Errors
    /// `signature-certificate` if there is none.
    pub fn from_pem(pem: &str) -> Result<Self, Error> {
        certificates(pem).map(Self)
    }
}

/// Reads certificates in PEM, in DER.
///
/// # Errors
/// `signature-certificate` if there is none, or one is malformed.
pub fn certificates(pem: &str) -> Result<Vec<Vec<u8>>, Error> {
    const END: &str = "-----END CERTIFICATE-----";
    let unreadable = || {
        let what = "the file has no certificate in PEM, or a malformed one";
        Error::request(
            "signature-certificate",
            what,
            "convert it: openssl x509 -in certificate -out certificate.pem",
        )
    };
    let parts = pem
        .split_inclusive(END)
        .filter_map(|part| part.find("-----BEGIN CERTIFICATE").map(|at| &part[at..]));
    let read = |part: &str| {
        let certificate = Certificate::from_pem(part).map_err(|_| unreadable())?;
        certificate.to_der().map_err(|_| unreadable())
    };
    let found: Vec<_> = parts.map(read).collect::<Result<_, _>>()?;
    if found.is_empty() { Err(unreadable()) } else { Ok(found) }
}

/// Returns the public key of a certificate in DER.
pub fn public_key(certificate: &[u8]) -> Result<PublicKey, Error> {
    let key = Certificate::from_der(certificate)
        .and_then(|certificate| certificate.tbs_certificate.subject_public_key_info.to_der());
    let key = key.ok().and_then(|der| PublicKey::from_der(&der));
    key.ok_or_else(|| invalid("the certificate has no key on the curve P-256, P-384 or P-521"))
}

/// Verifies a chain of certificates, that of the signer first, at the time from which that certificate is valid. Returns its key
/// and its subject.
pub fn verify(chain: &[Vec<u8>], authorities: &Authorities) -> Result<(PublicKey, String), Error> {
    let (signer, others) =
        chain.split_first().ok_or_else(|| invalid("the signature has no certificate"))?;
    let malformed = |_| invalid("a certificate of the signature is malformed");
    let certificate = Certificate::from_der(signer).map_err(malformed)?.tbs_certificate;
    let subject = certificate.subject.to_string();
    let roots: Vec<_> = authorities.0.iter().map(|der| der.as_slice().into()).collect();
    let anchors: Result<Vec<_>, _> = roots.iter().map(anchor_from_trusted_cert).collect();
    let anchors = anchors.map_err(|_| {
        let what = "a certificate of the authorities cannot be used";
        Error::request(
            "signature-certificate",
            what,
            "name the certificates of the authorities that you trust",
        )
    })?;
    let others: Vec<_> = others.iter().map(|der| der.as_slice().into()).collect();
    let der = signer.as_slice().into();
    let untrusted = |fault: webpki::Error| {
        invalid(format!(
            "the certificate of {subject:?} is not valid under the given authorities ({fault})"
        ))
    };
    let start: Duration = certificate.validity.not_before.to_unix_duration();
    EndEntityCert::try_from(&der)
        .and_then(|certificate| {
            let algorithms = webpki::ALL_VERIFICATION_ALGS;
            let time = UnixTime::since_unix_epoch(start);
            let usage = KeyUsage::required_if_present(CODE_SIGNING);
            certificate
                .verify_for_usage(algorithms, &anchors, &others, time, usage, None, None)
                .map(drop)
        })
        .map_err(untrusted)?;
    let usage = certificate.get::<Usage>().ok().flatten();
    let extended = certificate.get::<ExtendedKeyUsage>().ok().flatten();
    let signs = usage.is_some_and(|(_, usage)| usage.digital_signature())
        || extended.is_some_and(|(_, usage)| {
            usage.0.iter().any(|name| name.to_string() == CODE_SIGNING_NAME)
        });
    if !signs {
        return Err(invalid(format!("the certificate of {subject:?} is not for signatures")));
    }
    Ok((public_key(signer)?, subject))
}
