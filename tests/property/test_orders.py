"""Orders of rows: each row once, windows of whole blocks, and the same order from any chunk on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marginwise._training.orders import BlockOrder, Order, RowOrder
from marginwise._training.sources import sample_rows
from tests.support import Rows

SIZES = {
    "first": st.integers(0, 50),
    "n": st.integers(1, 300),
    "size": st.integers(1, 64),
    "block": st.integers(1, 90),
    "anywhere": st.booleans(),
}


def chunks(order: Order) -> list[np.ndarray]:
    """All chunks, each asked for by the number of rows before it."""
    found: list[np.ndarray] = []
    while (done := sum(map(len, found))) < len(order):
        found.append(order.chunk(done))
        assert len(found[-1]) > 0
    return found


@given(**SIZES)
def test_every_row_comes_once_in_chunks_of_bounded_size(
    first: int, n: int, size: int, block: int, anywhere: bool
) -> None:
    orders: list[Order] = [
        RowOrder(first, first + n, size, None),
        RowOrder(first, first + n, size, [1, 0, 0]),
        BlockOrder(first, first + n, size, [1, 0, 0], block=block, anywhere=anywhere),
    ]
    for order in orders:
        found = chunks(order)
        rows = np.concatenate(found)
        assert np.array_equal(np.sort(rows), np.arange(first, first + n))
        assert max(map(len, found)) <= size
        assert rows.dtype == np.int64


@given(**SIZES)
def test_a_block_is_read_for_one_window_only(
    first: int, n: int, size: int, block: int, anywhere: bool
) -> None:
    order = BlockOrder(first, first + n, size, [7], block=block, anywhere=anywhere)
    window = max(1, size // block) * block
    last = -1
    seen: set[int] = set()
    for rows in chunks(order):
        blocks = set((rows // block).tolist())
        fresh = blocks - seen
        assert len(blocks) <= max(1, size // block)
        if len(rows) > 0 and window <= size:  # a chunk is a whole window
            assert fresh == blocks
        if not anywhere:
            assert min(blocks) >= last
            last = min(blocks)
        seen |= blocks


def test_rows_of_a_file_that_is_read_forwards_stay_within_their_window() -> None:
    order = BlockOrder(0, 100, 20, [0], block=10, anywhere=False)
    for k, rows in enumerate(chunks(order)):
        assert sorted(rows) == list(range(20 * k, 20 * k + 20))
        assert rows.tolist() != sorted(rows)


def test_blocks_are_shuffled_where_they_can_be_read_in_any_order() -> None:
    order = BlockOrder(0, 1000, 20, [0], block=10, anywhere=True)
    visited = [set((rows // 10).tolist()) for rows in chunks(order)]
    assert visited != sorted(visited, key=min)


def test_other_seeds_give_another_order() -> None:
    def rows(seed: int) -> list[int]:
        order = BlockOrder(0, 500, 50, [seed, 0, 0], block=10, anywhere=True)
        return np.concatenate(chunks(order)).tolist()

    assert rows(0) == rows(0) != rows(1)


class Blocks(Rows):
    def __init__(self, n: int, block: object, random_access: bool = True) -> None:
        super().__init__(np.zeros((n, 1)), np.zeros(n))
        self.block, self.random_access = block, random_access


@pytest.mark.parametrize("n", [1, 15, 16, 1000, 12_345])
def test_a_sample_is_of_few_blocks(n: int) -> None:
    rows = sample_rows(Blocks(n, 100), n, 200)
    assert np.array_equal(rows, np.unique(rows))
    assert 0 <= rows[0] <= rows[-1] < n
    assert len(rows) <= 200 + 16
    assert len(rows) >= min(n, 100)
    assert len(set((rows // 100).tolist())) <= 16


def test_a_sample_of_a_file_that_is_read_forwards_is_from_its_beginning() -> None:
    rows = sample_rows(Blocks(10_000, 100, random_access=False), 10_000, 200)
    assert rows[-1] < 1600


@pytest.mark.parametrize("block", [0, -1, 2.5, True, "8"])
def test_a_block_that_is_none_is_refused(block: object) -> None:
    with pytest.raises(ValueError, match=r"source.block must be an integer of at least 1"):
        sample_rows(Blocks(100, block), 100, 10)
