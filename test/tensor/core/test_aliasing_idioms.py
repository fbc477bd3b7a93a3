"""Lines of real PyTorch scripts about memory that `test_aliasing.py` has none of the kind of.

Eager and jitted, gradients and errors. The names are those of `test_aliasing.py`.
"""

import warnings
from typing import Any

import numpy as np
import pytest
from tensor.core.test_aliasing import check, start
from tensor.core.test_aliasing import lines as lines_of

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")

WRITES = r"""
head = x.t(); x[0] += 1; head[2].mul_(3)
shadow = x.clone(); x.data.add_(1); shadow.data.mul_(0.9).add_(x.data, alpha=0.1); \
b.data.copy_(shadow[1])
y = m.clone()\nfor n in range(3): y = y.roll(-1, 0); y[-1].copy_(b + n)\nx.copy_(y[1:])
old = x[0].clone(); x[0] = x[1]; x[1] = old; x[1:] = x[1:].flip(0)
x.t().masked_fill_(torch.ones(4, 3, dtype=torch.bool).tril(), 0)
x.masked_fill_(torch.tensor([[True], [False], [True]]), 3); s.masked_fill_(x[None] > 0, 0)
x.t().index_put_((torch.tensor([0, 3]), torch.tensor([2, 1])), b[:2])
x.t().index_put_((torch.tensor([0, 0, 3]),), b[:3], accumulate=True)
s.transpose(0, 2).index_put_((torch.tensor([3, 0]), torch.tensor([1, 1])), b[:2].unsqueeze(1))
x[1:].t()[torch.tensor([0, 2])] = 4; x[:, 1::2][torch.tensor([2, 0])] = b[:2]
s[:, 1][:, torch.tensor([3, 1])] = b[:2]; s[:, :, 1].index_copy_(1, torch.tensor([2, 0]), m[:2, :2])
s[1, 1:].index_add_(1, torch.tensor([0, 0, 3]), m[:2, :3]); \
x.t().index_fill_(0, torch.tensor([1]), 6)
x.t().scatter_(0, i.t() % 4, 9.0); x.t()[:3].scatter_add_(1, i.t()[:3] % 3, torch.ones(3, 3))
x.view(-1)[::3].put_(torch.tensor([1, -1]), b[:2]); x.t().put_(torch.tensor([1, 4]), b[:2])
for part in s.chunk(2, 2): part.zero_().add_(1)
for n, part in enumerate(x.unbind(1)): part.fill_(n)
a, *rest = m.unbind(); rest[-1].copy_(a); rest[0][1:] = a[:-1]
torch.chunk(x.view(-1), 5)[-1].fill_(8); torch.tensor_split(b, (1, 2))[1].zero_(); \
torch.dsplit(s, 2)[1].mul_(3)
b.unfold(0, 2, 2)[1, 0] = 11; s.unfold(2, 2, 2).unfold(1, 1, 1)[..., 0, 0].neg_()
s.diagonal(1, 1, 2).fill_(3); s.diagonal(dim1=0, dim2=2)[:, 1] = -4; m.t().diagonal(1).fill_(5)
y = s[None, :1]; v = torch.nn.functional.interpolate(y, scale_factor=1); v.zero_()
y = s[None]; v = torch.nn.functional.pixel_shuffle(y, 1); v.zero_(); \
v = torch.nn.functional.channel_shuffle(y, 1); v.zero_()
v = m.diag(); v[0] = 5; v = torch.diag_embed(b); v.diagonal().zero_()
m.as_strided((2, 2), (8, 2), 1).add_(1); x.as_strided((4, 3), (1, 4))[2] = 9
x[1:].as_strided((2,), (1,), 4).fill_(6); x[1:].as_strided((2,), (1,)).mul_(2)
x.t().as_strided((2,), (1,), 1).zero_(); x[:, 1:].detach().as_strided((2, 2), (4, 1)).add_(1)
v = x[1:].as_strided((2, 2), (4, 2)); v.view(2, 2)[1].fill_(3); v.t()[0].neg_()
y = x.clone(); y.t_(); y[0] = 2; b[:3].copy_(y[1])
y = x.clone(); v = y[0]; y.t_().mul_(2); y[0, 0] = 7; b.copy_(v)
y = x * 2; y.unsqueeze_(0).squeeze_(0); y[1] = 3; y.transpose_(0, 1)[2] = 4; x.copy_(y.t())
y = x * 2; v = y[1:]; v.swapaxes_(0, 1); v[0] = 5; v.as_strided_((2,), (4,)); v.neg_(); x.copy_(y)
torch.moveaxis(s, -1, 0)[1].neg_(); s.narrow(2, 1, 2).narrow(0, 1, 1).fill_(0); \
x.narrow(1, -2, 2).fill_(9)
x[:, None, :, None].squeeze((1, 3))[0].fill_(0); torch.flatten(s, 0, 1)[4].fill_(2)
torch.atleast_2d(b)[0, 1] = 9; torch.atleast_3d(x)[1].fill_(2); torch.atleast_1d(b).mul_(2)
torch.adjoint(x)[0].fill_(6); s.mH[..., 0, :].fill_(2); m.H[1] = 2; s.mT.mT[1, 1] = 1
x.to(b)[1].fill_(3); x.to(torch.float32)[0].fill_(3); x.float()[2].fill_(2); x.type_as(b)[0].add_(1)
x.to(x.device)[0].fill_(2); x.positive()[1].fill_(2); (+x)[2].fill_(2); x.real[0].add_(1)
v = x.double(); v[0].fill_(2); v = x.half(); v[0].fill_(1); v = x.nan_to_num(); v.zero_()
x.view(torch.int32)[0].zero_(); i.view(torch.int32)[0, 1::2] = 1; x.view(torch.int64)[:, 1] = 0
v = x.view(torch.uint8); x.mul_(2); v[0, :4] = 0; x.t().view(torch.int32)[1].zero_()
v = x.view(torch.int16); w = v[1:]; w[0, 1] = 16256; x[0, 0] = 2; v[2].zero_()
x.unflatten(1, (2, -1))[:, 1].fill_(1); x.view(2, 2, 3).select(0, 1).diagonal().fill_(0)
torch.broadcast_tensors(x, m[:3])[0][1].fill_(3); a, c = torch.broadcast_tensors(x, s[0]); a.add_(c)
b[0].expand(3).fill_(2); x[:, :1].expand(3, 4).fill_(0.5)
x[1] += b; x[:, 1] -= b[:3]; x[1:] *= b; x[0] /= 2; x[0] //= 0.5; x[1] %= 2; x[2] **= 2
i[0] <<= 1; i[:, 1] >>= 1; i[0] &= 5; i[1] |= 8; i[2] ^= 3; i[:, 0] //= 2; i[0] += True
x[0] += i[0]; x[0] += i[0] > 1; x[1] = i[1]; i[1] = x[1] * 10; i[:, 0] = 2.7; i[2].copy_(x[0] > 0)
i[1, 1:3] = torch.tensor([7.9, -7.9]); x[0] = np.float64(2.5); x[1, 1] = np.int64(3)
mask = x > 0; mask[0] = True; mask[1] &= False; mask[:, 1] ^= True; mask.t()[2].fill_(True); \
x.mul_(mask)
h = x.half(); h[0] += 1.5; h[1] += x[1]; h.t()[1].mul_(2); x.copy_(h)
h = i.to(torch.uint8); h[0] -= 5; h[1] += 250; i.copy_(h); h = i.to(torch.int8); \
h[2].fill_(127).add_(1); i[2] = h[2]
d = x.double(); d[0] += x[1]; d[1] = i[1]; d.t()[0] *= 2; x.copy_(d); x[:, 1].copy_(d[:, 2])
s[...] = x; s[:, 0] = b; s[..., None][:, 0, 1, 0] = 4; s[:, None, 1, None, :2][..., 0] = 9; \
s[1, None] = x
x[-2:, -3:-1] = 0; x[2:1] = 5; x[:, 2:100] += 5; x[-100:1] = 5; x[()].mul_(3)
b[1][()] = 5; b[0].add_(b[1]); b[1].mul_(b[0]); b.view(2, 2)[1][1].copy_(b[0]); b[2] = b[3]
y = torch.tensor(1.0); v = y.view(1); v[0] = 5; w = y[None]; y.mul_(2); b.add_(v + w)
y = torch.tensor([[1.0, 2.0]]); y.squeeze(0)[1] = 7; b[:2] = y; y.squeeze()[()] += 1; b[2:] = y
x[torch.tensor([0, 0, 1])] += 1; x[[0, 0], [1, 1]] += 10; x[:, torch.tensor([1, 1, 2])] *= 2
x[torch.tensor([[0, 1], [2, 0]])] -= 1; x[[0, 2]] *= 3; x[torch.tensor([1]), 2:] = 4
x[torch.tensor([True, False, True]), 1] = 7; x[1, torch.tensor([True, False, True, False])] = 5
x[torch.tensor([True, False, True]), torch.tensor([1, 3])] += b[:2]
s[torch.tensor([0, 1]), :, torch.tensor([1, 2])] = 4; \
s[:, torch.tensor([0, 2]), torch.tensor([1, 2])] += 4
s[torch.tensor([[0], [1]]), torch.tensor([[0, 2]])] = b; s[1, :, [0, 3]] = 2
s[0, x > 0] = x[x > 0]; x[x > 0] = x[x > 0] * 2 + 1
x[(x > 0).nonzero(as_tuple=True)] = 0; x[x != x] = 5; x[0][x[0] < 0] = 4; x.t()[x.t() > 1] = 1
x.view(-1)[x.view(-1) > 0] -= 1; x[(x > 0) & (m[:3] > 0)] = 6; s[:, x > 0] = -1
x.scatter_(1, x.topk(2, 1).indices, 0); x[x.argmax(0), torch.arange(4)] = 0
x.masked_fill_(x < x.topk(2, 1).values[:, -1:], float("-inf")).clamp_(min=-5)
x[torch.arange(3)[:, None], x.argsort(1)[:, :2]] = 0; \
x[torch.tensor([], dtype=torch.int64)] = 3; x[[]] += 1
x.index_put_([torch.tensor([True, False, True])], b); x.index_put_((x > 0,), torch.tensor(0.5))
torch.add(x, 1, out=x); torch.mul(x[0], 2, out=x[1]); torch.stack([b, b], out=m[:2]); \
torch.full((4,), 3.0, out=x[2])
torch.sin(x[:, 0], out=x[:, 1]); torch.where(x > 0, x, s[0], out=x); torch.sum(x, 0, out=b)
x[0].sigmoid_().logit_(); x[1].abs_().sqrt_().rsqrt_(); x[2].square_().log1p_(); \
x[0].hypot_(b).atan2_(b)
x[0].pow_(2).fmod_(1); x[1].addcmul_(b, b, value=2); x[2].lerp_(b, torch.tensor(0.3)); \
x[0].copysign_(b)
torch.nn.functional.relu(x[0], inplace=True); \
torch.nn.functional.leaky_relu(x[1], 0.3, inplace=True)
torch.nn.ReLU(inplace=True)(x[1]); torch.nn.Hardtanh(inplace=True)(x[2]); \
torch.nn.SiLU(inplace=True)(x[0])
y = torch.nn.functional.elu(x, inplace=True); y[0].zero_(); \
torch.nn.functional.threshold(x[1], 0.1, 20, inplace=True)
y = x * 2; \
v = torch.nn.Sequential(torch.nn.ReLU6(inplace=True), torch.nn.SELU(inplace=True))(y); v[0] = 9; \
x.add_(y)
y = x; v = torch.nn.functional.relu(x, inplace=True); v += y; b.copy_(x[0])
torch.nn.Dropout(0.5, inplace=True).eval()(x)[0].fill_(1); torch.nn.Identity()(x)[1].fill_(2)
torch.nn.Flatten()(x)[1].fill_(2); torch.nn.Unflatten(1, (2, 2))(x)[:, 0].fill_(3)
x[:] = x[0]; x[1:3] = x[2]; b[:] = b[1]; s[0] = s[0, 1:2]; b[1:3] = b[2]; x[0] = x[:, 0][0]
x[:1] = x[0]; b[1:2] = b[1]; b[2] = b[2:3]; y = b[0]; y[None] = y[...]; y.add_(1); s[0] = s[0][None]
x.fill_(b[0]); m[1].fill_(x.max()); i.fill_(b[1] * 5); x.expand(3, 4)[0].fill_(b.sum())
v = b.unfold(0, 3, 1); v[1] = 5; v[0, 1:] *= 2; v.clamp_(max=1); v[0, v[0] > 1] = 0.5
v = x.view(-1).as_strided((5, 4), (2, 1)); v[2] = b; v[torch.tensor([0, 4])] = 3; \
v.index_fill_(0, torch.tensor([1]), 9); v.t()[3, 2] = 4
v = m.unfold(0, 2, 1).unfold(1, 2, 1); v[1, 1] = 7; v[0, 2, 1, :] -= 2; x.copy_(m[:3] * 2)
torch.nn.functional.dropout(x, 0.5, training=False)[0].fill_(3); \
torch.nn.Sequential()(x)[1].fill_(1)
for gate in m.chunk(4): torch.nn.init.constant_(gate, 0.5)\n\
for n, gate in enumerate(m.chunk(2, 1)): torch.nn.init.constant_(gate[:2], n)
y = x.data; y += 1; y.t()[0] = 4; x.data.view(-1)[7].fill_(1)
y = x.clone(); y.data = s[0]; s[0, 1].fill_(5); y[0].zero_(); x.copy_(y)
y = x.clone(); v = y.data; y.data = v * 2; v.zero_(); x.copy_(y); b.copy_(v[0])
y = x.clone(); v = y.view(-1); y.data = s[0].clone(); v[0] = 5; b.copy_(v[:4]); x.copy_(y)
y = x.clone(); v = y[0]; y.data = y.data[1:].t(); y[0] = 8; b[:2].copy_(y[1]); b[2:] = v[:2]
y = torch.zeros(12); v = torch.zeros(3, 4); v.data = y.view(3, 4); v += x; y[:4] *= 2; x.copy_(v)
y = x.detach().clone(); y.fill_(3); y = x.detach(); w = y[1]; w.fill_(3); y.t()[0] = 4
with torch.no_grad(): y = x[1]; y.mul_(2); x[0].copy_(y)
import copy; y = copy.deepcopy([x, x[0]]); y[1].fill_(5); b.copy_(y[1]); v = copy.deepcopy(x); \
v.zero_()
y = torch.zeros(12); y[:4], y[4:8], y[8:] = x[0], x[1], x[2]; y.view(3, 4)[:, 1] *= 2; \
x.copy_(y.view_as(x))
a = x[0]; a -= a.mean(); a /= a.std(); x[1] = a; a = a + 1; a.fill_(3)
rows = list(x); rows[1].fill_(5); rows[0] += rows[1]; rows.reverse(); rows[0].zero_()
for r, c in zip(x, x.flip(0)): r.copy_(c)\nfor k, v in enumerate(b): x[:, k] *= v
for n, row in enumerate(x):\n    for k, v in enumerate(row): v.add_(n * k)
x[0], x[2] = x[2], x[0]; x[:, 0], x[:, 1] = x[:, 1], x[:, 0].clone(); \
b[:], x[0] = x[0].clone(), b.clone()
x.copy_(x.t().reshape(3, 4)); m.copy_(m.t().contiguous()); m.t().copy_(m + 1); x[0] = x.sum(0); \
x[:, 0] = x.sum(1)
x.cumsum_(0); x[1:].cumsum_(1); x.t().cumprod_(1); m[1:, 1:].tril_(); x[:2].fill_diagonal_(1)
y = m.clone(); m.addmm_(y, y, beta=0.5); \
m[:2].addmm_(x[:2, :3], x); x[0].addmv_(m, b); m.addr_(b, b)
x[0].eq_(b); x[1].gt_(0); s[0].ge_(x); x[2].logical_or_(b); i[0].bitwise_and_(3); \
i[2].bitwise_not_()
x.renorm_(2, 0, 1.0); x.floor_divide_(0.5); x[0].true_divide_(2); x[1].subtract_(b); \
x[2].multiply_(2)
x.scatter_(1, i % 4, x.clone(), reduce="add"); \
x.scatter_reduce_(0, i % 3, s[0], "mean", include_self=False)
"""

