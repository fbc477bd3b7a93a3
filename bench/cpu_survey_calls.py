"""The calls of `cpu_survey.py`: names, functions of a library and arrays, and their arrays."""

import numpy as np

RANDOM = np.random.default_rng(0)


def drawn(*shape, dtype="f"):
    """Draw numbers of a shape; positive integers below 1000 for dtypes of these."""
    if np.dtype(dtype).kind in "iu":
        return RANDOM.integers(0, 1000, shape).astype(dtype)
    return RANDOM.standard_normal(shape).astype(dtype)


def named(path, *rest, **options):
    """Call a function of a library by its path."""

    def call(library, *given):
        found = library
        for name in path.split("."):
            found = getattr(found, name)
        return found(*given, *rest, **options)

    return call


def net(name, *rest, **options):
    """Call a function of `nn.functional`."""
    return named(f"nn.functional.{name}", *rest, **options)


def of_matrices():
    """Yield functions of matrices and transforms."""
    for lead, n in (((), 64), ((), 256), ((100,), 8)):
        a = drawn(*lead, n, n) + n * np.eye(n, dtype="f")
        size = "x".join(map(str, (*lead, n, n)))
        for name in ("inv", "det", "slogdet"):
            yield f"{name} {size}", named(f"linalg.{name}"), [a], name != "slogdet"
        yield f"solve {size}", named("linalg.solve"), [a, drawn(*lead, n, 4)], True
        yield f"cholesky {size}", named("linalg.cholesky"), [a @ a.swapaxes(-1, -2)], True
    for shape in ((64, 1024), (1024,), (100_000,), (200, 200), (64, 1000), (16, 4096), (7, 2187)):
        size = "x".join(map(str, shape))
        numbers = (drawn(*shape) + 1j * drawn(*shape)).astype("F")
        yield f"fft {size}", named("fft.fft"), [numbers], False
        yield f"ifft {size}", named("fft.ifft"), [numbers], False
        yield f"rfft {size}", named("fft.rfft"), [drawn(*shape)], False
        yield f"irfft {size}", named("fft.irfft"), [numbers], False
    for shape in ((3, 256, 256), (8, 64, 64), (4, 100, 120)):
        size = "x".join(map(str, shape))
        numbers = (drawn(*shape) + 1j * drawn(*shape)).astype("F")
        yield f"fft2 {size}", named("fft.fft2"), [numbers], False
        yield f"rfft2 {size}", named("fft.rfft2"), [drawn(*shape)], False
        yield f"fft dim 1 {size}", named("fft.fft", dim=1), [numbers], False
    window = np.hanning(400).astype("f")

    def spectrum(library, x, w):
        return library.view_as_real(library.stft(x, 400, 160, 400, w, return_complex=True))

    yield "stft 4x16000", spectrum, [drawn(4, 16000), window], False


def of_order():
    """Yield functions that sort, select and count."""
    for shape in ((100_000,), (1000, 100), (64, 4096)):
        size = "x".join(map(str, shape))
        for dtype in ("f", "d", "l"):
            x = drawn(*shape, dtype=dtype)
            of = f"{np.dtype(dtype).name} {size}"
            yield f"sort {of}", named("sort"), [x], False
            yield f"argsort {of}", named("argsort"), [x], False
            yield f"topk 10 {of}", named("topk", 10), [x], False
            yield f"median {of}", named("median", -1), [x], False
            yield f"kthvalue {of}", named("kthvalue", 20), [x], False
            yield f"unique {of}", named("unique"), [x], False
        x = drawn(*shape)
        yield f"sort wide int64 {size}", named("sort"), [RANDOM.integers(0, 2**62, shape)], False
        yield f"quantile {size}", named("quantile", 0.3, -1), [x], True
        yield f"nonzero {size}", lambda library, x: (x > 0).nonzero(), [x], False
        yield f"masked_select {size}", lambda library, x: x.masked_select(x > 0), [x], False
        yield f"histc {size}", named("histc", 50, -3.0, 3.0), [x], False
        yield f"bincount {size}", named("bincount"), [drawn(x.size, dtype="l")], False
        for name in ("cumsum", "cumprod", "cummax", "logcumsumexp"):
            is_smooth = name in ("cumsum", "logcumsumexp")
            yield f"{name} {size}", named(name, -1), [x], is_smooth
        if len(shape) > 1:
            yield f"cumsum 0 {size}", named("cumsum", 0), [x], True
            yield f"sort 0 {size}", named("sort", 0), [x], False
        yield f"repeat_interleave {size}", named("repeat_interleave", 3, -1), [x], True
        edges = np.linspace(-2, 2, 100, dtype="f")
        yield f"bucketize {size}", named("bucketize"), [x, edges], False
    for n in (1000, 100_000):
        yield f"randperm {n}", lambda library, n=n: library.randperm(n), [], False
        yield f"multinomial {n}", named("multinomial", 100), [np.abs(drawn(n))], False


