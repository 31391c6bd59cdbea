"""Chat templates. They are untrusted code, so each is rendered in a sandboxed child process."""

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
    """Render a conversation with the chat template of a model, like ``transformers``.

    Parameters
    ----------
    source : path-like or Model
        The model.
    messages : sequence of mapping
        Messages with ``role`` and ``content``.
    name : str, optional
        Name of the template if the model has several.
    tools : sequence of mapping, optional
        Tool definitions.
    add_generation_prompt : bool, optional
        Append the start of the assistant's turn.
    **variables
        Variables of the template, such as ``enable_thinking``.

    Returns
    -------
    str
        The prompt.
    """
    return _native.apply_chat_template(
        source,
        json.dumps(list(messages)),
        name,
        json.dumps(tools),
        add_generation_prompt,
        json.dumps(variables),
    )
