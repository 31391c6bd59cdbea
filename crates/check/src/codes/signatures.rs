//! Codes of signatures.

use super::{Area, row};

pub(super) const SIGNATURES: Area = Area {
    title: "Signatures",
    about: "Faults of signatures, keys and certificates.",
    codes: &[
        row(
            "signature-invalid",
            "The signature is malformed, was changed, or was made by another signer.",
            "Get signature and public key from the publisher again; do not use the model if they still differ.",
        ),
        row(
            "signature-key",
            "The file is not an ECDSA key on the curve P-256, P-384 or P-521 in PEM, or it is encrypted.",
            "Make one: `openssl ecparam -name prime256v1 -genkey -noout -out key.pem`.",
        ),
        row(
            "signature-certificate",
            "A certificate cannot be read, or belongs to another key.",
            "Name the certificate of the signing key first, then those of its authorities.",
        ),
        row(
            "signature-link",
            "A directory to be signed has a symbolic link or a name that is not UTF-8.",
            "Replace the link by the file, or rename it.",
        ),
    ],
};
