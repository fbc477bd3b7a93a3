"""Attention as other people write it, on an NVIDIA GPU beside the same code compiled by PyTorch.

Every form is a few lines of tensor code that both frameworks run: weights without a maximum
(sigmoid, ReLU and its square), sinks, one more in the sum, queries and keys that are normalised,
rotated or joined of parts, gates behind, a temperature a row, differences of two softmaxes, heads
that talk, weights that are read, heads of other sizes for values, a cache in pages, biases looked
up in a learned table. `--plan` only lists the kernels of our plans, for which no GPU is needed;
else PyTorch runs the form as it is and compiled. Rivals take turns, each a CUDA graph of launches;
a ratio is the median over rounds. `--check` compares values with float64.

    python bench/gpu_attention_forms.py [--plan] [--check] [--modes forward both]
        [--forms sigmoid relu ...] [--sizes 4x16x2048x64] [--rounds 5]
"""

import argparse
import math
import statistics
from functools import partial

import torch
from gpu_attention import programs
from gpu_contract import Rival, compiled_all, in_turns, plan_call, show_kernels, target_here

import picograd
import picograd.nn.functional
from picograd import Tensor
from picograd.buffer import Storage
from picograd.codegen.render.cuda import render
from picograd.dtype import bfloat16, float32, int64
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

PAGE = 64  # places of a block of a paged cache
BUCKETS, WINDOW, WINDOW_PLACES = 32, 49, 169
HALVES, INTEGERS = "qkvrtwuzcs", {"table", "places"}
CONSTANT = "cs"  # not learned


def scores(q, k):
    """Multiply queries and keys; scores are float32."""
    return (q @ k.transpose(-2, -1)).float() / math.sqrt(q.shape[-1])


def weighted(weights, v):
    """Multiply weights and values, in the dtype of the values."""
    return weights.to(v.dtype) @ v


def causal(lib, s):
    """Hide places behind the own."""
    n = s.shape[-1]
    seen = lib.ones(n, n, dtype=lib.bool, device=s.device).tril()
    return s.masked_fill(~seen, -math.inf)


def plain(lib, q, k, v):
    return weighted(scores(q, k).softmax(-1), v)


def upcast(lib, q, k, v):
    """Scores of widened operands, as GPT-J and GPT-Neo have them."""
    s = (q.float() @ k.float().transpose(-2, -1)) / math.sqrt(q.shape[-1])
    return weighted(causal(lib, s).softmax(-1), v)


def by_logarithm(lib, q, k, v):
    """Weights by the logarithm of their sum, which is kept by those who join parts of a row."""
    s = causal(lib, scores(q, k))
    return weighted((s - s.logsumexp(-1, keepdim=True)).exp(), v)


def sigmoid(lib, q, k, v):
    return weighted((scores(q, k) - math.log(k.shape[-2])).sigmoid(), v)


def sigmoid_causal(lib, q, k, v):
    s = scores(q, k) - math.log(k.shape[-2])
    return weighted(causal(lib, s).sigmoid(), v)


def relu(lib, q, k, v):
    return weighted(scores(q, k).relu() / k.shape[-2], v)


def relu_squared(lib, q, k, v):
    return weighted(scores(q, k).relu().square() / k.shape[-2], v)


def sink_joined(lib, q, k, v, sink):
    """A logit a head joins the scores of a row, and leaves behind the softmax."""
    s = causal(lib, scores(q, k))
    logits = sink.reshape(1, -1, 1, 1).expand(*s.shape[:3], 1)
    w = lib.cat([s, logits], -1).softmax(-1)
    return weighted(w[..., :-1], v)


def sink_shifted(lib, q, k, v, sink):
    """The same, less the maximum of all before the softmax; the sink comes first."""
    s = causal(lib, scores(q, k))
    logits = sink.reshape(1, -1, 1, 1).expand(*s.shape[:3], 1)
    every = lib.cat([logits, s], -1)
    every = every - every.amax(-1, keepdim=True)
    return weighted(every.softmax(-1)[..., 1:], v)


def zero_padded(lib, q, k, v):
    """Softmax off by one: a logit of 0 by padding."""
    s = lib.nn.functional.pad(causal(lib, scores(q, k)), (0, 1))
    return weighted(s.softmax(-1)[..., :-1], v)


