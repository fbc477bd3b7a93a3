"""Groups and labels: where a node stands in the domain of the group it depends on."""

from picograd.schedule.group import FREE, Group, identity_labels, place


def rows(shape: tuple[int, ...], reduced: tuple[int, ...]) -> Group:
    return Group(0, "reduce", 1, shape, reduced, "cpu")


def test_kept_and_inner_leave_out_sizes_of_one() -> None:
    group = rows((1, 4, 1, 5), (2, 3))
    assert group.kept == (1,) and group.inner == (3,)


def test_labels_that_are_complete_stay() -> None:
    group = rows((4, 5), (1,))
    assert place((4,), (0,), group) == ("row", (0,))
    assert place((4, 5), (0, 1), group) == ("elem", (0, 1))


def test_free_dimensions_are_completed_where_sizes_match() -> None:
    group = rows((4, 5), (1,))
    assert place((4, 5), (0, FREE), group) == ("elem", (0, 1))
    assert place((5, 4), (FREE, 0), group) == ("elem", (1, 0))
    assert place((4, 1), (0, FREE), group) == ("row", (0, FREE))
    assert place((4, 6), (0, FREE), group) is None
    assert place((4, 5, 2), (0, FREE, FREE), group) is None


def test_identity_labels_skip_sizes_of_one() -> None:
    assert identity_labels((3, 1, 2)) == (0, FREE, 2)
