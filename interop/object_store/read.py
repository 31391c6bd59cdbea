"""Reads a GGUF from object stores: moto's S3 server on loopback.

Usage: python interop/object_store/read.py

Google's and Azure's stores have the same kind of URL and GET response, so their clients read from the same server without
signatures. Needs cargo, moto[server] and boto3.
"""

import argparse
import hashlib
import http.client
import http.server
import json
import logging
import os
import struct
import subprocess
import sys
import threading

import boto3
from moto.server import ThreadedMotoServer

WORDS = 100_000
DATA = 16 << 20
KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def model() -> tuple[bytes, int]:
    """Returns a GGUF with 2 keys and 1 tensor, and the offset of its data."""
    words = b"".join(string(f"word {i}") for i in range(WORDS))
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 2)
    head += string("general.architecture") + struct.pack("<I", 8) + string("llama")
    head += string("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, WORDS) + words
    head += string("output.weight") + struct.pack("<IQIQ", 1, DATA // 4, 0, 0)
    head += b"\0" * (-len(head) % 32)
    # All blocks of the pattern differ, so that a read at a wrong offset shows.
    block = hashlib.sha256(b"gguf").digest() * 2048
    data = b"".join(bytes([i]) + block[1:] for i in range(DATA // len(block)))
    return head + data, len(head)


class Faulty(http.server.BaseHTTPRequestHandler):
    """Forwards requests to `store`, and injects faults into the responses."""

    store = ("", 0)
    """Host and port."""
    faults: list[str] = []
    """Faults of the next responses to range requests."""

    def do_GET(self) -> None:
        fault = Faulty.faults.pop(0) if self.headers["Range"] and Faulty.faults else ""
        if fault == "busy":
            self.send_error(503)
            return
        if fault == "whole":
            del self.headers["Range"]
        connection = http.client.HTTPConnection(*Faulty.store)
        connection.request(self.command, self.path, headers=dict(self.headers))
        response = connection.getresponse()
        body = response.read()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if fault == "shifted" and name.lower() == "content-range":
                value = value.replace("bytes 0-", "bytes 1-")
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if fault == "truncated" else body)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


def read(word: str, *tensor: str, **variables: str) -> subprocess.CompletedProcess:
    cargo = ["cargo", "run", "-q", "-p", "gguf-remote", "--example", "header", "--"]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "AZURE_", "GOOGLE_"))}
    run = subprocess.run(
        [*cargo, word, *tensor], env=clean | variables, capture_output=True, text=True, check=False
    )
    print(f"{word}\n  " + (run.stdout + run.stderr).strip().replace("\n", "\n  "))
    return run


def expect(condition: bool, description: str) -> None:
    if not condition:
        sys.exit(f"failed: {description}")


def stores(endpoint: str) -> dict[str, dict[str, str]]:
    """Returns the environment variables of each scheme."""
    account = {"gcs_base_url": endpoint, "disable_oauth": True}
    account |= {"client_email": "", "private_key": "", "private_key_id": ""}
    return {
        "s3": {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        },
        "gs": {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(account)},
        "az": {
            "AZURE_STORAGE_ACCOUNT_NAME": "test",
            "AZURE_STORAGE_ENDPOINT": endpoint,
            "AZURE_SKIP_SIGNATURE": "true",
        },
    }


def check(endpoint: str) -> None:
    file, head = model()
    s3 = boto3.client("s3", endpoint_url=endpoint, **KEYS)
    s3.create_bucket(Bucket="models")
    # Readable without signature.
    s3.put_object(Bucket="models", Key="some dir/tiny.gguf", Body=file, ACL="public-read")
    s3.put_object(Bucket="models", Key="some dir/README.md", Body=b"text")

    def opens(run: subprocess.CompletedProcess) -> None:
        expect(run.returncode == 0, "exit status 0")
        lines = run.stdout.splitlines()
        expect(lines[:2] == [f"tiny.gguf: {len(file)} bytes", "2 keys, 1 tensors"], "length and header")
        # At most 1 MiB more than the header, and truncated or listing responses.
        expect(head <= int(lines[2].split()[0]) < head + (1 << 20) + (1 << 18), "bytes transferred")

    for scheme, variables in stores(endpoint).items():
        run = read(f"{scheme}://models/some dir/tiny.gguf", "output.weight", **variables)
        opens(run)
        expect(f"output.weight: {DATA} bytes, sum {sum(file[head:])}" in run.stdout, "data of the tensor")
        run = read(f"{scheme}://models/none.gguf", **variables)
        expect(run.returncode != 0 and "the object does not exist" in run.stderr, "error of a missing object")
    opens(read("s3://models/some%20dir/", **stores(endpoint)["s3"]))

    Faulty.store = (endpoint.split("/")[-1].split(":")[0], int(endpoint.split(":")[-1]))
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Faulty)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    word = "s3://models/some dir/tiny.gguf"
    variables = stores(f"http://127.0.0.1:{proxy.server_port}")["s3"]
    Faulty.faults = ["busy", "truncated", "", "busy", "busy", "truncated"]
    opens(read(word, **variables))
    expect(not Faulty.faults, "all faults were injected")
    for fault in ["whole", "shifted"]:
        Faulty.faults = [fault] * 10
        expect(read(word, **variables).returncode != 0, f"error after a {fault} response")
    proxy.shutdown()


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        check("http://{}:{}".format(*server.get_host_and_port()))
    finally:
        server.stop()
    print("all passed")


if __name__ == "__main__":
    main()
