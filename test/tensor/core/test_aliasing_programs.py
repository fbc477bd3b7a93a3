"""Programs that people write about memory, unchanged: picograd computes what PyTorch does.

Eager and jitted, with gradients. Beside `test_aliasing.py`, which has a line per view.
"""

from typing import Any

import numpy as np
import pytest
from tensor.core.test_aliasing import check, start

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")

# What people write, a program a paragraph: caches, masks, grids, optimizers by hand, tables.
PROGRAMS = """
cache = torch.zeros(2, 6, 4)
for pos in range(3):
    cache[:, pos] = s[:, pos]
    x[pos].copy_(cache[:, : pos + 1].sum(1)[0])

k_cache, v_cache = torch.zeros(1, 2, 8, 4), torch.zeros(1, 2, 8, 4)
k_cache[:, :, :3] = s; v_cache[:, :, :3] = s * 2
k_cache[:, :, 3:4] = b.view(1, 1, 1, 4)
keys, vals = k_cache[:, :, :4], v_cache[:, :, :4]
x.copy_((torch.softmax(s @ keys[0].mT, -1) @ vals[0])[0])

kv = torch.zeros(2, 5, 4)
kv[0, :3], kv[1, :3] = x, x * 2
kv.index_copy_(1, torch.tensor([3]), s[:, :1])
x.copy_(kv[1, :3] + kv[0, 1:4])

page = torch.zeros(4, 4)
table = torch.tensor([2, 0, 3])
page[table] = x
x.copy_(page[table.flip(0)])

mask = torch.zeros(3, 4)
mask[0, 2:] = float("-inf")
mask[1:, 3:] = float("-inf")
x.add_(mask).clamp_(min=-9)

mask = torch.ones(4, 4).tril()
mask[:, 0] = 0
m.masked_fill_(mask == 0, -1)

mask = torch.full((3, 3), -1.0)
mask.triu_(1)
x[:, 1:].add_(mask)

lengths = torch.tensor([1, 3, 2])
for n in range(3):
    x[n, lengths[n]:] = 0

for n in range(3):
    for k in range(4):
        x[n, k] = n * 4 + k

for n, row in enumerate(x):
    row[n:] = b[n:]
    row /= 2

for row, column in zip(x, s[0]):
    row.add_(column); column.zero_()

table = torch.zeros(6, 4)
position = torch.arange(6).unsqueeze(1).float()
rate = torch.exp(torch.arange(0, 4, 2).float() * -2.3)
table[:, 0::2] = torch.sin(position * rate)
table[:, 1::2] = torch.cos(position * rate)
x += table[:3]

half = x[:, :2].clone()
x[:, :2] = x[:, :2] * 0.6 - x[:, 2:] * 0.8
x[:, 2:] = x[:, 2:] * 0.6 + half * 0.8

even, odd = x[..., 0::2].clone(), x[..., 1::2].clone()
x[..., 0::2] = even * 0.8 - odd * 0.6
x[..., 1::2] = even * 0.6 + odd * 0.8

avg = torch.zeros_like(x)
for n in range(3):
    avg.mul_(0.9).add_(x[n], alpha=0.1)
    avg[n].lerp_(b, 0.5)
x.copy_(avg)

exp_avg, exp_avg_sq, grad = torch.zeros_like(x), torch.zeros_like(x), x * 0.5
for step in range(1, 3):
    exp_avg.mul_(0.9).add_(grad, alpha=0.1)
    exp_avg_sq.mul_(0.99).addcmul_(grad, grad, value=0.01)
    denom = (exp_avg_sq.sqrt() / (1 - 0.99 ** step) ** 0.5).add_(1e-3)
    x.addcdiv_(exp_avg, denom, value=-0.1 / (1 - 0.9 ** step))

momentum = torch.zeros(12)
flat = x.view(-1)
for n in range(2):
    momentum.mul_(0.9).add_(flat.clone())
    flat.sub_(momentum, alpha=0.01)

flat = torch.zeros(16)
params = [flat[:12].view(3, 4), flat[12:]]
params[0].copy_(x); params[1].copy_(b)
flat.mul_(0.5)
x.copy_(params[0]); b.copy_(params[1])

groups = [x, b, s[0], s[1, 1:]]
norm = torch.stack([g.norm() for g in groups]).norm()
for g in groups: g.mul_(1.0 / norm.clamp(min=1.0))

x.sub_(x.mean(0)).div_(x.std(0) + 1e-3)

x[0].sub_(x[0].mean()); x[1].div_(x[1].norm()); x[2].div_(x[2].abs().max())

mean, var = torch.zeros(4), torch.ones(4)
for batch in s:
    mean.mul_(0.9).add_(batch.mean(0), alpha=0.1)
    var.mul_(0.9).add_(batch.var(0), alpha=0.1)
    batch.sub_(mean).div_((var + 1e-5).sqrt())

count, total = torch.zeros(4), torch.zeros(4)
for row in x:
    count += 1
    delta = row - total
    total += delta / count
b.copy_(total)

ring, head = torch.zeros(4, 4), 0
for row in (*x, *s[0]):
    ring[head] = row
    head = (head + 1) % 4
m.copy_(ring)

buffer, size = torch.zeros(5, 4), 0
for row in x:
    buffer[size:size + 1] = row
    size += 1
x.copy_(buffer[:size].flip(0))

ring = m.clone()
ring[:-1] = ring[1:].clone()
ring[-1] = b
m.copy_(ring)

replay = torch.zeros(6, 4)
at = torch.tensor([5, 0, 1])
replay[at] = x
replay.index_add_(0, at[:2], x[1:])
replay.index_fill_(0, at[2:], 2.0)
x.copy_(replay[[0, 1, 5]])

x[[0, 1]] = x[[1, 0]]

x[:, [0, 3]] = x[:, [3, 0]]

x[[0, 2]], x[1] = x[[2, 0]].clone(), b

x[torch.tensor([0, 2]), torch.tensor([1, 3])] += 5

x.index_put_((torch.tensor([0, 0, 2]),), b, accumulate=True)

scores, beams = torch.full((2, 3), -1e9), torch.zeros(2, 3, 4)
scores[:, 0] = 0
beams[:, 0] = s[:, 0]
order = torch.tensor([[0, 2, 1], [1, 0, 2]])
beams.copy_(beams.gather(1, order.unsqueeze(-1).expand(2, 3, 4)))
scores.copy_(scores.gather(1, order)).clamp_(min=-9)
s.copy_(beams); x[:2, :3] = scores

tokens = torch.zeros(2, 5, dtype=torch.int64)
tokens[:, 0] = 7
for step in range(1, 4):
    tokens[:, step] = tokens[:, step - 1] + step
i[:2].copy_(tokens[:, :4])

tokens = torch.full((3, 4), -1, dtype=torch.int64)
done = torch.zeros(3, dtype=torch.bool)
for step in range(4):
    token = i[:, step] % 5
    tokens[:, step] = torch.where(done, 0, token)
    done |= token == 2
i.copy_(tokens)

grid = (m > 0).int()
around = torch.zeros_like(grid)
for dy in (-1, 0, 1):
    for dx in (-1, 0, 1):
        if dy or dx: around += grid.roll((dy, dx), (0, 1))
grid[(around < 2) | (around > 3)] = 0
grid[around == 3] = 1
m.copy_(grid)

around = torch.zeros_like(m)
around[1:] += m[:-1]; around[:-1] += m[1:]
around[:, 1:] += m[:, :-1]; around[:, :-1] += m[:, 1:]
m.copy_(around)

for n in range(3):
    m[1:-1, 1:-1] = 0.25 * (m[2:, 1:-1] + m[:-2, 1:-1] + m[1:-1, 2:] + m[1:-1, :-2])

m[0] = 1; m[-1] = 0; m[:, 0] = m[:, 1]; m[:, -1] = m[:, -2]

m[::2, ::2] = 0.5 * (m[::2, ::2] + m[1::2, 1::2])
m[1::2, ::2] *= -1

for n in range(1, 4): m[n] += m[n - 1]

for n in range(2, 4): b[n] = b[n - 1] + b[n - 2]

b[0] = b[1] * b[2]; b[1] = b[0] + b[3]; b[2:] = b[:2]

for n in range(3):
    m[n + 1:] -= (m[n + 1:, n] / (m[n, n] + 5.0)).unsqueeze(1) * m[n]

lower = torch.zeros(4, 4)
gram = m @ m.T + 4 * torch.eye(4)
for n in range(4):
    rest = lower[n:, :n] @ lower[n, :n]
    column = gram[n:, n] - rest
    lower[n:, n] = column / column[0].sqrt()
m.copy_(lower)

path = torch.zeros(4, 5)
path[0, 1:] = 9; path[1:, 0] = 9
for n in range(1, 4):
    for k in range(1, 5):
        before = torch.min(path[n - 1, k], path[n, k - 1])
        path[n, k] = x[n - 1, k - 1].abs() + torch.min(before, path[n - 1, k - 1])
x.copy_(path[1:, 1:])

score, back = torch.zeros(3, 4), torch.zeros(3, 4, dtype=torch.int64)
score[0] = x[0]
for t in range(1, 3):
    best = (score[t - 1].unsqueeze(1) + m).max(0)
    score[t] = best.values + x[t]; back[t] = best.indices
states = torch.zeros(3, dtype=torch.int64)
states[2] = score[2].argmax()
for t in (1, 0): states[t] = back[t + 1][states[t + 1]]
i[:, 0] = states

for n in range(4):
    for k in range(3 - n):
        low, high = torch.minimum(b[k], b[k + 1]), torch.maximum(b[k], b[k + 1])
        b[k], b[k + 1] = low, high

stack = torch.zeros(3, 3, 4)
top, views = stack[-1], [stack[n] for n in range(3)]
for n, view in enumerate(views): view.copy_(x * n); stack[:, n] += 1
top.neg_()
s[0] = stack.sum(0); s[1] = views[2]

arena = torch.zeros(40)
first, second, out = arena[:12].view(3, 4), arena[12:28].view(4, 4), arena[28:].view(3, 4)
first.copy_(x); second.copy_(m)
torch.matmul(first, second, out=out)
arena[:12].zero_(); first += out; x.copy_(first)

signal, frames = torch.zeros(10), m.clone()
for n in range(4): signal[n * 2:n * 2 + 4] += frames[n]
windows = signal.unfold(0, 4, 2)
windows[1] *= 2; windows[3, 1:] = windows[0, :3].clone()
m.copy_(windows)

shown, cnt = torch.zeros(4, 4), 0
for rows in (slice(0, -2), slice(-2, -1), slice(-1, None)):
    for columns in (slice(0, -2), slice(-2, -1), slice(-1, None)):
        shown[rows, columns] = cnt; cnt += 1
m.copy_(shown.view(2, 2, 2, 2).permute(0, 2, 1, 3).reshape(4, 4))

big = torch.zeros(6)
big.resize_(2, 2).fill_(3); big[0] = b[:2]
held = torch.zeros(0); held.set_(x); held[0] = 4; held.resize_as_(m[:2]).mul_(2)
b.copy_(big.resize_(4))

hist = torch.zeros(4)
hist.scatter_add_(0, i.view(-1) % 4, torch.ones(12))
b.add_(hist)

one = torch.zeros(3, 4)
one.scatter_(1, (i[:, :1] + 1) % 4, 1.0)
x.mul_(1 - one).add_(one, alpha=0.1)

sums, counts = torch.zeros(2, 4), torch.zeros(2, 1)
owner = torch.tensor([0, 1, 0])
sums.index_add_(0, owner, x)
counts.index_add_(0, owner, torch.ones(3, 1))
x.copy_((sums / counts)[owner])

out = torch.empty(2, 3, 4)
for n in range(2): out[n] = s[n] * n
s[...] = out

padded = torch.zeros(5, 6)
padded[1:4, 1:5] = x
padded[0] = padded[1]; padded[-1] = padded[-2]
x.copy_(padded[:3, 2:])

blocks = torch.zeros(6, 8)
for n, block in enumerate(s): blocks[n * 3:(n + 1) * 3, n * 4:(n + 1) * 4] = block
x.copy_(blocks[3:, 4:] + blocks[:3, :4])

picture = torch.zeros(3, 4, 4)
picture[0, 1:3, 1:3] = 1; picture[1].fill_diagonal_(2); picture[..., 0] += 0.5
m.copy_(picture.sum(0))

box = s.clone()
box[..., 2:] += box[..., :2]
box[..., :2] = (box[..., :2] + box[..., 2:]) / 2
box[..., 2:] -= box[..., :2]
s.copy_(box)

x[:, 0].clamp_(min=0); x[:, 1].clamp_(max=0); x[:, 2:].clamp_(-0.5, 0.5)

qkv = torch.cat([x, x * 2, x * 3], -1)
q, k, v = qkv.chunk(3, -1)
q *= 0.5; v += k
x.copy_(qkv[:, :4] + qkv[:, 8:])

gate, up = s.split([2, 2], -1)
gate.sigmoid_(); up.mul_(gate)

heads = s.view(2, 3, 2, 2).transpose(1, 2)
heads[:, 0] *= 2
heads[1, 1, 2] = 7

a, c, d = x.unbind(0)
a += c; c *= d; d.copy_(a)

torch.swapaxes(s, 0, 2)[1].add_(1); torch.movedim(s, 0, -1)[0, 0].zero_()

x.view_as(s[0])[1] = b; x.T.mul_(2); x.mT[1:3].neg_()

m.diagonal().add_(1); m.diagonal(1).zero_(); m.diagonal(-2).copy_(b[:2])

m.diagonal().copy_(m.diagonal().flip(0).clone())

x.unfold(1, 2, 2)[:, 1].mul_(3); x.unfold(0, 1, 1).add_(1)

windows = x.unfold(1, 2, 1).clone()
windows[:, 0] = 0
x[:, :3].copy_(windows.sum(-1))

w = torch.zeros(8)
w[1:4], w[4:] = x[0, :3], b
w[::3] = -1; w[1::3] *= 2
x[1:].copy_(w.view(2, 4))

x[0, 1] += x[1, 0]; x[-1, -1] -= x[0, 0]; x[1][x[1] > 0] = 0.5

x[x < 0] *= 0.1

x[x > 0.5] = 0.5; x[(x < 0.5) & (x > 0)] += 1

keep = torch.tensor([True, False, True])
x[keep] = 0; s[:, keep] += 1

x[i % 2 == 0] = -1

b[b.argmax()] = 0; b[b.abs().argmin()] = 9

x[torch.arange(3), torch.tensor([0, 2, 1])] = 100

x[torch.arange(3), x.argmax(1)] = -5

y = x[1]
y += 1; x[1] = y * 2; y -= 1

y = x.clone(); z = y[1:]
for n in range(3): y[n] = b * n
x[:2] = z

y, y[...] = x[0], 3

x[0][1:3][1] = 5; x[1:][0][::2] *= 2

x.put_(torch.tensor([0, 5, 11]), b[:3]); x.view(-1).index_fill_(0, torch.tensor([1]), 4)

x.scatter_reduce_(1, i % 4, s[0], "amax"); x.scatter_reduce_(0, i % 3, s[1], "sum")

y = torch.select_scatter(x, b, 0, 1)
y = torch.slice_scatter(y, s[0, :2], 0, 1, 3)
x.copy_(torch.diagonal_scatter(y, b[:3]))

x[...] = x.flip(0); x[:, :] = x.roll(1, 1)

x[1:] = x[:-1].clone(); x[:, 1:] += x[:, :-1].clone()

x[0].fill_(1); x.zero_()[1, 2] = 3
"""

