"""Views alias as PyTorch's do: every idiom runs unchanged in both libraries, with equal results."""

import types
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine import pending
from picograd.engine import realize as engine
from picograd.errors import ShapeError

torch = pytest.importorskip("torch")

# x: (3, 4), b: (4,), s: 2 x 3 x 4, i: int64 (3, 4), m: (4, 4)
WRITES = """
x[1][2] = 5
x[:, 1].add_(3)
x.view(-1)[4] = 5
for row in x: row.mul_(2)
for row in x: row *= 2
x[0].copy_(b)
x[1:3, 2].zero_()
x[:, ::2].mul_(3)
x[:1].expand(0, 4).add_(1)
x[:1].expand(0, 4)[...] = 1
v = x[:, :0].view(3, 1, 0).expand(3, 2, 0); v.mul_(2); v[None].add_(1)
x[2:2].zero_(); x[:, :0].t().fill_(1); x[3:].view(-1).add_(1)
x[:0].unfold(1, 2, 1).add_(1); x.diagonal(4).fill_(2)
x[i[0, 0] % 3].zero_()
x[:, i[0, 0] % 4].add_(1)
x[i[0, 0] % 3, 1:].fill_(2)
x[-1 - i[0, 0] % 3][1:3].neg_()
n = i[0, 0] % 3; v = x[n]; n.add_(1); n.remainder_(3); v.zero_(); b.copy_(v)
n = i[0, 0] % 3; v = x[n]; n.add_(1); x.mul_(2); b.copy_(v)
for n in i[0] % 3: x[n].add_(1)
v = x[i[0, 0] % 3, [0, 1]]; v.zero_()
x[np.int64(1)].zero_()
x[np.int32(-1), 1:].fill_(2)
x.ravel()[5:].zero_()
v = x[:, :1].ravel(); v.zero_()
v = x.t().ravel(); v.zero_()
s[1].ravel().neg_()
s[:, 0].ravel().neg_()
torch.ravel(x.t()).zero_()
x[::2][:, 1:3].fill_(7)
x[-1][-1] = 9
x[..., 0] -= 1
x[None][0, 1].add_(1)
x.t()[1].fill_(4)
x.T[2] = b[:3]
x.t().mul_(2)
x.mT[0, 0] = 1
x.permute(1, 0)[3].zero_()
s.permute(2, 0, 1)[1].add_(1)
s.transpose(0, 2)[0, 1] = 8
s.movedim(0, 2)[..., 1].mul_(2)
s.swapaxes(0, 1)[1].neg_()
x.reshape(4, 3)[1] = 6
x.reshape(-1).add_(1)
x.reshape(12)[3:7].zero_()
s.view(6, 4)[5].fill_(1)
s.view(2, 12)[:, 5:7] = 3
s.flatten(1)[1].fill_(2)
s.flatten()[0] = 2
s.unflatten(2, (2, 2))[..., 1] = 0
x.ravel()[2] = 3
x.unsqueeze(1)[0, 0].fill_(3)
x.unsqueeze(-1).squeeze(-1)[2].fill_(3)
x.narrow(1, 1, 2).fill_(0)
x.select(0, 2).fill_(0)
x.diagonal().fill_(0)
m.diagonal(1).copy_(b[:3])
m.diagonal(-1)[1] = 5
torch.diagonal(m).mul_(3)
x.chunk(2, 1)[0].fill_(1)
x.chunk(3)[2].neg_()
x.split(2)[1].fill_(1)
x.split([1, 3], 1)[1].zero_()
x.unbind()[1].fill_(5)
x.unbind(1)[0].fill_(5)
x.tensor_split(2)[0].add_(1)
torch.hsplit(x, 2)[1].zero_()
torch.vsplit(x, 3)[1].zero_()
q, k, v = x.chunk(3); q.fill_(1); v.mul_(k)
a, c = s.unbind(0); a.copy_(c)
x.unfold(1, 2, 2)[:, 0].fill_(4)
x.as_strided((2, 2), (4, 1)).fill_(6)
x.as_strided((3,), (5,), 0).zero_()
x.detach().zero_()
x.detach()[0].add_(2)
x.data.mul_(2)
x.data[1] = 0
x.data.clamp_(-0.5, 0.5)
x.view_as(s[0]).add_(1)
x.expand(3, 4)[0].add_(1)
x.expand_as(x).mul_(2)
x[:, 0:1].fill_(2)
x[1:2].expand(1, 4).add_(1)
x[:].fill_(0)
x[...].add_(1)
x.view(3, 2, 2)[:, 1].view(3, 2)[:, 0].fill_(1)
x[0].view(2, 2).t()[0].fill_(7)
x[0:2].view(8)[5] = 5
v = x[1]; x.mul_(2); b.copy_(v)
v = x[1]; x[1, 2] = 9; b.copy_(v)
v = x.t(); w = x[0]; v[0, 0] = 5; b.copy_(w)
v = x.view(-1); w = v[2:6]; w.zero_(); v[3] = 1; b.copy_(w)
v = x[0]; w = x[0]; v.add_(1); w.mul_(2); b.copy_(v)
v = x[1:]; w = v[0]; x.zero_(); w.add_(2); v[1].sub_(1)
v = x.detach(); x.add_(1); b.copy_(v[0])
v = x.t().reshape(-1); v.zero_()
v = x.t().reshape(-1); x.zero_(); b.copy_(v[:4])
v = x.t().contiguous(); v.zero_()
v = x[:, 1:3].reshape(-1); v.zero_()
v = x[:, 1:3].flatten(); v.fill_(1)
v = x[[0, 2]]; v.zero_()
v = x[i[:, 0] % 3]; v.zero_()
v = x[x > 0]; v.zero_()
v = x.clone(); v[0].zero_()
v = x.flip(0); v[0].zero_()
v = x.roll(1, 0); v[0].zero_()
v = x.repeat(1, 1); v[0].zero_()
v = x.tile((1, 1)); v[0].zero_()
v = torch.cat([x]); v.zero_()
v = torch.stack([x]); v.zero_()
v = x + 0; v.zero_()
v = x * 1; v.zero_()
v = x.sum(0, keepdim=True)[0]; v.zero_()
v = x[:1].sum(0); v.zero_()
v = x[:1].mean(0); v.zero_()
v = x[:1].amax(0); v.zero_()
v = x.tril(9); v.zero_()
v = x.clamp(-99, 99); v.zero_()
v = x.to(torch.float64).to(torch.float32); v.zero_()
v = torch.nn.functional.pad(x, (-1, 0)); v.zero_()
v = torch.nn.functional.pad(x, (0, 0)); v.zero_()
v = torch.where(x > -99, x, x); v.zero_()
v = x.index_select(0, i[:, 0] % 3); v.zero_()
v = x.gather(1, i % 4); v.zero_()
v = x.masked_fill(x > 99, 0); v.zero_()
v = torch.broadcast_to(b, (1, 4))[0]; v.zero_()
x += 1; x[0] += x[1]; x[2] *= x[0]
x[0], x[1] = x[1].clone(), x[0].clone()
x[1] = x[0]; x[0].zero_()
x[:, 1] = x[:, 0]; x.t()[0].neg_()
x[0].add_(x[1]).mul_(x[2])
x[1:] += x[:-1].clone()
x[0, 1:].sub_(x[1, :-1])
i[0].add_(1); i[:, 1] *= 2
i.view(-1)[5] = -3; i.t()[0].fill_(7)
x.view(-1)[:].copy_(s[0].reshape(-1))
x[0].normal_(0, 0); x[1].uniform_(1, 1)
x[0].exp_(); x[1].relu_(); x[2].clamp_(0, 1)
x[0].index_fill_(0, i[0] % 4, 2.0)
x[0].masked_fill_(x[0] > 0, -1)
x[:, 1].scatter_(0, i[0, :1] % 3, b[:1])
x[0].put_(i[0, :2] % 4, b[:2])
x[1].index_add_(0, i[0, :1] % 4, b[:1])
x[1].fill_(2).add_(1); x[1][0].mul_(3)
s[0].copy_(x); s[1, 0].copy_(x[0]); s[..., 3].zero_()
s[1].t()[0].copy_(x[:, 1])
s[0][1][2] = 5; s[0, 1][2] += 5
y = s[1]; y[0] = 1; z = y[0]; z[1] = 2; b.copy_(y[0])
y = s.view(24); z = y.view(4, 6)[2]; z.fill_(3); s[0, 0, 0] = 8; b.copy_(y[:4])
y = torch.zeros(2, 3); y[0].fill_(1); y.view(-1)[5] = 2; b[:3].copy_(y[1])
y = torch.ones(4); y[1:3].mul_(5); b.add_(y)
y = x * 2; y[0].zero_(); z = y.t(); z[0].fill_(1); b.copy_(y[0])
y = b.view(2, 2); y.t().copy_(y.clone())
y = b[1:]; z = y[1:]; z[0] = 9; y[0] = 8
y = b.view(2, 2)[1]; b.zero_(); y.add_(1)
y = x.view(-1); y.data[3] = 1; x.data.view(-1)[4] = 2
y = x.T.T; y[0].fill_(1)
y = b.expand(2, 4); y[0] *= 3
y = b.expand(2, 4); y[1].add_(1)
y = b.expand(2, 4); y[0, 1] = 5
y = b.expand(2, 4).t(); y[1, 0] = 7
y = b.view(1, 4).expand(2, 4)[1]; y.mul_(2)
y = x[:, :, None][:, :, 0]; y[0].fill_(1)
"""