def of_images():
    """Yield functions of images, series and volumes."""
    for n, c, s in ((4, 16, 32), (2, 8, 100)):
        x, size = drawn(n, c, s, s), f"{n}x{c}x{s}x{s}"
        grid = np.clip(drawn(n, s, s, 2), -1, 1)
        yield f"grid_sample {size}", net("grid_sample", align_corners=False), [x, grid], True
        for mode in ("bilinear", "nearest", "bicubic", "area"):
            call = net("interpolate", scale_factor=2, mode=mode)
            yield f"interpolate {mode} {size}", call, [x], True
        yield f"max_pool2d {size}", net("max_pool2d", 2), [x], True
        yield f"max_pool2d 3 by 2 {size}", net("max_pool2d", 3, 2, 1), [x], True
        yield f"avg_pool2d 3 by 2 {size}", net("avg_pool2d", 3, 2, 1), [x], True
        yield f"adaptive_avg_pool2d {size}", net("adaptive_avg_pool2d", 7), [x], True
        yield f"unfold {size}", net("unfold", 3, padding=1), [x], True
        yield f"pad reflect {size}", net("pad", (2, 2, 2, 2), mode="reflect"), [x], True
    for n, c, s in ((8, 16, 1000), (4, 4, 20_000)):
        x, size = drawn(n, c, s), f"{n}x{c}x{s}"
        yield f"max_pool1d {size}", net("max_pool1d", 3, 2, 1), [x], True
        yield f"avg_pool1d {size}", net("avg_pool1d", 3, 2, 1), [x], True
        yield f"conv1d {size}", net("conv1d", padding=2), [x, drawn(16, c, 5)], True
        yield (
            f"interpolate linear {size}",
            net("interpolate", scale_factor=2, mode="linear"),
            [x],
            True,
        )
    for n, c, s in ((2, 8, 16), (1, 16, 32)):
        x, size = drawn(n, c, s, s, s), f"{n}x{c}x{s}x{s}x{s}"
        yield f"conv3d {size}", net("conv3d", padding=1), [x, drawn(16, c, 3, 3, 3)], True
        yield f"max_pool3d {size}", net("max_pool3d", 2), [x], True
        yield f"avg_pool3d {size}", net("avg_pool3d", 2), [x], True
        call = net("conv_transpose3d", stride=2)
        yield f"conv_transpose3d {size}", call, [x, drawn(c, 8, 2, 2, 2)], True
        call = net("interpolate", scale_factor=2, mode="trilinear")
        yield f"interpolate trilinear {size}", call, [x], True


MAPS = (
    "exp", "log", "log1p", "expm1", "sin", "cos", "tan", "tanh", "sigmoid", "erf", "erfc",
    "lgamma", "digamma", "erfinv", "sqrt", "rsqrt", "atan", "asinh", "log2", "logit", "abs",
)  # fmt: skip
ACTIVATIONS = ("gelu", "silu", "softplus", "selu", "elu", "mish", "hardswish", "logsigmoid")


def of_maps():
    """Yield elementwise functions and reductions."""
    for shape in ((64, 1024), (1000, 1000)):
        size = "x".join(map(str, shape))
        x = RANDOM.uniform(0.05, 0.95, shape).astype("f")
        for name in MAPS:
            yield f"{name} {size}", named(name), [x], name in ("exp", "tanh", "lgamma", "erf")
            yield f"{name} float64 {size}", named(name), [x.astype("d")], False
        y = drawn(*shape)
        for name in ACTIVATIONS:
            yield f"{name} {size}", net(name), [y], True
        yield f"pow {size}", lambda library, x: x**1.7, [x], True
        for name in ("sum", "mean", "prod", "amax", "var", "logsumexp"):
            yield f"{name} {size}", named(name, -1), [y], True
            yield f"{name} 0 {size}", named(name, 0), [y], False
        yield f"sum of one {size}", named("sum", 1), [y[:, None]], False
        yield f"softmax {size}", named("softmax", -1), [y], True
        yield f"norm {size}", named("linalg.norm"), [y], True
        yield f"cdist {size}", named("cdist"), [y[:64, :64], y[-64:, :64]], True
        yield f"flip {size}", named("flip", (0, 1)), [y], True
        yield f"roll {size}", named("roll", 3, 1), [y], True
        yield f"tril {size}", named("tril"), [y], True
        places = RANDOM.integers(0, shape[1], shape)

        def read_at(library, y, places):
            return y.gather(1, places)

        def add_at(library, y, places):
            return y.scatter_add(1, places, y)

        yield f"gather {size}", read_at, [y, places], True
        yield f"scatter_add {size}", add_at, [y, places], False


def calls():
    """Yield all: name, function, arrays, and whether gradients are measured."""
    yield from of_matrices()
    yield from of_order()
    yield from of_images()
    yield from of_maps()