GRADIENTS = r"""
v = u.unsqueeze(1); v[:, 0].mul_(b); r = u * u
v = u.movedim(0, 1); v[2].mul_(3); r = u * b
v = u.unfold(1, 2, 2); v[:, 1].mul_(3); r = u * u
v = u.as_strided((2, 2), (4, 1), 1); v.mul_(b[:2]); r = u * u
v = u.view(-1).unfold(0, 4, 2); v[1] = b; v[3] *= b; r = u * u
u[1:].fill_(b[1]); u[0].fill_(b.sum()); r = u * w
v = u[1:].view(2, 2, 2).transpose(0, 2); v[0] = b.view(2, 2); r = u * u
v = u[0]; z = u.t()[0]; v.mul_(2); r = z * z
v = u.view(-1); z = v[::2]; z *= b[0]; v[1::2] -= b[1]; r = u * v.view(3, 4)
v = torch.atleast_3d(u); v[1].mul_(3); z = torch.broadcast_tensors(u, x)[0]; z[0] = b; r = u * u
a, c = u.tensor_split(2); c.add_(b); r = u * u
u[1:] -= u[:-1].clone(); u[0], u[1] = u[1].clone(), u[0].clone(); r = u * w
u[torch.tensor([0, 0, 1])] += b; u[[0, 1], [1, 2]] *= b[:2]; r = u * u
u[x > 0] *= 2; u[torch.tensor([True, False, True]), 1:] = b[1:]; r = u * u
u[x > 0] = w[x > 0] * 3; r = u * u
u.t().masked_fill_(x.t() > 0, 0); r = u * u
u.masked_scatter_(x > 0, w.view(-1).clone() * 3); r = u * u
u.t().index_put_((torch.tensor([0, 3]), torch.tensor([2, 1])), b[:2]); r = u * u
u.index_add_(1, torch.tensor([0, 0]), w[:, :2].clone(), alpha=2); r = u * u
u.scatter_(1, i[:, :1] % 4, b[:3].unsqueeze(1)); u.scatter_add_(1, i % 4, w * 2); r = u * u
u[0].zero_().add_(b); u[1].copy_(b[0]); r = u * u
u.tril_(); u.clamp_(min=b); u.lerp_(w, 0.3); r = u * u
u.addcdiv_(w, w * w + 1); r = u * u
torch.nn.functional.relu(u, inplace=True); r = u * u
y = u + 0; z = torch.nn.functional.silu(y, inplace=True); r = y * u
y = u + 0; z = torch.nn.Sequential(torch.nn.LeakyReLU(0.2, inplace=True))(y); r = y * z * u
u.t_(); r = u * b.unsqueeze(1)
u.transpose_(0, 1).mul_(3); r = u * u
v = u[0]; u.t_(); u[0].zero_(); r = v * v
v = u.data[1]; v.mul_(3); z = u.view(torch.int32); z[0, 0] = 0; r = u * 2
w[0].data.fill_(3); w.t().detach()[1].add_(1); w.view(-1).data[2] = 9; v = w[1:]; v.data.mul_(2); \
r = w * v[0]
w.chunk(3)[1].data.zero_(); [row.data.mul_(3) for row in w.unbind()]; u[0].data.neg_(); r = w * u
h = u.detach(); h[0] = b; p = h[1]; p.mul_(b); r = h * p * u
h = u.detach(); h[1] = w[0]; u.mul_(2)\nwith torch.no_grad(): h.mul_(3); u.add_(1)\nr = h * h * u
h = torch.zeros(3, 4).data; v = h.view(-1).detach(); v[:4] = b; h[2].add_(w[1]); r = h * x
h = u.data; h[[0, 1], [2, 3]] = w.sum(1)[:2]; r = h * w * h
with torch.no_grad(): a, c, d = w.unbind(); a.copy_(c)\nr = w * w
with torch.no_grad():\n    for row in w: row.div_(row.norm())\nr = w * b
torch.nn.init.ones_(w[:, :2]); torch.nn.init.zeros_(w.chunk(3)[1]); r = w * w
w.data = x.clone(); w.data[0] = 3; r = w * w
flat = torch.cat([w.data.view(-1), b.data]); w.data = flat[:12].view(3, 4); \
b.data = flat[12:].view_as(b); flat.mul_(2); r = w * b
flat = torch.zeros(16); w.data = flat[:12].view(3, 4)\nwith torch.no_grad(): w.add_(2); \
flat[:2] = 9\nr = w * w
b.data = w.data[1]\nwith torch.no_grad(): w.mul_(2)\nr = w * b
(u * b).sum().backward(); g = w.grad; g[1].add_(1); g.t()[0].clamp_(-1, 1); w.grad[x > 0] = 0; \
r = w * b
(u * b).sum().backward(); w.grad.detach_(); w.grad.zero_(); b.grad.data.neg_(); r = w * b
(u * b).sum().backward(); g = torch.cat([p.grad.view(-1) for p in (w, b)]); \
w.grad.copy_(g[:12].view(3, 4) * 2); r = w
y = w.view(2, 6); y = y * 2; y[0].zero_(); y.t()[1] = 3; r = y * y
z = u.clone(); z[0] = b; z = z.t().contiguous(); z[1].mul_(2); r = z * z
z = torch.empty(2, 3, 4); z[0], z[1] = u, w; z[:, 0] *= b; r = z * z
z = torch.zeros(3, 4); z.t()[1] = b[:3]; z.diagonal().add_(b[:3]); r = z * z
v = torch.zeros(3, 4)\nfor k in range(3): v = v.clone(); v[k] = u[k] * b + v.sum(0)\nr = v * v
s[0] = u; s[1].mul_(b); r = s * s
lin = torch.nn.Linear(4, 4); lin.weight.data.copy_(m); lin.bias.data.zero_(); \
lin.weight.data[0].mul_(2); r = lin(u)
z = u @ w.t(); z.masked_fill_(torch.ones(3, 3).triu(1).bool(), float("-inf")); \
r = torch.softmax(z, -1) @ w
"""