# w: leaf (3, 4) that asks for gradients, u = w * 2, b asks too; the loss is of r
GRADIENTS = r"""
u[0].mul_(3); r = u
u[i[0, 1]].mul_(3); r = u * u
v = u[i[0, 1]]; v.mul_(b); z = v * 3; u[1].fill_(0); r = z
v = u[:, i[0, 2]]; v.sin_(); r = u * u
v = u.t().ravel(); v.mul_(2); r = u * u + v.sum()
u[:, 1].zero_(); r = u * u
u.view(-1)[2:5].mul_(b[:3]); r = u
v = u[1]; v.add_(b); r = v * v
v = u[1]; u.mul_(2); r = v.exp()
v = u.t(); v[0].mul_(b[:3]); r = u.sin()
v = u[0]; v.mul_(2); z = v * 3; u[0].fill_(0); r = z
y = torch.zeros(3, 4); y[1] = b; r = y * u
y = torch.zeros(3, 4); y[1].copy_(b * 2); y[0].add_(b); r = y * y
y = torch.ones(4); y.copy_(b * 3); r = y * y
y = torch.ones(3, 4); y.copy_(b); r = y.sin()
y = torch.zeros(0, 4); y[:0] += b; y[:0] += b; r = y.sum() + u + b
u[:0].mul_(b); r = u
u[2:2] = b * 2; u[:, 4:].add_(b[0]); r = u * u
u.detach().zero_(); r = u * 1
u.detach()[0].fill_(2); r = u * 1
u.data.mul_(2); r = u * 3
a, c = u.narrow(0, 0, 1), u[1:]; a.mul_(2); r = c.sum() + a.sum()
q = u[:, :2]; k = u[:, 2:]; q.mul_(k.clone()); r = q * q
v = u.reshape(4, 3); v[2].neg_(); r = v * u.reshape(4, 3)
v = u.diagonal(); v.mul_(5); r = u
u[0] = b; u[1] += u[0]; r = u * u
v = u[0].view(2, 2); v[0].exp_(); r = v
for n in range(3): u[n].mul_(2)\nr = u * u
u[:, 0] = 0; u[0] = u[1]; r = u.exp()
with torch.no_grad(): w[0].mul_(2)\nr = w * w
with torch.no_grad(): w.view(-1)[3] = 2\nr = w * w
with torch.no_grad(): w[:, 1].add_(b[:3])\nr = w * b
w.data[0] = 2; r = w * w
w.data.view(-1).mul_(2); r = w * w
w.detach()[1].fill_(3); r = w * w
v = w[0]; w.data.mul_(2); r = v * v
v = w[0]\nwith torch.no_grad(): w.mul_(2)\nr = v * 3
z = u.detach(); u.add_(1); r = u * z
"""

