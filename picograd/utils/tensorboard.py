"""TensorBoard's writer: the one of the package tensorboardX, which must be installed."""

try:
    from tensorboardX import SummaryWriter
except ImportError as error:
    raise ImportError("for TensorBoard install tensorboardX: pip install tensorboardX") from error

__all__ = ["SummaryWriter"]
