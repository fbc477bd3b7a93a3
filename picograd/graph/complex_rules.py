"""Complex arithmetic in real arithmetic: the columns `of_complex` of elementwise rows.

A rule gets the complex inputs of an op, all of one dtype, and gives its value; it works on their
real and imaginary parts. Branch cuts are those of C99. Formulas avoid cancellation and needless
overflow: roots and inverse functions are W. Kahan's ("Branch cuts for complex elementary
functions", 1987), division scales by the larger part of the divisor (R. L. Smith, 1962).
"""

import math
from collections.abc import Callable
from typing import Any

Node = Any  # graph.node.Node, which imports this table
Rule = Callable[..., Node]


def each_part(op: str) -> Rule:
    """Make the rule of an op that works on each part by itself."""

    def rule(*inputs: Node) -> Node:
        real, imag = zip(*(x.parts() for x in inputs))
        return combined(op, *real).paired(combined(op, *imag))

    return rule


def combined(op: str, *inputs: Node) -> Node:
    """Apply an op to one or two real nodes."""
    first, *others = inputs
    return first.binary(op, *others) if others else first.unary(op)


def any_part(op: str, join: str) -> Rule:
    """Make the rule of a predicate that asks both parts."""

    def rule(*inputs: Node) -> Node:
        real, imag = zip(*(x.parts() for x in inputs))
        return combined(op, *real).binary(join, combined(op, *imag))

    return rule


def fixed(x: Node) -> Node:
    """Take a node as a number without a gradient."""
    return x.composite("detach")


def is_negative(x: Node) -> Node:
    """Tell which numbers have a minus sign, zeros among them."""
    is_less = x.binary("less", 0)
    is_zero_below = x.unary("reciprocal").binary("less", 0)
    return is_less.binary("logical_or", is_zero_below)


def of_real(op: str) -> Rule:
    """Make the function of a real number that an op is."""
    return lambda x: x.unary(op)


cos, sin, cosh, sinh = of_real("cos"), of_real("sin"), of_real("cosh"), of_real("sinh")
length, is_nan = of_real("abs"), of_real("isnan")


def is_nil(x: Node) -> Node:
    """Tell which numbers are 0."""
    return x.binary("equal", 0)


def together(x: Node, y: Node) -> Node:
    """Tell where both hold."""
    return x.binary("logical_and", y)


def either(x: Node, y: Node) -> Node:
    """Tell where one of two holds."""
    return x.binary("logical_or", y)


def is_infinite(x: Node) -> Node:
    """Tell which numbers are infinite."""
    return length(x).binary("equal", math.inf)


def signed(x: Node, size: float) -> Node:
    """Give a number the sign of another."""
    return is_negative(x).where(x.const_like(-size), size)


def turned(z: Node) -> Node:
    """Multiply by i."""
    real, imag = z.parts()
    return (-imag).paired(real)


def turned_back(z: Node) -> Node:
    """Multiply by -i."""
    real, imag = z.parts()
    return imag.paired(-real)


def shifted(z: Node, number: int) -> Node:
    """Add a real number; the imaginary part keeps its sign."""
    a, b = z.parts()
    return (a + number).paired(b)


def conjugate(z: Node) -> Node:
    """Turn the sign of the imaginary part."""
    real, imag = z.parts()
    return real.paired(-imag)


def product(z: Node, w: Node) -> Node:
    """(a + bi)(c + di)."""
    a, b = z.parts()
    c, d = w.parts()
    return (a * c - b * d).paired(a * d + b * c)


def scaled(z: Node, factor: Any) -> Node:
    """Multiply by a real number."""
    a, b = z.parts()
    return (a * factor).paired(b * factor)


def heading(x: Node) -> Node:
    """Give -1 or 1 for infinity, 0 for any other number."""
    return is_infinite(x).where(signed(x, 1.0), 0)


