"""Native module, written in Rust."""

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
_WriteResult = Tuple[List[str], List[str], str, Optional[str]]

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
    """Metadata of a model, as a read-only mapping. Arrays of numbers are numpy arrays, other arrays are lists."""

    def __getitem__(self, key: str, /) -> Any: ...
    def __iter__(self, /) -> Iterator[str]: ...
    def __len__(self, /) -> int: ...
    def get(self, key: str, default: Any = None) -> Any: ...
    def type_of(self, key: str) -> str:
        """Return the type of a value in the file, such as ``u32`` or ``str[]``."""

@final
class Tensor:
    """A tensor of an open model."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> Tuple[int, ...]:
        """Shape with the slowest dimension first, as in numpy; files store the reverse order."""
    @property
    def type(self) -> str:
        """Name of the tensor type, such as ``Q4_K``."""
    @property
    def nbytes(self) -> Optional[int]:
        """Size in bytes; ``None`` for unknown types."""
    @property
    def offset(self) -> int:
        """Offset of the data in its file."""
    @property
    def shard(self) -> int:
        """Index of the shard."""
    @property
    def data(self) -> NDArray[Any]:
        """Stored data as a read-only array. Types without a numpy dtype are bytes; the last dimension is then the bytes
        of a row. The array is memory-mapped if the file is local and little-endian, and keeps the file mapped after the
        model is closed."""
    @property
    def is_mapped(self) -> bool:
        """Whether ``data`` is memory-mapped and not a copy."""
    def decode(
        self,
        rows: Union[None, int, slice, Sequence[int]] = None,
        *,
        progress: Optional[_Progress] = None,
    ) -> NDArray[np.float32]:
        """Decode the tensor to float32.

        Parameters
        ----------
        rows : int, slice or sequence of int, optional
            Rows to decode, indexed over all dimensions but the last. All rows by default.
        progress : callable, optional
            Progress callback.

        Returns
        -------
        ndarray of float32
            In the shape of the tensor, or the selected rows.
        """

@final
class Model:
    """An open model of one or more files: a mapping of names to tensors, and ``metadata``."""

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
        """Total size of the files in bytes."""
    @property
    def byte_order(self) -> str:
        """Byte order of the files, ``little`` or ``big``. Data is always returned as little-endian."""
    @property
    def transferred(self) -> Optional[int]:
        """Bytes fetched over the network so far; ``None`` for local files."""
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
        """Return the summary of ``gguf inspect --json``."""
    def close(self) -> None:
        """Close the files. Arrays of tensors stay valid and keep their files mapped."""

@final
class Tokenizer:
    """The tokenizer of a model or of a Hugging Face checkpoint."""

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
        """Return the token ids of each text, using all threads."""
    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """Return the text of token ids. Invalid UTF-8 becomes U+FFFD."""
    def decode_bytes(self, ids: Sequence[int], *, special: bool = False) -> bytes: ...
    def token_bytes(self, id: int) -> Optional[bytes]: ...

@final
class Runner:
    """A model loaded for inference.

    Parameters
    ----------
    source : path-like or Model
        The model.
    exact : bool, optional
        Compute in F32, for evaluation, instead of with 8-bit activations.
    adapters : sequence of (str, float), optional
        LoRA adapters with their scales.
    draft : path-like or Model, optional
        A smaller model with the same vocabulary, which drafts tokens in `generate`. The text is the same.
    cache_type : str, optional
        Type of the KV cache: ``f32``, ``f16`` or ``q8_0``. F32 by default if ``exact``, else F16.
    threads : int, optional
        Number of threads.
    """

    def __new__(
        cls,
        source: _Source,
        *,
        exact: bool = False,
        adapters: Sequence[Tuple[str, float]] = ...,
        draft: Optional[_Source] = None,
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
        """Return one row of logits per token.

        Parameters
        ----------
        text : str or sequence of int
            A text or its token ids.
        features : ndarray of float32, optional
            Encoder features, one row per frame.
        encoder_ids : sequence of int, optional
            Token ids for the encoder.

        Returns
        -------
        ndarray of float32
        """
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
        """Generate text.

        Parameters
        ----------
        prompt : str or sequence of int
            A text or its token ids.
        tokens : int, optional
            Maximum number of tokens.
        temperature, top_k, top_p, min_p, repeat_penalty, seed
            Sampling parameters.
        stop : sequence of str, optional
            Stop sequences.
        ignore_end : bool, optional
            Continue after end-of-generation tokens.
        context : int, optional
            Context size in tokens.
        on_text : callable, optional
            Called with each piece of text from another thread. Returning ``False`` stops generation.

        Returns
        -------
        (str, list of int, str)
            The text, its token ids, and the stop reason: ``stop``, ``length`` or ``reader`` (stopped by ``on_text``).
        """
    def embed(
        self, texts: Sequence[_Text], *, tokens: bool = False, normalized: bool = True
    ) -> List[NDArray[np.float32]]:
        """Return one embedding per text, or with ``tokens`` one per token. ``normalized`` applies L2 normalization."""
    def classify(self, texts: Sequence[_Text]) -> List[List[Tuple[str, float]]]:
        """Return the class probabilities of each text."""

@final
class Imatrix:
    """An importance matrix (imatrix)."""

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
        """Return the importance of each column, for :func:`gguf_kit.encode`."""
    def save(self, path: _Path, *, legacy: bool = False, force: bool = False) -> None: ...

@final
class Header:
    """Offsets of the keys and tensors in a file."""

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
    def value(self, index: int) -> Any: ...
    def string_starts(self, index: int) -> List[int]: ...

def open(location: _Path) -> Model:
    """Open a model.

    Parameters
    ----------
    location : path-like
        A file, a directory, any shard, a URL, ``hf:org/repo`` or ``s3://bucket/key``.

    Returns
    -------
    Model
    """

def tensor_types() -> List[Dict[str, Any]]: ...
def pack_strings(strings: Iterable[Union[str, bytes]], big_endian: bool) -> bytes: ...
def command(words: Sequence[str], relaunch: Sequence[str]) -> int: ...
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
    scan: bool,
    template_of: Optional[str],
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
) -> _WriteResult: ...
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
) -> _WriteResult: ...
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
    chunks: Optional[int],
    stride: Optional[int],
    exact: bool,
    part_options: Dict[str, Any],
    progress: Optional[_Progress],
    threads: Optional[int],
) -> Dict[str, Any]: ...
def divergence(
    reference: _Source,
    models: Sequence[_Source],
    text: str,
    context: int,
    chunks: Optional[int],
    exact: bool,
    part_options: Dict[str, Any],
    progress: Optional[_Progress],
    threads: Optional[int],
) -> List[Dict[str, Any]]: ...
def collect_imatrix(
    source: _Source,
    text: str,
    context: int,
    chunks: Optional[int],
    dataset: str,
    output: bool,
    part_options: Dict[str, Any],
    progress: Optional[_Progress],
    threads: Optional[int],
) -> Imatrix: ...