ERRORS = r"""
w[0].mul_(2)
w.view(-1)[1] = 2
w.t().add_(1)
w.chunk(2)[0].zero_()
w.fill_diagonal_(0)
b[0:1].expand(3).add_(1)
torch.zeros(1).expand(3).add_(1)
a, c = u.split([1, 2]); a.mul_(2)
w.zero_()
w.fill_(1)
w.normal_()
w.copy_(u)
w.detach().requires_grad_().add_(1)
with torch.no_grad(): v = w[0]\nv.fill_(1)
"""

NAMES = tuple("xbsimwuryvz")


def lines(text: str) -> list[str]:
    return [line.replace("\\n", "\n") for line in text.strip().split("\n")]


def start(library: Any, tensor: Any, asks: bool) -> dict[str, Any]:
    rng = np.random.default_rng(0)

    def made(*shape: int) -> Any:
        return tensor(rng.standard_normal(shape).astype(np.float32))

    found = {"x": made(3, 4), "b": made(4), "s": made(2, 3, 4), "m": made(4, 4), "w": made(3, 4)}
    found["i"] = tensor(np.arange(12).reshape(3, 4))
    if asks:
        found["w"].requires_grad_(True)
        found["b"].requires_grad_(True)
        found["u"] = found["w"] * 2
    return {**found, "torch": library, "np": np}


