"""The extension: what is written in Rust."""

import os
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
    final,
)
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_Path = Union[str, "os.PathLike[str]"]
_Source = Union[str, "os.PathLike[str]", "Model"]
_Progress = Callable[[str, int, int], Optional[bool]]
_Text = Union[str, Sequence[int]]
_Made = Tuple[List[str], List[str], str, Optional[str]]

__all__ = [
    "Header",
    "Imatrix",
    "Metadata",
    "Model",
    "Runner",
    "Tensor",
    "Tokenizer",
    "__version__",
    "apply_chat_template",
    "check",
    "collect_imatrix",
    "command",
    "convert",
    "decode",
    "diff",
    "divergence",
    "edit",
    "encode",
    "hash",
    "merge",
    "merge_parts",
    "open",
    "pack_strings",
    "part_fingerprint",
    "perplexity",
    "quantize",
    "tensor_types",
]

__version__: str

@final
class Metadata(Mapping[str, Any]):
    """The keys and values of a model. Arrays of numbers are arrays of numpy, all others are lists."""

    def __getitem__(self, key: str, /) -> Any: ...
    def __iter__(self, /) -> Iterator[str]: ...
    def __len__(self, /) -> int: ...
    def get(self, key: str, default: Any = None) -> Any: ...
    def type_of(self, key: str) -> str:
        """The type of a value in the file, such as ``u32`` or ``str[]``."""