# w, b and u = w * 2 as above; x, s and m ask for nothing.
GRADIENT_PROGRAMS = """
out = torch.zeros(3, 4)
for n in range(3): out[n] = u[n] * b
r = out * out

h, out = torch.zeros(4), torch.zeros(3, 4)
for n in range(3):
    h = torch.tanh(u[n] + h * b)
    out[n] = h
r = out * w

out = torch.zeros(3, 4)
out[0] = b
for n in range(1, 3): out[n] = out[n - 1].clone() * w[n]
r = out

out = u.clone()
out[:, 0] = b[0]; out[1] += b; out[out > 1] *= 0.5
r = out * out

out = torch.zeros(3, 4)
out[:, ::2] = u[:, ::2]; out[:, 1::2] = u[:, 1::2].sin()
r = out * w

out = torch.zeros(4, 4)
out[torch.tensor([2, 0, 3])] = u
r = out * out

out = torch.zeros(2, 4)
out.index_add_(0, torch.tensor([0, 1, 0]), u)
r = out * out

out = u.clone()
out[[0, 1]] = out[[1, 0]]
r = out * w

out = u.clone()
out.scatter_(1, i[:, :1] % 4, 0.0)
r = out * out

out = torch.zeros(4, 4)
out.diagonal().copy_(b); out[:3] += u
r = out.exp()

out = torch.zeros(5, 6)
out[1:4, 1:5] = u
r = out[:3, :4] * w + out[2:, 2:] * b

q, k, v = torch.cat([u, u * 2, u * 3], 1).chunk(3, 1)
r = q * k + v.clone().mul_(b)

half = u[:, :2].clone()
out = u.clone()
out[:, :2] = u[:, :2] * 0.6 - u[:, 2:] * 0.8
out[:, 2:] = u[:, 2:] * 0.6 + half * 0.8
r = out * out

out = u * 1
out.sub_(out.mean(1, keepdim=True)).div_(2)
r = out * w

out = u * 1
out.masked_fill_(x > 0, 0).add_(b)
r = out * out

cache = torch.zeros(1, 5, 4)
cache[0, :3] = u
r = cache[:, :3].sum(1) * b

out = torch.ones(3, 4)
out.mul_(u); out[1].mul_(b)
r = out

out = torch.zeros(12)
out[:4] = b; out[4:] = u.view(-1)[:8]
r = out.view(3, 4) * w

loss = (u * b).sum()
loss.backward(retain_graph=True)
w.grad[0].zero_(); b.grad.mul_(0.5)
r = u * b

loss = (w * w).sum()
loss.backward()
w.grad.data.clamp_(-1, 1); w.grad.view(-1)[3] = 7
with torch.no_grad(): w -= 0.1 * w.grad
r = w * b

(w * 3).sum().backward()
with torch.no_grad():
    for row, g in zip(w, w.grad): row.sub_(g * 0.1)
    w.grad.zero_()
r = w * w

g1, = torch.autograd.grad((w * w).sum(), [w])
g2, = torch.autograd.grad((w * b).sum(), [w])
dot = (g1 * g2).sum()
g1.sub_(g2 * dot / (g2 * g2).sum()); g1[g1 > 1] = 1
w.grad = g1
r = w * 2

with torch.no_grad():
    w[1] = b; w[:, 0].mul_(2); w.diagonal().fill_(1)
r = w * w * b

with torch.no_grad():
    w.copy_(x); w.data[2] = 0
r = w.exp()

y = u.detach().clone()
y[0] = 5; y.t()[1] = 6
r = u * y

y = x.clone().requires_grad_()
with torch.no_grad(): y[0] = 1
r = y * w

a, c = u[0], u[1]
u.mul_(2); a.add_(c)
r = u * u

v = u.view(2, 6)
v[0] *= 3; v[1].add_(u.view(-1)[:6].clone())
r = u * v.view(3, 4)

v = torch.swapaxes(u, 0, 1)
v[0].zero_(); v[1].mul_(2)
r = u * u
"""

