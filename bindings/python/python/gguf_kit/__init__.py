"""GGUF model files: read, check, edit, convert, quantize, run and judge them.

>>> import gguf_kit
>>> with gguf_kit.open("tiny.gguf") as model:
...     print(model.architecture, len(model))
...     print(model.metadata["llama.context_length"])
...     norm = model["output_norm.weight"]
...     print(norm.type, norm.shape, norm.data.dtype)
...     print(model["token_embd.weight"].decode(rows=3).shape)
llama 39
512
F32 (256,) float32
(256,)

A view (:attr:`Tensor.data`) keeps the file mapped, also when the model is closed.
"""

from __future__ import annotations

import collections.abc as _abc
from typing import Any as _Any

from . import errors
from ._native import (
    Imatrix,
    Metadata,
    Model,
    Runner,
    Tensor,
    Tokenizer,
    __version__,
    open,
)
from .change import Edited, Made, Recipe, convert, edit, merge, part_fingerprint, quantize
from .codecs import TYPES, TensorType, decode, encode, tensor_type
from .errors import (
    Cancelled,
    ClosedError,
    FileMissingError,
    GgufError,
    InputError,
    MachineError,
    NotFoundError,
    OutputExistsError,
    RequestError,
)
from .judge import Divergence, Perplexity, divergence, imatrix, merge_parts, perplexity
from .look import Digest, Finding, check, diff, hash
from .templates import apply_chat_template

__all__ = [
    "TYPES",
    "Cancelled",
    "ClosedError",
    "Digest",
    "Divergence",
    "Edited",
    "FileMissingError",
    "Finding",
    "GgufError",
    "Imatrix",
    "InputError",
    "MachineError",
    "Made",
    "Metadata",
    "Model",
    "NotFoundError",
    "OutputExistsError",
    "Perplexity",
    "Recipe",
    "RequestError",
    "Runner",
    "Tensor",
    "TensorType",
    "Tokenizer",
    "__version__",
    "apply_chat_template",
    "check",
    "convert",
    "decode",
    "diff",
    "divergence",
    "edit",
    "encode",
    "errors",
    "hash",
    "imatrix",
    "merge",
    "merge_parts",
    "open",
    "part_fingerprint",
    "perplexity",
    "quantize",
    "tensor_type",
]

_mapping: _Any = _abc.Mapping
_mapping.register(Metadata)
