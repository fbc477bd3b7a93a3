"""How blocks of a GPU share columns: tiles of them, and chunks of rows."""

from picograd.codegen.templates.column_blocks import even_chunk, side_by_side, split_width
from picograd.schedule.index import Axis, constant, substitute


def test_blocks_have_few_columns_where_the_last_one_reads_what_many_left() -> None:
    """All of 396 blocks' sums of 96 columns would take one processor longer than the sums do."""
    assert [split_width(n, 396) for n in (16, 96, 480, 1280, 4096)] == [32, 32, 32, 64, 128]


def test_blocks_of_columns_walk_side_by_side_from_the_last_rows() -> None:
    split, within = Axis("split", 3), Axis("within", 4)
    index = side_by_side(split, within, 2)
    places = [
        [substitute(index, {split: constant(s), within: constant(w)}).const for s in range(3)]
        for w in range(4)
    ]
    assert places == [[6, 8, 10], [7, 9, 11], [0, 2, 4], [1, 3, 5]]


def test_chunks_are_even_where_longer_ones_are() -> None:
    """200704 rows fall into chunks of 512 evenly; 1000 into none of up to twice 96 rows."""
    assert even_chunk(200704, 507, 32) == 512
    assert even_chunk(1000, 90, 32) == 90
