"""Writes models to object stores: moto's S3 server and Azurite on loopback.

Usage: python interop/object_store/write.py GGUF_BINARY

Google's store has the same requests for multipart uploads as S3, so its client writes to moto too, without signatures. Azurite
comes from the npm registry, and is skipped without npm. Needs moto[server] and boto3.
"""

import argparse
import base64
import contextlib
import email.utils
import hashlib
import hmac
import http.client
import http.server
import json
import logging
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
from moto.server import ThreadedMotoServer

KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
SIGNED = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
ROWS = 2048
TENSORS = 40
START = time.monotonic()
GGUF = ""
"""Path of the binary."""


def expect(condition: bool, detail: object = "") -> None:
    assert condition, detail


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def make_model(path: Path) -> None:
    """Writes a model with tensors for several parts of an upload."""
    head = b"GGUF" + struct.pack("<IQQ", 3, TENSORS, 1)
    head += string("general.architecture") + struct.pack("<I", 8) + string("llama")
    size = ROWS * ROWS * 2
    for i in range(TENSORS):
        head += string(f"blk.{i}.ffn_up.weight")
        head += struct.pack("<IQQIQ", 2, ROWS, ROWS, 1, i * size)
    head += b"\0" * (-len(head) % 32)
    with path.open("wb") as file:
        file.write(head)
        for i in range(TENSORS):
            # Finite F16 values: the exponent is below that of infinity.
            row = bytes((j * 37 + i * 11 + (j % 2) * 5) % 0x78 for j in range(ROWS * 2))
            file.write(row * ROWS)


class Slow(http.server.BaseHTTPRequestHandler):
    """Forwards requests to `store`: counts and delays parts, and injects faults."""

    protocol_version = "HTTP/1.1"
    store = ("", 0)
    parts = 0
    pause = 0.0
    faults: list[int] = []

    def handle_one(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, answer, headers = 503, b"", []
        if self.command == "PUT" and "partNumber" in self.path:
            Slow.parts += 1
            time.sleep(Slow.pause)
        if not (self.command == "PUT" and Slow.faults and Slow.faults.pop(0)):
            connection = http.client.HTTPConnection(*Slow.store)
            # moto needs a signature to begin an upload; Google's client does not sign here.
            sent = {"Authorization": SIGNED} | dict(self.headers)
            connection.request(self.command, self.path, body, sent)
            response = connection.getresponse()
            status, answer, headers = response.status, response.read(), response.getheaders()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            length = dict((n.lower(), v) for n, v in headers).get("content-length", str(len(answer)))
            self.send_header("Content-Length", length if self.command == "HEAD" else str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_one

    def log_message(self, *_: object) -> None:
        pass


def environment(variables: dict[str, str]) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "AZURE_", "GOOGLE_"))}
    return clean | variables


def gguf(*words: object, fails: int = 0, **variables: str) -> str:
    run = subprocess.run(
        [GGUF, *map(str, words)], env=environment(variables), capture_output=True, text=True
    )
    shown = " ".join(map(str, words))
    print(f"[{time.monotonic() - START:.1f} s] gguf {shown}\n  " + (run.stdout + run.stderr).strip().replace("\n", "\n  "))
    expect(run.returncode == fails, f"status {run.returncode}")
    return run.stdout + run.stderr


def s3_variables(endpoint: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }


class Bucket:
    """Contents of the bucket, read with boto3."""

    def __init__(self, endpoint: str) -> None:
        self.s3 = boto3.client("s3", endpoint_url=endpoint, **KEYS)
        self.s3.create_bucket(Bucket="out")

    def names(self) -> list[str]:
        return [o["Key"] for o in self.s3.list_objects_v2(Bucket="out").get("Contents", [])]

    def uploads(self) -> int:
        return len(self.s3.list_multipart_uploads(Bucket="out").get("Uploads", []))

    def bytes(self, key: str) -> bytes:
        return self.s3.get_object(Bucket="out", Key=key)["Body"].read()

    def empty(self) -> None:
        for name in self.names():
            self.s3.delete_object(Bucket="out", Key=name)