def values(names: dict[str, Any], kind: type) -> dict[str, Any]:
    found = {name: names[name] for name in NAMES if isinstance(names.get(name), kind)}
    grads = {f"{name}.grad": t.grad for name, t in found.items() if t.is_leaf and t.requires_grad}
    return {
        name: None if tensor is None else tensor.detach().numpy()
        for name, tensor in {**found, **grads}.items()
    }


def check(code: str, asks: bool, before: Any = None) -> None:
    ours, theirs = start(picograd, Tensor, asks), start(torch, torch.tensor, asks)
    if before is not None:
        before(ours)
    exec(code, theirs)
    exec(code, ours)
    if asks:
        theirs["r"].sum().backward()
        ours["r"].sum().backward()
    wanted, found = values(theirs, torch.Tensor), values(ours, Tensor)
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        assert (found[name] is None) == (value is None), name
        if value is not None:
            np.testing.assert_allclose(found[name], value, 1e-5, 1e-6, err_msg=f"{code}: {name}")


@pytest.mark.parametrize("code", lines(WRITES))
def test_writes_reach_the_base_and_its_views(code: str) -> None:
    check(code, False)


@pytest.mark.parametrize("code", lines(WRITES)[::4])
def test_writes_to_values_that_are_not_computed_yet(code: str) -> None:
    def pend(names: dict[str, Any]) -> None:
        for name in ("x", "b", "s", "m", "w"):
            names[name] = names[name] * 1.0 + 0.0 * names["b"].sum()

    check(code, False, pend)


COMPUTING = ("[x > 0]", "uniform_", "normal_")  # what a trace cannot hold, or draws


