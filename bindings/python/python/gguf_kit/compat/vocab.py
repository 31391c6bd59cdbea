"""Vocabularies of checkpoints: special tokens, merges, chat templates."""

from __future__ import annotations

import json
import logging
import os
import re
from enum import Enum
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from .constants import TokenType

__all__ = ["LlamaHfVocab", "MistralTokenizerType", "MistralVocab", "NoVocab", "SpecialVocab"]

logger = logging.getLogger(__name__)


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


class SpecialVocab:
    """Special tokens, merges and chat template of a checkpoint."""

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        load_merges: bool = False,
        special_token_types: Optional[Iterable[str]] = None,
        n_vocab: Optional[int] = None,
    ) -> None:
        self.special_token_ids: Dict[str, int] = {}
        self.add_special_token: Dict[str, bool] = {}
        self.n_vocab, self.load_merges = n_vocab, load_merges
        self.merges: List[str] = []
        self.chat_template: Any = None
        self.normalizer_lowercase: Optional[bool] = None
        self.normalizer_strip_accents: Optional[bool] = None
        types = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
        self.special_token_types: Any = types if special_token_types is None else special_token_types
        folder = Path(path)
        tokenizer = _json(folder / "tokenizer.json")
        config = _json(folder / "tokenizer_config.json")
        if tokenizer:
            if load_merges:
                self._set_merges((tokenizer.get("model") or {}).get("merges"))
            self._set_normalizer(tokenizer.get("normalizer") or {})
            _PostProcessor(self, tokenizer, config).read()
        if config:
            self._set_chat_template(folder, config)
            self._set_tokens(config, (tokenizer or {}).get("added_tokens") or [])
        self._set_ids(_json(folder / "config.json") or {})
        if load_merges and not self.merges:
            self._read_merges(folder / "merges.txt")

    def __repr__(self) -> str:
        special = self.special_token_ids or "unset"
        added = self.add_special_token or "unset"
        return f"<SpecialVocab with {len(self.merges)} merges, special tokens {special}, add special tokens {added}>"

    def add_to_gguf(self, gw: Any, quiet: bool = False) -> None:
        """Set the keys of a writer."""

        def add(method: str, value: Any) -> None:
            setter = getattr(gw, method, None)
            if setter is None:
                logger.warning("No handler for %s with value %s - skipping", method, value)
                return
            if not quiet:
                logger.info("Setting %s to %s", method[4:], value if method != "add_token_merges" else len(value))
            setter(value)

        if self.merges:
            add("add_token_merges", self.merges)
        elif self.load_merges:
            logger.warning("Adding merges requested but no merges found, output may be non-functional.")
        for role, token in self.special_token_ids.items():
            add(f"add_{role}_token_id", token)
        for role, added in self.add_special_token.items():
            add(f"add_add_{role}_token", added)
        for name in ("chat_template", "normalizer_lowercase", "normalizer_strip_accents"):
            if getattr(self, name) is not None:
                add(f"add_{name}", getattr(self, name))

    def _set_merges(self, merges: Any) -> None:
        if not isinstance(merges, list) or not merges:
            return
        if isinstance(merges[0], str):
            self.merges = merges
        elif isinstance(merges[0], list) and len(merges[0]) == 2 and isinstance(merges[0][0], str):
            # A space separates the pair, so a space within a token is written as U+0120.
            self.merges = [" ".join(part.replace(" ", chr(ord(" ") + 256)) for part in pair) for pair in merges]
        else:
            raise ValueError("Unknown tokenizer merges format")

    def _read_merges(self, path: Path) -> None:
        if not path.is_file():
            return
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                words = line.split(None, 3)
                if not words or (number == 1 and line.startswith("#")):
                    continue
                if len(words) == 2:
                    self.merges.append(" ".join(words))
                else:
                    logger.warning("%s: Line %d: Entry malformed, ignoring", path.name, number)

    def _set_normalizer(self, normalizer: Dict[str, Any]) -> None:
        kind = normalizer.get("type")
        if kind == "Lowercase":
            self.normalizer_lowercase = True
        elif kind == "StripAccents":
            self.normalizer_strip_accents = True
        elif kind == "BertNormalizer":
            self.normalizer_lowercase = normalizer.get("lowercase", self.normalizer_lowercase)
            self.normalizer_strip_accents = normalizer.get("strip_accents", self.normalizer_strip_accents)
        elif kind == "Sequence":
            for one in normalizer.get("normalizers", []):
                self._set_normalizer(one)

    def _set_chat_template(self, folder: Path, config: Dict[str, Any]) -> None:
        beside: Any = None
        jinja = folder / "chat_template.jinja"
        if jinja.is_file():
            beside = jinja.read_text(encoding="utf-8")
            others = list((folder / "additional_chat_templates").glob("*.jinja"))
            if others:
                read = [{"name": p.stem, "template": p.read_text(encoding="utf-8")} for p in others]
                beside = [{"name": "default", "template": beside}, *read]
        elif (folder / "chat_template.json").is_file():
            beside = _json(folder / "chat_template.json").get("chat_template")
        template = config.get("chat_template", beside)
        if template is None or isinstance(template, (str, list)):
            self.chat_template = template
        else:
            logger.warning("Bad type for chat_template field in %s - ignoring", folder)

    def _set_tokens(self, config: Dict[str, Any], added: Sequence[Dict[str, Any]]) -> None:
        for role in self.special_token_types:
            adds = config.get(f"add_{role}_token")
            if isinstance(adds, bool) and self.add_special_token.setdefault(role, adds) != adds:
                logger.warning("tokenizer_config add_%s_token is %s, its post_processor says otherwise", role, adds)
            token = config.get(f"{role}_token")
            text = token.get("content") if isinstance(token, dict) else token
            if isinstance(text, str):
                self._set_id(role, next((one.get("id") for one in added if one.get("content") == text), None))

    def _set_ids(self, config: Dict[str, Any]) -> None:
        for role in self.special_token_types:
            token = config.get(f"{role}_token_id")
            if token is None:
                token = (config.get("text_config") or {}).get(f"{role}_token_id")
            self._set_id(role, token)

    def _set_id(self, role: str, token: Any) -> None:
        if not isinstance(token, int):
            return
        if token < 0:
            raise ValueError(f"invalid value for special token type {role}: {token}")
        if self.n_vocab is not None and token >= self.n_vocab:
            what = "Special token type %s, id %d out of range, must be under %d - skipping"
            logger.warning(what, role, token, self.n_vocab)
            return
        self.special_token_ids.setdefault(role, token)


