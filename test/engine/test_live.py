"""The table of live tensors: what is gone is never handed out, and let go in time."""

from picograd import Tensor
from picograd.engine.live import LiveTable


def test_a_table_forgets_what_is_gone():
    table, kept = LiveTable(), Tensor([1.0])
    table.limit = 2
    for number in range(5):
        table.set(number, Tensor([0.0]))
    table.set(7, kept)
    assert table.identities() == [7] and table.tensors() == [kept] and 7 in table and 3 not in table
    table.sweep()
    assert list(table.data) == [7] and len(table) == 1
    table.drop(7)
    assert table.get(7) is None