def quotient(z: Node, w: Node) -> Node:
    """Divide, scaled by the larger part of the divisor; a divisor 0 divides each part by 0.

    An infinite divisor is as far along the axes on which it is infinite, and nowhere else.
    """
    a, b = z.parts()
    c, d = w.parts()
    first, second = length(c), length(d)
    larger = fixed(first.binary("maximum", second))
    is_zero, is_far = is_nil(larger), larger.binary("equal", math.inf)
    scale = either(is_zero, is_far).where(1, larger)
    x, y = (is_far.where(fixed(heading(part)), part / scale) for part in (c, d))
    size = either(is_zero, is_far).where(larger, c * x + d * y)
    real = is_zero.where(a, a * x + b * y)
    imag = is_zero.where(b, b * x - a * y)
    return (real / size).paired(imag / size)


def reciprocal(z: Node) -> Node:
    """1 / z."""
    return quotient(z.const_like(1), z)


def modulus(z: Node) -> Node:
    """|z|, a real number; the gradient at 0 is 0, as in PyTorch."""
    a, b = z.parts()
    no_real, no_imag = is_nil(a), is_nil(b)
    is_zero = together(no_real, no_imag)
    return is_zero.where(0, is_zero.where(1, a).binary("hypot", b))


def angle(z: Node) -> Node:
    """The angle to the positive real axis, from -pi to pi."""
    a, b = z.parts()
    return b.binary("atan2", a)


def direction(z: Node) -> Node:
    """z / |z|; 0 at 0."""
    size = modulus(z)
    is_zero = is_nil(size)
    safe = is_zero.where(1, size)
    real, imag = (is_zero.where(0, part / safe) for part in z.parts())
    return real.paired(imag)


def spread(a: Node, size: Node, turn: Node, is_real: bool = False) -> Node:
    """Multiply what 0 or infinity `a` gives: 0 stays 0 beside NaN, an infinite real part is so."""
    found = size * turn
    is_exact = either(is_infinite(a), is_nil(a))
    is_zero = together(is_nil(size), is_exact)
    is_still = either(is_zero, is_nil(turn))
    is_lost = together(is_nan(found), is_still)
    found = is_lost.where(fixed(is_zero.where(size, turn)), found)
    if not is_real:
        return found
    is_far = together(is_infinite(a), is_infinite(size))
    is_beyond = together(is_far, is_nan(turn))
    return is_beyond.where(fixed(size), found)


def exponential(z: Node) -> Node:
    """e^a (cos b + i sin b)."""
    a, b = z.parts()
    size = a.unary("exp")
    real = spread(a, size, cos(b), True)
    return real.paired(spread(a, size, sin(b)))


def exponential_less_one(z: Node) -> Node:
    """e^z - 1, near 0 too."""
    a, b = z.parts()
    half = (b * 0.5).unary("sin")
    along = spread(a, a.unary("expm1"), cos(b), True)
    real = is_infinite(a).where(fixed(along), along - half * half * 2)
    real = a.binary("equal", -math.inf).where(-1, real)
    return real.paired(spread(a, a.unary("exp"), sin(b)))


def logarithm(z: Node) -> Node:
    """log |z| + i angle."""
    return modulus(z).unary("log").paired(angle(z))


def logarithm_of_next(z: Node) -> Node:
    """log(1 + z), near 0 too."""
    a, b = z.parts()
    is_small = modulus(z).binary("less", 0.5)
    x = is_small.where(a, 0)
    y = is_small.where(b, 0)
    near = (x * (x + 2) + y * y).unary("log1p") * 0.5
    size = is_small.where(1, a + 1).binary("hypot", b)
    real = is_small.where(near, size.unary("log"))
    return real.paired(b.binary("atan2", a + 1))


def root(z: Node) -> Node:
    """The square root of a real part that is not negative; its sign is that of the imaginary."""
    a, b = z.parts()
    size = modulus(z)
    is_zero = is_nil(size)
    inner = (length(a) + size) * 0.5
    larger = is_zero.where(1, inner).unary("sqrt")
    smaller = b / (larger + larger)
    is_left = a.binary("less", 0)
    below = is_negative(b).where(-larger, larger)
    real = is_left.where(length(smaller), larger)
    imag = is_left.where(below, smaller)
    real = is_zero.where(0, real)
    found = real.paired(is_zero.where(b, imag))
    is_far = is_infinite(b)
    near, across = found.parts()
    return is_far.where(math.inf, near).paired(is_far.where(fixed(b), across))


