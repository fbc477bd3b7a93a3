"""More calls of `cpu_survey.py`: sizes, dtypes, views, layers, recurrences, losses, optimizers."""

import numpy as np
import torch
from cpu_survey_calls import RANDOM, drawn, named, net

SIZES = ((10, 10), (100, 100), (2000, 2000))
DTYPES = ("float16", "bfloat16", "int8", "bool", "complex64")


def typed(array, dtype, change=None):
    """Make a tensor of a dtype in each library, changed to a view of itself."""

    def make(library):
        made = library.tensor(array).to(getattr(library, dtype))
        return made if change is None else change(made)

    return make


class Layer:
    """A layer of `nn`, made once for each library with PyTorch's first weights."""

    def __init__(self, name, *rest, take=lambda y: y, **options):
        self.take, self.made = take, {}
        torch.manual_seed(0)
        first = getattr(torch.nn, name)(*rest, **options)
        self.state = {key: value.numpy() for key, value in first.state_dict().items()}
        self.build = lambda library: getattr(library.nn, name)(*rest, **options)

    def of(self, library, is_wide=False):
        """Give the library's own layer, of float64 for values to compare with."""
        if (library, is_wide) not in self.made:
            layer = self.made[library, is_wide] = self.build(library)
            state = {key: library.tensor(value) for key, value in self.state.items()}
            layer.load_state_dict(state)
            if is_wide:
                layer.double()
        return self.made[library, is_wide]

    def parameters(self, library):
        """List the library's parameters."""
        return list(self.of(library).parameters())

    def __call__(self, library, *given):
        is_wide = given[0].dtype == library.float64
        return self.take(self.of(library, is_wide)(*given))


def of_dtypes():
    """Yield everyday operations of dtypes and sizes, of views and of broadcast operands."""
    for shape in SIZES:
        size = "x".join(map(str, shape))
        for dtype in ("float32", *DTYPES):
            x = typed(drawn(*shape) * 3, dtype)
            y = typed(np.abs(drawn(*shape)) + 1, dtype)
            of = f"{dtype} {size}"
            yield f"add {of}", named("add"), [x, y], False
            yield f"mul {of}", named("mul"), [x, y], False
            yield f"eq {of}", named("eq"), [x, y], False
            yield f"where {of}", lambda library, x, y: library.where(x != 0, x, y), [x, y], False
            yield f"sum {of}", named("sum"), [x], False
            yield f"sum 0 {of}", named("sum", 0), [x], False
            yield f"to float32 {of}", lambda library, x: x.to(library.float32) * 2, [x], False
            yield f"copy transposed {of}", lambda library, x: x.t().contiguous(), [x], False
            yield f"cat {of}", lambda library, x, y: library.cat([x, y], 1), [x, y], False
            if dtype == "bool":
                yield f"any 1 {of}", named("any", 1), [x], False
                continue
            if dtype == "complex64":
                yield f"abs {of}", named("abs"), [x], False
                yield f"exp {of}", named("exp"), [x], False
                continue
            yield f"amax 1 {of}", named("amax", 1), [x], False
            yield f"argmax 1 {of}", named("argmax", 1), [x], False
            yield f"sort {of}", lambda library, x: x.sort().values, [x], False
            yield f"clamp {of}", named("clamp", -1, 1), [x], False
            if dtype != "int8":
                yield f"gelu {of}", net("gelu"), [x], False
                yield f"softmax {of}", named("softmax", 1), [x], False
                yield f"layer_norm {of}", net("layer_norm", shape[1:]), [x], False
                yield f"div {of}", named("div"), [x, y], False
            if shape[0] <= 100:
                yield f"matmul {of}", named("matmul"), [x, y], False