def whole(bucket: Bucket, dir: Path, source: Path, variables: dict[str, str]) -> None:
    """Compares objects with local files, for all commands that write models."""
    gguf("quantize", source, dir / "q8.gguf", "Q8_0")
    local = (dir / "q8.gguf").read_bytes()
    gguf("quantize", source, "s3://out/a dir/q8.gguf", "Q8_0", **variables)
    expect(bucket.bytes("a dir/q8.gguf") == local)
    gguf("quantize", source, "s3://out/a dir/q8.gguf", "Q8_0", fails=2, **variables)
    gguf("quantize", source, "s3://out/a dir/q8.gguf", "Q4_0", "--force", **variables)
    gguf("quantize", source, dir / "q4.gguf", "Q4_0")
    expect(bucket.bytes("a dir/q8.gguf") == (dir / "q4.gguf").read_bytes())
    expect(bucket.names() == ["a dir/q8.gguf"] and not bucket.uploads(), bucket.names())
    # From a bucket to a bucket, and not onto the input.
    gguf("quantize", "s3://out/a dir/q8.gguf", "s3://out/f16.gguf", "F16", "--allow-requantize", **variables)
    word = gguf("quantize", "s3://out/f16.gguf", "s3://out/f16.gguf", "Q8_0", "--force", fails=2, **variables)
    expect("is an input" in word)
    bucket.empty()
    for i in (1, 2, 3):
        gguf("quantize", "--part", f"{i}/3", source, "s3://out/p.gguf", "Q8_0", **variables)
        gguf("quantize", "--part", f"{i}/3", source, dir / "p.gguf", "Q8_0")
        name = f"p-{i:05}-of-00003.gguf"
        expect(bucket.bytes(name) == (dir / name).read_bytes())
    gguf("merge", "s3://out/p-00001-of-00003.gguf", "s3://out/merged.gguf", **variables)
    expect(bucket.bytes("merged.gguf") == local)
    gguf("split", "--split-max-size", "60M", dir / "q8.gguf", "s3://out/s", **variables)
    gguf("split", "--split-max-size", "60M", dir / "q8.gguf", dir / "s")
    shards = sorted(dir.glob("s-*.gguf"))
    expect(len(shards) > 2 and all(bucket.bytes(s.name) == s.read_bytes() for s in shards))
    # A local and a remote output in one pass.
    gguf("quantize", source, "--out", f"Q8_0={dir}/local.gguf", "--out", "Q4_0=s3://out/remote.gguf", **variables)
    expect((dir / "local.gguf").read_bytes() == local)
    expect(bucket.bytes("remote.gguf") == (dir / "q4.gguf").read_bytes() and not bucket.uploads())
    bucket.empty()


def interrupted(bucket: Bucket, dir: Path, source: Path, variables: dict[str, str]) -> None:
    """Failed, stopped and killed runs leave no partial object, and no upload that is not cleaned up later."""
    local = (dir / "q8.gguf").read_bytes()
    word = ["quantize", source, "s3://out/q8.gguf", "Q8_0"]
    Slow.faults = [0, 0, 1, 0, 1, 1]
    gguf(*word, **variables)
    expect(bucket.bytes("q8.gguf") == local and not Slow.faults)
    bucket.empty()

    Slow.pause = 2.0

    def stop(sent: signal.Signals, *flags: str, parts: int = 3) -> None:
        Slow.parts = 0
        run = subprocess.Popen([GGUF, *map(str, word), *flags], env=environment(variables))
        while Slow.parts < parts:
            time.sleep(0.02)
            expect(run.poll() is None)
        # Some parts are complete, others in progress.
        time.sleep(1.2)
        expect("q8.gguf" not in bucket.names())
        run.send_signal(sent)
        run.wait()

    for how in (signal.SIGINT, signal.SIGTERM):
        stop(how)
        expect(not bucket.names() and not bucket.uploads(), (bucket.names(), bucket.uploads()))
    stop(signal.SIGKILL)
    record = ".q8.gguf.unfinished.gguf-kit-part"
    expect(bucket.names() == [record] and bucket.uploads() == 1, bucket.names())
    Slow.pause = 0
    # The next writer removes the upload of the killed one.
    gguf(*word, **variables)
    expect(bucket.names() == ["q8.gguf"] and not bucket.uploads() and bucket.bytes("q8.gguf") == local)
    Slow.parts = 0
    bucket.empty()
    gguf(*word, **variables)
    total = Slow.parts
    bucket.empty()
    Slow.pause = 2.0
    # The record is written every three seconds.
    # Parts in progress are completed after Ctrl-C, so it is sent early.
    for how, parts in ((signal.SIGKILL, 9), (signal.SIGINT, 1)):
        stop(how, "--resume", parts=parts)
        expect(bucket.names() == [record] and bucket.uploads() == 1, bucket.names())
        Slow.pause, Slow.parts = 0, 0
        gguf(*word, "--resume", **variables)
        print(f"  {Slow.parts} of {total} parts were uploaded again")
        expect(0 < Slow.parts < total)
        expect(bucket.names() == ["q8.gguf"] and not bucket.uploads())
        expect(bucket.bytes("q8.gguf") == local)
        bucket.empty()
        Slow.pause = 2.0
    Slow.pause = 0


