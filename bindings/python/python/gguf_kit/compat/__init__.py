"""Drop-in replacement of the official package ``gguf``.

Examples
--------
>>> import gguf_kit.compat as gguf
>>> reader = gguf.GGUFReader("tiny.gguf")
>>> reader.get_field("general.architecture").contents()
'llama'

Notes
-----
``python -m gguf_kit.compat install`` installs it under the name ``gguf`` for programs that cannot be changed.
``docs/python.md`` lists missing features and intentional differences.
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
