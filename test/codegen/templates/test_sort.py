"""The templates of sorts and of runs."""

from rowwise_cases import step_count


def test_the_step_count_does_not_depend_on_the_size() -> None:
    for name in ("sort_runs", "move_rows", "runs_flat"):
        assert step_count(name) <= 6