@pytest.mark.parametrize("code", [c for c in lines(WRITES) if not any(w in c for w in COMPUTING)])
def test_writes_in_a_jitted_function(code: str) -> None:
    ours, theirs = start(picograd, Tensor, False), start(torch, torch.tensor, False)
    outside = {"x": ours["x"][1], "s": ours["s"][0]}

    def run(x: Any, b: Any, s: Any, i: Any, m: Any) -> None:
        names = {"x": x, "b": b, "s": s, "i": i, "m": m}
        exec(code, {**names, "torch": picograd, "np": np})

    jitted = picograd.jit(run)
    for _ in range(3):
        exec(code, theirs)
        jitted(*(ours[name] for name in "xbsim"))
    for name in "xbsim":
        found, wanted = ours[name].numpy(), theirs[name].numpy()
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5, err_msg=name)
    assert outside["x"].tolist() == ours["x"][1].tolist()
    assert outside["s"].tolist() == ours["s"][0].tolist()


@pytest.mark.parametrize("code", lines(GRADIENTS))
def test_gradients_flow_through_writes(code: str) -> None:
    check(code, True)


@pytest.mark.parametrize("code", lines(ERRORS))
def test_what_pytorch_refuses_is_refused(code: str) -> None:
    with pytest.raises(RuntimeError):
        exec(code, start(torch, torch.tensor, True))
    names = start(picograd, Tensor, True)
    with pytest.raises(RuntimeError):
        exec(code, names)
    names["w"].numpy()  # still usable


STRIDES = """
x.t()
x.t().reshape(2, 2, 3)
x[:, 1:3]
x[::2]
x[:, 1]
s.permute(1, 2, 0)
s.permute(1, 2, 0).reshape(12, 2)
s.transpose(0, 1).reshape(3, 8)
s[:, 1].reshape(2, 2, 2)
s.view(6, 4)[1:].unsqueeze(1)
b.expand(3, 4)
b.expand(3, 4).reshape(3, 2, 2)
x.unfold(1, 2, 1)
x.t().contiguous()
x.contiguous()
"""


@pytest.mark.parametrize("code", lines(STRIDES))
def test_strides(code: str) -> None:
    ours, theirs = start(picograd, Tensor, False), start(torch, torch.tensor, False)
    found, wanted = eval(code, ours), eval(code, theirs)
    assert tuple(found.stride()) == tuple(wanted.stride())
    assert found.is_contiguous() == wanted.is_contiguous()


def test_versions_are_those_of_the_base() -> None:
    x = Tensor.zeros(3, 4)
    v, w = x[0], x.t()
    v.add_(1)
    assert x._version == v._version == w._version == 1
    x.mul_(2)
    assert x._version == v._version == w._version == 2


def test_a_view_keeps_its_base_and_dies_alone() -> None:
    x = Tensor.zeros(4)
    for _ in range(40):
        x[1:3].add_(1)
    assert x.tolist() == [0, 40, 40, 0]
    assert len(x._views or ()) <= 1
    view = Tensor.zeros(2, 2)[1]
    view.fill_(3)
    assert view.tolist() == [3, 3]


def test_assigning_data_gives_new_memory() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    old = w.data
    w.data = Tensor([5.0, 6.0])
    w.data.add_(1)
    assert (old.tolist(), w.tolist()) == ([1, 2], [6, 7])


def test_a_module_is_initialised_through_pieces_and_data() -> None:
    layer = picograd.nn.Linear(4, 6)
    q, _, v = layer.weight.chunk(3)
    picograd.nn.init.ones_(q)
    picograd.nn.init.constant_(v, 3.0)
    picograd.nn.init.constant_(layer.bias[2:4], 7.0)
    layer.bias.data[0] = -1
    assert layer.weight[:2].tolist() == [[1.0] * 4] * 2 and layer.weight[4:].sum().item() == 24
    assert layer.bias[2:4].tolist() == [7, 7] and layer.bias[0].item() == -1
    layer.state_dict()["bias"].zero_()
    assert layer.bias.tolist() == [0.0] * 6
    layer(Tensor.ones(2, 4)).sum().backward()
    layer.weight.grad.data.clamp_(-1, 1)
    assert layer.weight.grad.tolist() == [[1.0] * 4] * 6


