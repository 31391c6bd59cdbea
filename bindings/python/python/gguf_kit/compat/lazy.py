"""Lazy arrays. Operations are recorded, and run on placeholder arrays without memory to infer shapes and dtypes."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import numpy as np

__all__ = ["LazyBase", "LazyChunkedTensor", "LazyMeta", "LazyNumpyTensor"]

_BINARY = (
    "lt le eq ne ge gt add and floordiv lshift mod mul matmul or pow rshift sub truediv xor "
    "iadd iand ifloordiv ilshift imod imul ior irshift isub ixor "
    "radd rand rfloordiv rmul ror rpow rsub rtruediv rxor getitem setitem len"
)
#: Operators that keep shape and dtype.
_UNARY = "not abs invert neg pos"


class LazyMeta(type):
    """Metaclass that adds operators, since Python looks them up on the class."""

    def __new__(mcs, name: str, bases: Tuple[type, ...], fields: Dict[str, Any], **kwargs: Any) -> Any:
        def operator(of: str, same: bool) -> Callable[..., Any]:
            def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
                kind = type(self)
                return kind._wrap_fn(getattr(kind._tensor_type, of), meta_noop=same)(self, *args, **kwargs)

            return apply

        for words, same in ((_BINARY, False), (_UNARY, True)):
            for word in words.split():
                fields.setdefault(f"__{word}__", operator(f"__{word}__", same))
        fields.setdefault("__hash__", object.__hash__)
        return super().__new__(mcs, name, bases, fields, **kwargs)


class LazyBase(metaclass=LazyMeta):
    """A lazy tensor: data, or a function with its arguments."""

    _tensor_type: type

    def __init__(
        self,
        *,
        meta: Any,
        data: Any = None,
        args: Tuple[Any, ...] = (),
        kwargs: Optional[Dict[str, Any]] = None,
        func: Optional[Callable[..., Any]] = None,
    ) -> None:
        if data is None and func is None:
            raise ValueError("a lazy tensor needs data or a function")
        self._meta, self._data, self._func = meta, data, func
        self._args, self._kwargs = args, kwargs or {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "_tensor_type" not in cls.__dict__:
            raise TypeError(f"property '_tensor_type' must be defined for {cls!r}")
        super().__init_subclass__(**kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__dict__["_meta"], name)
        if callable(found):
            return type(self)._wrap_fn(
                lambda tensor, *args, **kwargs: getattr(tensor, name)(*args, **kwargs), use_self=self
            )
        if isinstance(found, self._tensor_type):
            return type(self)._wrap_fn(lambda tensor: getattr(tensor, name))(self)
        return found

    @staticmethod
    def _recurse_apply(o: Any, fn: Callable[[Any], Any]) -> Any:
        if isinstance(o, LazyBase):
            return fn(o)
        if isinstance(o, (list, tuple)):
            return type(o)([LazyBase._recurse_apply(one, fn) for one in o]) if type(o) in (list, tuple) else o
        return o

    @classmethod
    def _wrap_fn(cls, fn: Callable[..., Any], *, use_self: Any = None, meta_noop: Any = False) -> Callable[..., Any]:
        def record(*args: Any, **kwargs: Any) -> Any:
            if use_self is not None:
                args = (use_self, *args)
            result = cls._infer(fn, args, kwargs, meta_noop)
            if isinstance(result, cls._tensor_type):
                return cls(meta=cls.eager_to_meta(result), args=args, kwargs=kwargs, func=fn)
            if isinstance(result, tuple) and all(isinstance(one, cls._tensor_type) for one in result):
                return cls._tuple(fn, args, kwargs, result)
            # The result is not a tensor and may depend on the data.
            return fn(*cls.to_eager(args), **kwargs)

        return record

    @classmethod
    def _infer(cls, fn: Callable[..., Any], args: Any, kwargs: Any, meta_noop: Any) -> Any:
        """Run the function on placeholders; `meta_noop` gives the result without running it."""
        if meta_noop is False:
            try:
                return fn(*cls._recurse_apply(args, lambda tensor: tensor._meta), **kwargs)
            except NotImplementedError:
                return None
        meta = args[0]._meta
        if meta_noop is True:
            return meta
        dtype, shape = meta_noop if isinstance(meta_noop, tuple) else (meta_noop, lambda same: same)
        return cls.meta_with_dtype_and_shape(dtype, shape(meta.shape))

    @classmethod
    def _tuple(cls, fn: Callable[..., Any], args: Any, kwargs: Any, metas: Tuple[Any, ...]) -> Tuple[Any, ...]:
        """Return the lazy tensors of a function that returns a tuple."""
        whole = cls(meta=cls.eager_to_meta(metas[0]), args=args, kwargs=kwargs, func=fn) if metas else None
        shared: Dict[str, Any] = {}

        def one(number: int) -> Any:
            if "all" not in shared and whole is not None:
                shared["all"] = fn(*cls.to_eager(args), **kwargs)
            return shared["all"][number]

        return tuple(cls(meta=cls.eager_to_meta(m), args=(i,), func=one) for i, m in enumerate(metas))

    @classmethod
    def to_eager(cls, t: Any) -> Any:
        """Compute lazy tensors, including those in lists and tuples."""

        def computed(tensor: Any) -> Any:
            if tensor._data is None:
                tensor._args = cls._recurse_apply(tensor._args, computed)
                tensor._data = tensor._func(*tensor._args, **tensor._kwargs)
                data, meta = tensor._data, tensor._meta
                if data.dtype != meta.dtype or data.shape != meta.shape:
                    raise ValueError(f"computed {data.dtype} {data.shape}; expected {meta.dtype} {meta.shape}")
            return tensor._data

        return cls._recurse_apply(t, computed)

    @classmethod
    def eager_to_meta(cls, t: Any) -> Any:
        """Return a placeholder of the same shape and dtype."""
        return cls.meta_with_dtype_and_shape(t.dtype, t.shape)

    @classmethod
    def meta_with_dtype_and_shape(cls, dtype: Any, shape: Any) -> Any:
        """Return a placeholder; subclasses implement it."""
        raise NotImplementedError

    @classmethod
    def from_eager(cls, t: Any) -> Any:
        """Wrap an existing tensor."""
        if type(t) is cls:
            return t
        if isinstance(t, cls._tensor_type):
            return cls(meta=cls.eager_to_meta(t), data=t)
        return TypeError(f"{type(t)!r} is not compatible with {cls._tensor_type!r}")


class LazyNumpyTensor(LazyBase):
    """A numpy array that is computed when it is written.

    >>> lazy = LazyNumpyTensor.from_eager(np.ones((2, 3), np.float32)) * 2
    >>> lazy.shape, LazyNumpyTensor.to_eager(lazy).tolist()[0]
    ((2, 3), [2.0, 2.0, 2.0])
    """

    _tensor_type = np.ndarray
    shape: Tuple[int, ...]

    @classmethod
    def meta_with_dtype_and_shape(cls, dtype: Any, shape: Any) -> Any:
        """Return a broadcast zero."""
        return np.broadcast_to(np.zeros((), dtype), tuple(shape))

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> "LazyNumpyTensor":
        """Like the method of ``numpy.ndarray``."""
        meta = type(self).meta_with_dtype_and_shape(dtype, self._meta.shape)
        return type(self)(
            meta=meta, args=(self, dtype, *args), kwargs=kwargs, func=lambda a, *args, **kw: a.astype(*args, **kw)
        )

    def tofile(self, *args: Any, **kwargs: Any) -> Any:
        """Like the method of ``numpy.ndarray``."""
        return LazyNumpyTensor.to_eager(self).tofile(*args, **kwargs)


class LazyChunkedTensor:
    """A tensor whose chunks are computed by functions when it is written."""

    def __init__(
        self,
        chunks: Sequence[Callable[[], Any]],
        shape: Sequence[int],
        dtype: Any,
        qtype: Any = None,
        byteswap: bool = False,
    ) -> None:
        self._chunks, self._qtype, self._byteswap = chunks, qtype, byteswap
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)

    @property
    def nbytes(self) -> int:
        """Size of all chunks in bytes."""
        count = self.dtype.itemsize
        for extent in self.shape:
            count *= extent
        return int(count)

    def numpy(self) -> "LazyChunkedTensor":
        """Return the tensor itself, since it is written in chunks."""
        return self

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("LazyChunkedTensor cannot become an ndarray, it is written in chunks")

    def quantize(self, qtype: Any) -> "LazyChunkedTensor":
        """Return the tensor quantized to a type."""
        from .quants import QuantError, quant_shape_to_byte_shape

        plain = {"F32": np.float32, "F16": np.float16}.get(qtype.name)
        shape = self.shape
        if plain is None:
            try:
                shape = quant_shape_to_byte_shape(self.shape, qtype)
            except ValueError as error:
                raise QuantError(str(error)) from error
        return LazyChunkedTensor(self._chunks, shape, plain or np.uint8, qtype, self._byteswap)

    def byteswap(self, inplace: bool = False) -> "LazyChunkedTensor":
        """Return the tensor with swapped byte order."""
        if inplace:
            raise NotImplementedError("a chunked tensor cannot be byteswapped in place")
        return LazyChunkedTensor(self._chunks, self.shape, self.dtype, self._qtype, not self._byteswap)

    def tofile(self, *args: Any, **kwargs: Any) -> None:
        """Write the chunks."""
        from .quants import quantize

        written = 0
        for compute in self._chunks:
            chunk = compute()
            if self._qtype is not None:
                chunk = quantize(chunk, self._qtype)
            if self._byteswap:
                chunk = chunk.byteswap()
            chunk.tofile(*args, **kwargs)
            written += chunk.nbytes
        if written != self.nbytes:
            raise ValueError(f"chunked tensor wrote {written} bytes, expected {self.nbytes}")
