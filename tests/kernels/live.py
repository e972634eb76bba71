"""Kernels that tests import."""

from polyopt.frontend import ANNOTATIONS, kernel

float32 = ANNOTATIONS["float32"]


@kernel(reassociate=True, context="N >= 4")
def sum_rows(x: float32["M", "N"], y: float32["M"]):
    """A kernel in a test."""
    for i in range(M):
        y[i] = 0.0
        for j in range(N):
            y[i] += x[i, j]


def copy(x: float32["N"], y: float32["N"]):
    for i in range(N):
        y[i] = x[i]
