"""Disjoint half-open intervals with values, stored in a treap.

An :class:`IntervalMap` behaves like a dictionary whose keys are whole ranges of
some ordered type: integers, dates, characters, anything that compares.

>>> colors = IntervalMap()
>>> colors[0:10] = "red"
>>> colors[3:5] = "blue"
>>> list(colors.items())
[((0, 3), 'red'), ((3, 5), 'blue'), ((5, 10), 'red')]
>>> colors[4], colors.get(10)
('blue', None)

Assigning over an existing range cuts it. Neighbours that touch and carry equal
values are merged, so the number of stored pieces is always minimal. Look-up,
assignment and deletion take O(log n) expected time, plus the number of pieces
that an assignment swallows.
"""

from __future__ import annotations

import random
import unittest
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Optional, Protocol, TypeVar

__all__ = ["IntervalMap"]


class Ordered(Protocol):
    def __lt__(self, other, /) -> bool: ...


K = TypeVar("K", bound=Ordered)
V = TypeVar("V")
Tree = Optional["_Node"]


class _Node:
    """A treap node: search tree by ``lo``, heap by ``rank``."""

    __slots__ = ("lo", "hi", "value", "rank", "left", "right", "size")

    def __init__(self, lo, hi, value, rank: float) -> None:
        self.lo = lo
        self.hi = hi
        self.value = value
        self.rank = rank
        self.left: Tree = None
        self.right: Tree = None
        self.size = 1

    def update(self) -> "_Node":
        self.size = 1 + _size(self.left) + _size(self.right)
        return self


def _size(tree: Tree) -> int:
    return tree.size if tree is not None else 0


def _split(tree: Tree, key) -> tuple[Tree, Tree]:
    """Split into nodes with ``lo < key`` and nodes with ``lo >= key``."""
    if tree is None:
        return None, None
    if tree.lo < key:
        tree.right, rest = _split(tree.right, key)
        return tree.update(), rest
    rest, tree.left = _split(tree.left, key)
    return rest, tree.update()


def _join(a: Tree, b: Tree) -> Tree:
    """Concatenate two treaps where every key of ``a`` precedes those of ``b``."""
    if a is None:
        return b
    if b is None:
        return a
    if a.rank > b.rank:
        a.right = _join(a.right, b)
        return a.update()
    b.left = _join(a, b.left)
    return b.update()


def _first(tree: _Node) -> _Node:
    while tree.left is not None:
        tree = tree.left
    return tree


def _last(tree: _Node) -> _Node:
    while tree.right is not None:
        tree = tree.right
    return tree


def _walk(tree: Tree) -> Iterator[_Node]:
    stack: list[_Node] = []
    while stack or tree is not None:
        while tree is not None:
            stack.append(tree)
            tree = tree.left
        node = stack.pop()
        yield node
        tree = node.right


