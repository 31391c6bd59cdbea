"""Exceptions.

The class says who is at fault. ``code`` is a stable identifier of the error (``gguf check --explain CODE``,
``docs/findings.md``), while messages may change::

    GgufError
     +-- InputError (ValueError)         an input file is invalid
     +-- RequestError (ValueError)       a request or argument is invalid
     |    +-- NotFoundError (KeyError)   a tensor, row or key does not exist
     |    +-- OutputExistsError (FileExistsError)
     |    +-- ClosedError                the model is closed
     +-- MachineError (OSError)          an I/O or network operation failed
     |    +-- FileMissingError (FileNotFoundError)
     +-- Cancelled                       a progress callback returned False
"""

from __future__ import annotations

import errno as _errno
import os
from typing import Optional, Type

__all__ = [
    "Cancelled",
    "ClosedError",
    "FileMissingError",
    "GgufError",
    "InputError",
    "MachineError",
    "NotFoundError",
    "OutputExistsError",
    "RequestError",
]


class GgufError(Exception):
    """Base class of all exceptions of this package.

    Examples
    --------
    >>> import gguf_kit
    >>> try:
    ...     gguf_kit.open("missing.gguf")
    ... except gguf_kit.GgufError as error:
    ...     print(error.code, error.fault, error)
    environment environment cannot open missing.gguf: no such file
    """

    #: Stable identifier of the error.
    code: str = ""
    #: ``input``, ``request``, ``environment`` or ``interrupted``.
    fault: str = ""
    #: Message without the help text.
    message: str = ""
    #: How to fix it; may be empty.
    help: str = ""
    #: File at fault.
    file: Optional[str] = None
    #: Metadata key at fault.
    key: Optional[str] = None
    #: Tensor at fault.
    tensor: Optional[str] = None
    #: Offset in the file.
    offset: Optional[int] = None

    def __str__(self) -> str:
        return self.message


class InputError(GgufError, ValueError):
    """An input file is invalid."""


class RequestError(GgufError, ValueError):
    """A request or argument is invalid."""


class NotFoundError(RequestError, KeyError):
    """A tensor, row or key does not exist."""


class OutputExistsError(RequestError, FileExistsError):
    """The output file exists, and ``force`` is not set."""


class ClosedError(RequestError):
    """The model, tensor or writer is closed."""


class MachineError(GgufError, OSError):
    """An I/O or network operation failed."""


class FileMissingError(MachineError, FileNotFoundError):
    """A file does not exist."""


class Cancelled(GgufError):
    """A progress callback returned ``False``. No partial output was left behind."""


_CLASSES = {
    "input": InputError,
    "request": RequestError,
    "environment": MachineError,
    "interrupted": Cancelled,
}


def exception_of(
    code: str,
    fault: str,
    message: str,
    key: Optional[str] = None,
    tensor: Optional[str] = None,
    offset: Optional[int] = None,
    help: str = "",
    file: Optional["os.PathLike[str]"] = None,
    errno: Optional[int] = None,
) -> GgufError:
    """Return the exception of an error; called by the native module."""
    kind: Type[GgufError] = _CLASSES[fault]
    if errno == _errno.ENOENT:
        kind = FileMissingError
    elif code == "output-exists":
        kind = OutputExistsError
    elif code == "closed":
        kind = ClosedError
    elif code == "name-not-found":
        kind = NotFoundError
    error = kind(message)
    error.code, error.fault, error.message, error.help = code, fault, message, help
    error.key, error.tensor, error.offset = key, tensor, offset
    error.file = None if file is None else os.fspath(file)
    if isinstance(error, (MachineError, OutputExistsError)):
        error.errno, error.filename = errno, error.file
    return error