@final
class Tensor:
    """A tensor of an open model."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> Tuple[int, ...]:
        """As numpy has it: the slowest dimension first, the reverse of what is in the file."""
    @property
    def type(self) -> str:
        """Such as ``Q4_K``."""
    @property
    def nbytes(self) -> Optional[int]:
        """``None`` for types whose size nobody knows."""
    @property
    def offset(self) -> int:
        """The first byte of the data in its file."""
    @property
    def shard(self) -> int:
        """Which of the files of the model it is in, from 0."""
    @property
    def data(self) -> NDArray[Any]:
        """The data as they are, read-only: numbers where numpy has their type, else bytes, whose last dimension is
        that of a row. A view of the mapped file, without a copy, where the file is on this machine and little-endian;
        it keeps the file mapped, also when the model is closed."""
    @property
    def is_mapped(self) -> bool:
        """Whether ``data`` is a view of the file, and no copy."""
    def decode(
        self,
        rows: Union[None, int, slice, Sequence[int]] = None,
        *,
        progress: Optional[_Progress] = None,
    ) -> NDArray[np.float32]:
        """The numbers; all of them in the shape of the tensor, or some rows. Rows are counted over all dimensions but
        the last."""

@final
class Model:
    """An open model, in however many files: its tensors by name, and its ``metadata``."""

    @property
    def location(self) -> str: ...
    @property
    def metadata(self) -> Metadata: ...
    @property
    def architecture(self) -> Optional[str]: ...
    @property
    def files(self) -> Tuple[Path, ...]: ...
    @property
    def nbytes(self) -> int:
        """Bytes of all files together."""
    @property
    def byte_order(self) -> str:
        """``little`` or ``big``, in the files; whoever reads here gets little-endian data."""
    @property
    def transferred(self) -> Optional[int]:
        """Bytes that came over the network so far; ``None`` for files on this machine."""
    @property
    def tensors(self) -> List[Tensor]: ...
    @property
    def closed(self) -> bool: ...
    def __len__(self, /) -> int: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __getitem__(self, name: str, /) -> Tensor: ...
    def __iter__(self, /) -> Iterator[str]: ...
    def __enter__(self) -> "Model": ...
    def __exit__(self, *_raised: Any) -> None: ...
    def summary(self) -> Dict[str, Any]:
        """What a person wants to know of it first, in the shape of ``gguf inspect --json``."""
    def close(self) -> None:
        """Lets go of the files. Views of tensors stay valid, and keep theirs mapped."""

@final
class Tokenizer:
    """The tokenizer of a model, or of a folder of Hugging Face."""

    def __new__(
        cls, source: _Source, *, llama_cpp: bool = False, normalize: Optional[bool] = None
    ) -> "Tokenizer": ...
    @property
    def notes(self) -> List[str]: ...
    def __len__(self, /) -> int: ...
    def encode(
        self, text: str, *, add_special: bool = True, parse_special: bool = True
    ) -> List[int]: ...
    def encode_batch(
        self, texts: Sequence[str], *, add_special: bool = True, parse_special: bool = True
    ) -> List[List[int]]:
        """The ids of each text, on all threads."""
    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """The text; bytes that are none become U+FFFD."""
    def decode_bytes(self, ids: Sequence[int], *, special: bool = False) -> bytes: ...
    def token_bytes(self, id: int) -> Optional[bytes]: ...

@final
class Runner:
    """A model that is run. ``exact`` computes in F32, for measuring; else activations are rounded to 8 bits. Caches
    (``cache_type`` ``f32``, ``f16``, ``q8_0``) are F32 where it is exact, else F16."""

    def __new__(
        cls,
        source: _Source,
        *,
        exact: bool = False,
        adapters: Sequence[Tuple[str, float]] = ...,
        cache_type: Optional[str] = None,
        threads: Optional[int] = None,
    ) -> "Runner": ...
    @property
    def vocabulary_len(self) -> Optional[int]: ...
    def logits(
        self,
        text: _Text,
        *,
        features: Optional[NDArray[np.float32]] = None,
        encoder_ids: Optional[Sequence[int]] = None,
    ) -> NDArray[np.float32]:
        """One row per token."""
    def generate(
        self,
        prompt: _Text,
        *,
        tokens: Optional[int] = None,
        temperature: float = 0.8,
        top_k: int = 40,
        top_p: float = 0.95,
        min_p: float = 0.05,
        repeat_penalty: float = 1.0,
        seed: int = 0,
        stop: Sequence[str] = ...,
        ignore_end: bool = False,
        context: int = 4096,
        on_text: Optional[Callable[[str], Optional[bool]]] = None,
    ) -> Tuple[str, List[int], str]:
        """Text that goes on: the text, its ids, and why it ends (``stop``, ``length``, ``reader``). ``on_text`` gets
        each piece when it is there, from another thread; ``False`` ends the text."""
    def embed(
        self, texts: Sequence[_Text], *, tokens: bool = False, normalized: bool = True
    ) -> List[NDArray[np.float32]]:
        """A row per text; or, with ``tokens``, a row per token of each."""
    def classify(self, texts: Sequence[_Text]) -> List[List[Tuple[str, float]]]:
        """Per text the probability of each class."""

@final
class Imatrix:
    """An importance matrix: how much the columns of each matrix matter."""

    def __new__(cls, path: _Path) -> "Imatrix": ...
    @property
    def names(self) -> List[str]: ...
    @property
    def datasets(self) -> List[str]: ...
    @property
    def chunks(self) -> int: ...
    def __len__(self, /) -> int: ...
    def __contains__(self, name: str, /) -> bool: ...
    def importance(self, name: str) -> Optional[NDArray[np.float32]]:
        """The weights for :func:`gguf_kit.encode`: one per column."""
    def save(self, path: _Path, *, legacy: bool = False, force: bool = False) -> None: ...

@final
class Header:
    """Where everything stands in one file."""

    def __new__(cls, path: _Path) -> "Header": ...
    @property
    def version(self) -> int: ...
    @property
    def is_big_endian(self) -> bool: ...
    @property
    def alignment(self) -> int: ...
    @property
    def data_start(self) -> int: ...
    def entries(self) -> List[Tuple[str, int, int, int, int, Optional[int]]]: ...
    def tensors(self) -> List[Tuple[str, List[int], int, int, int]]: ...
    def value(self, at: int) -> Any: ...
    def string_starts(self, at: int) -> List[int]: ...

def open(location: _Path) -> Model:
    """Opens a model: a file, a directory, any shard, a URL, ``hf:org/repo``, ``s3://bucket/key``."""

