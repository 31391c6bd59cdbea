"""Types that several modules share."""

from __future__ import annotations

import os
from typing import Callable, Optional, Union

from ._native import Model

__all__ = ["PathLike", "Progress", "Source"]

PathLike = Union[str, "os.PathLike[str]"]

#: A model: a file, a directory, any shard, a URL, ``hf:org/repo``, ``s3://bucket/key``, or an open model.
Source = Union[str, "os.PathLike[str]", Model]

#: Progress callback ``(step, done, total)``, called about ten times per second from the calling thread. It cancels the
#: task by returning ``False`` (the call raises ``Cancelled``) or by raising an exception.
Progress = Callable[[str, int, int], Optional[bool]]