def sink_summed(lib, q, k, v, sink):
    """The same with the exponential of the logit in the sum."""
    s = causal(lib, scores(q, k))
    logits = sink.reshape(1, -1, 1, 1)
    m = lib.maximum(s.amax(-1, keepdim=True), logits)
    e = (s - m).exp()
    w = e / (e.sum(-1, keepdim=True) + (logits - m).exp())
    return weighted(w, v)


def off_by_one(lib, q, k, v):
    """Softmax off by one: a sink of 0."""
    s = scores(q, k)
    m = s.amax(-1, keepdim=True).clamp(min=0)
    e = (s - m).exp()
    return weighted(e / ((-m).exp() + e.sum(-1, keepdim=True)), v)


def off_by_one_peak(lib, q, k, v):
    """The same less the maximum of the scores alone."""
    s = scores(q, k)
    m = s.amax(-1, keepdim=True)
    e = (s - m).exp()
    return weighted(e / ((-m).exp() + e.sum(-1, keepdim=True)), v)


def cosine(lib, q, k, v, t):
    """Normalised queries and keys, and a scale a head."""
    functional = lib.nn.functional
    q, k = functional.normalize(q, dim=-1), functional.normalize(k, dim=-1)
    s = (q @ k.transpose(-2, -1)).float() * t.reshape(1, -1, 1, 1)
    return weighted(s.softmax(-1), v)