def of_views():
    """Yield reductions over several axes, and operations on views and broadcast operands."""
    for shape in ((4, 5, 6), (20, 30, 20), (160, 160, 160)):
        x, size = drawn(*shape), "x".join(map(str, shape))
        for dims in ((0, 2), (1, 2), (0, 1)):
            for name in ("sum", "mean", "amax", "var", "logsumexp"):
                yield f"{name} {dims} {size}", named(name, dims), [x], name in ("mean", "var")
        row, column = drawn(shape[2]), drawn(shape[0], 1, 1)
        yield f"x + row {size}", lambda library, x, r: x + r, [x, row], True
        yield f"x * column {size}", lambda library, x, c: x * c, [x, column], True
        yield f"outer sum {size}", lambda library, r, c: r + c, [row, column], False
        for change in ((2, 1, 0), (0, 2, 1)):
            turned = typed(x, "float32", lambda t, change=change: t.permute(change))
            yield f"add permuted {change} {size}", lambda library, x, y: x + y, [x, turned], False
            yield f"sum -1 permuted {change} {size}", named("sum", -1), [turned], False
            yield f"exp permuted {change} {size}", named("exp"), [turned], False
        stepped = typed(x, "float32", lambda t: t[:, ::2, ::2])
        yield f"exp of each second {size}", named("exp"), [stepped], False
        yield f"sum of each second {size}", named("sum"), [stepped], False
        spread = typed(drawn(shape[0], 1, shape[2]), "float32", lambda t, s=shape: t.expand(*s))
        yield f"exp expanded {size}", named("exp"), [spread], False
        yield f"sum 1 expanded {size}", named("sum", 1), [spread], False
        yield f"std all {size}", named("std"), [x], False
        yield f"argmax all {size}", named("argmax"), [x], False
        places = RANDOM.integers(0, shape[0], 4 * shape[0])
        yield f"index_select {size}", lambda library, x, i: x[i], [x, places], True
        yield f"index_add {size}", indexed_add, [x, places, drawn(4 * shape[0], *shape[1:])], False
        yield f"masked_fill {size}", lambda library, x: x.masked_fill(x > 0, 0.0), [x], True


def indexed_add(library, x, places, rows):
    """Add rows at their places."""
    return x.index_add(0, places, rows)


def of_layers():
    """Yield layers of networks, of two sizes each."""
    for n, c, s in ((2, 8, 10), (8, 32, 32), (16, 64, 56)):
        x, size = drawn(n, c, s, s), f"{n}x{c}x{s}x{s}"
        convolutions = {
            "conv2d 3": Layer("Conv2d", c, 2 * c, 3, padding=1),
            "conv2d 1": Layer("Conv2d", c, 2 * c, 1),
            "conv2d 3 by 2": Layer("Conv2d", c, c, 3, 2, 1),
            "conv2d dilated": Layer("Conv2d", c, c, 3, padding=2, dilation=2),
            "conv2d grouped": Layer("Conv2d", c, c, 3, padding=1, groups=4),
            "conv2d depthwise": Layer("Conv2d", c, c, 3, padding=1, groups=c),
            "conv2d depthwise 5 by 2": Layer("Conv2d", c, c, 5, 2, 2, groups=c),
            "conv_transpose2d": Layer("ConvTranspose2d", c, c, 2, 2),
            "conv_transpose2d 4 by 2": Layer("ConvTranspose2d", c, c, 4, 2, 1),
            "batch_norm": Layer("BatchNorm2d", c),
            "group_norm": Layer("GroupNorm", 4, c),
            "instance_norm": Layer("InstanceNorm2d", c, affine=True),
            "max_pool2d": Layer("MaxPool2d", 2),
            "adaptive_max_pool2d": Layer("AdaptiveMaxPool2d", 5),
            "pixel_shuffle": Layer("PixelShuffle", 2),
            "upsample": Layer("Upsample", scale_factor=2),
            "prelu": Layer("PReLU", c),
            "lp_pool": Layer("LPPool2d", 2, 2),
        }
        for name, layer in convolutions.items():
            yield f"{name} {size}", layer, [x], True
        series = x.reshape(n, c, s * s)
        size = f"{n}x{c}x{s * s}"
        yield (
            f"conv1d depthwise {size}",
            Layer("Conv1d", c, c, 4, padding=3, groups=c),
            [series],
            True,
        )
        yield f"conv_transpose1d {size}", Layer("ConvTranspose1d", c, c, 4, 2, 1), [series], True
        yield f"batch_norm1d {size}", Layer("BatchNorm1d", c), [series], True
    for n, t, d in ((1, 5, 16), (16, 20, 64), (32, 50, 256)):
        x, size = drawn(n, t, d), f"{n}x{t}x{d}"
        for name in ("RNN", "GRU", "LSTM"):
            layer = Layer(name, d, d, batch_first=True, take=lambda y: y[0])
            yield f"{name} {size}", layer, [x], True
        for name in ("GRUCell", "LSTMCell"):
            layer = Layer(name, d, d, take=lambda y: y[0] if isinstance(y, tuple) else y)
            yield f"{name} {size}", layer, [x[:, 0]], True
        yield f"linear {size}", Layer("Linear", d, 4 * d), [x], True
        yield f"layer_norm {size}", Layer("LayerNorm", d), [x], True
        yield f"rms_norm {size}", Layer("RMSNorm", d), [x], True
        attention = Layer("MultiheadAttention", d, 4, batch_first=True, take=lambda y: y[0])
        yield (
            f"attention {size}",
            lambda library, x, a=attention: a.take(a.of(library)(x, x, x)),
            [x],
            True,
        )
        encoder = Layer("TransformerEncoderLayer", d, 4, 4 * d, 0.0, batch_first=True)
        yield f"transformer layer {size}", encoder, [x], True
        tokens = RANDOM.integers(0, 1000, (n, t))
        yield f"embedding {size}", Layer("Embedding", 1000, d), [tokens], True
        for mode in ("sum", "mean", "max"):
            layer = Layer("EmbeddingBag", 1000, d, mode=mode)
            yield f"embedding_bag {mode} {size}", layer, [tokens], True
        bilinear = Layer("Bilinear", d, d, 8)
        yield f"bilinear {size}", bilinear, [x[:, 0], x[:, 1]], True


