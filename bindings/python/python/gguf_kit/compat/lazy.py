"""Arrays that are computed when they are written: operations on them are remembered, and tried on an array of the
same shape and type that takes no memory, to know the shape and type of the result.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import numpy as np

__all__ = ["LazyBase", "LazyChunkedTensor", "LazyMeta", "LazyNumpyTensor"]

_BINARY = (
    "lt le eq ne ge gt add and floordiv lshift mod mul matmul or pow rshift sub truediv xor "
    "iadd iand ifloordiv ilshift imod imul ior irshift isub ixor "
    "radd rand rfloordiv rmul ror rpow rsub rtruediv rxor getitem setitem len"
)
#: Shape and type stay what they are.
_UNARY = "not abs invert neg pos"


class LazyMeta(type):
    """Gives classes of lazy tensors the operators, which Python looks up on the class alone."""

    def __new__(mcs, name: str, bases: Tuple[type, ...], fields: Dict[str, Any], **given: Any) -> Any:
        def operator(of: str, same: bool) -> Callable[..., Any]:
            def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
                kind = type(self)
                return kind._wrap_fn(getattr(kind._tensor_type, of), meta_noop=same)(self, *args, **kwargs)

            return apply

        for words, same in ((_BINARY, False), (_UNARY, True)):
            for word in words.split():
                fields.setdefault(f"__{word}__", operator(f"__{word}__", same))
        fields.setdefault("__hash__", object.__hash__)
        return super().__new__(mcs, name, bases, fields, **given)


class LazyBase(metaclass=LazyMeta):
    """A tensor that is there, or a function with what it is to be called with."""

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
            raise ValueError("a lazy tensor has data, or a function that makes them")
        self._meta, self._data, self._func = meta, data, func
        self._args, self._kwargs = args, kwargs or {}

    def __init_subclass__(cls, **given: Any) -> None:
        if "_tensor_type" not in cls.__dict__:
            raise TypeError(f"property '_tensor_type' must be defined for {cls!r}")
        super().__init_subclass__(**given)

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
        def remembered(*args: Any, **kwargs: Any) -> Any:
            if use_self is not None:
                args = (use_self, *args)
            result = cls._tried(fn, args, kwargs, meta_noop)
            if isinstance(result, cls._tensor_type):
                return cls(meta=cls.eager_to_meta(result), args=args, kwargs=kwargs, func=fn)
            if isinstance(result, tuple) and all(isinstance(one, cls._tensor_type) for one in result):
                return cls._several(fn, args, kwargs, result)
            # No tensor: it may depend on what the tensors hold.
            return fn(*cls.to_eager(args), **kwargs)

        return remembered

    @classmethod
    def _tried(cls, fn: Callable[..., Any], args: Any, kwargs: Any, meta_noop: Any) -> Any:
        """What the function makes of tensors without content; `meta_noop` says it without trying."""
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
    def _several(cls, fn: Callable[..., Any], args: Any, kwargs: Any, made: Tuple[Any, ...]) -> Tuple[Any, ...]:
        """Tensors that one call makes together."""
        whole = cls(meta=cls.eager_to_meta(made[0]), args=args, kwargs=kwargs, func=fn) if made else None
        shared: Dict[str, Any] = {}

        def one(number: int) -> Any:
            if "all" not in shared and whole is not None:
                shared["all"] = fn(*cls.to_eager(args), **kwargs)
            return shared["all"][number]

        return tuple(cls(meta=cls.eager_to_meta(m), args=(i,), func=one) for i, m in enumerate(made))

    @classmethod
    def to_eager(cls, t: Any) -> Any:
        """The tensors themselves, also within lists and tuples."""

        def computed(tensor: Any) -> Any:
            if tensor._data is None:
                tensor._args = cls._recurse_apply(tensor._args, computed)
                tensor._data = tensor._func(*tensor._args, **tensor._kwargs)
                found, said = tensor._data, tensor._meta
                if found.dtype != said.dtype or found.shape != said.shape:
                    raise ValueError(f"{found.dtype} {found.shape} came where {said.dtype} {said.shape} was said")
            return tensor._data

        return cls._recurse_apply(t, computed)

    @classmethod
    def eager_to_meta(cls, t: Any) -> Any:
        """One of the same shape and type without content."""
        return cls.meta_with_dtype_and_shape(t.dtype, t.shape)

    @classmethod
    def meta_with_dtype_and_shape(cls, dtype: Any, shape: Any) -> Any:
        """A tensor without content; every kind of tensor has its own."""
        raise NotImplementedError

    @classmethod
    def from_eager(cls, t: Any) -> Any:
        """A tensor that is there, as a lazy one."""
        if type(t) is cls:
            return t
        if isinstance(t, cls._tensor_type):
            return cls(meta=cls.eager_to_meta(t), data=t)
        return TypeError(f"{type(t)!r} is not compatible with {cls._tensor_type!r}")


class LazyNumpyTensor(LazyBase):
    """An array of numpy that is computed when it is written.

    >>> lazy = LazyNumpyTensor.from_eager(np.ones((2, 3), np.float32)) * 2
    >>> lazy.shape, LazyNumpyTensor.to_eager(lazy).tolist()[0]
    ((2, 3), [2.0, 2.0, 2.0])
    """

    _tensor_type = np.ndarray
    shape: Tuple[int, ...]

    @classmethod
    def meta_with_dtype_and_shape(cls, dtype: Any, shape: Any) -> Any:
        """One zero, seen in every place."""
        return np.broadcast_to(np.zeros((), dtype), tuple(shape))

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> "LazyNumpyTensor":
        """As numpy's."""
        meta = type(self).meta_with_dtype_and_shape(dtype, self._meta.shape)
        return type(self)(
            meta=meta, args=(self, dtype, *args), kwargs=kwargs, func=lambda a, *args, **kw: a.astype(*args, **kw)
        )

    def tofile(self, *args: Any, **kwargs: Any) -> Any:
        """As numpy's."""
        return LazyNumpyTensor.to_eager(self).tofile(*args, **kwargs)


