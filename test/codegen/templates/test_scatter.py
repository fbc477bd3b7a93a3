"""The template of scatters, in blocks of threads."""

import pytest
from template_cases import check, names


@pytest.mark.parametrize("name", names("scatter"))
def test_values_on_cuda(name: str) -> None:
    check(name)