def normed(lib, x, weight):
    """Divide each row by the root of the mean of its squares; multiply by weights."""
    wide = x.float()
    wide = wide * (wide.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    return wide.to(x.dtype) * weight


def rotated(lib, x, c, s):
    """Rotate pairs of columns, one of each half (Llama)."""
    first, second = x.chunk(2, -1)
    return x * c + lib.cat([-second, first], -1) * s


def rotated_beside(lib, x, c, s):
    """Rotate pairs of neighbours."""
    c, s, first, second = c[..., ::2], s[..., ::2], x[..., ::2], x[..., 1::2]
    return lib.stack([first * c - second * s, first * s + second * c], -1).flatten(-2)


def attend(lib, q, k, v):
    return lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def rope(lib, q, k, v, c, s):
    """Queries and keys are rotated by their places (Llama)."""
    return attend(lib, rotated(lib, q, c, s), rotated(lib, k, c, s), v)


def rope_beside(lib, q, k, v, c, s):
    """The same by pairs of neighbours."""
    return attend(lib, rotated_beside(lib, q, c, s), rotated_beside(lib, k, c, s), v)


def qk_norm(lib, q, k, v, w, u):
    """Rows of queries and keys are normed, with weights."""
    return attend(lib, normed(lib, q, w), normed(lib, k, u), v)


def qk_norm_rope(lib, q, k, v, w, u, c, s):
    """Rows of queries and keys are normed, then rotated (Qwen3, OLMo2)."""
    q, k = normed(lib, q, w), normed(lib, k, u)
    return rope(lib, q, k, v, c, s)


def layer(lib, q, k, v, w, u, c, s):
    """The same, as projections give them and want it: heads lie side by side (Qwen3)."""
    q, k, v = (x.reshape(x.shape[0], x.shape[2], -1, x.shape[3]) for x in (q, k, v))
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return qk_norm_rope(lib, q, k, v, w, u, c, s).transpose(1, 2).flatten(2)


def gated(lib, q, k, v, z):
    """A gate an element behind (gated attention)."""
    return attend(lib, q, k, v) * z.sigmoid()


def gated_flat(lib, q, k, v, z):
    """The same, with heads side by side (Qwen3-Next)."""
    z = z.reshape(z.shape[0], z.shape[2], -1)
    return attend(lib, q, k, v).transpose(1, 2).flatten(2) * z.sigmoid()


def latent_joined(lib, q, k, v, r, t):
    """Parts of content and of positions joined side by side (latent attention)."""
    q = lib.cat([q, r], -1)
    k = lib.cat([k, t.unsqueeze(1).expand(*r.shape)], -1)
    return attend(lib, q, k, v)


def tempered(lib, q, k, v, t):
    """A temperature a row."""
    return weighted((scores(q, k) * t.unsqueeze(-1)).softmax(-1), v)


def sloped(lib, q, k, v, t):
    """Slopes of distances are learned, one a head (ALiBi)."""
    place = lib.arange(q.shape[-2], device=q.device)
    s = scores(q, k) + t[:, None, None] * (place - place[:, None])
    return weighted(causal(lib, s).softmax(-1), v)


def differential(lib, q, k, v):
    """Two softmaxes subtracted: halves of each query and key."""
    q1, q2 = q.chunk(2, -1)
    k1, k2 = k.chunk(2, -1)
    w = scores(q1, k1).softmax(-1) - 0.8 * scores(q2, k2).softmax(-1)
    return weighted(w, v)


def differential_learned(lib, q, k, v, c):
    """The same below the diagonal, the second times a number that is learned."""
    q1, q2 = q.chunk(2, -1)
    k1, k2 = k.chunk(2, -1)
    w = causal(lib, scores(q1, k1)).softmax(-1) - c * causal(lib, scores(q2, k2)).softmax(-1)
    return weighted(w, v)


def latent_summed(lib, q, k, v, r, t):
    """Scores of content and of positions are added; all heads share the keys of positions."""
    s = lib.einsum("bhid,bhjd->bhij", q, k) + lib.einsum("bhid,bjd->bhij", r, t)
    s = causal(lib, s.float() / math.sqrt(q.shape[-1] + r.shape[-1]))
    return weighted(s.softmax(-1), v)


def talking(lib, q, k, v, mix):
    """Heads that talk: scores are mixed before, weights behind the softmax."""
    s = lib.einsum("bhij,hg->bgij", scores(q, k), mix)
    w = lib.einsum("bhij,hg->bgij", s.softmax(-1), mix)
    return weighted(w, v)


def latent(lib, q, k, v):
    """Values of half the size of the keys."""
    return weighted(causal(lib, scores(q, k)).softmax(-1), v[..., : v.shape[-1] // 2])


def averaged(lib, q, k, v):
    """Weights are read too, averaged over heads."""
    w = scores(q, k).softmax(-1)
    return weighted(w, v), w.mean(1)


def pages(lib, q, k, v, table):
    """Keys and values in blocks of memory that a table lists."""
    heads, size = k.shape[1], k.shape[-1]
    table = table.clamp(0, q.shape[0] * q.shape[2] // PAGE - 1)  # known to be of the memory
    k, v = (
        x.reshape(heads, -1, PAGE, size)[:, table].reshape(heads, q.shape[0], -1, size)
        for x in (k, v)
    )
    k, v = k.transpose(0, 1), v.transpose(0, 1)
    return weighted(scores(q, k).softmax(-1), v)


def tabled(lib, q, k, v, table, places):
    """A bias of each head for the relative place, looked up in a learned table (T5, Swin)."""
    places = places.clamp(0, table.shape[0] - 1)  # known to be of the table
    bias = table[places].permute(2, 0, 1).unsqueeze(0)
    return weighted((scores(q, k) + bias).softmax(-1), v)


def tabled_mask(lib, q, k, v, table, places):
    """The same as the mask of `scaled_dot_product_attention`."""
    places = places.clamp(0, table.shape[0] - 1)
    bias = table[places].permute(2, 0, 1).unsqueeze(0).to(q.dtype)
    return lib.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def tabled_one_hot(lib, q, k, v, table, places):
    """The same table by a product with rows of one 1."""
    places = places.clamp(0, table.shape[0] - 1)
    chosen = (places[..., None] == lib.arange(table.shape[0], device=q.device)).to(table.dtype)
    bias = (chosen @ table).permute(2, 0, 1).unsqueeze(0)
    return weighted((scores(q, k) + bias).softmax(-1), v)


def tabled_twice(lib, q, k, v, table, places):
    """Two layers share the bias."""
    places = places.clamp(0, table.shape[0] - 1)
    bias = table[places].permute(2, 0, 1).unsqueeze(0)
    x = weighted((scores(q, k) + bias).softmax(-1), v)
    return weighted((scores(x, k) + bias).softmax(-1), v)


FORMS = {
    f.__name__: f
    for f in [
        plain, upcast, by_logarithm, sigmoid, sigmoid_causal, relu, relu_squared, sink_joined,
        sink_shifted, zero_padded,
        sink_summed, off_by_one, off_by_one_peak, cosine, tempered, sloped,
        differential,
        differential_learned, talking, latent, latent_summed, averaged, pages, tabled,
        tabled_mask, tabled_one_hot, tabled_twice, rope, rope_beside, qk_norm, qk_norm_rope, layer,
        gated, gated_flat, latent_joined,
    ]
}  # fmt: skip
EXTRA = {
    "sink_joined": ["head"], "sink_shifted": ["head"], "sink_summed": ["head"], "cosine": ["head"],
    "tempered": ["row"], "talking": ["heads"], "pages": ["table"], "tabled": ["biases", "places"],
    "sloped": ["slopes"], "differential_learned": ["number"], "latent_summed": ["r", "t"],
    "tabled_mask": ["biases", "places"], "tabled_one_hot": ["biases", "places"],
    "tabled_twice": ["biases", "places"], "rope": ["c", "s"], "rope_beside": ["c", "s"],
    "qk_norm": ["w", "u"], "qk_norm_rope": ["w", "u", "c", "s"], "layer": ["w", "u", "c", "s"],
    "gated": ["z"], "gated_flat": ["z"], "latent_joined": ["r", "t"],
}  # fmt: skip


def sizes_of(name, sizes):
    """Shapes of the operands of a form."""
    b, h, n, d = sizes
    extra = {"head": (h,), "row": (b, h, n), "heads": (h, h), "table": (b, n // PAGE)}
    extra |= {"number": (1,), "slopes": (h,), "r": (b, h, n, d // 2), "t": (b, n, d // 2)}
    extra |= {"biases": (WINDOW_PLACES if n == WINDOW else BUCKETS, h), "places": (n, n)}
    extra |= dict.fromkeys("cs", (n, d)) | dict.fromkeys("wu", (d,)) | {"z": (b, h, n, d)}
    shapes = dict.fromkeys("qkv", (b, h, n, d))
    return shapes | {each: extra[each] for each in EXTRA.get(name, ())}


def places_of(n, count):
    """Number relative places: those of a window of 7 x 7, or buckets of distances as T5 has."""
    place = torch.arange(n, device="cuda")
    if n == WINDOW:
        y, x = place // 7, place % 7
        return (y[:, None] - y + 6) * 13 + x[:, None] - x + 6
    apart = place - place[:, None]
    near, half = apart.abs(), count // 4
    far = half + (near.float() / half).log2() / math.log2(128 / half) * half
    bucket = torch.where(near < half, near, far.clamp(max=2 * half - 1).long())
    return bucket + (apart > 0) * 2 * half


def plan_of(name, sizes, mode, target):
    """Schedule a form; the plan, and which operand each input is."""
    leaves = {}
    for each, shape in sizes_of(name, sizes).items():
        dtype = bfloat16 if each in HALVES else int64 if each in INTEGERS else float32
        leaves[each] = Node("buffer", (), Storage(None), shape, dtype, "cpu")
    found = FORMS[name](picograd, *map(Tensor.from_node, leaves.values()))
    outputs = [each.node for each in (found if isinstance(found, tuple) else (found,))]
    roots = list(outputs)
    if mode == "both":
        learned = [x for n, x in leaves.items() if x.dtype.is_float and n not in CONSTANT]
        for number, output in enumerate(outputs):
            leaves[f"g{number}"] = Node(
                "buffer", (), Storage(None), output.shape, output.dtype, "cpu"
            )
        pairs = [(output, leaves[f"g{number}"]) for number, output in enumerate(outputs)]
        roots += gradient(pairs, learned)
    plan = schedule(roots, target)
    roles = {id(node): each for each, node in leaves.items()}
    return plan, [roles[id(node)] for node in plan.inputs]


def angles(size):
    """Divide places by a power for each pair of columns, the same in both halves."""
    column = torch.arange(size, device="cuda") % (size // 2)
    return 10000 ** (2 * column / size)


def tensors_of(name, sizes):
    """Make random operands."""
    given = {}
    for each, shape in sizes_of(name, sizes).items():
        if each in CONSTANT:
            turns = torch.arange(shape[0], device="cuda")[:, None] / angles(shape[1])
            given[each] = (turns.cos() if each == "c" else turns.sin()).bfloat16()
        elif each in HALVES:
            given[each] = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
        elif each == "places":
            given[each] = places_of(shape[0], given["biases"].shape[0])
        elif each == "table":
            count = shape[0] * shape[1]
            given[each] = torch.randperm(count, device="cuda").reshape(shape)
        else:
            given[each] = torch.rand(shape, device="cuda") + 0.5
    return given


def torch_call(name, mode, given, form, kind=None):
    """Make what computes the same with PyTorch, and the gradients of its results."""
    is_both = mode == "both"
    leaves = {
        n: (x.to(kind) if kind and x.is_floating_point() else x.clone()).requires_grad_(
            is_both and x.is_floating_point() and n not in CONSTANT
        )
        for n, x in given.items()
        if n[0] != "g"
    }
    learned = [x for x in leaves.values() if x.requires_grad]

    def run():
        found = form(torch, *leaves.values())
        outputs = list(found) if isinstance(found, tuple) else [found]
        if not is_both:
            return outputs
        seeds = [given[f"g{n}"].to(x.dtype) for n, x in enumerate(outputs)]
        return [*outputs, *torch.autograd.grad(outputs, learned, seeds)]

    return run


def ours(name, mode, sizes, given):
    """Build the kernels of a form: the plan, what launches it, and the results."""
    target = target_here()
    plan, roles = plan_of(name, sizes, mode, target)
    written = programs(plan, target)
    cubins = compiled_all([render(program) for program, _ in written], target)
    built = [(program, slots, cubins[render(program)]) for program, slots in written]
    for role in set(roles) - set(given):
        shape = next(node.shape for node in plan.inputs if roles[plan.inputs.index(node)] == role)
        kind = getattr(torch, plan.inputs[roles.index(role)].dtype.name)
        given[role] = torch.randn(shape, device="cuda").to(kind)
    call, results = plan_call(plan, roles, built, given)
    return plan, call, results


def check(name, mode, sizes):
    """Compare values and gradients with float64, and two runs."""
    given = tensors_of(name, sizes)
    plan, call, results = ours(name, mode, sizes, given)
    runs = []
    for _ in range(2):
        call()
        torch.cuda.synchronize()
        runs.append([each.clone() for each in results])
    is_same = all(torch.equal(a, b) for a, b in zip(*runs, strict=True))
    expected = torch_call(name, mode, given, FORMS[name], torch.float64)()
    pairs = zip(runs[0], expected, strict=True)
    errors = [((a.double() - b).norm() / b.norm()).item() for a, b in pairs]
    verdict = "ok   " if max(errors) < 1e-2 and is_same else "WRONG"
    numbers = " ".join(f"{each:.1e}" for each in errors)
    print(verdict, name, mode, sizes, numbers, f"same {is_same}", len(plan.steps), flush=True)


def compare(name, mode, sizes, options):
    """Time a form beside PyTorch's, as it is and compiled."""
    given = tensors_of(name, sizes)
    plan, call, _ = ours(name, mode, sizes, given)
    torch._dynamo.reset()
    compiled = torch.compile(FORMS[name], dynamic=False)
    calls = {"eager": torch_call(name, mode, given, FORMS[name])}
    calls["compiled"] = torch_call(name, mode, given, compiled)
    calls = {} if options.alone else calls
    with torch.cuda.stream(torch.cuda.Stream()):
        for each in calls.values():
            each()
            each()
    torch.cuda.synchronize()
    rivals = [Rival(n, [each]) for n, each in {"ours": call, **calls}.items()]
    times = in_turns(rivals, options.rounds, options.seconds, 1e-3)
    median = {n: statistics.median(each) * 1e6 for n, each in times.items()}
    best = min(calls, key=median.__getitem__, default="ours")
    ratio = statistics.median(t / o for t, o in zip(times[best], times["ours"]))
    texts = " | ".join(f"{n} {t:8.1f} us" for n, t in median.items())
    print(f"{name:16} {mode:8} {len(plan.steps)} kernels | {texts} | {ratio:.2f}", flush=True)
    if options.kernels:
        show_kernels(plan, call, options.seconds, 5e-4)


def show_plan(name, mode, sizes):
    """List the kernels of our plan."""
    plan, _ = plan_of(name, sizes, mode, cuda_target("sm_90a"))
    heroes = " ".join(step.kernel.hero for step in plan.steps)
    print(f"{name:16} {mode:8} {len(plan.steps)} kernels: {heroes}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", action="store_true", help="list kernels; needs no GPU")
    parser.add_argument("--check", action="store_true", help="compare values, time nothing")
    parser.add_argument("--kernels", action="store_true", help="time each kernel by itself too")
    parser.add_argument("--alone", action="store_true", help="without PyTorch")
    parser.add_argument("--modes", nargs="+", default=["forward", "both"])
    parser.add_argument("--forms", nargs="+", default=list(FORMS))
    parser.add_argument("--sizes", default="4x16x2048x64", help="batch x heads x length x columns")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4e-3, help="of a sample")
    options = parser.parse_args()
    sizes = tuple(map(int, options.sizes.split("x")))
    for name in options.forms:
        for mode in options.modes:
            if options.plan:
                show_plan(name, mode, sizes)
                continue
            try:
                (check if options.check else partial(compare, options=options))(name, mode, sizes)
            except RuntimeError as error:
                print(name, mode, type(error).__name__, str(error)[:200], flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