def refused(bucket: Bucket, dir: Path, source: Path, variables: dict[str, str]) -> None:
    """Impossible requests fail at once, with a message that quotes the argument."""
    check_message = lambda word, *parts: expect(all(part in word for part in parts), word)
    check_message(gguf("quantize", source, "s3://out/x.gguf", "Q8_0", fails=3), "AWS_ACCESS_KEY_ID")
    check_message(gguf("quantize", source, "s3://none/x.gguf", "Q8_0", fails=3, **variables), "bucket")
    check_message(gguf("quantize", source, "s3://out/", "Q8_0", fails=2, **variables), "bucket and a key")
    check_message(gguf("quantize", source, "ftp://out/x.gguf", "Q8_0", fails=2, **variables), "ftp://out/x.gguf")
    check_message(gguf("edit", source, "--set", "a.b=1", "-o", "https://h/x.gguf", fails=2, **variables), "https://h/x.gguf")
    expect(not bucket.names())


def other_stores(proxy: str, bucket: Bucket, dir: Path, source: Path) -> None:
    local = (dir / "q8.gguf").read_bytes()
    account = {"gcs_base_url": proxy, "disable_oauth": True}
    account |= {"client_email": "", "private_key": "", "private_key_id": ""}
    variables = {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(account)}
    gguf("quantize", source, "gs://out/q8.gguf", "Q8_0", **variables)
    expect(bucket.bytes("q8.gguf") == local and not bucket.uploads())
    with azurite(dir) as variables:
        if variables:
            gguf("quantize", source, "az://out/a/q8.gguf", "Q8_0", **variables)
            gguf("quantize", source, "az://out/a/q8.gguf", "Q8_0", fails=2, **variables)
            gguf("merge", "az://out/a/q8.gguf", dir / "back.gguf", **variables)
            expect((dir / "back.gguf").read_bytes() == local)


@contextlib.contextmanager
def azurite(dir: Path) -> Iterator[dict[str, str]]:
    """Starts Microsoft's emulator of its blob store, with one container."""
    npm = shutil.which("npm")
    if npm is None:
        print("SKIPPED: az://, because npm is missing")
        yield {}
        return
    subprocess.run([npm, "install", "--silent", "--no-fund", "--no-audit", "azurite@3"], cwd=dir, check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = dir / "node_modules/.bin/azurite-blob"
    words = [program, "--blobPort", str(port), "--inMemoryPersistence", "--skipApiVersionCheck", "--silent", "--disableTelemetry"]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    try:
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        yield {
            "AZURE_STORAGE_ACCOUNT_NAME": "devstoreaccount1",
            "AZURE_STORAGE_ACCOUNT_KEY": key,
            "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{port}/devstoreaccount1",
        } | container(port, key)
    finally:
        server.kill()


def container(port: int, key: str) -> dict[str, str]:
    """Creates the container."""
    date, version = email.utils.formatdate(usegmt=True), "2021-08-06"
    headers = f"x-ms-date:{date}\nx-ms-version:{version}\n"
    resource = "/devstoreaccount1/devstoreaccount1/out\nrestype:container"
    text = "PUT" + "\n" * 12 + headers + resource
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    signature = base64.b64encode(digest).decode()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(
        "PUT",
        "/devstoreaccount1/out?restype=container",
        headers={
            "x-ms-date": date,
            "x-ms-version": version,
            "Content-Length": "0",
            "Authorization": f"SharedKey devstoreaccount1:{signature}",
        },
    )
    answer = connection.getresponse()
    expect(answer.status == 201, answer.read())
    return {}


def main() -> None:
    global GGUF
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf", type=os.path.abspath)
    GGUF = parser.parse_args().gguf
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    Slow.store = (host, port)
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    slow = s3_variables(f"http://127.0.0.1:{proxy.server_port}")
    try:
        with tempfile.TemporaryDirectory() as name:
            dir = Path(name)
            source = dir / "f16.gguf"
            make_model(source)
            bucket = Bucket(endpoint)
            whole(bucket, dir, source, s3_variables(endpoint))
            interrupted(bucket, dir, source, slow)
            refused(bucket, dir, source, s3_variables(endpoint))
            other_stores(slow["AWS_ENDPOINT_URL"], bucket, dir, source)
    finally:
        server.stop()
    print("all passed")


if __name__ == "__main__":
    main()
