"""Errors of the floating functions over the whole range, in units in the last place (ULP).

Every function of `FUNCTIONS` is computed on the device, in float32 and float64, at points of all
magnitudes and signs, denormals included, more of them beside zeros, poles and branch points; the
exact values come from mpmath. An error is |found - exact| / (distance of the floats at the exact
value); NaN or infinity where the other has a number counts as infinitely wrong. In float32 there
are, besides, those of `--dense` points that lie farthest from the result in float64.

    python bench/accuracy.py                        # a table of all of them
    python bench/accuracy.py exp erfc --points 4000 # some, at more points
    python bench/accuracy.py --markdown             # the table of docs/dtypes.md
    python bench/accuracy.py --sums                 # sums, scans and products beside PyTorch
"""

import argparse
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import mpmath as mp
import numpy as np

import picograd
from picograd import Tensor

special = picograd.special
functional = picograd.nn.functional
Exact = Callable[..., Any]
BITS = {"float32": (24, -149, 128), "float64": (53, -1074, 1024)}  # precision, lowest, highest
DIGITS = 60  # of mpmath; where a formula cancels, the function raises it itself
BARS = {"elementary": 1.5, "special": 4.0}
SUSPECTS = 16  # of the dense points, how many are computed exactly


@dataclass(frozen=True)
class Function:
    """One row: how picograd computes it, what it is, and beside which points to look closely."""

    name: str
    kind: str
    compute: Callable[..., Tensor]
    exact: Exact
    near: tuple[float, ...] = ()
    arity: int = 1
    span: tuple[float, float] = (-np.inf, np.inf)  # where it is measured
    is_absolute: bool = False  # the unit is the argument's, as where x (1 + erf(x)) / 2 cancels


def real(value: Any) -> Any:
    """Take a real value; a complex one is outside of the domain."""
    if isinstance(value, mp.mpc):
        return value.real if value.imag == 0 else mp.nan
    return value


def method(name: str) -> Callable[..., Tensor]:
    """Name a method of Tensor."""
    return lambda *args: getattr(args[0], name)(*args[1:])


def cdf(x: Any) -> Any:
    """The probability that a standard normal number is less than x."""
    return mp.erfc(-x / mp.sqrt(2)) / 2


def log1pexp(x: Any) -> Any:
    """log(1 + exp(x))."""
    return mp.log1p(mp.exp(x))


def log_cdf(x: Any) -> Any:
    """log of `cdf`."""
    return mp.log1p(-cdf(-x)) if x > 0 else mp.log(cdf(x))


def inverse_cdf(p: Any) -> Any:
    """Inverse of `cdf` by Newton's method on its logarithm, started from the asymptotic size."""
    if p == 0 or p == 1:
        return -mp.inf if p == 0 else mp.inf
    if not 0 < p < 1:
        return mp.nan
    if p > 0.5:
        return -inverse_cdf(1 - p)
    x, target = -mp.sqrt(-2 * mp.log(2 * p)), mp.log(p)
    for _ in range(12):
        step = (mp.log(cdf(x)) - target) * cdf(x) * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2)
        x -= step
        if abs(step) <= abs(x) * mp.mpf(2) ** -90:
            break
    return x


def power(x: Any, y: Any) -> Any:
    """x to the y: NaN for negative x unless y is whole."""
    if x < 0 and y != mp.floor(y):
        return mp.nan
    if x > 0 and abs(y * mp.log(x)) > 1e4:
        return mp.inf if y * mp.log(x) > 0 else mp.mpf(0)
    if x < 0:
        return power(-x, y) * (-1 if y % 2 else 1)
    return mp.power(x, y)


def xlogy(x: Any, y: Any) -> Any:
    """x log(y), 0 at x = 0."""
    return mp.mpf(0) if x == 0 else x * mp.log(y)


