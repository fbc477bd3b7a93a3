"""Modified Bessel functions of the first kind, orders 0 and 1, plain and scaled by exp(-|x|).

Values are computed in float64 from polynomials; gradients follow I0' = I1 and I1' = I0 - I1 / x.
Coefficients were fitted for this project: interpolation at Chebyshev nodes in 40 digits (mpmath).
Definitions: NIST Digital Library of Mathematical Functions, 10.25 and 10.29.
"""

from picograd.graph.node import Node
from picograd.tensor.special import above, known_slope, polynomial, smooth, with_sign

# exp(-x) I0(x) and exp(-x) I1(x) / x for 0 <= x <= 8, in t = x / 4 - 1; relative error 1e-15
SMALL0 = (
    0.2070019212239867,
    -0.11300432688620536,
    0.09451562853995125,
    -0.08904344136077733,
    0.08734341617550884,
    -0.08496338091542556,
    0.07927522590752974,
    -0.06954119563154397,
    0.05677703201501785,
    -0.04298594929673067,
    0.03017791206221918,
    -0.019682655784004566,
    0.011960077703464203,
    -0.006792394821044967,
    0.0036171271654272855,
    -0.0018119029764120445,
    0.0008563135177565376,
    -0.0003828654139905961,
    0.0001624084559061418,
    -6.55678677969644e-05,
    2.5198651465609148e-05,
    -9.183910794736519e-06,
    3.232396382443255e-06,
    -1.1419495259048662e-06,
    3.659216730162776e-07,
    -8.594601526025913e-08,
    2.679771004975793e-08,
    -1.631130691668671e-08,
    4.394426308340083e-09,
)
SMALL1 = (
    0.044687709875608835,
    -0.061124338029666284,
    0.06805759990951162,
    -0.0684826062058269,
    0.06376740371340611,
    -0.05528003922699226,
    0.044674572621282986,
    -0.03367135552107505,
    0.023686016957350876,
    -0.015571309244077562,
    0.009583962153764291,
    -0.005534567846988655,
    0.0030057624040464932,
    -0.001538874564273584,
    0.0007445123998749739,
    -0.0003411760229204836,
    0.00014842110758080817,
    -6.142361409267038e-05,
    2.4233987591498262e-05,
    -9.136529630106953e-06,
    3.29361514435675e-06,
    -1.1327198008251626e-06,
    3.7617292810159424e-07,
    -1.2424046295570417e-07,
    3.7901404602356164e-08,
    -8.986801013193351e-09,
    2.644330576999187e-09,
    -1.4165980180332847e-09,
    3.6696752013169966e-10,
)
# exp(-x) sqrt(x) I0(x) and I1(x) for x >= 8, in t = 16 / x - 1; relative error 2e-16
LARGE0 = (
    0.4021765094450081,
    0.0033605519836677235,
    0.00013621607439187193,
    1.1143033802583682e-05,
    1.4838475863096976e-06,
    2.9735956581528157e-07,
    8.872154618944625e-08,
    3.932926571091252e-08,
    2.155681110989874e-08,
    7.532386417555123e-09,
    -6.805980075129678e-09,
    -1.331979859201994e-08,
    -5.162517880939013e-09,
    7.323310735122893e-09,
    6.789790403895736e-09,
    -3.11851456121224e-09,
    -4.8482509221176966e-09,
    1.0924527246468664e-09,
    2.3981927228949238e-09,
    -2.748111637276033e-10,
    -7.473844621887592e-10,
    3.525321019700796e-11,
    1.0881994785468934e-10,
)
LARGE1 = (
    0.38939845902587233,
    -0.009749577193235609,
    -0.000219235763833829,
    -1.503854721127423e-05,
    -1.8349101539664522e-06,
    -3.483853071371078e-07,
    -1.0001220638799958e-07,
    -4.31323156237458e-08,
    -2.3382691353601083e-08,
    -8.407326839577817e-09,
    6.795073490187386e-09,
    1.3952625102162603e-08,
    5.722677527454156e-09,
    -7.432535335623792e-09,
    -7.222524178953976e-09,
    3.0717395650769477e-09,
    5.094016301574338e-09,
    -1.0476127785270019e-09,
    -2.5062162405593894e-09,
    2.582169443152386e-10,
    7.79067217908059e-10,
    -3.2677656089803323e-11,
    -1.13288885034257e-10,
)


def scaled(x: Node, small: tuple[float, ...], large: tuple[float, ...], order: int) -> Node:
    """Compute exp(-|x|) I(|x|) from the two fits."""
    size = x.unary("abs")
    is_far = above(size, 8.0)
    near = is_far.where(x.const_like(8.0), size)
    value = polynomial(small, near * 0.25 - 1)
    value = value * near if order else value
    far = is_far.where(size, 8.0)
    tail = polynomial(large, far.unary("reciprocal") * 16 - 1) * far.unary("rsqrt")
    return is_far.where(tail, value)


def i0e_value(x: Node) -> Node:
    """Compute exp(-|x|) I0(x)."""
    return scaled(x, SMALL0, LARGE0, 0)


def i1e_value(x: Node) -> Node:
    """Compute exp(-|x|) I1(x), which is odd."""
    return with_sign(scaled(x, SMALL1, LARGE1, 1), x)


def grown(x: Node, value: Node) -> Node:
    """Multiply by exp(|x|), in two steps: the product may be finite where exp(|x|) is not."""
    root = (x.unary("abs") * 0.5).unary("exp")
    return value * root * root


def i0_value(x: Node) -> Node:
    """Compute I0(x)."""
    return grown(x, i0e_value(x))


def i1_value(x: Node) -> Node:
    """Compute I1(x)."""
    return grown(x, i1e_value(x))


def ratio(x: Node, y: Node) -> Node:
    """Compute y / x, which is 1/2 at 0 for I1."""
    is_zero = x.binary("equal", 0.0)
    return is_zero.where(x.const_like(0.5), y / is_zero.where(x.const_like(1.0), x))


def i1_slope(x: Node, y: Node) -> Node:
    """Compute I1' = I0 - I1 / x."""
    return known_slope(x, i0_value, i0_slope) - ratio(x, y)


def i0_slope(x: Node, y: Node) -> Node:
    """Compute I0' = I1."""
    return known_slope(x, i1_value, i1_slope)


def i0e_slope(x: Node, y: Node) -> Node:
    """Compute the derivative of exp(-|x|) I0(x)."""
    return known_slope(x, i1e_value, i1e_slope) - x.unary("sign") * y


def i1e_slope(x: Node, y: Node) -> Node:
    """Compute the derivative of exp(-|x|) I1(x)."""
    return known_slope(x, i0e_value, i0e_slope) - x.unary("sign") * y - ratio(x, y)


def i0(node: Node) -> Node:
    """Compute the modified Bessel function I0."""
    return smooth("i0", node, i0_value, i0_slope, True)


def i0e(node: Node) -> Node:
    """Compute exp(-|x|) I0(x)."""
    return smooth("i0e", node, i0e_value, i0e_slope, True)


def i1(node: Node) -> Node:
    """Compute the modified Bessel function I1."""
    return smooth("i1", node, i1_value, i1_slope, True)


def i1e(node: Node) -> Node:
    """Compute exp(-|x|) I1(x)."""
    return smooth("i1e", node, i1e_value, i1e_slope, True)
