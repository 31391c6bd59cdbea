"""Compares `gguf sign` and `gguf verify --signature` with the package model-signing.

Usage: python3 interop/scan/signatures.py GGUF_BINARY CHECKPOINT

Signs a model, its shards and a directory with keys on three curves and with a certificate; verifies with the other program. Changed
files, other keys and other authorities must be refused by both. Needs model-signing (with pyOpenSSL) and the program openssl.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CURVES = {"P-256": "prime256v1", "P-384": "secp384r1", "P-521": "secp521r1"}
count = 0


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


def expect(succeeds, what, *command):
    """Runs a command, which must succeed or fail."""
    global count
    count += 1
    result = run(*command)
    if (result.returncode == 0) != succeeds or "panicked" in result.stderr:
        words = " ".join(map(str, command))
        sys.exit(f"{what}: exit code {result.returncode}: {words}\n{result.stdout}{result.stderr}")


def openssl(*words):
    result = run("openssl", *words)
    if result.returncode != 0:
        sys.exit(result.stderr)


def key(folder, name, curve, form):
    """Makes a key pair in the form sec1 or pkcs8."""
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    openssl("ecparam", "-name", curve, "-genkey", "-noout", "-out", private)
    openssl("ec", "-in", private, "-pubout", "-out", public)
    if form == "pkcs8":
        openssl("pkcs8", "-topk8", "-nocrypt", "-in", private, "-out", f"{private}.8")
        shutil.move(f"{private}.8", private)
    return private, public


def authority(folder, name):
    """Makes a root, and a certificate for signing under it: key, certificate, root."""
    (root_key, _), (private, _) = key(folder, f"{name}-root", "prime256v1", "pkcs8"), key(folder, f"{name}-leaf", "secp384r1", "pkcs8")
    root, request, leaf = folder / f"{name}-root.crt", folder / f"{name}.csr", folder / f"{name}.crt"
    openssl("req", "-x509", "-new", "-key", root_key, "-subj", f"/CN={name} root", "-days", "3650", "-out", root)
    openssl("req", "-new", "-key", private, "-subj", f"/CN={name} publisher", "-out", request)
    extensions = folder / "extensions"
    extensions.write_text(
        "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=codeSigning\n")
    openssl("x509", "-req", "-in", request, "-CA", root, "-CAkey", root_key, "-CAcreateserial", "-days", "365",
            "-extfile", extensions, "-out", leaf)
    return private, leaf, root


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("checkpoint", type=Path)
    arguments = parser.parse_args()
    gguf, theirs = arguments.gguf, Path(sys.executable).parent / "model_signing"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model, directory, shards = folder / "model.gguf", folder / "checkpoint", folder / "shards"
        expect(True, "convert", gguf, "convert", arguments.checkpoint, "-o", model)
        shutil.copytree(arguments.checkpoint, directory)
        shards.mkdir()
        expect(True, "split", gguf, "split", model, shards / "m", "--split-max-tensors", "14")
        shard = next(shards.glob("m-00001-of-*.gguf"))
        changed = folder / "changed.gguf"
        changed.write_bytes(model.read_bytes()[:-1] + b"\1")
        _, stranger = key(folder, "stranger", "prime256v1", "pkcs8")
        for at, (name, curve) in enumerate(CURVES.items()):
            private, public = key(folder, name, curve, "sec1" if at == 0 else "pkcs8")
            for what, signed in [("file", model), ("directory", directory)]:
                ours, other = folder / f"{name}-{what}.ours", folder / f"{name}-{what}.theirs"
                expect(True, f"{name}: we sign a {what}", gguf, "sign", signed, "--key", private, "-o", ours)
                expect(True, f"{name}: they sign a {what}", theirs, "sign", "key", signed, "--signature", other, "--private_key", private)
                for signature in (ours, other):
                    expect(True, f"{name}: we verify", gguf, "verify", signed, "--signature", signature, "--public-key", public)
                    expect(True, f"{name}: they verify", theirs, "verify", "key", signed, "--signature", signature, "--public_key", public)
                    expect(False, f"{name}: our stranger", gguf, "verify", signed, "--signature", signature, "--public-key", stranger)
                    expect(False, f"{name}: their stranger", theirs, "verify", "key", signed, "--signature", signature, "--public_key", stranger)
                    if what == "file":
                        expect(False, f"{name}: our change", gguf, "verify", changed, "--signature", signature, "--public-key", public)
                        expect(False, f"{name}: their change", theirs, "verify", "key", changed, "--signature", signature, "--public_key", public)
            # A signature inside of the directory, and a file that is added later.
            inside = directory / "model.sig"
            expect(True, f"{name}: we sign inside", gguf, "sign", directory, "--key", private, "--force")
            expect(True, f"{name}: we verify inside", gguf, "verify", directory, "--signature", inside, "--public-key", public)
            expect(True, f"{name}: they verify inside", theirs, "verify", "key", directory, "--signature", inside, "--public_key", public)
            (directory / "extra.py").write_text("")
            expect(False, f"{name}: our extra file", gguf, "verify", directory, "--signature", inside, "--public-key", public)
            expect(False, f"{name}: their extra file", theirs, "verify", "key", directory, "--signature", inside, "--public_key", public)
            (directory / "extra.py").unlink()
            inside.unlink()
        # Shards: the others verify their directory.
        private, public = folder / "P-256.pem", folder / "P-256.pub"
        signature = folder / "shards.sig"
        expect(True, "we sign shards", gguf, "sign", shard, "--key", private, "-o", signature)
        expect(True, "we verify shards", gguf, "verify", shard, "--signature", signature, "--public-key", public)
        expect(True, "they verify shards", theirs, "verify", "key", shards, "--signature", signature, "--public_key", public,
               "--ignore_unsigned_files")
        # Certificates.
        private, leaf, root = authority(folder, "known")
        _, _, other_root = authority(folder, "other")
        ours, other = folder / "certificate.ours", folder / "certificate.theirs"
        expect(True, "we sign with a certificate", gguf, "sign", model, "--key", private, "--certificate", leaf, "-o", ours)
        expect(True, "they sign with a certificate", theirs, "sign", "certificate", model, "--signature", other, "--private_key", private,
               "--signing_certificate", leaf, "--certificate_chain", leaf)
        for signature in (ours, other):
            expect(True, "we verify a certificate", gguf, "verify", model, "--signature", signature, "--authorities", root)
            expect(True, "they verify a certificate", theirs, "verify", "certificate", model, "--signature", signature, "--certificate_chain", root)
            expect(False, "our other authority", gguf, "verify", model, "--signature", signature, "--authorities", other_root)
            expect(False, "their other authority", theirs, "verify", "certificate", model, "--signature", signature, "--certificate_chain", other_root)
        expect(False, "another certificate", gguf, "sign", model, "--key", folder / "P-256.pem", "--certificate", leaf, "-o", folder / "no.sig")
        # Signed and re-derivable.
        expect(True, "signature and source", gguf, "verify", model, "--signature", ours, "--authorities", root, "--source", arguments.checkpoint)
    print(f"{count} signatures and verifications are as expected")


if __name__ == "__main__":
    main()