ERRORS = r"""
w[0] += 1
w.reshape(-1)[0] = 1
w.diagonal().zero_()
w[x > 0] = 0
w.index_put_((torch.tensor([0]),), b)
w.t_()
u.unbind()[0].t_()
torch.nn.functional.relu(w, inplace=True)
torch.nn.Dropout(0.5, inplace=True)(w)
torch.nn.functional.relu(w[0], inplace=True)
for part in u.split(1): part.mul_(2)
with torch.no_grad(): v = u[0]\nv.add_(1)
u[0].detach_()
u.requires_grad_(False)
w.data = i
w.grad = 3
w.grad = [[1.0]]
w.grad = w
w.grad = x[:1]
w.grad = x.double()
b.fill_(x)
x[0].expand(3, 4).copy_(s[0])
torch.broadcast_tensors(b, x)[0].add_(1)
i[0] += 1.5
i.t().mul_(0.5)
i[0] += x[0]
i[0].sigmoid_()
mask = x > 0; mask[0] += 1.5
x[:2] += x
x[0] = m
x[:, 1] = b
x[x[:, 0] > -99] = m
x.masked_fill_(i, 1)
x.as_strided((2,), (4,), 9)[1] = 0
x.view(torch.int64)[:, :1].view(5, 2).zero_()
x[:, :3].view(torch.int64).zero_()
torch.add(w, 1, out=x)
torch.add(x, 1.5, out=i)
"""
INDEX_ERRORS = """
x[3] = 1
x[0, 4] += 1
x[:, [0, 4]] = 1
x.t()[torch.tensor([4])] = 1
x[torch.tensor([True, False])] = 1
x[0, 0, 0] = 1
x[[0, 1], [0, 1, 2]] = 1
x.transpose(0, 2)[0] = 1
"""


