"""Functions behind layers that no method has: softmax over PyTorch's axis, products, distances.

Functions that rearrange: pixel shuffles, padding, channel shuffles.
"""

from collections.abc import Sequence

from picograd.dtype import accumulate_dtype
from picograd.errors import DTypeError, ShapeError
from picograd.tensor.core.annotations import DTypeLike
from picograd.tensor.core.arguments import need_tensor, promoted
from picograd.tensor.core.function import within
from picograd.tensor.core.guard import guard_functions
from picograd.tensor.core.recording import apart
from picograd.tensor.core.together import in_functional, together
from picograd.tensor.network.activation_functions import implicit_axis
from picograd.tensor.tensor import Tensor


@within("functional")
def softmax(input: Tensor, dim: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Normalise exp(x) to sum 1 along an axis, converted to `dtype` before.

    `dim` None is axis 0 of tensors with 0, 1 or 3 axes, else axis 1, as in PyTorch: name the axis.

    >>> from picograd import Tensor, nn
    >>> nn.functional.softmax(Tensor([1.0, 1.0, 1.0, 1.0]), 0).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    wide = input if dtype is None else input.cast(dtype)
    return wide.softmax(implicit_axis(input, dim))


@within("functional")
def log_softmax(input: Tensor, dim: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Compute log(softmax(x)) along an axis, chosen as in `softmax`.

    >>> from picograd import Tensor, nn
    >>> nn.functional.log_softmax(Tensor([1.0, 1.0, 1.0]), 0).tolist()
    [-1.0986..., -1.0986..., -1.0986...]
    """
    wide = input if dtype is None else input.cast(dtype)
    return wide.log_softmax(implicit_axis(input, dim))


@in_functional
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute a W b + bias: (..., I), (..., J) with weight (O, I, J) -> (..., O).

    >>> from picograd import Tensor, nn
    >>> nn.functional.bilinear(Tensor([[1.0, 2.0]]), Tensor([[3.0]]), Tensor([[[1.0],
    ...     [1.0]]])).tolist()
    [[9.0]]
    """
    left = input1.reshape(-1, input1.shape[-1])  # N I
    right = input2.reshape(-1, input2.shape[-1])  # N J
    y = Tensor.einsum("noj,nj->no", Tensor.einsum("ni,oij->noj", left, weight), right)
    y = y if bias is None else y + bias
    return y.reshape(*input1.shape[:-1], weight.shape[0])


@within("functional")
def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None,
    out_dtype: DTypeLike | None = None,
) -> Tensor:  # fmt: skip
    """Multiply groups of matrices; `offs` says where each of the G groups ends along an axis.

    (M, K) by (G, K, N) has groups of rows, one an expert: -> (M, N). (G, M, K) by (K, N) has groups
    of columns -> (M, N), (M, K) by (K, N) groups along K -> (G, M, N), two stacks have no `offs`.
    What no group has is 0. Ends are read where the program runs, so that other groups need no new
    plan; so each group multiplies all rows, those of other groups as zeros: G times the work of
    a loop over groups. Raises ShapeError for operands and ends that do not fit.

    >>> from picograd import Tensor, nn
    >>> rows, weights = Tensor([[1.0], [2.0], [3.0]]), Tensor([[[1.0]], [[10.0]]])
    >>> nn.functional.grouped_mm(rows, weights, offs=Tensor([1, 3])).tolist()
    [[1.0], [20.0], [30.0]]
    """
    need_tensor("grouped_mm", mat_a, mat_b)
    ranks = (mat_a.ndim, mat_b.ndim)
    if not {*ranks} <= {2, 3} or (offs is None) is not (ranks == (3, 3)) or bias is not None:
        problem = f"operands {tuple(mat_a.shape)} and {tuple(mat_b.shape)}, offs {offs}"
        raise ShapeError("grouped_mm", problem, "give offs unless both are stacks, and no bias")
    if offs is None:
        return (mat_a @ mat_b).cast(out_dtype or mat_a.dtype)
    sizes = {(2, 2): mat_a.shape[-1], (2, 3): mat_a.shape[0], (3, 2): mat_b.shape[-1]}
    places = Tensor.arange(sizes[ranks], dtype=offs.dtype, device=offs.device)
    group = offs.searchsorted(places, right=True)
    is_own = group == Tensor.arange(len(offs), device=offs.device).unsqueeze(1)  # G size
    is_own = is_own.unsqueeze(2 if ranks == (2, 3) else 1)
    if ranks[0] == 2:
        found = is_own.where(mat_a, 0) @ mat_b
    else:
        found = mat_a @ is_own.where(mat_b, 0)
    found = found if ranks == (2, 2) else found.sum(0)
    return found.cast(out_dtype or mat_a.dtype)


@within("functional")
@together
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide by the p-norm along an axis, or by eps where that is smaller.

    >>> from picograd import Tensor, nn
    >>> nn.functional.normalize(Tensor([[3.0, 4.0]])).tolist()
    [[0.6000..., 0.8000...]]
    """
    return input / _clamped_norm(input, p, dim, eps)


def _clamped_norm(input: Tensor, p: float, dim: int, eps: float) -> Tensor:
    size = input.norm(p, dim, keepdim=True)
    return (size < eps).where(eps, size)


@in_functional
def cosine_similarity(a: Tensor, b: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Compute a.b / (|a| |b|) along an axis; norms below eps count as eps.

    >>> from picograd import Tensor, nn
    >>> nn.functional.cosine_similarity(Tensor([[1.0, 0.0]]), Tensor([[1.0, 1.0]])).tolist()
    [0.7071...]
    """
    first, second = promoted("cosine_similarity", a, b)
    if not first.dtype.is_float:
        text = f"needs floats, got {a.dtype.name} and {b.dtype.name}"
        raise DTypeError("cosine_similarity", text, "call .float() first")
    x, y = (each.cast(accumulate_dtype(each.dtype)) for each in (first, second))
    sizes = _clamped_norm(x, 2, dim, eps) * _clamped_norm(y, 2, dim, eps)
    return ((x * y).sum(dim) / sizes.squeeze(dim)).cast(first.dtype)


@within("functional")
@together
def pairwise_distance(
    a: Tensor, b: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Compute the p-norm of a - b + eps along the last axis.

    >>> from picograd import Tensor, nn
    >>> nn.functional.pairwise_distance(Tensor([[0.0, 0.0]]), Tensor([[3.0, 4.0]])).tolist()
    [4.9999...]
    """
    first, second = promoted("pairwise_distance", a, b)
    x, y = (each.cast(accumulate_dtype(each.dtype)) for each in (first, second))
    distance = (x - y + eps).norm(p, -1, keepdim=keepdim)
    return distance.cast(first.dtype) if first.dtype.is_float else distance


@within("functional")
def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Pad: (low, high) of the last axis first. Modes constant, reflect, replicate, circular.

    >>> from picograd import Tensor, nn
    >>> nn.functional.pad(Tensor([[1.0, 2.0, 3.0]]), (1, 1), "reflect").tolist()
    [[2.0, 1.0, 2.0, 3.0, 2.0]]
    """
    need_tensor("pad", input)
    return input.pad(tuple(pad), mode=mode, value=0.0 if value is None else value)


@within("functional")
def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    """Move channels into space: (..., C r r, H, W) -> (..., C, H r, W r) (Shi et al., 2016).

    >>> from picograd import Tensor, nn
    >>> nn.functional.pixel_shuffle(Tensor([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]), 2).tolist()
    [[[[1.0, 2.0], [3.0, 4.0]]]]
    """
    need_tensor("pixel_shuffle", x)
    r = upscale_factor
    *batch, channels, height, width = x.shape
    if channels % (r * r):
        problem = f"{channels} channels do not divide by {r} * {r}"
        raise ShapeError("pixel_shuffle", problem, "choose another upscale_factor")
    first = len(batch)
    left = channels // (r * r)
    cut = x.reshape(*batch, left, r, r, height, width)  # ... C r r H W
    order = (*range(first + 1), first + 3, first + 1, first + 4, first + 2)
    ordered = cut.permute(*order)
    result = ordered.reshape(*batch, left, height * r, width * r)
    return apart(result)


@within("functional")
def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    """Move space into channels: (..., C, H r, W r) -> (..., C r r, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.functional.pixel_unshuffle(Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), 2).tolist()
    [[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]]
    """
    need_tensor("pixel_unshuffle", x)
    r = downscale_factor
    *batch, channels, height, width = x.shape
    if height % r or width % r:
        problem = f"image {height} x {width} does not divide by {r}"
        raise ShapeError("pixel_unshuffle", problem, "choose another downscale_factor")
    first = len(batch)
    high = height // r
    wide = width // r
    cut = x.reshape(*batch, channels, high, r, wide, r)  # ... C H r W r
    order = (*range(first + 1), first + 2, first + 4, first + 1, first + 3)
    ordered = cut.permute(*order)
    result = ordered.reshape(*batch, channels * r * r, high, wide)
    return apart(result)


@within("functional")
def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Interleave groups of channels: channel g * n + i goes to i * groups + g.

    >>> from picograd import Tensor, nn
    >>> nn.functional.channel_shuffle(Tensor([[[1.0], [2.0], [3.0], [4.0]]]), 2).tolist()
    [[[1.0], [3.0], [2.0], [4.0]]]
    """
    need_tensor("channel_shuffle", x)
    batch, channels, *rest = x.shape
    if channels % groups:
        problem = f"{channels} channels do not divide into {groups} groups"
        raise ShapeError("channel_shuffle", problem, "choose a divisor")
    cut = x.reshape(batch, groups, channels // groups, *rest)
    result = cut.transpose(1, 2).reshape(x.shape)
    return apart(result)


guard_functions(globals(), ("channel_shuffle", "pad", "pixel_shuffle", "pixel_unshuffle"))
