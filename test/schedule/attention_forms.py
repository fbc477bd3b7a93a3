"""Attention as users write it, on nodes: one list for the tests of the rule and of the kernels."""

import math

import numpy as np
from plan_support import VALUES, leaf, spread

from picograd.dtype import DType, bool_, float32, int32, int64
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.node import Node

LABELS = ((0, 1, 2, 3), (0, 1, 4, 3), (0, 1, 2, 4))
WEIGHTED = ((0, 1, 2, 4), (0, 1, 4, 3), (0, 1, 2, 3))


def product(q: Node, k: Node) -> Node:
    return q.contract(k, LABELS)


def weigh(weights: Node, v: Node) -> Node:
    return weights.contract(v, WEIGHTED)


def is_seen(s: Node, window: int = 0) -> Node:
    row, column = s.iota(2), s.iota(3)
    seen = column.binary("less_equal", row)
    if window:
        seen = seen.binary("logical_and", row.binary("less", column + window))
    return seen


def plain(q, k, v):
    return weigh(build.softmax(product(q, k) * 0.3, 3), v)


def latent(q, k, v, r, t):
    """Scores are a sum of two products; all heads share the keys of the second (DeepSeek)."""
    s = product(q, k) + r.contract(t, ((0, 1, 2, 3), (0, 4, 3), (0, 1, 2, 4)))
    return weigh(build.softmax(is_seen(s).where(s * 0.2, -math.inf), 3), v)


def gated(q, k, v, z):
    """A gate an element behind."""
    return causal(q, k, v) * build.sigmoid(z)


def gated_flat(q, k, v, z):
    """The same with heads side by side (Qwen3-Next)."""
    o = causal(q, k, v).permute((0, 2, 1, 3))
    return o.reshape(z.shape) * build.sigmoid(z)


def joined(first, second):
    """Join two arrays side by side along the last axis."""
    wide = ((0, 0),) * (first.rank - 1)
    left = build.pad(first, (*wide, (0, second.shape[-1])))
    return left + build.pad(second, (*wide, (first.shape[-1], 0)))


def rotated(x, c, s):
    """Rotate pairs of columns, one of each half, by angles of their row."""
    half = x.shape[-1] // 2
    rows = tuple((0, size, 1) for size in x.shape[:-1])
    first, second = (x.slice((*rows, (n * half, n * half + half, 1))) for n in range(2))
    return x * spread(c, x.shape) + joined(second.unary("neg"), first) * spread(s, x.shape)


def normed(x, w):
    """Divide each row by the root of the mean of its squares; multiply by weights."""
    wide = x.cast(float32)
    mean = (wide * wide).reduce("sum", (x.rank - 1,), True) * (1 / x.shape[-1])
    root = (mean + 1e-6).unary("sqrt").expand(x.shape)
    return (wide / root).cast(x.dtype) * spread(w, x.shape)


def differential(q, k, v, r, t, c, is_masked=True):
    """Two softmaxes are subtracted, the second times a number of its own."""
    weights = []
    for rows, places, scale in ((q, k, 0.3), (r, t, 0.1)):
        s = product(rows, places) * scale
        s = is_seen(s).where(s, -math.inf) if is_masked else s
        weights.append(build.softmax(s, 3))
    first, second = weights
    return weigh(first - second * spread(c, second.shape), v)


def scale_before(q, k, v):
    return weigh(build.softmax(product(q * 0.3, k), 3), v)


def by_hand(q, k, v):
    s = product(q, k) * 0.3
    e = (s - s.reduce("max", (3,), True).expand(s.shape)).unary("exp")
    return weigh(e / e.reduce("sum", (3,), True).expand(s.shape), v)


def divided_last(q, k, v):
    s = product(q, k) * 0.3
    e = (s - s.reduce("max", (3,), True).expand(s.shape)).unary("exp")
    o = weigh(e, v)
    return o / e.reduce("sum", (3,), True).expand(o.shape)


def causal(q, k, v):
    s = product(q, k) * 0.3
    return weigh(build.softmax(is_seen(s).where(s, -math.inf), 3), v)


def causal_twice(q, k, v):
    s = product(q, k) * 0.3
    seen = is_seen(s)
    return weigh(seen.where(build.softmax(seen.where(s, -math.inf), 3), 0), v)


def window(q, k, v):
    s = product(q, k) * 0.3
    return weigh(build.softmax(is_seen(s, 9).where(s, -math.inf), 3), v)


def additive(q, k, v):
    s = product(q, k) * 0.3
    return weigh(build.softmax(s + leaf(*s.shape), 3), v)


