"""Tests and examples run in a folder of their own, beside a small model that they make."""

import os
from pathlib import Path

import numpy as np
import pytest

#: `gguf demo` has it.
CHECKPOINT = Path(
    os.environ.get("GGUF_DEMO") or Path(__file__).parent.parent.parent / "crates" / "demo" / "Tiny-KJV-Llama-4M"
)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A small model, converted of the checkpoint of `gguf demo`."""
    import gguf_kit

    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    gguf_kit.convert(CHECKPOINT, {"f32": path})
    gguf_kit.edit(path, set={"general.name": "Tiny"})
    return path


@pytest.fixture(autouse=True)
def folder(tmp_path, tiny, monkeypatch):
    """Everything is written where nothing is lost."""
    os.link(tiny, tmp_path / "tiny.gguf")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def names(doctest_namespace):
    doctest_namespace["np"] = np
