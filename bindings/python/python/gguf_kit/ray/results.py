"""JSON form of evaluation results, in the output of the command and in the results files of sweeps."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Union

from ..evaluate import KLDivergence, Perplexity

__all__ = ["from_json", "to_json"]

#: JSON names of fields. They are stable.
_JSON_NAMES = {
    "chunks": "windows",
    "mean_kld": "divergence",
    "mean_kld_error": "divergence_error",
    "median_kld": "divergence_median",
    "max_kld": "divergence_max",
    "top1_agreement": "same_top",
}


def to_json(result: Union[Perplexity, KLDivergence]) -> Dict[str, Any]:
    """Return the JSON object of a result."""
    return {_JSON_NAMES.get(name, name): value for name, value in result._asdict().items()}


def from_json(fields: Mapping[str, Any]) -> KLDivergence:
    """Return the result of a JSON object."""
    return KLDivergence(**{name: fields[_JSON_NAMES.get(name, name)] for name in KLDivergence._fields})
