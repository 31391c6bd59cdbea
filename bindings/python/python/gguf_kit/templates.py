"""Chat templates. They are programs of whoever made the model: each is rendered in a process of its own."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional, Sequence

from . import _native
from ._types import Source

__all__ = ["apply_chat_template"]


def apply_chat_template(
    source: Source,
    messages: Sequence[Mapping[str, Any]],
    *,
    name: Optional[str] = None,
    tools: Optional[Sequence[Mapping[str, Any]]] = None,
    add_generation_prompt: bool = True,
    **variables: Any,
) -> str:
    """The text that the template of a model makes of a conversation, as ``transformers`` renders it.

    ``name`` chooses among several templates; ``variables`` are for the template, such as ``enable_thinking``.
    """
    return _native.apply_chat_template(
        source,
        json.dumps(list(messages)),
        name,
        json.dumps(tools),
        add_generation_prompt,
        json.dumps(variables),
    )