def boolean(q, k, v):
    s = product(q, k) * 0.3
    seen = spread(leaf(*s.shape[2:], dtype=bool_, below=2), s.shape)
    return weigh(seen.where(build.softmax(seen.where(s, -math.inf), 3), 0), v)


def softcap(q, k, v):
    s = product(q, k) * 0.3
    return weigh(build.softmax((s / 5.0).unary("tanh") * 5.0, 3), v)


def dropped(q, k, v):
    """Weights that bits of their places drop; the rest of a causal row is scaled."""
    w = build.softmax(is_seen(s := product(q, k) * 0.3).where(s, -math.inf), 3)
    first, seed = (build.const(number, (), int64, "cpu") for number in (77, 5))
    is_kept = build.random_halves(first, seed, s.shape).binary("less", 3 << 14)
    return weigh(is_kept.where(w / 0.75, 0), v)


def alibi(q, k, v):
    s = product(q, k) * 0.3
    away = (s.iota(3) - s.iota(2)).cast(float32) * 0.1
    return weigh(build.softmax(is_seen(s).where(s + away, -math.inf), 3), v)


def numbers(shape: tuple[int, ...], dtype: DType = int64, low: int = -3) -> Node:
    """Numbers of documents that follow one another, in the last dimension."""
    node = leaf(*shape, dtype=dtype, below=9)
    VALUES[node] = np.sort(VALUES[node], -1) + np.array(low, dtype.numpy)
    return node


def masked(q, k, v, see):
    """Attention through a mask: `see(s, at)` makes it, `at(x, dims)` spreads x over scores."""
    s = product(q, k) * 0.3

    def at(x, *dims):
        sizes = [n if d in dims else 1 for d, n in enumerate(s.shape)]
        return spread(x.reshape(tuple(sizes)), s.shape)

    seen = see(s, at)
    return weigh(seen.where(build.softmax(seen.where(s, -math.inf), 3), 0), v)


def documents(q, k, v, make=numbers):
    """Places of the same document, up to the own one."""
    own = make((q.shape[2],))

    def see(s, at):
        same = at(own, 2).binary("equal", at(own, 3))
        return same.binary("logical_and", is_seen(s))

    return masked(q, k, v, see)


def few_rows_see(q, k, v):
    """Rows before one whose number is in memory see all places, the others nothing."""
    seen = leaf(1, dtype=int64)
    VALUES[seen][:] = q.shape[2] * 2 // 3
    return masked(q, k, v, lambda s, at: s.iota(2).binary("less", at(seen)))


def with_holes(q, k, v):
    """A mask whose rows see nothing of some blocks between others, and some nothing at all."""
    rows, places = q.shape[2], k.shape[2]
    mask = leaf(rows, places, dtype=bool_, below=2)
    seen = VALUES[mask]
    seen[:, 64 : places - 70] = False
    seen[rows - 64 :, :64] = True
    seen[:10] = False
    return masked(q, k, v, lambda s, at: at(mask, 2, 3))


def recurring(q, k, v):
    """Documents that others interrupt, compared by arithmetic: their mask is looked at whole."""

    def see(s, at):
        numbers = []
        for dim in (2, 3):
            own = leaf(s.shape[dim], dtype=int32)
            VALUES[own] = np.arange(s.shape[dim], dtype=np.int32) // 64 % 2
            numbers.append(at(own, dim))
        row, place = numbers
        return ((row - place) * (row - place)).binary("less", row.const_like(1))

    return masked(q, k, v, see)


def merged_batch(q, k, v):
    b, h, n, _ = q.shape
    q, k, v = (x.reshape((b * h, x.shape[2], x.shape[3])) for x in (q, k, v))
    s = q.contract(k, ((0, 1, 2), (0, 3, 2), (0, 1, 3)))
    s = s.reshape((b, h, n, k.shape[1]))
    w = build.softmax(s * 0.3, 3).reshape((b * h, n, k.shape[1]))
    return w.contract(v, ((0, 1, 3), (0, 3, 2), (0, 1, 2)))


def repeated(x: Node, copies: int) -> Node:
    """Repeat heads as `repeat_interleave` does."""
    b, h, s, d = x.shape
    wide = x.reshape((b, h, 1, s, d)).expand((b, h, copies, s, d))
    return wide.reshape((b, h * copies, s, d))


def grouped(q, k, v):
    """Heads of queries share those of keys, by groups."""
    copies = q.shape[1] // k.shape[1]
    return causal_twice(q, repeated(k, copies), repeated(v, copies))


def grouped_beside(q, k, v):
    """Queries lie by places, then by heads of a group: over both they have no one step."""
    s = q.contract(k, ((0, 1, 2, 3, 4), (0, 5, 2, 4), (0, 2, 3, 1, 5)))
    w = build.softmax(s * 0.3, 4)
    return w.contract(v, ((0, 2, 3, 1, 5), (0, 5, 2, 4), (0, 1, 2, 3, 4)))


