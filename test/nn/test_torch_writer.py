"""Files that `picograd.save` writes are PyTorch's."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize("writer", [picograd, torch])
@pytest.mark.parametrize("reader", [picograd, torch])
def test_what_dicts_and_parameters_carry(writer: Any, reader: Any, tmp_path: Path) -> None:
    """The order of a dict can be changed; attributes of parameters and versions of modules stay."""
    parameter = writer.nn.Parameter(writer.ones(2))
    parameter.tag = {"rows": [1, writer.ones(1)]}
    norm = writer.nn.BatchNorm1d(2)
    kept = {"p": parameter, "ordered": OrderedDict(b=1, a=2), "state": norm.state_dict()}
    writer.save(kept, tmp_path / "a.pt")
    found = reader.load(tmp_path / "a.pt", weights_only=True)
    assert found["p"].tag["rows"][0] == 1 and found["p"].tag["rows"][1].tolist() == [1.0]
    found["ordered"].move_to_end("b")
    assert list(found["ordered"]) == ["a", "b"]
    assert found["state"]._metadata == {"": {"version": 2}}
    del found["state"]["num_batches_tracked"]  # versions before 2 had none
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        reader.nn.BatchNorm1d(2).load_state_dict(found["state"])
