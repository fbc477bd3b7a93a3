"""Files that `picograd.save` writes are PyTorch's."""

from pathlib import Path

import pytest
from object_support import objects

import picograd

torch = pytest.importorskip("torch")


def test_pytorch_reads_it(tmp_path: Path) -> None:
    picograd.save(objects(), tmp_path / "a.pt")
    found = torch.load(tmp_path / "a.pt", weights_only=True)
    kinds = [str(each.dtype) for each in found["dtypes"]]
    assert kinds == ["torch.bool", "torch.int8", "torch.uint16", "torch.bfloat16"]
    assert [each.tolist() for each in found["dtypes"]] == [[True, False], [1, 0], [1, 0], [1, 0]]
    assert found["shapes"][0].tolist() == [[0, 3], [1, 4], [2, 5]] and found["shapes"][1] == 2.5
    assert found["shapes"][2].shape == (0, 3) and found["counts"] == {2: 1}
    assert isinstance(found["parameter"], torch.nn.Parameter) and found["others"]["epoch"] == 3
    assert found["dtype"] is torch.float16 and found["device"] == torch.device("cpu")


def test_sizes_complex_numbers_and_buffers_are_read_again(tmp_path: Path) -> None:
    rows = picograd.nn.Buffer(picograd.ones(2))
    kept = {"shape": picograd.ones(2, 3).shape, "z": 1 + 2j, "raw": bytearray(b"x"), "rows": rows}
    picograd.save(kept, tmp_path / "a.pt")
    for library in (torch, picograd):
        found = library.load(tmp_path / "a.pt", weights_only=True)
        assert type(found["shape"]) is library.Size and found["shape"] == (2, 3)
        assert (found["z"], found["raw"]) == (1 + 2j, bytearray(b"x"))
        assert found["rows"].tolist() == [1.0, 1.0]