def power(z: Node, w: Node) -> Node:
    """e^(w log z); 0 to the power of 0 is 1, to one of a positive real part 0, else NaN."""
    base, exponent = modulus(z), modulus(w)
    is_zero = is_nil(base)
    safe = is_zero.where(z.const_like(1), z)
    is_one, real = is_nil(exponent), w.parts()[0]
    zero = real.const_like(0)
    rest = is_one.binary("logical_or", zero.binary("less", real)).where(zero, math.nan)
    found = exponential(product(w, logarithm(safe)))
    return is_zero.where(is_one.where(1.0, rest).paired(rest), found)


def sine(z: Node) -> Node:
    """sin a cosh b + i cos a sinh b."""
    a, b = z.parts()
    real = spread(b, cosh(b), sin(a))
    return real.paired(spread(b, sinh(b), cos(a), True))


def cosine(z: Node) -> Node:
    """cos a cosh b - i sin a sinh b."""
    a, b = z.parts()
    real = spread(b, cosh(b), cos(a), True)
    return real.paired(-spread(b, sinh(b), sin(a)))


def hyperbolic_tangent(z: Node) -> Node:
    """(t + i s sin b cos b) / (t^2 + s cos^2 b) with t = tanh a and s = 1 / cosh^2 a."""
    a, b = z.parts()
    t = a.unary("tanh")
    slope = cosh(a).unary("reciprocal")
    x, y = spread(a, slope, cos(b)), spread(a, slope, sin(b))
    size = t * t + x * x
    is_lost = is_nan(size)
    real = together(is_lost, is_nil(t)).where(fixed(t), t / size)
    is_still = together(is_lost, is_nil(y))
    return real.paired(is_still.where(fixed(y), x * y / size))


def beyond(z: Node, found: Node, real: Node, imag: Node) -> Node:
    """Choose other parts where a number is infinite."""
    a, b = z.parts()
    is_far = either(is_infinite(a), is_infinite(b))
    near, across = found.parts()
    return is_far.where(fixed(real), near).paired(is_far.where(fixed(imag), across))


def arc_sine(z: Node) -> Node:
    """Kahan's formula."""
    below, above = root(shifted(-z, 1)), root(shifted(z, 1))
    a, _ = z.parts()
    _, across = product(conjugate(below), above).parts()
    along, _ = product(below, above).parts()
    found = a.binary("atan2", along).paired(across.unary("asinh"))
    _, b = z.parts()
    far = a.binary("atan2", length(b))
    found = beyond(z, found, far, signed(b, math.inf))
    real, imag = found.parts()
    is_still = together(is_nan(b), is_nil(a))
    return is_still.where(fixed(a), real).paired(imag)


def arc_cosine(z: Node) -> Node:
    """Kahan's formula."""
    below, above = root(shifted(-z, 1)), root(shifted(z, 1))
    low, high = below.parts()[0], above.parts()[0]
    _, across = product(conjugate(above), below).parts()
    real = low.binary("atan2", high) * 2
    found = real.paired(across.unary("asinh"))
    a, b = z.parts()
    far = length(b).binary("atan2", a)
    real, imag = beyond(z, found, far, -signed(b, math.inf)).parts()
    is_still = together(is_nan(b), is_nil(a))
    return is_still.where(math.pi / 2, real).paired(imag)


def area_cosine(z: Node) -> Node:
    """The arc cosine turned round: its real part is not negative, its imaginary has z's sign."""
    real, imag = arc_cosine(z).parts()
    _, b = z.parts()
    return length(imag).paired(is_negative(b).where(-real, real))


def area_tangent(z: Node) -> Node:
    """log1p(4 a / ((1 - a)^2 + b^2)) / 4 + i atan2(2 b, (1 - a)(1 + a) - b^2) / 2."""
    a, b = z.parts()
    rest = 1 - a
    ratio = a * 4 / (rest * rest + b * b)
    real = ratio.unary("log1p") * 0.25
    width = rest * (a + 1) - b * b
    imag = (b * 2).binary("atan2", width)
    quarter = is_nan(b).where(fixed(b), signed(b, math.pi / 2))
    found = beyond(z, real.paired(imag * 0.5), signed(a, 0.0), quarter)
    real, imag = found.parts()
    is_still = together(is_nan(b), is_nil(a))
    return is_still.where(fixed(a), real).paired(imag)


