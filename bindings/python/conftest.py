"""Fixtures. Tests and doctests run in a temporary directory with a small model."""

import os
import urllib.request
from pathlib import Path

import numpy as np
import pytest

#: The checkpoint of `gguf demo`.
CHECKPOINT = Path(
    os.environ.get("GGUF_DEMO") or Path(__file__).parent.parent.parent / "testdata" / "Tiny-KJV-Llama-4M"
)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Convert the demo checkpoint to F32."""
    import gguf_kit

    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    gguf_kit.convert(CHECKPOINT, {"f32": path})
    gguf_kit.edit(path, set={"general.name": "Tiny"})
    return path


@pytest.fixture
def checkpoint():
    return CHECKPOINT


@pytest.fixture
def bucket(monkeypatch):
    """Start a local S3 server with a bucket named `models`; returns a client."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    for name, value in (*keys.items(), ("aws_endpoint_url", endpoint), ("aws_region", "us-east-1")):
        monkeypatch.setenv(name.upper(), value)
    client = pytest.importorskip("boto3").client("s3", endpoint_url=endpoint, **keys)
    # All servers of a process share their state.
    urllib.request.urlopen(urllib.request.Request(endpoint + "/moto-api/reset", method="POST")).close()
    client.create_bucket(Bucket="models")
    yield client
    server.stop()


@pytest.fixture(autouse=True)
def folder(tmp_path, tiny, monkeypatch):
    """Run a test in a temporary directory."""
    os.link(tiny, tmp_path / "tiny.gguf")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def names(doctest_namespace):
    doctest_namespace["np"] = np