def lines(text: str) -> list[str]:
    """List the lines of a table; a backslash goes on with one."""
    return lines_of(text.replace("\\\n", ""))


def several(codes: list[str], count: int) -> list[str]:
    """Put a few lines together: one after the other costs less than each alone."""
    return ["\n".join(codes[n : n + count]) for n in range(0, len(codes), count)]


@pytest.mark.parametrize("code", several(lines(WRITES), 2))
def test_idioms(code: str) -> None:
    check(code, False)


# Masks of values choose how many elements are read: no trace has that. Inside a kernel 16 bits are
# not rounded to between operations.
COMPUTING = ("x[x > 0] =", "nonzero", "x.view(-1)[x", "deepcopy", "h = x.half()")
JITTED = [code for code in lines(WRITES) if not any(part in code for part in COMPUTING)]


@pytest.mark.parametrize("code", several(JITTED, 3))
def test_idioms_in_a_jitted_function(code: str) -> None:
    ours, theirs = start(picograd, Tensor, False), start(torch, torch.tensor, False)
    row, block = ours["x"][1], ours["s"][0]

    def run(x: Any, b: Any, s: Any, i: Any, m: Any) -> None:
        exec(code, {"x": x, "b": b, "s": s, "i": i, "m": m, "torch": picograd, "np": np})

    jitted = picograd.jit(run)
    for _ in range(2):
        exec(code, theirs)
        jitted(*(ours[name] for name in "xbsim"))
    for name in "xbsim":
        found, wanted = ours[name].numpy(), theirs[name].numpy()
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5, err_msg=name)
    assert row.tolist() == ours["x"][1].tolist() and block.tolist() == ours["s"][0].tolist()