def around(rule: Rule) -> Rule:
    """Make the rule of a trigonometric function of its hyperbolic one: f(z) = -i g(i z)."""
    return lambda z: turned_back(rule(turned(z)))


def logistic(z: Node) -> Node:
    """1 / (1 + e^-z)."""
    return reciprocal(shifted(exponential(-z), 1))


# Derivatives of analytic functions whose real arithmetic has corners that they have not: at a real
# part of 0 or at parts of one size. Each gets the value, and the inputs.

Slopes = Callable[..., tuple[Node, ...]]


def one_over(*factors: Node) -> Node:
    """1 / (the product of the factors)."""
    found = factors[0]
    for factor in factors[1:]:
        found = found * factor
    return found.unary("reciprocal")


def beside_one(z: Node, number: int = 1) -> tuple[Node, Node]:
    """Take the roots of 1 - z and 1 + z; with -1 of z - 1 and z + 1."""
    first = shifted(-z, 1) if number > 0 else shifted(z, -1)
    return first.unary("sqrt"), shifted(z, 1).unary("sqrt")


def sloped(rule: Rule, slopes: Slopes) -> Rule:
    """Make a rule that says its derivatives."""

    def analytic(*inputs: Node) -> Node:
        return rule(*inputs)

    vars(analytic)["slopes"] = slopes
    return analytic


def power_slopes(found: Node, z: Node, w: Node) -> tuple[Node, Node]:
    """w z^(w - 1), 0 where w is, and z^w log z, where z is not 0."""
    is_zero, no_power = z.binary("equal", 0), w.binary("equal", 0)
    grown = found * is_zero.where(1, z).unary("log")
    slope = w * z.binary("pow", shifted(no_power.where(1, w), -1))
    return no_power.where(0, slope), is_zero.where(0, grown)


OF_COMPLEX: dict[str, Rule] = {
    "neg": each_part("neg"),
    "exp": exponential,
    "log": sloped(logarithm, lambda f, z: (one_over(z),)),
    "sin": sine,
    "cos": cosine,
    "tanh": hyperbolic_tangent,
    "sqrt": sloped(root, lambda f, z: (one_over(f + f),)),
    "rsqrt": sloped(lambda z: reciprocal(root(z)), lambda f, z: (scaled(f * f * f, -0.5),)),
    "reciprocal": sloped(reciprocal, lambda f, z: (-f * f,)),
    "abs": modulus,
    "sign": direction,
    "sigmoid": logistic,
    "exp2": lambda z: exponential(scaled(z, math.log(2))),
    "expm1": exponential_less_one,
    "log2": sloped(
        lambda z: scaled(logarithm(z), 1 / math.log(2)),
        lambda f, z: (scaled(one_over(z), 1 / math.log(2)),),
    ),
    "log10": sloped(
        lambda z: scaled(logarithm(z), 1 / math.log(10)),
        lambda f, z: (scaled(one_over(z), 1 / math.log(10)),),
    ),
    "log1p": sloped(logarithm_of_next, lambda f, z: (one_over(shifted(z, 1)),)),
    "tan": around(hyperbolic_tangent),
    "asin": sloped(arc_sine, lambda f, z: (one_over(*beside_one(z)),)),
    "acos": sloped(arc_cosine, lambda f, z: (-one_over(*beside_one(z)),)),
    "atan": sloped(around(area_tangent), lambda f, z: (one_over(shifted(z * z, 1)),)),
    "sinh": lambda z: turned_back(sine(turned(z))),
    "cosh": lambda z: cosine(turned(z)),
    "asinh": sloped(
        lambda z: turned_back(arc_sine(turned(z))), lambda f, z: (one_over(*beside_one(turned(z))),)
    ),
    "acosh": sloped(area_cosine, lambda f, z: (one_over(*beside_one(z, -1)),)),
    "atanh": sloped(area_tangent, lambda f, z: (one_over(shifted(-z, 1), shifted(z, 1)),)),
    "isnan": any_part("isnan", "logical_or"),
    "add": each_part("add"),
    "sub": each_part("sub"),
    "mul": product,
    "div": quotient,
    "pow": sloped(power, power_slopes),
    "equal": any_part("equal", "logical_and"),
    "not_equal": any_part("not_equal", "logical_or"),
}