# Written after its value was used, to what a gradient needs: PyTorch refuses to give it.
LATE = r"""
y = u * u; u[0] = 1
y = u * b; u.add_(1)
y = u.sin(); u.view(-1)[2] = 3
y = u.t() @ u; u[1].mul_(2)
y = w * w\nwith torch.no_grad(): w[0] = 1
v = u[0]; y = v * v; u.mul_(2)
v = u[0]; y = u * u; v.mul_(2)
z = x.clone(); y = w * z; z[0] = 1
z = x.clone(); y = w * z; z.t().add_(1)
z = x.clone(); y = w * z; z[torch.tensor([2])] = 1
y = w / b\nwith torch.no_grad(): b[1:].fill_(2)
"""
COMPUTING = ("lengths[n]:]", "x[x < 0] *= 0.1", "x[x > 0.5] = 0.5", "[keep]")  # not in a trace


def paragraphs(text: str) -> list[str]:
    return [each.strip() for each in text.strip().split("\n\n")]


@pytest.mark.parametrize("code", paragraphs(PROGRAMS))
def test_programs(code: str) -> None:
    check(code, False)


JITTED = [p for p in paragraphs(PROGRAMS) if not any(word in p for word in COMPUTING)]


@pytest.mark.parametrize("code", JITTED)
def test_programs_in_a_jitted_function(code: str) -> None:
    ours, theirs = start(picograd, Tensor, False), start(torch, torch.tensor, False)

    def run(x: Any, b: Any, s: Any, i: Any, m: Any) -> None:
        names = {"x": x, "b": b, "s": s, "i": i, "m": m}
        exec(code, {**names, "torch": picograd, "np": np})

    jitted = picograd.jit(run)
    for _ in range(2):
        exec(code, theirs)
        jitted(*(ours[name] for name in "xbsim"))
    for name in "xbsim":
        found, wanted = ours[name].numpy(), theirs[name].numpy()
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5, err_msg=name)