def xlog1py(x: Any, y: Any) -> Any:
    """x log(1 + y), 0 at x = 0."""
    return mp.mpf(0) if x == 0 else x * mp.log1p(y)


def elementary() -> list[Function]:
    """List the elementary functions of one operand."""

    def row(name: str, exact: Exact, *near: float) -> Function:
        return Function(name, "elementary", method(name), exact, near)

    return [
        row("exp", mp.exp, 88.7, -87.3, -103.9, 709.7, -708.4, -745.1),
        row("exp2", lambda x: mp.mpf(2) ** x, 128, -126, -149, 1024, -1022, -1074),
        row("expm1", mp.expm1, 0.0, 88.7, 709.7, 0.7),
        row("log", mp.log, 1.0),
        row("log2", lambda x: mp.log(x) / mp.log(2), 1.0),
        row("log10", lambda x: mp.log(x) / mp.log(10), 1.0, 10.0),
        row("log1p", mp.log1p, 0.0, -1.0),
        row("sqrt", mp.sqrt),
        row("rsqrt", lambda x: 1 / mp.sqrt(x)),
        row("reciprocal", lambda x: 1 / x),
        row("sin", mp.sin, np.pi, 2 * np.pi, 22.0, 355.0),
        row("cos", mp.cos, np.pi / 2, 3 * np.pi / 2, 11.0),
        row("tan", mp.tan, np.pi / 2, np.pi, 11.0),
        row("asin", mp.asin, 1.0, 0.5),
        row("acos", mp.acos, 1.0, 0.5),
        row("atan", mp.atan, 1.0, 0.41, 2.41),
        row("sinh", mp.sinh, 0.0, 89.0, 710.0, 1.0),
        row("cosh", mp.cosh, 0.0, 89.0, 710.0),
        row("tanh", mp.tanh, 0.0, 0.625, 1.0),
        row("asinh", mp.asinh, 0.0, 1.0),
        row("acosh", mp.acosh, 1.0, 2.0),
        row("atanh", mp.atanh, 1.0, 0.5),
        row("sigmoid", lambda x: 1 / (1 + mp.exp(-x)), -88.0, -103.0, -709.0, -745.0),
    ]


def elementary_pairs() -> list[Function]:
    """List the elementary functions of two operands."""

    def row(name: str, exact: Exact, *near: float) -> Function:
        return Function(name, "elementary", method(name), exact, near, 2)

    return [
        row("div", lambda x, y: x / y),
        row("pow", power, 1.0, 2.0),
        row("atan2", lambda y, x: mp.atan2(y, x), 1.0),
        row("hypot", lambda x, y: mp.sqrt(x * x + y * y), 1.0),
        row("fmod", lambda x, y: mp.fmod(abs(x), abs(y)) * mp.sign(x) if y else mp.nan, 1.0),
        row("logaddexp", lambda x, y: max(x, y) + log1pexp(-abs(x - y)), 0.0, 1.0),
    ]