def test_writes_through_views_ask_for_the_same_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Tensor.zeros(8, 4).realize()
    keys: list[list[Any]] = []
    find = engine.find_plan

    def noted(found: Any, roots: Any) -> Any:
        keys[-1].append(found.key)
        return find(found, roots)

    monkeypatch.setattr(engine, "find_plan", noted)
    for _ in range(4):
        keys.append([])
        cache[2:4, None].add_(1)  # what numbers and ranges choose is written at once: no plan
        cache.sum().item()
    assert keys[1] == keys[2] == keys[3] and len(keys[3]) == 1


def test_what_a_jitted_step_writes_shows_in_views_from_outside() -> None:
    layer = picograd.nn.Linear(2, 2)
    optimizer = picograd.nn.optim.SGD(layer.parameters(), lr=1.0)
    data, state, row = layer.weight.data, layer.state_dict(), layer.weight[1]

    @picograd.jit
    def step(x: Tensor) -> None:
        optimizer.zero_grad()
        layer(x).sum().backward()
        optimizer.step()

    for _ in range(3):
        step(Tensor.ones(1, 2))
        assert data.tolist() == layer.weight.tolist()
        assert state["bias"].tolist() == layer.bias.tolist()
        assert row.tolist() == layer.weight[1].tolist()


def test_an_argument_that_is_a_view_writes_its_base() -> None:
    x = Tensor.zeros(3, 2)
    row, column = x[1], x[:, 0]

    @picograd.jit
    def add(part: Tensor, value: Tensor) -> None:
        part.add_(value)

    for turn in range(1, 4):
        add(row, Tensor(1.0))
        assert x.tolist() == [[0, 0], [turn, turn], [0, 0]] and column.tolist() == [0, turn, 0]
    with pytest.raises(picograd.errors.TraceError, match="show one memory, and one is written"):
        picograd.jit(lambda a, b: a.add_(b))(x[0], x[0])


@pytest.mark.parametrize("which", ["captured", "argument"])
def test_views_of_captured_tensors_as_arguments_are_refused_where_one_is_written(
    which: str,
) -> None:
    base = Tensor([0.0, 1.0, 2.0])

    @picograd.jit
    def f(x: Tensor) -> Tensor:
        (base if which == "captured" else x).add_(1)
        return x + base.sum()

    for view in (base[1:], base.view(1, 3), base.detach()):
        with pytest.raises(picograd.errors.TraceError, match="captured too, and one of both"):
            f(view)
    assert base.tolist() == [0, 1, 2]


def test_places_of_views_whose_base_is_written() -> None:
    """Of an object that keeps a tensor and a view of it, the view moves on."""
    state = types.SimpleNamespace(all=Tensor([0.0, 1.0, 2.0]), last=None)
    state.some = state.all[:1]

    @picograd.jit
    def f(x: Tensor) -> Tensor:
        state.last = None
        state.all[0] = x.sum()
        return x + state.some

    x = Tensor([1.0, 2.0])
    assert [f(x).tolist() for _ in range(2)] == [[4, 5]] * 2
    for at in (1, 0, 1):
        state.some = state.all[at : at + 1]
        assert f(x).tolist() == ([2, 3] if at else [4, 5])


def test_a_product_with_itself_is_that_of_the_old_values() -> None:
    """PyTorch's `addmm_` reads what it has written there: no reference."""
    values = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    m = Tensor(values.copy())
    m.addmm_(m, m, beta=0.5)
    np.testing.assert_allclose(m.numpy(), 0.5 * values + values @ values, 1e-5, 1e-5)