def test_a_jitted_function_writes_through_a_view_of_what_has_a_gradient() -> None:
    """A trace gives such an argument its value by another node: the base and its views see it."""
    seen = []
    for library, tensor in ((torch, torch.tensor), (picograd, Tensor)):
        names = start(library, tensor, True)

        def step(to: Any, by: Any) -> None:
            to[0].mul_(2).add_(by)

        step = picograd.jit(step) if library is picograd else step
        for _ in range(3):
            base = names["w"] * 2
            row = base[1]
            step(base[:, 1:], names["b"][1:])
            step(row.unsqueeze(0), names["b"])
        (base * base * row).sum().backward()
        found = (base, row, names["b"].grad, names["w"].grad)
        seen.append([each.detach().numpy() for each in found])
    for found, wanted in zip(seen[1], seen[0], strict=True):
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)


@pytest.mark.parametrize("code", lines(GRADIENTS))
def test_gradients_of_idioms(code: str) -> None:
    check(code, True)


# What reads by a mask, or needs a number from outside, is no trace; s would keep a step's graph.
OTHERS = ("x > 0]", "masked_scatter", "s[0] = u")
STEPS = [code for code in lines(GRADIENTS) if not any(part in code for part in OTHERS)]


def jitted_step(library: Any, tensor: Any, code: str, wrap: Any) -> list[Any]:
    """Run a line as a training step, two times; list what is left."""
    names, seen = start(library, tensor, True), []
    w, b = names["w"], names["b"]

    def step(x: Any, s: Any, m: Any, i: Any) -> Any:
        local = {**names, "x": x, "s": s, "m": m, "i": i}
        w.grad = b.grad = None
        local["u"] = w * 2
        exec(code, local)
        local["r"].sum().backward()
        return local["r"].detach()

    step = wrap(step)
    for _ in range(2):
        result = step(*(names[name] for name in "xsmi"))
        seen += [result, w, b, w.grad, b.grad, *(names[name] for name in "xsm")]
        seen[-8:] = [None if each is None else each.detach().numpy().copy() for each in seen[-8:]]
    return seen