def special_rows() -> list[Function]:
    """List the special functions."""

    def row(name: str, compute: Callable[..., Tensor], exact: Exact, *near: float) -> Function:
        return Function(name, "special", compute, exact, near)

    return [
        row("erf", method("erf"), mp.erf, 0.0, 1.0, 4.0),
        row("erfc", method("erfc"), mp.erfc, 0.5, 1.0, 9.2, 26.5),
        row("erfcx", special.erfcx, erfcx, 0.0, -9.0, -26.0),
        row("erfinv", method("erfinv"), lambda x: inverse_erf(x), 0.0, 1.0, 0.5),
        above(0.0, row("lgamma", method("lgamma"), lgamma, 1.0, 2.0, 0.0)),
        above(0.0, row("digamma", method("digamma"), digamma, 0.0, 1.4616321449683623)),
        above(0.0, row("polygamma(1)", lambda x: special.polygamma(1, x), trigamma, 0.0, 1.0)),
        above(0.0, row("polygamma(3)", lambda x: special.polygamma(3, x), fourth_gamma, 0.0, 1.0)),
        row("i0", special.i0, lambda x: bessel(0, x), 8.0, 90.0),
        row("i0e", special.i0e, lambda x: scaled_bessel(0, x), 8.0),
        row("i1", special.i1, lambda x: bessel(1, x), 0.0, 8.0, 90.0),
        row("i1e", special.i1e, lambda x: scaled_bessel(1, x), 0.0, 8.0),
        row("ndtr", special.ndtr, cdf, 0.0, -13.0, -37.0),
        row("log_ndtr", special.log_ndtr, log_cdf, 0.0, -1.0, 5.0),
        row("ndtri", special.ndtri, inverse_cdf, 0.0, 0.5, 1.0),
        row("entr", special.entr, entr, 0.0, 1.0),
        row("sinc", method("sinc"), mp.sincpi, 0.0, 1.0, 2.0, 0.5),
        row("logit", method("logit"), lambda x: mp.log(x) - mp.log1p(-x), 0.5, 1.0, 0.0),
        row("softplus", lambda x: functional.softplus(x, threshold=800), log1pexp, 0.0, -100.0),
        row("logsigmoid", method("logsigmoid"), lambda x: -log1pexp(-x), 0.0, 100.0),
        row("silu", method("silu"), lambda x: x / (1 + mp.exp(-x)), -88.0, -745.0),
        replace(row("gelu", method("gelu"), lambda x: x * cdf(x), 0.0), is_absolute=True),
        row("mish", method("mish"), lambda x: x * mp.tanh(log1pexp(x)), 0.0, -88.0),
        row("elu", method("elu"), lambda x: x if x > 0 else mp.expm1(x), 0.0),
        Function("xlogy", "special", method("xlogy"), xlogy, (0.0, 1.0), 2),
        Function("xlog1py", "special", special.xlog1py, xlog1py, (0.0,), 2),
    ]


def above(low: float, row: Function) -> Function:
    """Measure a function from `low` on."""
    return replace(row, span=(low, np.inf))


def erfcx(x: Any) -> Any:
    """exp(x^2) erfc(x); an asymptotic series where erfc leaves mpmath's patience."""
    if abs(x) > 1e4:
        if x < 0:
            return mp.inf
        square = 2 * x * x
        return (1 - 1 / square + 3 / square**2 - 15 / square**3) / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x)


def inverse_erf(x: Any) -> Any:
    """Inverse of erf; linear where it is."""
    if abs(x) > 1:
        return mp.nan
    if abs(x) == 1:
        return mp.inf * x
    if abs(x) < 1e-12:
        return x * mp.sqrt(mp.pi) / 2 * (1 + mp.pi * x * x / 12)
    if abs(x) < 0.9:
        return mp.erfinv(x)
    return -mp.sign(x) * inverse_cdf((1 - abs(x)) / 2) / mp.sqrt(2)


def lgamma(x: Any) -> Any:
    """log|gamma(x)|."""
    if x <= 0 and x == mp.floor(x):
        return mp.inf
    return mp.re(mp.loggamma(x))


def digamma(x: Any) -> Any:
    """The derivative of `lgamma`."""
    if x <= 0 and x == mp.floor(x):
        return mp.nan if x else -mp.inf
    return mp.digamma(x)


def psi(order: int, x: Any) -> Any:
    """Derivatives of `digamma` for x > 0: Hurwitz's zeta function."""
    if x > 1e4:  # the first terms of the asymptotic series
        n, sign = order, -1 if order % 2 == 0 else 1
        series = mp.fac(n - 1) / x**n + mp.fac(n) / (2 * x ** (n + 1))
        series += mp.fac(n + 1) / (12 * x ** (n + 2)) - mp.fac(n + 3) / (720 * x ** (n + 4))
        return sign * series
    return mp.inf if x == 0 else mp.psi(order, x)


