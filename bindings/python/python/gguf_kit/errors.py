"""What can go wrong, as exceptions.

Whose fault it is, is the class; what kind of fault it is, is the ``code``, which stays the same when the words
change (``gguf check --explain CODE``, ``docs/findings.md``)::

    GgufError
     +-- InputError (ValueError)         what was read is at fault
     +-- RequestError (ValueError)       what was asked for cannot be
     |    +-- NotFoundError (KeyError)   there is no such tensor, row or key
     |    +-- OutputExistsError (FileExistsError)
     |    +-- ClosedError                the model is closed
     +-- MachineError (OSError)          a file cannot be read or written, a server does not answer
     |    +-- FileMissingError (FileNotFoundError)
     +-- Cancelled                       a progress function said False
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
    """What every error of this package is.

    >>> import gguf_kit
    >>> try:
    ...     gguf_kit.open("missing.gguf")
    ... except gguf_kit.GgufError as error:
    ...     print(error.code, error.fault, error)
    environment environment cannot open missing.gguf: no such file
    """

    #: The stable name of this kind of error.
    code: str = ""
    #: ``input``, ``request``, ``environment`` or ``interrupted``.
    fault: str = ""
    #: The message without the advice.
    message: str = ""
    #: What to do about it; may be empty.
    help: str = ""
    #: The file that is at fault, if one is.
    file: Optional[str] = None
    #: The key that is at fault, if one is.
    key: Optional[str] = None
    #: The tensor that is at fault, if one is.
    tensor: Optional[str] = None
    #: The byte of the file, where that is known.
    offset: Optional[int] = None

    def __str__(self) -> str:
        return self.message


class InputError(GgufError, ValueError):
    """What was read is at fault."""


class RequestError(GgufError, ValueError):
    """What was asked for cannot be."""


class NotFoundError(RequestError, KeyError):
    """There is no such tensor, row or key."""


class OutputExistsError(RequestError, FileExistsError):
    """There is a file under the name of the output, and nobody said that it may be replaced."""


class ClosedError(RequestError):
    """The model, tensor or writer is closed."""


class MachineError(GgufError, OSError):
    """The machine or the network: another time it may work."""


class FileMissingError(MachineError, FileNotFoundError):
    """There is no such file."""


class Cancelled(GgufError):
    """A progress function said ``False``. Nothing unfinished was left behind."""


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
    """The exception for an error of the crates; for the extension."""
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