def of_losses():
    """Yield losses with gradients."""
    for n, c in ((10, 10), (100, 100), (4096, 1000)):
        x, y, size = drawn(n, c), drawn(n, c), f"{n}x{c}"
        labels, signs = RANDOM.integers(0, c, n), np.sign(drawn(n)).astype("f")
        part = (RANDOM.uniform(0.01, 0.99, (n, c))).astype("f")
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "gaussian"):
            if name == "gaussian":
                yield f"gaussian_nll {size}", net("gaussian_nll_loss"), [x, y, part], True
                continue
            yield f"{name} {size}", net(name), [x, y], True
        yield f"cross_entropy {size}", net("cross_entropy"), [x, labels], True
        smooth = net("cross_entropy", label_smoothing=0.1)
        yield f"cross_entropy smoothed {size}", smooth, [x, labels], True
        yield f"nll_loss {size}", net("nll_loss"), [x, labels], True
        yield f"bce {size}", net("binary_cross_entropy"), [part, part[::-1].copy()], True
        yield f"bce_logits {size}", net("binary_cross_entropy_with_logits"), [x, part], True
        kl = net("kl_div", reduction="batchmean", log_target=True)
        yield f"kl_div {size}", kl, [x, y], True
        yield f"poisson_nll {size}", net("poisson_nll_loss"), [x, part], True
        yield f"cosine_embedding {size}", net("cosine_embedding_loss"), [x, y, signs], True
        yield f"triplet {size}", net("triplet_margin_loss"), [x, y, part], True
        yield f"multi_margin {size}", net("multi_margin_loss"), [x, labels], True
        yield f"hinge {size}", net("hinge_embedding_loss"), [x, np.sign(y)], True
        yield f"cosine_similarity {size}", net("cosine_similarity"), [x, y], True
        yield f"normalize {size}", net("normalize"), [x], True
        yield f"pairwise_distance {size}", net("pairwise_distance"), [x, y], True
        yield f"pdist {size}", net("pdist"), [x[:100]], True


class Updates:
    """Steps of an optimizer over parameters of a few shapes, whose gradients stay."""

    def __init__(self, name, count, side, **options):
        self.name, self.count, self.side, self.options = name, count, side, options
        self.made = {}

    def __call__(self, library):
        if library not in self.made:
            draw = np.random.default_rng(3).standard_normal
            arrays = [draw((2, self.side, self.side)).astype("f") for _ in range(self.count)]
            given = [library.tensor(a[0]).requires_grad_() for a in arrays]
            for each, a in zip(given, arrays):
                each.grad = library.tensor(a[1])
            optimizer = getattr(library.optim, self.name)(given, lr=1e-4, **self.options)
            self.made[library] = given, optimizer
        given, optimizer = self.made[library]
        optimizer.step()
        return given


def of_optimizers():
    """Yield steps of optimizers."""
    names = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax")
    for count, side in ((4, 10), (30, 32), (8, 700)):
        for name in names:
            yield f"{name} {count} of {side}x{side}", Updates(name, count, side), [], False
        momentum = Updates("SGD", count, side, momentum=0.9, nesterov=True)
        yield f"SGD momentum {count} of {side}x{side}", momentum, [], False


