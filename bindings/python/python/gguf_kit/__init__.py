"""GGUF model files: read, check, edit, convert, quantize, run and evaluate them.

Examples
--------

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

Notes
-----
An array of :attr:`Tensor.data` keeps the file mapped after the model is closed.
"""

from __future__ import annotations

import collections.abc as _abc
from typing import Any as _Any

from . import errors
from ._deprecation import warn_renamed as _warn_renamed
from ._edit import EditResult, edit
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
from .analysis import Digest, Finding, check, diff, hash
from .chat_template import apply_chat_template
from .codecs import TYPES, TensorType, decode, encode, tensor_type
from .conversion import Recipe, WriteResult, convert, merge, part_fingerprint, quantize
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
from .evaluate import KLDivergence, Perplexity, imatrix, kl_divergence, merge_parts, perplexity

__all__ = [
    "TYPES",
    "Cancelled",
    "ClosedError",
    "Digest",
    "EditResult",
    "FileMissingError",
    "Finding",
    "GgufError",
    "Imatrix",
    "InputError",
    "KLDivergence",
    "MachineError",
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
    "WriteResult",
    "__version__",
    "apply_chat_template",
    "check",
    "convert",
    "decode",
    "diff",
    "edit",
    "encode",
    "errors",
    "hash",
    "imatrix",
    "kl_divergence",
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

_DEPRECATED = {
    "Divergence": "KLDivergence",
    "Edited": "EditResult",
    "Made": "WriteResult",
    "divergence": "kl_divergence",
}


def __getattr__(name: str) -> _Any:
    """Return the object of a deprecated name."""
    if name in _DEPRECATED:
        _warn_renamed(name, _DEPRECATED[name])
        return globals()[_DEPRECATED[name]]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