class _PostProcessor:
    """Special tokens that the post-processor of a checkpoint adds, for simple templates.

    Texts of special tokens are stored in the configuration, where their ids are looked up.
    """

    def __init__(self, vocab: SpecialVocab, tokenizer: Dict[str, Any], config: Optional[Dict[str, Any]]) -> None:
        self.vocab, self.tokenizer, self.config = vocab, tokenizer, config
        settings = config or {}
        self.tokens = {role: settings.get(f"{role}_token") for role in ("bos", "cls", "eos", "sep")}

    def _set_role(self, role: str, token: Any) -> None:
        self.tokens[role] = token
        if self.config is not None:
            self.config[f"{role}_token"] = token

    def read(self) -> None:
        """Read all post-processors."""
        if self.config:
            for role, other in (("bos", "cls"), ("eos", "sep")):
                if not self.tokens[role] and self.tokens[other]:
                    self._set_role(role, self.tokens[other])
        processor = self.tokenizer.get("post_processor")
        for one in processor.get("processors", [processor]) if processor else []:
            kind = one.get("type")
            if kind == "ByteLevel":
                self.vocab.add_special_token.setdefault("bos", False)
                self.vocab.add_special_token.setdefault("eos", False)
            elif kind == "RobertaProcessing":
                self._roberta(one)
            elif kind == "TemplateProcessing":
                self._template(one)

    def _roberta(self, processor: Dict[str, Any]) -> None:
        for role in ("bos", "eos", "sep"):
            self.vocab.add_special_token[role] = True
        for role, other in (("cls", "bos"), ("sep", "eos")):
            if not self.tokens[role] and self.config:
                self._set_role(role, processor.get(role, [self.tokens[other]])[0])

    def _template(self, processor: Dict[str, Any]) -> None:
        single, pair = processor.get("single", []), processor.get("pair", [])
        first = _special(single[0]) if len(single) > 1 else None
        last = _special(single[-1]) if len(single) > 1 else None
        if first:
            self._first(first)
        if last:
            self._last(last)
        if pair:
            self._pair(pair, first, last)

    def _first(self, first: str) -> None:
        tokens = self.tokens
        if not self.config:
            tokens["bos"] = first
        elif first not in (tokens["bos"], tokens["cls"]):
            for role in ("bos", "cls"):
                if not tokens[role]:
                    self._set_role(role, first)
        known = first in (tokens["bos"], tokens["cls"])
        self.vocab.add_special_token["bos"] = known
        if not known:
            logger.warning("Unknown leading special token %r in TemplateProcessing<single>", first)

    def _last(self, last: str) -> None:
        vocab = self.vocab
        if not self.config:
            self.tokens["eos"] = last
        elif last != self.tokens["eos"]:
            # Keep the replaced EOS token as an end-of-turn token.
            free = next((role for role in ("eot", "eom") if role not in vocab.special_token_types), None)
            if free is None:
                logger.warning("Overriding EOS token %r with %r", self.tokens["eos"], last)
            else:
                vocab.special_token_types = (*vocab.special_token_types, free)
                self.config[f"{free}_token"] = self.tokens["eos"]
            self._set_role("eos", last)
        vocab.add_special_token["eos"] = last == self.tokens["eos"]

    def _pair(self, pair: List[Any], first: Optional[str], last: Optional[str]) -> None:
        start = 1 if first and _special(pair[0]) == first else 0
        stop = len(pair) - 1 if last and _special(pair[-1]) == last else len(pair)
        if (first and start == 0) or (last and stop == len(pair)):
            logger.warning("TemplateProcessing<single> leading/trailing special tokens do not match <pair>")
        inner = pair[start:stop]
        names = [(one.get("Sequence") or {}).get("id") for one in inner]
        if not inner or (names[0], names[-1]) != ("A", "B"):
            logger.warning("Unknown sequences in TemplateProcessing<pair>")
            return
        between = [_special(one) for one in inner[1:-1]]
        if not between:
            return
        enders = (self.tokens["sep"], self.tokens["eos"])
        adds = between[0] in enders and not last
        if len(between) == 2 and between[1] and between[1] in enders:
            adds = True
        self.vocab.add_special_token["sep"] = bool(between[0]) and adds or (len(between) == 2 and adds)
        if adds and not self.tokens["sep"] and self.config:
            self.config["sep_token"] = self.tokens["eos"]