def tensor_types() -> List[Dict[str, Any]]: ...
def pack_strings(strings: Iterable[Union[str, bytes]], big_endian: bool) -> bytes: ...
def command(words: Sequence[str], again: Sequence[str]) -> int: ...
def encode(
    values: NDArray[np.float32],
    row_len: int,
    ty: Union[int, str],
    importance: Optional[NDArray[np.float32]],
    progress: Optional[_Progress],
    threads: Optional[int],
) -> NDArray[np.uint8]: ...
def decode(
    data: NDArray[np.uint8],
    count: int,
    ty: Union[int, str],
    progress: Optional[_Progress],
    threads: Optional[int],
) -> NDArray[np.float32]: ...
def check(
    source: _Source,
    data: bool,
    strict: bool,
    tokenizer_against: Optional[_Path],
    with_: Optional[_Path],
    progress: Optional[_Progress],
) -> List[Dict[str, Any]]: ...
def hash(
    source: _Source, algorithms: Sequence[str], tensors: bool, progress: Optional[_Progress]
) -> List[Tuple[str, Optional[str], str]]: ...
def diff(a: _Source, b: _Source, progress: Optional[_Progress]) -> Dict[str, Any]: ...
def edit(
    path: _Path,
    set: Sequence[Tuple[str, Optional[str], str]],
    remove: Sequence[str],
    rename: Sequence[Tuple[str, str]],
    rename_tensor: Sequence[Tuple[str, str]],
    output: Optional[_Path],
    force: bool,
    dry_run: bool,
    progress: Optional[_Progress],
) -> Tuple[Path, str, Any]: ...
def quantize(
    source: _Source,
    outputs: Sequence[Tuple[str, Optional[_Path]]],
    recipe: Dict[str, Any],
    part: Optional[str],
    resume: bool,
    force: bool,
    dry_run: bool,
    progress: Optional[_Progress],
    threads: Optional[int],
) -> _Made: ...
def convert(
    source: _Path,
    outputs: Sequence[Tuple[Optional[str], Optional[_Path]]],
    recipe: Dict[str, Any],
    vocab_only: bool,
    mmproj: bool,
    big_endian: bool,
    architecture: Optional[str],
    model_name: Optional[str],
    metadata: Optional[_Path],
    base: Optional[_Path],
    target_model_dir: Optional[_Path],
    part: Optional[str],
    resume: bool,
    force: bool,
    dry_run: bool,
    progress: Optional[_Progress],
    threads: Optional[int],
) -> _Made: ...
def part_fingerprint(location: _Source) -> Optional[str]: ...
def merge(
    source: _Source,
    output: _Path,
    delete_shards: bool,
    force: bool,
    progress: Optional[_Progress],
) -> None: ...
def merge_parts(paths: Sequence[_Path]) -> Union[Imatrix, Tuple[str, List[Tuple[str, Dict[str, Any]]]]]: ...
def apply_chat_template(
    source: _Source,
    messages: str,
    name: Optional[str],
    tools: str,
    add_generation_prompt: bool,
    variables: str,
) -> str: ...
def perplexity(
    source: _Source,
    text: str,
    context: int,
    windows: Optional[int],
    stride: Optional[int],
    exact: bool,
    kept: Dict[str, Any],
    progress: Optional[_Progress],
    threads: Optional[int],
) -> Dict[str, Any]: ...
def divergence(
    reference: _Source,
    models: Sequence[_Source],
    text: str,
    context: int,
    windows: Optional[int],
    exact: bool,
    kept: Dict[str, Any],
    progress: Optional[_Progress],
    threads: Optional[int],
) -> List[Dict[str, Any]]: ...
def collect_imatrix(
    source: _Source,
    text: str,
    context: int,
    windows: Optional[int],
    dataset: str,
    output: bool,
    kept: Dict[str, Any],
    progress: Optional[_Progress],
    threads: Optional[int],
) -> Imatrix: ...
