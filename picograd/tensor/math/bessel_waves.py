"""Bessel functions of the first and second kind, orders 0 and 1.

Up to 8 they are polynomials of x^2, beside a logarithm; further out sqrt(2 / (pi x)) times a wave
of an amplitude and a phase that change slowly. Gradients follow J0' = -J1, J1' = J0 - J1 / x.
Coefficients were fitted for this project: interpolation at Chebyshev nodes in 50 digits (mpmath).
Definitions: NIST Digital Library of Mathematical Functions, 10.2, 10.8 and 10.17.
"""

import math

from picograd.graph.node import Node
from picograd.tensor.core.function import within
from picograd.tensor.math import bessel
from picograd.tensor.math.transcendental import above, known_slope, polynomial, smooth, with_sign

END = 8.0
# for |x| <= 8, in t = x^2 / 32 - 1: J0(x), J1(x) / x, Y0(x) - 2 / pi log(x) J0(x), and
# (Y1(x) - 2 / pi (log(x) J1(x) - 1 / x)) / x; then, for x >= 8 in t = 128 / x^2 - 1, what stands
# with the cosine of the phase, and x times what stands with its sine
J0 = (
    0.04582966485981377, 0.9303012472958572, -0.6484692830871837, -0.808088807669687,
    1.0383794611437211, -0.507468045847102, 0.14598884856759273, -0.028472718610869578,
    0.0040580789891404906, -0.0004435459224727048, 3.8473197857390745e-05, -2.717749145067604e-06,
    1.595610885913193e-07, -7.915407670571158e-09, 3.363471845926571e-10, -1.2384699122416937e-11,
    3.9908260822121824e-13, -1.1351303468419784e-14, 2.871427274017524e-16, -6.50288734157589e-18,
    1.3285586874980064e-19, -2.4525510096452857e-21,
)  # fmt: skip
J1 = (
    -0.05814382795599107, 0.08105866038589796, 0.15151665143806634, -0.2595948652859303,
    0.15858376432721938, -0.054745818212847276, 0.01245681439225544, -0.0020290394945702453,
    0.0002494945813908964, -2.4045748660869218e-05, 1.8684525372339779e-06, -1.1967081644348954e-07,
    6.431268732339067e-09, -2.9430378651845107e-10, 1.16106554272641e-11, -3.9908260834158736e-13,
    1.2060759936938166e-14, -3.230355046019129e-16, 7.722177789633632e-18, -1.6608399710772357e-19,
    3.219180628749231e-21,
)  # fmt: skip
Y0 = (
    -0.382250654459425, -0.8284358903604587, 1.6470964788745466, 0.14412632369302442,
    -1.0775477338215995, 0.6721770783431723, -0.2189574709617165, 0.046367047681347105,
    -0.007025741057269826, 0.0008061586060550243, -7.279541882784531e-05, 5.321318633837152e-06,
    -3.2185077885300443e-07, 1.6391065111298477e-08, -7.130516901235401e-10, 2.6818364861022484e-11,
    -8.81055867129253e-13, 2.5508678669514358e-14, -6.559180245564238e-16, 1.5081886309924308e-17,
    -3.1253621500545857e-19, 5.846433731152638e-21,
)  # fmt: skip
Y1 = (
    0.07075985882118005, -0.24337743079193114, 0.023367571720993584, 0.23507209206669755,
    -0.19639839859930425, 0.07854786922242545, -0.01962875683309943, 0.003422490739918046,
    -0.00044381734351146775, 4.46743301291431e-05, -3.6009998744473516e-06, 2.3804929913922338e-07,
    -1.3153322399203955e-08, 6.169742573016101e-10, -2.4887660128888838e-11, 8.728846995968639e-13,
    -2.6871299490566476e-14, 7.320630407550111e-16, -1.7777678745874505e-17, 3.8801194972378364e-19,
    -7.62432988774668e-21,
)  # fmt: skip
P0 = (
    0.9994572757882519, -0.000536367319212998, 6.13741608125692e-06, -2.052744819908975e-07,
    1.2803747958820875e-08, -1.212113319927827e-09, 1.5506348898107537e-10, -2.490341621088381e-11,
    4.674986189266031e-12, -1.0238327024264009e-12, 3.4522133160706755e-13, -9.956789357075715e-14,
)  # fmt: skip
Q0 = (
    -0.12444091103610802, 0.0005466519279474679, -1.1817110670086365e-05, 5.684971918787548e-07,
    -4.5349625953814164e-08, 5.146189381541954e-09, -7.580593880943547e-10, 1.3641381507528205e-10,
    -2.7923981952762326e-11, 6.607770877051606e-12, -2.4959955008932025e-12, 7.660588700004678e-13,
)  # fmt: skip
P1 = (
    1.0009070262780821, 0.0008988049416705508, -7.959694699656698e-06, 2.4536766267949663e-07,
    -1.4708498675907175e-08, 1.360300632416571e-09, -1.7137215568191013e-10, 2.722599260495964e-11,
    -5.072230977922283e-12, 1.104039648785332e-12, -3.6942891113569033e-13, 1.0611465423215105e-13,
)  # fmt: skip
Q1 = (
    0.3742149922195917, -0.0007697167057643086, 1.4569614819268144e-05, -6.633568600166279e-07,
    5.1360951418540506e-08, -5.7208462898679e-09, 8.320596653849234e-10, -1.4835480609458966e-10,
    3.017315972619892e-11, -7.101699032519032e-12, 2.6631204358691402e-12, -8.143505271269731e-13,
)  # fmt: skip
SMALL = {"J0": J0, "J1": J1, "Y0": Y0, "Y1": Y1}
LARGE = {0: (P0, Q0), 1: (P1, Q1)}