@pytest.mark.parametrize("code", paragraphs(GRADIENT_PROGRAMS))
def test_gradients_of_programs(code: str) -> None:
    check(code, True)


@pytest.mark.parametrize("is_computed", [False, True], ids=["pending", "computed"])
@pytest.mark.parametrize("code", [line.replace("\\n", "\n") for line in LATE.strip().split("\n")])
def test_a_late_write_never_changes_a_gradient(code: str, is_computed: bool) -> None:
    """The gradient is that of the values there were, or an error where they are gone."""
    theirs = start(torch, torch.tensor, True)
    exec(code, theirs)
    with pytest.raises(RuntimeError):
        theirs["y"].sum().backward()
    before, after = start(picograd, Tensor, True), start(picograd, Tensor, True)
    exec(code.split(";")[0] if ";" in code else code.split("\n")[0], before)
    if "y" not in before:
        exec(code.split(";")[1].strip(), before)
    before["y"].sum().backward()
    exec(code, after)
    if is_computed:
        Tensor.realize(*(each for each in after.values() if isinstance(each, Tensor)))
    try:
        after["y"].sum().backward()
    except RuntimeError as error:
        assert is_computed and "modified by an in-place operation" in str(error)
        return
    wanted = before["w"].grad.numpy()
    np.testing.assert_allclose(after["w"].grad.numpy(), wanted, 1e-5, 1e-6)
