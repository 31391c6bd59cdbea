"""Paths and URLs that are valid on every node."""

from __future__ import annotations

import os
from typing import List

from .._types import Source
from .._native import Model

__all__ = ["is_url", "location", "shards"]


def is_url(word: str) -> bool:
    """Return whether a location is remote.

    Examples
    --------
    >>> is_url("s3://bucket/model.gguf"), is_url("hf:org/repo"), is_url("model.gguf")
    (True, True, False)
    """
    return "://" in word or word.startswith("hf:")


def location(source: Source) -> str:
    """Return the absolute path or URL of a model.

    Examples
    --------
    >>> location("s3://bucket/model.gguf")
    's3://bucket/model.gguf'
    >>> location("tiny.gguf") == os.path.abspath("tiny.gguf")
    True
    """
    word = source.location if isinstance(source, Model) else os.fspath(source)
    return word if is_url(word) else os.path.abspath(word)


def shards(out: str, parts: int) -> List[str]:
    """Return the shard names of an output.

    Examples
    --------
    >>> shards("s3://bucket/model.gguf", 2)
    ['s3://bucket/model-00001-of-00002.gguf', 's3://bucket/model-00002-of-00002.gguf']
    """
    prefix = out[: -len(".gguf")] if out.endswith(".gguf") else out
    return [f"{prefix}-{number:05}-of-{parts:05}.gguf" for number in range(1, parts + 1)]
