"""The template of running sums."""

from rowwise_cases import step_count


def test_the_step_count_does_not_depend_on_the_size() -> None:
    assert step_count("rows") <= 6
