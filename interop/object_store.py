"""Reads a GGUF from an S3 server: moto's, started here, on loopback only.

    pip install "moto[server]" boto3
    python interop/object_store.py

Exit status 0 if everything was as it should be.
"""

import hashlib
import os
import struct
import subprocess
import sys

import boto3
from moto.server import ThreadedMotoServer

WORDS = 100_000
DATA = 16 << 20
KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def model() -> tuple[bytes, int]:
    """A file of 2 keys and 1 tensor, and where its data start."""
    words = b"".join(string(f"word {i}") for i in range(WORDS))
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 2)
    head += string("general.architecture") + struct.pack("<I", 8) + string("llama")
    head += string("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, WORDS) + words
    head += string("output.weight") + struct.pack("<IQIQ", 1, DATA // 4, 0, 0)
    head += b"\0" * (-len(head) % 32)
    # Pieces of the pattern that follows differ, so a shifted read is noticed.
    block = hashlib.sha256(b"gguf").digest() * 2048
    data = b"".join(bytes([i]) + block[1:] for i in range(DATA // len(block)))
    return head + data, len(head)


def read(word: str, *tensor: str, **variables: str) -> subprocess.CompletedProcess:
    cargo = ["cargo", "run", "-q", "-p", "gguf-kit-remote", "--example", "header", "--"]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    return subprocess.run(
        [*cargo, word, *tensor], env=clean | variables, capture_output=True, text=True, check=False
    )


def expect(what: bool, run: subprocess.CompletedProcess) -> None:
    print(run.stdout + run.stderr, end="")
    if not what:
        sys.exit("this is not what was expected")


def main() -> None:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        s3 = boto3.client("s3", endpoint_url=endpoint, **KEYS)
        s3.create_bucket(Bucket="models")
        file, head = model()
        s3.put_object(Bucket="models", Key="some dir/tiny.gguf", Body=file)
        s3.put_object(Bucket="models", Key="some dir/README.md", Body=b"text")
        variables = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }
        for word in ["s3://models/some dir/tiny.gguf", "s3://models/some%20dir/"]:
            run = read(word, **variables)
            lines = run.stdout.splitlines()
            expect(run.returncode == 0, run)
            expect(lines[0] == f"tiny.gguf: {len(file)} bytes", run)
            expect(lines[1] == "2 keys, 1 tensors", run)
            expect(head <= int(lines[2].split()[0]) < head * 3 // 2 + (1 << 20) + 4096, run)
        run = read("s3://models/some dir/tiny.gguf", "output.weight", **variables)
        expect(f"output.weight: {DATA} bytes, sum {sum(file[head:])}" in run.stdout, run)
        run = read("s3://models/none.gguf", **variables)
        expect(run.returncode != 0 and "no such object" in run.stderr, run)
        run = read("s3://nowhere/none.gguf", **variables)
        expect(run.returncode != 0, run)
        print("all as expected")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
