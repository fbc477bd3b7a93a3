"""Ties: what belongs together."""

from picograd.schedule.arrange import Ties


def test_what_is_tied_stays_together() -> None:
    ties = Ties(dict.fromkeys(range(4), 0))
    ties.tie(3, 1)
    ties.tie(1, 2)
    assert [ties.head(number) for number in range(4)] == [0, 1, 1, 1]
