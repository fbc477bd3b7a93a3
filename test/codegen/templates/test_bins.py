"""The template of sums by number."""

from rowwise_cases import step_count


def test_the_step_count_does_not_depend_on_the_size() -> None:
    assert step_count("bins_rows") == step_count("bins_few") <= 15
