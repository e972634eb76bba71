"""Matrix and vector updates.  Definitions: PolyBench/C 4.2 (L.-N. Pouchet and T. Yuki), written as loops of our own."""

import polyopt as po


@po.kernel
def gemm(
    alpha: po.Tensor, beta: po.Tensor, A: po.Tensor["NI", "NK"], B: po.Tensor["NK", "NJ"], C: po.Tensor["NI", "NJ"]
):
    """C = alpha*A*B + beta*C."""
    for i in range(NI):
        for j in range(NJ):
            C[i, j] *= beta
        for k in range(NK):
            for j in range(NJ):
                C[i, j] += alpha * A[i, k] * B[k, j]


@po.kernel
def gemver(
    alpha: po.Tensor,
    beta: po.Tensor,
    A: po.Tensor["N", "N"],
    u1: po.Tensor["N"],
    v1: po.Tensor["N"],
    u2: po.Tensor["N"],
    v2: po.Tensor["N"],
    w: po.Tensor["N"],
    x: po.Tensor["N"],
    y: po.Tensor["N"],
    z: po.Tensor["N"],
):
    """A += u1*v1' + u2*v2'; x += beta*A'*y + z; w += alpha*A*x."""
    for i in range(N):
        for j in range(N):
            A[i, j] += u1[i] * v1[j] + u2[i] * v2[j]
    for i in range(N):
        for j in range(N):
            x[i] += beta * A[j, i] * y[j]
    for i in range(N):
        x[i] += z[i]
    for i in range(N):
        for j in range(N):
            w[i] += alpha * A[i, j] * x[j]


@po.kernel
def gesummv(
    alpha: po.Tensor,
    beta: po.Tensor,
    A: po.Tensor["N", "N"],
    B: po.Tensor["N", "N"],
    x: po.Tensor["N"],
    y: po.Tensor["N"],
):
    """y = alpha*A*x + beta*B*x."""
    for i in range(N):
        left = 0.0
        y[i] = 0.0
        for j in range(N):
            left += A[i, j] * x[j]
            y[i] += B[i, j] * x[j]
        y[i] = alpha * left + beta * y[i]


@po.kernel
def symm(alpha: po.Tensor, beta: po.Tensor, A: po.Tensor["M", "M"], B: po.Tensor["M", "N"], C: po.Tensor["M", "N"]):
    """C = alpha*A*B + beta*C; of the symmetric A only the lower triangle is read."""
    for i in range(M):
        for j in range(N):
            below = 0.0
            for k in range(i):
                C[k, j] += alpha * B[i, j] * A[i, k]
                below += B[k, j] * A[i, k]
            C[i, j] = beta * C[i, j] + alpha * B[i, j] * A[i, i] + alpha * below


@po.kernel
def syr2k(alpha: po.Tensor, beta: po.Tensor, A: po.Tensor["N", "M"], B: po.Tensor["N", "M"], C: po.Tensor["N", "N"]):
    """The lower triangle of C = alpha*A*B' + alpha*B*A' + beta*C."""
    for i in range(N):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(M):
            for j in range(i + 1):
                C[i, j] += A[j, k] * alpha * B[i, k] + B[j, k] * alpha * A[i, k]


@po.kernel
def syrk(alpha: po.Tensor, beta: po.Tensor, A: po.Tensor["N", "M"], C: po.Tensor["N", "N"]):
    """The lower triangle of C = alpha*A*A' + beta*C."""
    for i in range(N):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(M):
            for j in range(i + 1):
                C[i, j] += alpha * A[i, k] * A[j, k]


@po.kernel
def trmm(alpha: po.Tensor, A: po.Tensor["M", "M"], B: po.Tensor["M", "N"]):
    """B = alpha*A'*B; A is lower triangular with ones on its diagonal."""
    for i in range(M):
        for j in range(N):
            for k in range(i + 1, M):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] = alpha * B[i, j]