class IntervalMap(Generic[K, V]):
    """A mapping from half-open ranges ``[lo, hi)`` to values."""

    def __init__(
        self,
        items: Iterable[tuple[tuple[K, K], V]] = (),
        *,
        seed: int | None = None,
    ) -> None:
        self._root: Tree = None
        self._random = random.Random(seed).random
        for (lo, hi), value in items:
            self[lo:hi] = value

    # -- queries ---------------------------------------------------------------

    def __len__(self) -> int:
        """The number of maximal pieces, not the number of keys covered."""
        return _size(self._root)

    def __iter__(self) -> Iterator[tuple[K, K]]:
        return ((node.lo, node.hi) for node in _walk(self._root))

    def items(self) -> Iterator[tuple[tuple[K, K], V]]:
        return (((node.lo, node.hi), node.value) for node in _walk(self._root))

    def _find(self, key: K) -> Tree:
        candidate, tree = None, self._root
        while tree is not None:
            if key < tree.lo:
                tree = tree.left
            else:
                candidate, tree = tree, tree.right
        if candidate is not None and key < candidate.hi:
            return candidate
        return None

    def __contains__(self, key: K) -> bool:
        return self._find(key) is not None

    def __getitem__(self, key: K) -> V:
        node = self._find(key)
        if node is None:
            raise KeyError(key)
        return node.value

    def get(self, key: K, default: V | None = None) -> V | None:
        node = self._find(key)
        return default if node is None else node.value

    def gaps(self, lo: K, hi: K) -> Iterator[tuple[K, K]]:
        """Yield the parts of ``[lo, hi)`` that have no value, in order."""
        cursor = lo
        for node in _walk(self._root):
            if not node.lo < hi:
                break
            if cursor < node.lo:
                yield cursor, node.lo
            if cursor < node.hi:
                cursor = node.hi
        if cursor < hi:
            yield cursor, hi

    # -- changes ---------------------------------------------------------------

    def _cut(self, lo: K, hi: K) -> tuple[Tree, Tree, Tree]:
        """Return the treaps before, inside and after ``[lo, hi)``.

        Pieces that straddle a border are divided, so that the three parts do
        not overlap. The map must be reassembled from them by the caller.
        """
        before, rest = _split(self._root, lo)
        if before is not None:
            edge = _last(before)
            if lo < edge.hi:
                rest = _join(self._node(lo, edge.hi, edge.value), rest)
                edge.hi = lo
        inside, after = _split(rest, hi)
        if inside is not None:
            edge = _last(inside)
            if hi < edge.hi:
                after = _join(self._node(hi, edge.hi, edge.value), after)
                edge.hi = hi
        return before, inside, after

    def _node(self, lo: K, hi: K, value: V) -> _Node:
        return _Node(lo, hi, value, self._random())

    @staticmethod
    def _bounds(key: slice) -> tuple[K, K]:
        if not isinstance(key, slice) or key.step is not None:
            raise TypeError("use map[lo:hi] without a step")
        if key.start is None or key.stop is None:
            raise TypeError("both ends of the interval are required")
        return key.start, key.stop

    def __setitem__(self, key: slice, value: V) -> None:
        lo, hi = self._bounds(key)
        if not lo < hi:
            return
        before, _, after = self._cut(lo, hi)

        # Swallow equal neighbours instead of leaving a seam.
        if before is not None:
            edge = _last(before)
            if edge.hi == lo and edge.value == value:
                before, _ = _split(before, edge.lo)
                lo = edge.lo
        if after is not None:
            edge = _first(after)
            if edge.lo == hi and edge.value == value:
                _, after = _split(after, edge.hi)
                hi = edge.hi
        self._root = _join(_join(before, self._node(lo, hi, value)), after)

    def __delitem__(self, key: slice) -> None:
        lo, hi = self._bounds(key)
        if lo < hi:
            before, _, after = self._cut(lo, hi)
            self._root = _join(before, after)

    def apply(self, lo: K, hi: K, change: Callable[[V | None], V | None]) -> None:
        """Replace every value in ``[lo, hi)`` by ``change(value)``.

        Gaps are passed as ``None``; a result of ``None`` leaves or makes a gap.
        Useful for counting overlaps: ``m.apply(a, b, lambda n: (n or 0) + 1)``.
        """
        if not lo < hi:
            return
        pieces = [((a, b), None) for a, b in self.gaps(lo, hi)]
        before, inside, after = self._cut(lo, hi)
        pieces += [((node.lo, node.hi), node.value) for node in _walk(inside)]
        self._root = _join(before, after)
        for (a, b), old in pieces:
            new = change(old)
            if new is not None:
                self[a:b] = new

    def __repr__(self) -> str:
        body = ", ".join(f"[{lo!r}, {hi!r}): {v!r}" for (lo, hi), v in self.items())
        return f"IntervalMap({{{body}}})"


class IntervalMapTest(unittest.TestCase):
    def test_empty_interval_changes_nothing(self):
        m = IntervalMap([((1, 4), "a")])
        m[2:2] = "b"
        m[3:1] = "c"
        self.assertEqual(list(m.items()), [((1, 4), "a")])

    def test_touching_equal_values_merge(self):
        m = IntervalMap([((0, 2), "x"), ((4, 6), "x")])
        m[2:4] = "x"
        self.assertEqual(list(m), [(0, 6)])

    def test_touching_different_values_stay_apart(self):
        m = IntervalMap([((0, 2), "x"), ((2, 4), "y")])
        self.assertEqual(len(m), 2)

    def test_delete_from_the_middle(self):
        m = IntervalMap([(("a", "z"), True)])
        del m["k":"p"]
        self.assertIn("j", m)
        self.assertNotIn("k", m)
        self.assertIn("p", m)

    def test_gaps(self):
        m = IntervalMap([((2, 3), 1), ((5, 9), 2)])
        self.assertEqual(list(m.gaps(0, 7)), [(0, 2), (3, 5)])
        self.assertEqual(list(m.gaps(5, 9)), [])

    def test_missing_bound_is_rejected(self):
        with self.assertRaises(TypeError):
            IntervalMap()[:5] = 0

    def test_overlap_counting(self):
        m: IntervalMap[int, int] = IntervalMap()
        for a, b in [(1, 5), (3, 8), (4, 6)]:
            m.apply(a, b, lambda n: (n or 0) + 1)
        self.assertEqual(
            list(m.items()),
            [((1, 3), 1), ((3, 4), 2), ((4, 5), 3), ((5, 6), 2), ((6, 8), 1)],
        )

    def test_against_a_plain_list(self):
        rng = random.Random(7)
        for trial in range(60):
            m: IntervalMap[int, str] = IntervalMap(seed=trial)
            model: list[str | None] = [None] * 40
            for _ in range(80):
                lo, hi = sorted(rng.sample(range(41), 2))
                if rng.random() < 0.25:
                    del m[lo:hi]
                    model[lo:hi] = [None] * (hi - lo)
                else:
                    letter = rng.choice("abc")
                    m[lo:hi] = letter
                    model[lo:hi] = [letter] * (hi - lo)
                self.assertEqual([m.get(i) for i in range(40)], model)
            borders = sum(
                1 for i in range(40)
                if model[i] is not None and (i == 0 or model[i - 1] != model[i])
            )
            self.assertEqual(len(m), borders)


def load_tests(loader, tests, _pattern):
    import doctest

    tests.addTests(doctest.DocTestSuite(__name__))
    return tests


if __name__ == "__main__":
    unittest.main()
