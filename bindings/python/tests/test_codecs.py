import threading
import time

import gguf_kit
import numpy as np
import pytest
from gguf_kit import codecs

ROWS = np.random.default_rng(1).normal(size=(6, 512)).astype(np.float32)


@pytest.mark.parametrize("name", [name for name, row in codecs.TYPES.items() if row.codec])
def test_round_trip_of_every_type(name):
    row = codecs.TYPES[name]
    is_integer = name in ("I8", "I16", "I32", "I64")
    values = np.round(ROWS * 20) if is_integer else ROWS
    importance = np.linspace(0.5, 2, 512)
    data = gguf_kit.encode(values, name, importance)
    assert data.shape == (6, 512 // row.block_len * row.block_bytes) and data.dtype == np.uint8
    decoded = gguf_kit.decode(data, name)
    error = np.sqrt(((decoded - values) ** 2).mean() / (values**2).mean())
    # Ternary types have the largest error for normally distributed rows; one bit loses 1 - 2/pi of the energy.
    assert error < 0.85 and decoded.dtype == np.float32
    # Single rows, Fortran order and other thread counts give the same bytes.
    fortran = np.asfortranarray(values)
    assert (gguf_kit.encode(fortran, name, importance, threads=1) == data).all()
    assert (gguf_kit.encode(values[::2], name, importance) == data[::2]).all()
    if row.requires_importance:
        with pytest.raises(gguf_kit.RequestError, match="importance"):
            gguf_kit.encode(values, name)


def test_experts_have_their_own_importance():
    values = ROWS.reshape(2, 3, 512)
    importance = np.abs(ROWS[:2]) + 0.1
    batched = gguf_kit.encode(values, "Q4_K", importance)
    for expert in range(2):
        single = gguf_kit.encode(values[expert], "Q4_K", importance[expert])
        assert (batched[expert] == single).all()


@pytest.mark.parametrize(
    "values, type, importance",
    [
        (np.ones((2, 33)), "Q8_0", None),
        (np.float32(1), "F32", None),
        (np.ones(32, complex), "Q8_0", None),
        (np.array(["a"] * 32), "Q8_0", None),
        (np.array([None] * 32), "Q8_0", None),
        (np.full(32, np.nan), "Q8_0", None),
        (np.full(32, 2**40 + 1), "I64", None),
        (np.full(32, 300), "I8", None),
        (np.ones((2, 32)), "Q8_0", np.ones(31)),
        (np.ones((2, 32)), "Q8_0", np.ones((3, 32))),
        (np.ones(32), "Q4_2", None),
        (np.ones(32), "nothing", None),
        (np.ones(32), 9999, None),
    ],
)
def test_invalid_values_are_rejected(values, type, importance):
    with pytest.raises(gguf_kit.RequestError):
        gguf_kit.encode(values, type, importance)


@pytest.mark.parametrize("data", [b"abc", np.zeros((2, 33), np.uint8), np.array([None]), np.uint8(1)])
def test_invalid_data_is_rejected(data):
    with pytest.raises(gguf_kit.RequestError):
        gguf_kit.decode(data, "Q8_0")


def test_empty_arrays():
    assert gguf_kit.encode(np.ones((0, 256)), "Q4_K").shape == (0, 144)
    assert gguf_kit.decode(np.zeros((0, 144), np.uint8), "Q4_K").shape == (0, 256)


def test_array_modified_by_another_thread():
    values = np.ones((4096, 256), np.float32)
    stop = threading.Event()

    def change():
        while not stop.is_set():
            values[:] = np.nan
            values[:] = 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(5):
            try:
                gguf_kit.encode(values, "Q4_K")
            except gguf_kit.RequestError:
                pass
    finally:
        stop.set()
        thread.join()


def test_gil_is_released():
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    gguf_kit.encode(np.ones((3000, 4096), np.float32) * np.arange(4096), "Q4_K", threads=1)
    end = time.monotonic()
    stop.set()
    thread.join()
    during = sum(begin < at < end for at in ticks)
    assert during > 10, f"{during} ticks in {end - begin} s"
