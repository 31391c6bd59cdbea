"""Mapping of checkpoint tensor names to GGUF names."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple

from .constants import _TABLE, MODEL_ARCH, MODEL_TENSOR, MODEL_TENSORS, TENSOR_NAMES

__all__ = ["TensorNameMap", "get_tensor_name_map"]

_Names = Dict[Any, Tuple[str, ...]]


def _names(table: Dict[str, Sequence[str]]) -> _Names:
    return {MODEL_TENSOR[tensor]: tuple(names) for tensor, names in table.items()}


class TensorNameMap:
    """Tensor names of an architecture.

    >>> from gguf_kit.compat import MODEL_ARCH
    >>> TensorNameMap(MODEL_ARCH.LLAMA, 2).get_name("model.layers.1.mlp.up_proj.weight", (".weight",))
    'blk.1.ffn_up.weight'
    """

    mappings_cfg: _Names = _names(_TABLE["names"])
    block_mappings_cfg: _Names = _names(_TABLE["block_names"])
    arch_block_mappings_cfg: Dict[Any, _Names] = {
        MODEL_ARCH[arch]: _names(names) for arch, names in _TABLE["arch_block_names"].items()
    }
    mapping: Dict[str, Tuple[Any, str]]

    def __init__(self, arch: Any, n_blocks: int) -> None:
        known = set(MODEL_TENSORS[arch])
        self.mapping = {}
        self.block_mappings_cfg = {
            **type(self).block_mappings_cfg,
            **self.arch_block_mappings_cfg.get(arch, {}),
        }
        self._add(known, self.mappings_cfg, None)
        for block in range(n_blocks):
            self._add(known, self.block_mappings_cfg, block)

    def _add(self, known: "set[Any]", names: _Names, block: Optional[int]) -> None:
        def numbered(name: str) -> str:
            return name if block is None else name.format(bid=block)

        for tensor, foreign in names.items():
            if tensor in known:
                gguf_name = numbered(TENSOR_NAMES[tensor])
                for name in (TENSOR_NAMES[tensor], *foreign):
                    self.mapping[numbered(name)] = (tensor, gguf_name)

    def get_type_and_name(self, key: str, try_suffixes: Sequence[str] = ()) -> Optional[Tuple[Any, str]]:
        """Return the tensor and its GGUF name, with the first matching suffix."""
        for suffix in ("", *try_suffixes):
            if key.endswith(suffix):
                found = self.mapping.get(key[: len(key) - len(suffix)])
                if found is not None:
                    return found[0], found[1] + suffix
        return None

    def get_name(self, key: str, try_suffixes: Sequence[str] = ()) -> Optional[str]:
        """Return the GGUF name."""
        found = self.get_type_and_name(key, try_suffixes)
        return None if found is None else found[1]

    def get_type(self, key: str, try_suffixes: Sequence[str] = ()) -> Any:
        """Return the tensor."""
        found = self.get_type_and_name(key, try_suffixes)
        return None if found is None else found[0]

    def __getitem__(self, key: str) -> str:
        return self.mapping[key][1]

    def __contains__(self, key: str) -> bool:
        return key in self.mapping

    def __repr__(self) -> str:
        return repr(self.mapping)


def get_tensor_name_map(arch: Any, n_blocks: int) -> TensorNameMap:
    """Return the tensor names of an architecture with ``n_blocks`` layers."""
    return TensorNameMap(arch, n_blocks)
