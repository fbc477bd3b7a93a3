"""Airy's function Ai, and its derivative, which its gradient is; Ai'' = x Ai.

Near 0 it is a polynomial; far right exp(-z), far left a wave of phase z, for z = 2/3 |x|^(3/2).
Coefficients were fitted for this project: interpolation at Chebyshev nodes in 50 digits (mpmath).
Definitions: NIST Digital Library of Mathematical Functions, 9.2, 9.5 and 9.7.
"""

import math

from picograd.graph.node import Node
from picograd.tensor.core.function import within
from picograd.tensor.math.transcendental import above, known_slope, polynomial, smooth

END = 3.5
DEPTH = 2 / 3 * END**1.5
# Ai and Ai' for |x| <= 3.5 in t = x / 3.5; exp(z) 2 sqrt(pi) times x^(1/4) Ai and -x^(-1/4) Ai' for
# x >= 3.5, in t = 2 DEPTH / z - 1; for x <= -3.5, in t = 2 (DEPTH / z)^2 - 1, what stands with the
# sine of z + pi / 4 in sqrt(pi) |x|^(1/4) Ai, z times what stands with its cosine, and so for Ai'
AI = (
    0.3550280538878172, -0.9058679132748237, 9.273729010710144e-17, 2.5369713017400275,
    -3.2365905651381817, -6.736158107905152e-15, 3.6257548187371302, -3.304019535244962,
    -6.884507314833934e-12, 2.159086636846834, -1.573998195178152, 6.186356522912485e-11,
    0.7012942383670226, -0.43259726089039174, 3.88909672865931e-09, 0.1431809098762111,
    -0.07728171401572773, -1.0897875283458265e-08, 0.020061752203448874, -0.009688426624347867,
    -1.0987389294438435e-07, 0.0020478963635461593, -0.0008989295062723574, 1.1209111012120001e-07,
    0.00015882480215246133, -6.438382103209657e-05, 2.3817203435746298e-07, 9.832218796282145e-06,
    -3.81427967970151e-06, -7.118795720778015e-08, 5.659501314874619e-07, -1.4002737754898625e-07,
    -3.0186764664210536e-08, 1.3734096437293982e-08,
)  # fmt: skip
AI_SLOPE = (
    -0.2588194037928068, 5.793958652597995e-19, 2.1745468300628814, -3.6989606458721975,
    -6.884529654415651e-14, 6.215579689263099, -6.608039070487822, -1.2238617930843032e-12,
    5.551937066138493, -4.497137700725919, 6.324751414389252e-10, 2.4044373907415486,
    -1.606789829378914, 2.391707257566977e-09, 0.6136324871579912, -0.35328777600466077,
    -1.1150200492674528e-07, 0.10317453083937649, -0.052594162757728935, -1.5867243075181737e-07,
    0.012287084535908162, -0.005651250793262827, 1.1486461422196034e-06, 0.0010901860562922748,
    -0.0004603026244759052, 7.128968544254803e-07, 7.614717908836289e-05, -2.979740267323144e-05,
    -7.320991558572036e-07, 4.5249433087197566e-06, -1.199678241469733e-06, -1.8684398399478873e-07,
    1.242572390366497e-07, -1.1072787177849666e-08,
)  # fmt: skip
AI_RIGHT = (
    0.9924840060751423, -0.0071200388337614995, 0.0003592788369523735, -3.2007168573881505e-05,
    3.9328496905321445e-06, -6.00337379953002e-07, 1.0754348737435253e-07, -2.1823188090230344e-08,
    4.898243650173637e-09, -1.1955217241333465e-09, 3.1335435470747427e-10, -8.732216579576763e-11,
    2.555383702859253e-11, -7.86660201801462e-12, 2.6976917199016595e-12, -9.128977794293214e-13,
    1.7404248645064723e-13, -5.594945311074547e-14, 8.693824939300721e-14, -3.418228678443698e-14,
)  # fmt: skip
AI_SLOPE_RIGHT = (
    1.0106150807547714, 0.010141884613699666, -0.0004317081062996928, 3.6349629069202356e-05,
    -4.3414951602231975e-06, 6.514422606708647e-07, -1.1535923134414186e-07, 2.3215189697522818e-08,
    -5.1779451643972605e-09, 1.2575488597354192e-09, -3.2829557173700707e-10, 9.118399971072497e-11,
    -2.661167421654537e-11, 8.172922849667079e-12, -2.7952499189605817e-12, 9.441629096350769e-13,
    -1.8059243156447856e-13, 5.801375340908723e-14, -8.942461754398646e-14, 3.512236013909157e-14,
)  # fmt: skip
AI_F = (
    0.9990611088081194, -0.0009069100368941837, 2.9077859884488432e-05, -2.4605546069701882e-06,
    3.494889388970651e-07, -6.876662027111663e-08, 1.6939626857373987e-08, -4.9193447951222565e-09,
    1.617515696929762e-09, -5.878848578360295e-10, 2.4253832159908016e-10, -1.0457613910588685e-10,
    2.3063379883133802e-11, -7.165637710274555e-12, 3.6435216789284086e-11, -2.2056487321082185e-11,
    -1.6133762978361412e-11, 1.058822824271373e-11, 7.0404225170508976e-12, -4.409917404198228e-12,
)  # fmt: skip
AI_G = (
    0.06851548746567503, -0.0008703312347966909, 5.121177829091026e-05, -6.011927236806359e-06,
    1.057455294237437e-06, -2.4277049891982495e-07, 6.733239835179429e-08, -2.150756771931358e-08,
    7.641966327520506e-09, -2.9678352170271937e-09, 1.331787791691742e-09, -6.097221024943038e-10,
    8.192800032905338e-11, -9.993430110040708e-12, 2.8790999257785166e-10, -1.8055245650953675e-10,
    -1.4024832954209146e-10, 9.344480882635702e-11, 5.768506515369266e-11, -3.699839531522166e-11,
)  # fmt: skip
AI_SLOPE_F = (
    1.0011128483304612, 0.0010778883304226694, -3.1867074677215914e-05, 2.6271162865783056e-06,
    -3.684170543387898e-07, 7.194401167241181e-08, -1.7633146798290056e-08, 5.102218478283627e-09,
    -1.6730873306553863e-09, 6.067752686420345e-10, -2.4977292476535394e-10, 1.075214714628461e-10,
    -2.3868987335681264e-11, 7.455941802090341e-12, -3.720093541993228e-11, 2.2502824054736795e-11,
    1.643581382753276e-11, -1.0783838335392271e-11, -7.18135763452371e-12, 4.496117260815451e-12,
)  # fmt: skip
AI_SLOPE_G = (
    -0.09618087726188974, 0.000978329072273647, -5.5182643604198014e-05, 6.365581056831839e-06,
    -1.1090376252397278e-06, 2.530863728220286e-07, -6.990178259472324e-08, 2.2259754868542886e-08,
    -7.890802914223499e-09, 3.0587151020513563e-09, -1.3694736866913376e-09, 6.260315868314795e-10,
    -8.546867241202246e-11, 1.1078917006350948e-11, -2.936850927887914e-10, 1.8405470452932562e-10,
    1.4281894711509168e-10, -9.513282380978151e-11, -5.88035066248587e-11, 3.7699714467884625e-11,
)  # fmt: skip