class LazyChunkedTensor:
    """A tensor whose rows come from functions, piece by piece, when it is written."""

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
        """Bytes of all pieces."""
        count = self.dtype.itemsize
        for extent in self.shape:
            count *= extent
        return int(count)

    def numpy(self) -> "LazyChunkedTensor":
        """Itself: it is written in pieces."""
        return self

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("LazyChunkedTensor cannot become an ndarray, it is written in chunks")

    def quantize(self, qtype: Any) -> "LazyChunkedTensor":
        """The same in another type."""
        from .quants import QuantError, quant_shape_to_byte_shape

        plain = {"F32": np.float32, "F16": np.float16}.get(qtype.name)
        shape = self.shape
        if plain is None:
            try:
                shape = quant_shape_to_byte_shape(self.shape, qtype)
            except ValueError as fault:
                raise QuantError(str(fault)) from fault
        return LazyChunkedTensor(self._chunks, shape, plain or np.uint8, qtype, self._byteswap)

    def byteswap(self, inplace: bool = False) -> "LazyChunkedTensor":
        """The same in the other order of bytes."""
        if inplace:
            raise NotImplementedError("a chunked tensor cannot be byteswapped in place")
        return LazyChunkedTensor(self._chunks, self.shape, self.dtype, self._qtype, not self._byteswap)

    def tofile(self, *args: Any, **kwargs: Any) -> None:
        """Writes piece after piece."""
        from .quants import quantize

        written = 0
        for make in self._chunks:
            piece = make()
            if self._qtype is not None:
                piece = quantize(piece, self._qtype)
            if self._byteswap:
                piece = piece.byteswap()
            piece.tofile(*args, **kwargs)
            written += piece.nbytes
        if written != self.nbytes:
            raise ValueError(f"chunked tensor wrote {written} bytes, expected {self.nbytes}")