@pytest.mark.parametrize("code", STEPS[::3])
def test_gradients_of_idioms_in_a_jitted_step(code: str) -> None:
    wanted = jitted_step(torch, torch.tensor, code, lambda function: function)
    found = jitted_step(picograd, Tensor, code, picograd.jit)
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None)
        if other is not None:
            np.testing.assert_allclose(one, other, 1e-4, 1e-5)


@pytest.mark.parametrize("code", [*lines(ERRORS), *lines(INDEX_ERRORS)])
def test_what_pytorch_refuses_is_refused(code: str, cpu_by_default: None) -> None:
    kind = IndexError if code in lines(INDEX_ERRORS) else (RuntimeError, TypeError)
    with warnings.catch_warnings(), pytest.raises(kind):
        warnings.simplefilter("ignore")
        exec(code, start(torch, torch.tensor, True))
    names = start(picograd, Tensor, True)
    with pytest.raises(kind):
        exec(code, names)
    names["w"].numpy()  # still usable


@pytest.mark.parametrize("write", [None, "z[:, 0, 2:].fill_(0)", "z[:, 0, 3:].fill_(0)", "z += 1"])
@pytest.mark.parametrize("show", ["y[None, :, :, :]", "y.unsqueeze(0)", "y.view(1, 2, 3, 3)"])
@pytest.mark.parametrize(
    "read", ["z[:, :, at]", "z[z > 1]", "z.view(2, 9)", "z.view(2, 9)[at, at]"]
)
def test_a_view_that_was_written_has_a_gradient_of_its_own(read, show, write, cpu_by_default):
    """Marginals of a chart: what reads a view of a view may not look behind it."""

    def run(torch: Any) -> Any:
        x = torch.arange(18.0).reshape(2, 3, 3).requires_grad_()
        names = {"y": x * 2, "at": torch.arange(2)}
        names["z"] = eval(show, names)
        exec(write or "", names)
        (gradient,) = torch.autograd.grad(eval(read, names).sin().sum(), names["z"])
        return gradient.tolist()

    np.testing.assert_allclose(run(picograd), run(torch), rtol=1e-5, atol=1e-6)


