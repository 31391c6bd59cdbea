"""In the place of the official package ``gguf``: the same names, with the same results.

>>> import gguf_kit.compat as gguf
>>> reader = gguf.GGUFReader("tiny.gguf")
>>> reader.get_field("general.architecture").contents()
'llama'

Programs that cannot be changed find it under the name ``gguf`` after ``python -m gguf_kit.compat install``. What is
not covered, and what is otherwise on purpose: ``docs/python.md``.
"""

from .constants import *  # noqa: F403
from .gguf_reader import *  # noqa: F403
from .gguf_writer import *  # noqa: F403
from .lazy import *  # noqa: F403
from .metadata import *  # noqa: F403
from .quants import *  # noqa: F403
from .tensor_mapping import *  # noqa: F403
from .utility import *  # noqa: F403
from .vocab import *  # noqa: F403