def of_tables():
    """Yield what programs do to tables: groups, ranks, windows, joins, scaled columns."""

    def group_means(library, x, keys, groups):
        zeros = x.new_zeros(groups, x.shape[1])
        counts = library.bincount(keys, minlength=groups)
        return zeros.index_add(0, keys, x) / counts.clamp(1)[:, None]

    def correlation(library, x):
        return library.corrcoef(x.t())

    def z_scores(library, x):
        return (x - x.mean(0)) / x.std(0)

    def moving_mean(library, x):
        return x.unfold(0, 7, 1).mean(-1)

    def ranks(library, x):
        return x.argsort(0).argsort(0)

    def filled(library, x):
        return library.where(library.isnan(x), x.nanmean(0), x)

    def joined(library, x, keys):
        ordered, places = keys.sort()
        found = library.searchsorted(ordered, keys).clamp(max=keys.shape[0] - 1)
        return x[places[found]]

    def changes(library, x):
        return x.diff(dim=0).abs().cumsum(0)

    for n in (100, 10_000, 400_000):
        x, keys = drawn(n, 10), RANDOM.integers(0, 50, n)
        holes = np.where(RANDOM.uniform(size=x.shape) < 0.1, np.nan, x).astype("f")
        yield f"group means {n}", lambda *given: group_means(*given, 50), [x, keys], False
        yield f"unique counts {n}", named("unique", return_counts=True), [keys], False
        yield f"correlation {n}", correlation, [x], False
        yield f"z scores {n}", z_scores, [x], False
        yield f"moving mean {n}", moving_mean, [x], False
        yield f"ranks {n}", ranks, [x], False
        yield f"fill holes {n}", filled, [holes], False
        yield f"join {n}", joined, [x, RANDOM.permutation(n)], False
        yield f"changes {n}", changes, [x], False
        yield f"one_hot {n}", net("one_hot", 50), [keys], False
        yield f"isin {n}", lambda library, k: library.isin(k, k[:20]), [keys], False
        yield f"quantiles {n}", named("quantile", 0.9, 0), [x], False
        yield f"nansum {n}", named("nansum", 0), [holes], False
        yield f"rows above {n}", lambda library, x: x[x[:, 0] > 0], [x], False


def spectra():
    """Yield transforms as people use them: filters, convolutions, gradients of spectra."""

    def long_convolution(library, x, w):
        n = x.shape[-1] + w.shape[-1] - 1
        return library.fft.irfft(library.fft.rfft(x, n) * library.fft.rfft(w, n), n)

    def power(library, x):
        return library.fft.rfft(x).abs().square()

    def smoothed(library, x, mask):
        return library.fft.ifft2(library.fft.fft2(x) * mask).real

    def mel(library, x, window):
        return library.stft(x, 512, 128, 512, window, return_complex=True).abs()

    def back(library, x, window):
        spectrum = library.stft(x, 512, 128, 512, window, return_complex=True)
        return library.istft(spectrum, 512, 128, 512, window)

    for n, s in ((1, 100), (8, 4096), (64, 4096)):
        x, size = drawn(n, s), f"{n}x{s}"
        yield f"fftconvolve {size}", long_convolution, [x, drawn(n, s // 4)], True
        yield f"power spectrum {size}", power, [x], True
        yield (
            f"rfft irfft {size}",
            lambda library, x: library.fft.irfft(library.fft.rfft(x)),
            [x],
            True,
        )
    for n, s in ((1, 28), (16, 64), (4, 256)):
        mask = (RANDOM.uniform(size=(s, s)) > 0.5).astype("f")
        yield f"filter of images {n}x{s}x{s}", smoothed, [drawn(n, s, s), mask], False
    window = np.hanning(512).astype("f")
    for n, s in ((1, 4000), (8, 32000)):
        yield f"mel {n}x{s}", mel, [drawn(n, s), window], False
        yield f"stft istft {n}x{s}", back, [drawn(n, s), window], False


def calls():
    """Yield all: name, function, arrays, and whether gradients are measured."""
    yield from of_dtypes()
    yield from of_views()
    yield from of_layers()
    yield from of_losses()
    yield from of_optimizers()
    yield from of_tables()
    yield from spectra()