AXES = ("t_()", "transpose_(0, 1)", "unsqueeze_(0)", "squeeze_()", "swapaxes_(0, 1)")


@pytest.mark.parametrize("is_leaf", [True, False])
@pytest.mark.parametrize("change", AXES)
def test_axes_changed_in_place_without_gradients_keep_the_gradient(change, is_leaf, cpu_by_default):
    """What is asked for gradients asks for them behind a change of axes inside `no_grad`, too.

    PyTorch does not record that of a computed tensor, whose gradient does not fit behind it.
    """

    def run(torch: Any) -> Any:
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        y = x if is_leaf else x * 2
        with torch.set_grad_enabled(torch is not picograd and not is_leaf):
            exec(f"y.{change}", {"y": y})
        assert y.requires_grad and y.is_leaf is is_leaf
        if not is_leaf:
            y[...] = y * 3
        (y.sin() * y).sum().backward()
        with torch.no_grad():
            y.mul_(2)
        return y.tolist(), x.grad.tolist(), (x + 0).tolist()

    for found, wanted in zip(run(picograd), run(torch), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_a_parameter_shows_a_view_that_has_a_name(cpu_by_default) -> None:
    named = picograd.zeros(2, 3).t()
    parameters = [picograd.nn.Parameter(named), picograd.nn.Parameter(named.detach())]
    with picograd.no_grad():
        parameters[0].add_(1)
        parameters[1].add_(1)
    assert named.tolist() == [[2.0, 2.0]] * 3