def near(x: Node, name: str) -> Node:
    """Evaluate a polynomial of x^2 for |x| <= 8."""
    inside = x.unary("abs").binary("minimum", END)
    return polynomial(SMALL[name], inside * inside * (2 / END**2) - 1)


def far(x: Node, order: int, is_second: bool) -> Node:
    """Compute J or Y for x >= 8 of the slow parts and the sine and cosine of x - pi / 4 - ...."""
    size = x.unary("abs").binary("maximum", END)
    step = size.unary("reciprocal")
    t = step * step * (2 * END**2) - 1
    even, odd = (polynomial(each, t) for each in LARGE[order])
    sine, cosine = size.unary("sin"), size.unary("cos")
    rising, falling = cosine + sine, sine - cosine  # sqrt(2) cos(x - pi / 4), sqrt(2) sin(...)
    if order == 1:
        rising, falling = falling, -rising
    first, second = (rising, -falling) if not is_second else (falling, rising)
    return (even * first + odd * step * second) * size.unary("rsqrt") * math.pi**-0.5


def first_kind(x: Node, order: int) -> Node:
    """Compute J(|x|), of order 0 or 1."""
    size = x.unary("abs")
    inside = near(x, f"J{order}")
    return above(size, END).where(far(x, order, False), size * inside if order else inside)


def second_kind(x: Node, order: int) -> Node:
    """Compute Y(x): minus infinity at 0, no number below."""
    inside = above(x, 0.0).where(x, x.const_like(1.0))
    wave = inside.unary("log") * first_kind(inside, order)
    if order == 0:
        value = near(inside, "Y0") + wave * (2 / math.pi)
    else:
        pole = inside.unary("reciprocal")
        value = inside * near(inside, "Y1") + (wave - pole) * (2 / math.pi)
    value = above(x, END).where(far(x, order, True), value)
    edge = x.binary("equal", 0.0).where(x.const_like(-math.inf), x.const_like(math.nan))
    return above(x, 0.0).where(value, edge)


def value(x: Node, order: int, is_second: bool) -> Node:
    """Compute J(x), of which J1 is odd, or Y(x)."""
    if is_second:
        return second_kind(x, order)
    return with_sign(first_kind(x, order), x) if order else first_kind(x, order)


def slope(x: Node, y: Node, order: int, is_second: bool) -> Node:
    """Compute J0' = -J1, or J1' = J0 - J1 / x, where J1 / x is 1/2 at 0; or those of Y."""
    other = known_slope(x, value, slope, order=1 - order, is_second=is_second)
    if order == 0:
        return -other
    return other - (y / x if is_second else bessel.ratio(x, y))


@within("special", "bessel_j0", is_recorded=True)
def j0(node: Node) -> Node:
    """Compute the Bessel function of the first kind J0.

    >>> picograd.special.bessel_j0(Tensor([0.0])).tolist()
    [1.0]
    """
    return smooth("bessel_j0", node, value, slope, True, order=0, is_second=False)


@within("special", "bessel_j1", is_recorded=True)
def j1(node: Node) -> Node:
    """Compute the Bessel function of the first kind J1.

    >>> picograd.special.bessel_j1(Tensor([0.0])).tolist()
    [0.0]
    """
    return smooth("bessel_j1", node, value, slope, True, order=1, is_second=False)


@within("special", "bessel_y0", is_recorded=True)
def y0(node: Node) -> Node:
    """Compute the Bessel function of the second kind Y0.

    >>> picograd.special.bessel_y0(Tensor([0.0])).tolist()
    [-inf]
    """
    return smooth("bessel_y0", node, value, slope, True, order=0, is_second=True)


@within("special", "bessel_y1", is_recorded=True)
def y1(node: Node) -> Node:
    """Compute the Bessel function of the second kind Y1.

    >>> picograd.special.bessel_y1(Tensor([0.0])).tolist()
    [-inf]
    """
    return smooth("bessel_y1", node, value, slope, True, order=1, is_second=True)
