"""Model metadata from the model card, the configuration, the directory name, and overrides of the user."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple

from .constants import Keys

__all__ = ["Metadata"]

logger = logging.getLogger("metadata")

_Components = Tuple[Optional[str], Optional[str], Optional[str], Optional[str], Optional[str], Optional[str]]

#: Fields of the generation configuration, and our names.
_SAMPLING = {
    "sequence": "sequence",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "xtc_probability": "xtc_probability",
    "xtc_threshold": "xtc_threshold",
    "temperature": "temp",
    "penalty_last_n": "penalty_last_n",
    "repetition_penalty": "penalty_repeat",
    "penalty_repeat": "penalty_repeat",
    "mirostat": "mirostat",
    "mirostat_tau": "mirostat_tau",
    "mirostat_eta": "mirostat_eta",
}
#: Fields of a model card in order of precedence, and our names.
_CARD = [
    *((name, name) for name in "name author version organization description finetune basename size_label".split()),
    *((name, f"source_{name}") for name in "url doi uuid repo_url".split()),
    *((f"model_{name}", name) for name in "name author version organization description finetune basename".split()),
    ("model_size_label", "size_label"),
    *((f"model_{name}", f"source_{name}") for name in "url doi uuid repo_url".split()),
    ("model_creator", "author"),
    ("model_type", "basename"),
]


@dataclass
class Metadata:
    """Model metadata.

    >>> Metadata.get_model_id_components("mistralai/Mixtral-8x7B-Instruct-v0.1")[2:]
    ('Mixtral', 'Instruct', 'v0.1', '8x7B')
    """

    sampling_sequence: Optional[str] = None
    sampling_top_k: Optional[int] = None
    sampling_top_p: Optional[float] = None
    sampling_min_p: Optional[float] = None
    sampling_xtc_probability: Optional[float] = None
    sampling_xtc_threshold: Optional[float] = None
    sampling_temp: Optional[float] = None
    sampling_penalty_last_n: Optional[int] = None
    sampling_penalty_repeat: Optional[float] = None
    sampling_mirostat: Optional[int] = None
    sampling_mirostat_tau: Optional[float] = None
    sampling_mirostat_eta: Optional[float] = None
    name: Optional[str] = None
    author: Optional[str] = None
    version: Optional[str] = None
    organization: Optional[str] = None
    finetune: Optional[str] = None
    basename: Optional[str] = None
    description: Optional[str] = None
    quantized_by: Optional[str] = None
    size_label: Optional[str] = None
    url: Optional[str] = None
    doi: Optional[str] = None
    uuid: Optional[str] = None
    repo_url: Optional[str] = None
    source_url: Optional[str] = None
    source_doi: Optional[str] = None
    source_uuid: Optional[str] = None
    source_repo_url: Optional[str] = None
    license: Optional[str] = None
    license_name: Optional[str] = None
    license_link: Optional[str] = None
    base_models: Optional[List[Any]] = None
    tags: Optional[List[str]] = None
    languages: Optional[List[str]] = None
    datasets: Optional[List[Any]] = None

    @staticmethod
    def load(
        metadata_override_path: Optional[Path] = None,
        model_path: Optional[Path] = None,
        model_name: Optional[str] = None,
        total_params: int = 0,
    ) -> "Metadata":
        """Load all metadata. Overrides take precedence."""
        metadata = Metadata()
        card = Metadata.load_model_card(model_path)
        config = Metadata.load_hf_parameters(model_path)
        metadata = Metadata.apply_metadata_heuristic(metadata, card, config, model_path, total_params)
        generation = Metadata.load_generation_config(model_path) or {}
        for theirs, ours in _SAMPLING.items():
            if theirs in generation:
                setattr(metadata, f"sampling_{ours}", generation[theirs])
        override = Metadata.load_metadata_override(metadata_override_path)
        for field in fields(Metadata):
            # The license cannot be overridden.
            if field.name == "license":
                continue
            key = {"base_models": "general.base_models", "datasets": "general.datasets"}.get(field.name)
            key = key or getattr(Keys.General, field.name.upper())
            if key in override:
                setattr(metadata, field.name, override[key])
        if model_name is not None:
            metadata.name = model_name
        return metadata

    @staticmethod
    def load_metadata_override(metadata_override_path: Optional[Path] = None) -> Dict[str, Any]:
        """Load the overrides of the user from a JSON file."""
        return _json(metadata_override_path)

    @staticmethod
    def load_hf_parameters(model_path: Optional[Path] = None) -> Dict[str, Any]:
        """Load the configuration of a checkpoint."""
        return _json(_file(model_path, "config.json"))

    @staticmethod
    def load_generation_config(model_path: Optional[Path] = None) -> Dict[str, Any]:
        """Load the generation configuration. Unreadable files are ignored."""
        try:
            return _json(_file(model_path, "generation_config.json"))
        except (json.JSONDecodeError, OSError):
            return {}

    @staticmethod
    def load_model_card(model_path: Optional[Path] = None) -> Dict[str, Any]:
        """Load the fields of a model card. Requires the package ``PyYAML``."""
        card = _file(model_path, "README.md")
        lines = card.read_text(encoding="utf-8").splitlines() if card is not None and card.is_file() else []
        if not lines or lines[0] != "---":
            return {}
        import yaml  # type: ignore[import-untyped]

        end = lines.index("---", 1) if "---" in lines[1:] else len(lines)
        text = "\n".join(lines[1:end]) + "\n"
        # `no` is the language Norwegian, not a boolean; YAML forbids tabs as indentation.
        text = text.replace("- no\n", '- "no"\n').replace("\t", "  ")
        found = yaml.safe_load(text)
        if not isinstance(found, dict):
            logger.error("while reading YAML model card frontmatter, data is %s instead of dict", type(found))
            return {}
        return found

    @staticmethod
    def id_to_title(string: str) -> str:
        """Capitalize words, except versions.

        >>> Metadata.id_to_title("tiny-llama-v1")
        'Tiny Llama v1'
        """
        words = string.strip().replace("-", " ").split()
        plain = re.compile(r"(v\d+(?:\.\d+)*|\d.*)")
        return " ".join(w.title() if w.islower() and not plain.fullmatch(w) else w for w in words)

    @staticmethod
    def get_model_id_components(model_id: Optional[str] = None, total_params: int = 0) -> _Components:
        """Split a model id into name, organization, base name, finetune, version and size."""
        if model_id is None or " " in model_id:
            return model_id, None, None, None, None, None
        organization, _, name = model_id.rpartition("/") if model_id.count("/") <= 1 else model_id.partition("/")
        parts = [part for part in name.split("-") if part]
        kinds = _annotate(parts, total_params)

        def joined(*wanted: str, apart: str = "") -> Optional[str]:
            found = (p for p, kind in zip(parts, kinds) if kind & set(wanted) and apart not in kind)
            return "-".join(found) or None

        sizes = dict.fromkeys(p for p, kind in zip(parts, kinds) if "size_label" in kind)
        size, finetune = "-".join(sizes) or None, joined("finetune")
        version = joined("version", apart="basename")
        basename = joined("basename")
        if size is None and finetune is None and version is None:
            basename = None
        of = organization if organization and not organization.startswith(".") else None
        # The organization of "/name" is empty.
        of = "" if "/" in model_id and organization == "" else of
        return name, of, basename, finetune, version, size

    @staticmethod
    def apply_metadata_heuristic(
        metadata: "Metadata",
        model_card: Optional[Dict[str, Any]] = None,
        hf_params: Optional[Dict[str, Any]] = None,
        model_path: Optional[Path] = None,
        total_params: int = 0,
    ) -> "Metadata":
        """Fill missing fields from the model card, the configuration and the directory name."""
        if model_card is not None:
            metadata._add_card(model_card, total_params)
        path = (hf_params or {}).get("_name_or_path")
        if path is not None and path.count("/") <= 1:
            metadata._add_name(path, total_params)
        if model_path is not None:
            metadata._add_name(model_path.name, total_params)
        return metadata

    def _add_card(self, card: Dict[str, Any], total_params: int) -> None:
        def take(theirs: str, ours: str) -> None:
            if theirs in card and getattr(self, ours) is None:
                setattr(self, ours, card[theirs])

        for theirs, ours in _CARD:
            take(theirs, ours)
        self.base_models = _origins(card, "base_model", self.base_models, total_params)
        self.datasets = _origins(card, "dataset", self.datasets, total_params)
        for name in ("license", "license_name", "license_link"):
            take(name, name)
        for ours, theirs in (("tags", "tags"), ("tags", "pipeline_tag"), ("languages", "languages"), ("languages", "language")):
            more = card.get(theirs)
            if more is not None:
                known = getattr(self, ours) or []
                known.extend([more] if isinstance(more, str) else more if isinstance(more, list) else [])
                setattr(self, ours, known)

    def _add_name(self, model_id: str, total_params: int) -> None:
        name, organization, *rest = Metadata.get_model_id_components(model_id, total_params)
        found = {
            "name": None if name is None else Metadata.id_to_title(name),
            "organization": None if organization is None else Metadata.id_to_title(organization),
            **dict(zip(("basename", "finetune", "version", "size_label"), rest)),
        }
        for field, value in found.items():
            if getattr(self, field) is None and value is not None:
                setattr(self, field, value)

    def set_gguf_meta_model(self, gguf_writer: Any) -> None:
        """Set the keys of a writer."""
        assert self.name is not None
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if field.name in ("base_models", "datasets"):
                _add_origins(gguf_writer, field.name[:-1], value)
                continue
            if field.name == "license" and isinstance(value, list):
                value = ",".join(value)
            getattr(gguf_writer, f"add_{field.name}")(value)


def _file(directory: Optional[Path], name: str) -> Optional[Path]:
    return directory / name if directory is not None and directory.is_dir() else None


def _json(path: Optional[Path]) -> Dict[str, Any]:
    if path is None or not path.is_file():
        return {}
    found: Dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


_SIZE = re.compile(r"(([A]|\d+[x])?\d+([._]\d+)?[KMBT][\d]?|small|mini|medium|large|x?xl)", re.IGNORECASE)
_VERSION = re.compile(r"(v|iter)?\d+([.]\d+)*", re.IGNORECASE)
_QUANTIZED = re.compile(r"i?q\d(_\w)*|b?fp?(16|32)", re.IGNORECASE)
_TUNED = re.compile(r"chat|instruct|vision|lora", re.IGNORECASE)


def _annotate(parts: List[str], total_params: int) -> List[Set[str]]:
    """Classify the parts of a name. Sizes and types are normalized in place."""
    kinds: List[Set[str]] = [set() for _ in parts]
    for i, part in enumerate(parts):
        if _VERSION.fullmatch(part):
            kinds[i].add("version")
        elif _QUANTIZED.fullmatch(part):
            kinds[i].add("type")
            parts[i] = part.upper()
        elif i > 0 and _SIZE.fullmatch(part):
            parts[i], meaning = _size(part, total_params)
            kinds[i].add(meaning)
        elif i > 0 and _TUNED.fullmatch(part):
            is_lora = total_params < 0 and part.lower() == "lora"
            kinds[i].add("type" if is_lora else "finetune")
    sizes = [(part, kind) for part, kind in zip(parts, kinds) if "size_label" in kind]
    if any(c.isdecimal() for part, _ in sizes for c in part):
        for part, kind in sizes:
            if part.isalpha():
                kind.remove("size_label")
    at_start = True
    for part, kind in zip(parts, kinds):
        if at_start and ((not kind and part[0].isalpha()) or "version" in kind):
            kind.add("basename")
            continue
        at_start = False
        if not kind:
            kind.add("finetune")
    # A trailing version does not belong to the base name.
    for kind in reversed(kinds):
        if "basename" not in kind or len(kind) == 1:
            break
        kind.remove("basename")
    return kinds


def _size(part: str, total_params: int) -> Tuple[str, str]:
    """Normalize a size label. It is a context length if it differs greatly from the model size."""
    part = part.replace("_", ".")
    if part[-1].isdecimal():
        # 7b1 means 7.1b.
        part = f"{part[:-2]}.{part[-1]}{part[-2]}"
    if len(part) > 1 and part[-2].isdecimal() and part[-1] in "kmbt":
        part = part[:-1] + part[-1].upper()
    if total_params == 0:
        return part, "size_label"
    try:
        said = float(part[:-1]) * pow(1000, " KMBT".find(part[-1]))
    except ValueError:
        return part, "size_label"
    differs = said < abs(total_params) // 8 if total_params < 0 else abs(said - total_params) > 7 * total_params // 8
    return (part[:-1] + part[-1].lower(), "finetune") if differs else (part, "size_label")


def _origins(card: Dict[str, Any], field: str, known: Optional[List[Any]], total_params: int) -> Optional[List[Any]]:
    """Return the base models or datasets of a model card."""
    names = [field, f"{field}s", f"{field}_sources"]
    names = ["datasets", "dataset", "dataset_sources"] if field == "dataset" else names
    if not any(name in card for name in names):
        return known
    said = next(card[name] for name in names if name in card)
    all_of_them = known or []
    for one in [said] if isinstance(said, str) else said if isinstance(said, list) else []:
        if isinstance(one, str):
            all_of_them.append(_origin(one, total_params))
        elif isinstance(one, dict):
            all_of_them.append(one)
        else:
            logger.error("%s entry %r not in a known format", field.replace("_", " "), str(one))
            all_of_them.append({})
    return all_of_them


def _origin(said: str, total_params: int) -> Dict[str, str]:
    """Parse a model name or URL."""
    found: Dict[str, str] = {}
    is_url = said.startswith(("http://", "https://", "ssh://"))
    if is_url:
        found["repo_url"] = said
        match = re.match(r"https?://huggingface.co/([^/]+/[^/]+)$", said)
        if match is None:
            return found
        said = match.group(1)
    name, organization, _, _, version, _ = Metadata.get_model_id_components(said, total_params)
    if name is not None:
        found["name"] = Metadata.id_to_title(name)
    if organization is not None:
        found["organization"] = Metadata.id_to_title(organization)
    if version is not None:
        found["version"] = version
    if not is_url and name is not None and organization is not None:
        found["repo_url"] = f"https://huggingface.co/{organization}/{name}"
    return found


def _add_origins(writer: Any, field: str, origins: List[Any]) -> None:
    getattr(writer, f"add_{field}_count")(len(origins))
    for number, origin in enumerate(origins):
        for name in "name author version organization description url doi uuid repo_url".split():
            if name in origin:
                getattr(writer, f"add_{field}_{name}")(number, origin[name])