def learned(q, k, v, t):
    """A factor of scores with a gradient: one a head, a row, a column, or one alone."""
    s = product(q, k) * 0.1
    return weigh(build.softmax(s * spread(t, s.shape), 3), v)


def biased(q, k, v, t, window=0):
    """A bias with a gradient: of every place, of a head, or of all of a batch; and a mask."""
    s = product(q, k) * 0.3
    seen = is_seen(s, window)
    return weigh(build.softmax(seen.where(s + spread(t, s.shape), -math.inf), 3), v)


def biased_documents(q, k, v, t):
    """A bias with a gradient, and documents by their numbers."""
    s = product(q, k) * 0.3 + spread(t, (*q.shape[:3], k.shape[2]))
    own = numbers((q.shape[2],))
    row = spread(own.reshape((1, 1, own.size, 1)), s.shape)
    column = spread(own.reshape((1, 1, 1, own.size)), s.shape)
    seen = row.binary("equal", column).binary("logical_and", is_seen(s))
    return weigh(seen.where(build.softmax(seen.where(s, -math.inf), 3), 0), v)


def shared_queries(q, k, v):
    """Queries of each head that are the same for all of a batch."""
    s = q.contract(k, ((1, 2, 3), (0, 1, 4, 3), (0, 1, 2, 4)))
    return weigh(build.softmax(s * 0.3, 3), v)


def shared_values(q, k, v):
    weights = build.softmax(product(q, k) * 0.3, 3)
    return weights.contract(v, ((0, 1, 2, 4), (1, 4, 3), (0, 1, 2, 3)))


def squared_weights(q, k, v):
    weights = build.softmax(product(q, k) * 0.3, 3)
    return weigh(weights * weights, v)


def with_logarithms(q, k, v):
    """Masked twice, plus the logarithms of sums of scores."""
    s = product(q, k) * 0.3
    seen = is_seen(s)
    s = seen.where(s, -math.inf)
    o = weigh(seen.where(build.softmax(s, 3), 0), v)
    return o + build.logsumexp(s, 3, True).expand(o.shape)


def one_more(q, k, v):
    """Softmax off by one: the sum has one more term."""
    s = product(q, k).cast(float32) * 0.3
    m = s.reduce("max", (3,), True)
    e = (s - m.expand(s.shape)).unary("exp")
    total = e.reduce("sum", (3,), True) + m.unary("neg").unary("exp")
    return weigh((e / total.expand(s.shape)).cast(v.dtype), v)


def sunk(q, k, v, c):
    """A sink, here one a head: one more logit in the softmax of a row."""
    s = product(q, k).cast(float32) * 0.3
    s = is_seen(s).where(s, -math.inf)
    m = s.reduce("max", (3,), True)
    c = spread(c.cast(float32), m.shape)
    m = m.binary("maximum", c)
    e = (s - m.expand(s.shape)).unary("exp")
    total = e.reduce("sum", (3,), True) + (c - m).unary("exp")
    return weigh((e / total.expand(s.shape)).cast(v.dtype), v)


def sigmoid(q, k, v):
    return weigh((product(q, k) * 0.3 - 2.0).unary("sigmoid"), v)


def sigmoid_causal(q, k, v):
    s = product(q, k) * 0.3 - 2.0
    return weigh(is_seen(s).where(s, -math.inf).unary("sigmoid"), v)


def relu_squared(q, k, v):
    """Squares of what exceeds 0, through a causal mask."""
    s = product(q, k) * 0.3
    w = build.relu(is_seen(s).where(s, -math.inf))
    return weigh(w * w, v)


def decaying(q, k, v):
    """Scores as they are, times powers of how far away they are."""
    s = product(q, k) * 0.3
    away = (s.iota(2) - s.iota(3)).cast(float32)
    return weigh(is_seen(s).where(s * (away * -0.1).unary("exp"), 0), v)


UNBOUND = [sigmoid, sigmoid_causal, relu_squared, decaying]  # weights that wait for no reduction
FORMS = [
    plain, scale_before, by_hand, divided_last, causal, causal_twice, window, additive, boolean,
    softcap, alibi, merged_batch, one_more,
]  # fmt: skip


def with_gradients(form, *shapes: tuple[int, ...]) -> list[Node]:
    """The result of a form, and its gradients by the three operands."""
    leaves = [leaf(*shape) for shape in shapes]
    output = form(*leaves)
    found = gradient([(output, leaf(*output.shape))], leaves)
    return [output, *(each for each in found if each is not None)]
