"""GGUF model files: read, check, edit, convert, quantize, run and judge them.

>>> import gguf_kit
>>> with gguf_kit.open("tiny.gguf") as model:
...     print(model.architecture, len(model))
...     print(model.metadata["llama.context_length"])
...     norm = model["output_norm.weight"]
...     print(norm.type, norm.shape, norm.data.dtype)
...     print(model["token_embd.weight"].decode(rows=3).shape)
llama 21
256
F32 (256,) float32
(256,)

A view (:attr:`Tensor.data`) keeps the file mapped, also when the model is closed.
"""

from __future__ import annotations

from collections.abc import Mapping as _Mapping

from . import errors
from ._native import Metadata, Model, Tensor, __version__, open
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

_Mapping.register(Metadata)