def _special(part: Dict[str, Any]) -> Optional[str]:
    found: Optional[str] = (part.get("SpecialToken") or {}).get("id")
    return found


class NoVocab:
    """Vocabulary of a model without one."""

    tokenizer_model = "no_vocab"
    name = "no_vocab"

    def __repr__(self) -> str:
        return "<NoVocab for a model without integrated vocabulary>"


class LlamaHfVocab:
    """Llama vocabulary with byte fallback in ``tokenizer.json``. Requires ``transformers``."""

    tokenizer_model = "llama"
    name = "hfft"

    def __init__(self, base_path: Path) -> None:
        self.fname_tokenizer = base_path / "tokenizer.json"
        found = json.loads(self.fname_tokenizer.read_text(encoding="utf-8"))
        model = found["model"]
        falls_back = model.get("byte_fallback")
        if model["type"] == "BPE" and model.get("ignore_merges", False) and falls_back is False:
            raise TypeError("Llama 3 must be converted with BpeVocab")
        if model["type"] != "BPE" or not falls_back or found["decoder"]["type"] != "Sequence":
            raise FileNotFoundError("Cannot find Llama BPE tokenizer")
        from transformers import AutoTokenizer  # type: ignore[import-not-found]

        self.tokenizer = AutoTokenizer.from_pretrained(base_path, cache_dir=base_path, local_files_only=True)
        self.vocab_size_base = self.tokenizer.vocab_size
        added = sorted(self.tokenizer.get_added_vocab().items(), key=lambda one: one[1])
        self.added_tokens_dict = {text: id for text, id in added if id >= self.vocab_size_base}
        self.added_tokens_list = list(self.added_tokens_dict)
        self.added_tokens_ids = set(self.added_tokens_dict.values())
        vocabulary = self.tokenizer.get_vocab()
        self.specials = {text: vocabulary[text] for text in self.tokenizer.all_special_tokens}
        self.special_ids = set(self.tokenizer.all_special_ids)
        self.vocab_size = self.vocab_size_base + len(self.added_tokens_list)

    def get_token_type(self, token_id: int, token_text: bytes, special_ids: "set[int]") -> Any:
        """Return the token type: byte, control or normal."""
        if re.fullmatch(rb"<0x[0-9A-Fa-f]{2}>", token_text):
            return TokenType.BYTE
        return TokenType.CONTROL if token_id in special_ids else TokenType.NORMAL

    def get_token_score(self, token_id: int) -> float:
        """Return a constant: ``tokenizer.json`` has no scores."""
        return -1000.0

    def hf_tokens(self) -> Iterator[Tuple[bytes, float, Any]]:
        """Iterate over the base tokens."""
        texts = {id: text for text, id in self.tokenizer.get_vocab().items()}
        for token in range(self.vocab_size_base):
            if token not in self.added_tokens_ids:
                text = texts[token].encode("utf-8")
                yield text, self.get_token_score(token), self.get_token_type(token, text, self.special_ids)

    def added_tokens(self) -> Iterator[Tuple[bytes, float, Any]]:
        """Iterate over the added tokens."""
        for text in self.added_tokens_list:
            kind = TokenType.USER_DEFINED
            if text in self.specials:
                kind = self.get_token_type(self.specials[text], b"", self.special_ids)
            yield text.encode("utf-8"), -1000.0, kind

    def has_newline_token(self) -> bool:
        """Return whether there is a newline token."""
        return "<0x0A>" in self.tokenizer.vocab or "\n" in self.tokenizer.vocab

    def all_tokens(self) -> Iterator[Tuple[bytes, float, Any]]:
        """Iterate over all tokens as (text, score, type)."""
        yield from self.hf_tokens()
        yield from self.added_tokens()

    def __repr__(self) -> str:
        added = len(self.added_tokens_list)
        return f"<LlamaHfVocab with {self.vocab_size_base} base tokens and {added} added tokens>"


class MistralTokenizerType(str, Enum):
    """Types of Mistral tokenizers."""

    spm = "spm"
    tekken = "tekken"


class MistralVocab:
    """Not supported; see ``docs/python.md``."""

    tokenizer_model = "mistral"
    name = "mistral"

    def __init__(self, base_path: Path) -> None:
        raise NotImplementedError("mistral-common tokenizers are not supported; use `gguf convert` or the official package")