def depth(size: Node) -> tuple[Node, Node, Node]:
    """Compute z = 2/3 s^(3/2), DEPTH / z and s^(1/4) for s >= 3.5."""
    root = size.unary("sqrt")
    z = size * root * (2 / 3)
    return z, z.unary("reciprocal") * DEPTH, root.unary("sqrt")


def right(size: Node, is_slope: bool) -> Node:
    """Compute Ai or Ai' for x >= 3.5."""
    z, share, quarter = depth(size)
    fit = polynomial(AI_SLOPE_RIGHT if is_slope else AI_RIGHT, share * 2 - 1)
    small = (-z).unary("exp") * fit * (0.5 / math.sqrt(math.pi))
    return -small * quarter if is_slope else small / quarter


def left(size: Node, is_slope: bool) -> Node:
    """Compute Ai or Ai' for x <= -3.5."""
    z, share, quarter = depth(size)
    t = share * share * 2 - 1
    sine, cosine = z.unary("sin"), z.unary("cos")
    rising, falling = sine + cosine, cosine - sine  # sqrt(2) sin(z + pi / 4), sqrt(2) cos(...)
    if is_slope:
        even, odd = polynomial(AI_SLOPE_F, t), polynomial(AI_SLOPE_G, t) / z
        return -(falling * even + rising * odd) * quarter * (2 * math.pi) ** -0.5
    even, odd = polynomial(AI_F, t), polynomial(AI_G, t) / z
    return (rising * even - falling * odd) / quarter * (2 * math.pi) ** -0.5


def value(x: Node, is_slope: bool) -> Node:
    """Compute Ai or Ai'."""
    outer = x.unary("abs").binary("maximum", END)
    inside = x.binary("maximum", -END).binary("minimum", END)
    middle = polynomial(AI_SLOPE if is_slope else AI, inside * (1 / END))
    found = above(-x, END).where(left(outer, is_slope), middle)
    found = above(x, END).where(right(outer, is_slope), found)
    return x.unary("isnan").where(x, found)


def ai_value(x: Node) -> Node:
    """Compute Ai(x)."""
    return value(x, False)


def ai_slope(x: Node, y: Node) -> Node:
    """Compute Ai'(x), whose own derivative is x Ai(x)."""
    return known_slope(x, lambda x: value(x, True), lambda x, y: x * ai_again(x))


def ai_again(x: Node) -> Node:
    """Compute Ai(x) with its gradient."""
    return known_slope(x, ai_value, ai_slope)


@within("special", "airy_ai", is_recorded=True)
def ai(node: Node) -> Node:
    """Compute Airy's function Ai.

    >>> picograd.special.airy_ai(Tensor([0.0])).tolist()
    [0.355...]
    """
    return smooth("airy_ai", node, ai_value, ai_slope, True)
