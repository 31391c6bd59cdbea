"""Names of types that several modules speak of."""

from __future__ import annotations

import os
from typing import Callable, Optional, Union

from ._native import Model

#: What a model is named by: a file, a directory, any shard, a URL, ``hf:org/repo``, ``s3://bucket/key``; or one that
#: is open.
Source = Union[str, "os.PathLike[str]", Model]

#: Is told what is done, how much of it is done, and how much it is in all; about ten times a second, from the thread
#: that called. ``False`` ends the work (``Cancelled``); so does an exception, which comes out of the call.
Progress = Callable[[str, int, int], Optional[bool]]
