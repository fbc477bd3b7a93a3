"""What can be looked at, and what the errors say of the rest."""

import gc
import json
import sys
import weakref

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine.plan_key import leaf_buffer
from picograd.errors import DataError, DTypeError, ValueRangeError
from picograd.view.gather import gather, read_run, run_script, save_run

pytestmark = pytest.mark.usefixtures("cpu_by_default")


def ones(*shape):
    return Tensor(np.ones(shape, np.float32))


def test_tensors_and_plans():
    run = gather(ones(4, 4).softmax(1), ())
    assert run.title == "Tensor[4, 4]" and len(run.data["plans"]) == 1
    both = gather([ones(4).exp(), ones(3, 3) @ ones(3, 3)], ())
    assert len(both.data["plans"][0]["steps"]) == 2
    plan = picograd.plan(ones(4, 4).softmax(1))
    assert gather(plan, ()).data["plans"] == gather(plan.plan, ()).data["plans"]


def test_a_page_keeps_no_memory():
    x = ones(64, 64).realize()
    buffer = weakref.ref(leaf_buffer(x.node))
    runs = [gather(x.exp(), ()), gather(picograd.plan(x.exp()), ())]
    del x
    gc.collect()
    assert buffer() is None and len(runs) == 2


def test_another_target_needs_no_such_machine():
    run = gather(ones(4, 4).softmax(1), (), "sm_80")
    assert run.data["plans"][0]["target"] == "sm_80"
    assert "CUDA C for sm_80" in [stage["title"] for stage in run.stages(0, 0)][3]


def test_a_module_names_its_parameters():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    run = gather(model, (ones(5, 4),))
    (plan,) = run.data["plans"]
    assert run.title == "Sequential" and plan["runs"] == 0
    assert {"0.weight", "0.bias", "2.weight"} <= {slot["name"] for slot in plan["slots"]}
    with pytest.raises(ValueRangeError, match=r"pass an input too: picograd\.view\(model, x\)"):
        gather(model, ())


def test_a_jitted_function_is_called_once():
    model = nn.Linear(4, 2)
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)
    calls = []

    @picograd.jit
    def train(x):
        calls.append(1)
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    x = ones(8, 4)
    train(x)
    before = model.weight.numpy().copy()
    run = gather(train, (x,))
    assert not np.array_equal(before, model.weight.numpy())
    plan = run.data["plans"][-1]
    assert run.title == "train" and plan["runs"] == 1 and "test_gather.py" in plan["title"]
    assert all(step["seconds"] > 0 for step in plan["steps"])
    again = gather(train, (x,), runs=3).data["plans"][-1]
    assert again["runs"] == 3 and len(calls) == 3  # traced by the user, and once for each page
    train(x)  # goes on working
    with pytest.raises(ValueRangeError, match="runs=0 is less than 1"):
        gather(train, (x,), runs=0)


def test_a_function_may_leave_its_result_pending():
    run = gather(lambda x: {"y": [x.exp()]}, (ones(4),))
    assert [plan["title"] for plan in run.data["plans"]] == ["not run yet"]


@pytest.mark.parametrize(
    ("thing", "error", "text"),
    [
        (3, DTypeError, "cannot show an int. Fix: pass a tensor"),
        ([], DTypeError, "cannot show a list"),
        ([3], DTypeError, "cannot show a list"),
        (lambda: 3, ValueRangeError, "computed nothing"),
        ("no/such.json", DataError, "there is no file no/such.json"),
    ],
)
def test_errors(thing, error, text):
    with pytest.raises(error, match="view: .*") as raised:
        gather(thing, ())
    assert text in str(raised.value)


def test_what_is_computed_already_has_no_plan():
    with pytest.raises(ValueRangeError, match="every tensor given is computed already"):
        gather(ones(3).realize(), ())


SCRIPT = """
import sys
from picograd import Tensor
import beside
print(sys.argv[1], __name__)
x = Tensor([[1.0, 2.0], [3.0, 4.0]])
for _ in range(2):
    (x @ x).relu().realize()
sys.exit(0)
"""


def test_a_script_runs_as_it_would_alone(tmp_path, capsys):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("")
    before = list(sys.argv), list(sys.path)
    run = run_script(str(script), ["argument"])
    assert capsys.readouterr().out == "argument __main__\n"
    assert (sys.argv, sys.path) == before
    (plan,) = run.data["plans"]
    assert plan["runs"] == 2 and plan["origin"] == "script.py:8"
    with pytest.raises(DataError, match="there is no file"):
        run_script(str(tmp_path / "none.py"), [])


def test_saved_runs(tmp_path):
    path = tmp_path / "before.json"
    run = gather(ones(4, 4).softmax(1), ())
    save_run(run, path)
    again = gather(path, ())
    assert again.title == "before" and again.stages(0, 0) == run.stages(0, 0)
    for wrong in ("{", "[]", "{}", json.dumps({"picograd run": 2, "plans": [], "stages": {}})):
        path.write_text(wrong)
        with pytest.raises(DataError, match="is no saved run"):
            read_run(path)
    with pytest.raises(DataError, match="cannot write"):
        save_run(run, tmp_path / "no" / "x.json")