def trigamma(x: Any) -> Any:
    """The second derivative of `lgamma`."""
    return psi(1, x)


def fourth_gamma(x: Any) -> Any:
    """The fourth derivative of `lgamma`."""
    return psi(3, x)


def scaled_bessel(order: int, x: Any) -> Any:
    """exp(-|x|) I(order, x)."""
    size = abs(x)
    if size > 1e4:
        square = mp.mpf(4 * order * order)
        eighth = 1 / (8 * size)
        series = 1 - (square - 1) * eighth + (square - 1) * (square - 9) / 2 * eighth**2
        series -= (square - 1) * (square - 9) * (square - 25) / 6 * eighth**3
        series += (square - 1) * (square - 9) * (square - 25) * (square - 49) / 24 * eighth**4
        value = series / mp.sqrt(2 * mp.pi * size)
    else:
        value = mp.exp(-size) * mp.besseli(order, size)
    return -value if order == 1 and x < 0 else value


def bessel(order: int, x: Any) -> Any:
    """I(order, x)."""
    if abs(x) > 1e4:
        return mp.inf if x > 0 or order == 0 else -mp.inf
    return mp.besseli(order, x)


def entr(x: Any) -> Any:
    """-x log(x)."""
    return -mp.inf if x < 0 else -xlogy(x, x)


FUNCTIONS = (*elementary(), *elementary_pairs(), *special_rows())