@pytest.mark.usefixtures("cpu_by_default")
def test_a_part_that_is_changed_in_place_and_put_back_is_written_once() -> None:
    """`x[i] += 1` changes the part, and gives it to `x[i] = ...`, which has nothing to do."""
    ours, theirs = (library.tensor([[0.0] * 4] * 3) for library in (picograd, torch))
    for x in (ours, theirs):
        x[1, 2] += 1
        x[0] *= 2
        x[1:, ..., 1:3] += 4
        x[-1, None] -= 1
    assert len(pending.pending_writes()) == 1 and ours._version == theirs._version == 8
    assert ours.tolist() == theirs.tolist() and ours._version == theirs._version
    for x in (ours, theirs):
        part = x[0]
        x[1] = part  # another place
        x.t()[1] += 1  # of another base
        x[0:1] = x[0]
        x[2] = (part + 1)[0]
    assert ours.tolist() == theirs.tolist() and ours._version == theirs._version


def test_strides_of_pieces_are_those_of_their_own_cut() -> None:
    array = np.zeros((2, 3, 4), np.float32)
    x = Tensor(array).realize()
    for _ in range(2):  # the second time they are known
        assert x.split(1)[0].stride() == (12, 4, 1)
        assert x.unbind(1)[0].stride() == (12, 1)
        assert x.unbind(0)[1].stride() == x.chunk(2)[1][0].stride() == (4, 1)
        assert x.chunk(2, 2)[1].transpose(0, 1).stride() == (4, 12, 1)
        assert x.chunk(2, 2)[1].view(2, 1, 3, 2).stride() == (12, 12, 4, 1)
        with pytest.raises(ShapeError, match="no view"):
            x.chunk(2, 2)[1].view(12)


def test_views_of_views_are_as_deep_as_programs_make_them() -> None:
    """Strides and places of each follow from what it shows, and no call waits for another."""
    x = picograd.zeros(3000)
    part = same = x
    for _ in range(2000):
        part, same = part[1:], same.detach()
    part.add_(1)
    same.mul_(2)
    assert x.sum().item() == 2000
    assert part.stride() == same.stride() == (1,)
    assert (part.storage_offset(), same.storage_offset()) == (2000, 0)


PARTS_OF_COMPLEX = """
view_as_real(c).unfold(0, 2, 2).add_(1)
view_as_real(c).unfold(0, 2, 2)[..., ::2].mul_(2)
view_as_real(c).diagonal()[1:].zero_()
view_as_real(c)[1:].diagonal(1, 0, 1)[:, None].add_(3)
c.real.unfold(1, 2, 2)[:, 1].mul_(2)
c.imag.t().unfold(0, 2, 2)[1].add_(1)
view_as_complex(view_as_real(c))[:, ::2].real.add_(1)
view_as_complex(view_as_real(c)).split(2)[1].imag.zero_()
view_as_complex(x.unfold(1, 2, 2)).imag.mul_(2)
view_as_complex(x.unfold(1, 2, 2)).real[0].add_(5)
"""


@pytest.mark.parametrize("line", PARTS_OF_COMPLEX.strip().splitlines())
def test_writes_through_parts_of_complex_numbers(line: str) -> None:
    numbers = np.arange(24, dtype=np.float32).reshape(4, 6)
    results = []
    for library in (torch, picograd):
        x = library.tensor(numbers)
        c = library.complex(x, x.flip(0))
        known = {"view_as_real": library.view_as_real, "view_as_complex": library.view_as_complex}
        exec(line, known | {"x": x, "c": c})
        results.append([x.numpy(), library.view_as_real(c).numpy()])
    for found, wanted in zip(*results):
        np.testing.assert_array_equal(found, wanted)


def test_places_of_parts_of_what_is_seen_as_other_bits() -> None:
    x = picograd.arange(6.0)
    bits = x.view(picograd.int32).as_strided((2,), (1,), 1)
    assert bits.storage_offset() == 1
    bits.zero_()
    assert x.tolist() == [0.0, 0.0, 0.0, 3.0, 4.0, 5.0]
