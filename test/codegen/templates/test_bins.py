"""The template of sums by number."""

from rowwise_cases import step_count


def test_the_step_count_does_not_depend_on_the_size() -> None:
    for name in ("bins_rows", "bins_few"):
        assert step_count(name) <= 10