def points(dtype: str, near: tuple[float, ...], count: int, seed: int = 0) -> Any:
    """Choose points of every magnitude: random bits, small numbers, and close to `near`."""
    generator = np.random.default_rng(seed)
    word = {"float32": np.uint32, "float64": np.uint64}[dtype]
    limit = np.iinfo(word).max
    bits = generator.integers(0, limit, count, word, endpoint=True).view(dtype)
    low = BITS[dtype][1]
    powers = np.ldexp(generator.uniform(0.5, 1, count // 4), generator.integers(low, 0, count // 4))
    medium = np.exp(generator.uniform(-8, 8, count)) * generator.choice((-1, 1), count)
    flat = generator.uniform(-1, 1, count // 2)
    whole = np.concatenate([np.arange(-40, 41), np.arange(-20, 21) + 0.5])
    close = [
        c + generator.choice((-1, 1), count // 4) * 2.0 ** generator.uniform(-30, 0, count // 4)
        for c in near
    ]
    tiny = np.ldexp([1.0, 1.0, 3.0, 1.0], [low, low + 1, low, low + BITS[dtype][0] - 1])
    with np.errstate(all="ignore"):
        found = np.concatenate([powers, medium, flat, whole, tiny, -tiny, *close]).astype(dtype)
        found = np.concatenate([bits, found])
    return found[np.isfinite(found)]


def inputs_of(function: Function, dtype: str, count: int, seed: int = 0) -> list[Any]:
    """Choose the points of every operand."""
    size = count if function.arity == 1 else 2 * count
    found = points(dtype, function.near, size, seed)
    low, high = function.span
    found = found[(low <= found) & (found <= high)]
    if function.arity == 1:
        return [found]
    return [found, np.random.default_rng(seed + 1).permutation(found)]


def measured(function: Function, dtype: str, inputs: list[Any], found: Any) -> tuple[float, Any]:
    """Find the largest error in ULP and where it is."""
    worst, where = 0.0, None
    for at, (*arguments, value) in enumerate(zip(*inputs, found, strict=True)):
        error = error_of(function, dtype, [mp.mpf(float(a)) for a in arguments], float(value))
        if error > worst:
            worst, where = error, tuple(float(each[at]) for each in inputs)
    return worst, where


def error_of(function: Function, dtype: str, arguments: list[Any], value: float) -> float:
    """Compute one error in ULP."""
    try:
        exact = real(function.exact(*arguments))
    except (ZeroDivisionError, ValueError):
        return 0.0  # a pole: its value is a matter of convention, and tested beside PyTorch
    except (OverflowError, mp.libmp.NoConvergence):
        return 0.0
    digits, low, high = BITS[dtype]
    if mp.isnan(exact) or value != value:
        return 0.0 if mp.isnan(exact) and value != value else np.inf
    limit = mp.ldexp(1, high)
    exact = max(-limit, min(limit, exact))  # infinity is the number after the largest
    got = max(-limit, min(limit, mp.mpf(value)))
    exponent = mp.frexp(arguments[0] if function.is_absolute else exact)[1] if exact else low
    unit = mp.ldexp(1, max(min(exponent, high) - digits, low))
    return float(abs(got - exact) / unit)


def suspects(function: Function, dense: int, seed: int) -> list[Any]:
    """Choose float32 points whose results are farthest from those of float64."""
    inputs = inputs_of(function, "float32", dense // 4, seed + 2)
    narrow = function.compute(*(Tensor(each) for each in inputs)).numpy().astype(np.float64)
    wide = function.compute(*(Tensor(each.astype(np.float64)) for each in inputs)).numpy()
    digits, low, high = BITS["float32"]
    limit = 2.0**high
    with np.errstate(all="ignore"):
        exact = np.clip(wide, -limit, limit)
        size = inputs[0] if function.is_absolute else exact
        unit = 2.0 ** np.clip(np.frexp(size)[1] - digits, low, high - digits)
        error = np.abs(np.clip(narrow, -limit, limit) - exact) / unit
    error[np.isnan(narrow) != np.isnan(wide)] = np.inf
    worst = np.argsort(np.nan_to_num(error, nan=0.0, posinf=1e300))[-SUSPECTS:]
    return [each[worst] for each in inputs]


def measure(
    function: Function, dtype: str, count: int, seed: int = 0, dense: int = 0
) -> tuple[float, Any]:
    """Measure one function in one dtype."""
    inputs = inputs_of(function, dtype, count, seed)
    if dense and dtype == "float32":
        more = suspects(function, dense, seed)
        inputs = [np.concatenate(pair) for pair in zip(inputs, more, strict=True)]
    found = function.compute(*(Tensor(each) for each in inputs)).numpy()
    with mp.workdps(DIGITS):
        return measured(function, dtype, inputs, found)


def print_functions(options: argparse.Namespace) -> None:
    """Print the errors of functions, a line each, and once more those above their bars."""
    chosen = [f for f in FUNCTIONS if not options.names or f.name in options.names]
    chosen = [f for f in chosen if options.kind in f.kind]
    if options.markdown:
        print("| function | kind | float32 | float64 |\n|---|---|---|---|")
    above_bar = []
    for function in chosen:
        errors = [
            measure(function, dtype, options.points, options.seed, options.dense) for dtype in BITS
        ]
        text = "  ".join(f"{worst:12.5g} at {where!s:50}" for worst, where in errors)
        is_above = any(worst > BARS[function.kind] for worst, _ in errors)
        line = f"{'!' if is_above else ' '} {function.name:13} {text}"
        if is_above:
            above_bar.append(line)
        if options.markdown:
            cells = " | ".join(f"{worst:.2f}" for worst, _ in errors)
            line = f"| `{function.name}` | {function.kind} | {cells} |"
        print(line, flush=True)
    if not options.markdown:
        print(f"{len(above_bar)} of {len(chosen)} functions above their bar", *above_bar, sep="\n")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="functions or sums; all of them if none is named")
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--dense", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--kind", default="")
    parser.add_argument("--sums", action="store_true")
    options = parser.parse_args()
    if options.sums:
        sums = importlib.import_module("accuracy_sums")  # it needs PyTorch, the functions do not
        sums.print_sums(options.names, options.markdown)
    else:
        print_functions(options)


if __name__ == "__main__":
    sys.exit(main())
