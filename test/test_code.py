"""Code: the launch facts of a generated kernel."""

from dataclasses import FrozenInstanceError

import pytest

from picograd.code import Code, Workspace


def test_code_is_frozen_and_has_defaults() -> None:
    code = Code("k", "llvm", "k_entry", "text", tasks=4)
    assert code.threads == 1 and code.workspaces == () and code.scratch_bytes == 0
    with pytest.raises(FrozenInstanceError):
        code.tasks = 5  # type: ignore[misc]


def test_a_workspace_is_not_zeroed_unless_asked() -> None:
    assert not Workspace(128).is_zeroed
    assert Workspace(4, True) == Workspace(4, is_zeroed=True)
