"""Kernels in the plans of watched graphs beside what is wanted, as a table. Nothing is computed.

    python bench/kernel_counts.py [--device cpu] [--show softmax_0]

`--show` prints the plans of some graphs: a line a kernel, then why fusion kept nodes apart.
"""

import argparse

from plan_graphs import GRAPHS, plan_of
from plan_text import TARGETS, plan_text

# At most so many kernels; a check of labels or indices (one more launch) is counted in what is
# measured, but not wanted to be free.
WANTED = {
    "softmax_0": 1, "softmax_1": 1, "softmax_middle": 1, "softmax_two_axes": 1,
    "log_softmax": 1, "softmax_long": 2, "softmax_vocabulary": 2,
    "layer_norm": 1, "rms_norm": 1, "group_norm": 1, "mean_var_0": 1, "mean_var_1": 1,
    "cross_entropy": 1, "linear_gelu": 1, "scaled_product": 1, "rope": 1,
    "residual_norm": 1, "dropout_residual_norm": 1, "conv_relu_pool": 1,
    "conv_norm_relu_forward": 2, "conv_norm_relu_backward": 4,
    "layer_norm_backward": 2, "rms_norm_backward": 2, "swiglu": 2, "global_norm": 3,
    "logsumexp_long": 1, "focal_forward_backward": 2, "momentum_update": 1, "moving_averages": 1,
    "adamw_update": 2, "adamw_clipped": 4, "adagrad_update": 2,
    "group_norm_silu": 1, "normed_rope": 1, "experts_gate": 3,
    "transformer_layer_train": 26, "mnist_cnn_train": 25, "resnet18_train": 105,
}  # fmt: skip


def main() -> None:
    """Print the table, or plans."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--device", default="cpu", choices=list(TARGETS))
    parser.add_argument("--show", nargs="+", default=[], choices=list(GRAPHS))
    options = parser.parse_args()
    for name in options.show:
        print(f"{name}: {plan_text(plan_of(name, options.device))}")
    if options.show:
        return
    print("| graph | kernels | wanted | |\n|---|---|---|---|")
    for name in GRAPHS:
        count, wanted = len(plan_of(name, options.device).kernels), WANTED.get(name)
        verdict = "" if wanted is None else "yes" if count <= wanted else "no"
        print(f"| {name} | {count} | {wanted or ''} | {verdict} |")


if __name__ == "__main__":
    main()
