"""Factorisations, solvers.  Definitions: PolyBench/C 4.2 (L.-N. Pouchet and T. Yuki), written as loops of our own."""

import math

import polyopt as po


@po.kernel
def cholesky(A: po.Tensor["N", "N"]):
    """The lower triangle of A becomes L with L*L' = A."""
    for i in range(N):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = math.sqrt(A[i, i])


@po.kernel(context="N >= 1")
def durbin(r: po.Tensor["N"], y: po.Tensor["N"]):
    """y solves the Yule-Walker equations of r: Toeplitz(1, r[0], ..., r[N - 2])*y = -r."""
    z: po.Tensor["N"]
    y[0] = -r[0]
    beta = 1.0
    alpha = -r[0]
    for k in range(1, N):
        beta = (1.0 - alpha * alpha) * beta
        total = 0.0
        for i in range(k):
            total += r[k - i - 1] * y[i]
        alpha = -(r[k] + total) / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha


@po.kernel(context="M >= 1")
def gramschmidt(A: po.Tensor["M", "N"], R: po.Tensor["N", "N"], Q: po.Tensor["M", "N"]):
    """A = Q*R with orthonormal columns of Q, R upper triangular."""
    for k in range(N):
        norm = 0.0
        for i in range(M):
            norm += A[i, k] * A[i, k]
        R[k, k] = math.sqrt(norm)
        for i in range(M):
            Q[i, k] = A[i, k] / R[k, k]
        for j in range(k + 1, N):
            R[k, j] = 0.0
            for i in range(M):
                R[k, j] += Q[i, k] * A[i, j]
            for i in range(M):
                A[i, j] -= Q[i, k] * R[k, j]


@po.kernel
def lu(A: po.Tensor["N", "N"]):
    """A becomes L and U with L*U = A, ones on the diagonal of L."""
    for i in range(N):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]
        for j in range(i, N):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]


@po.kernel
def ludcmp(A: po.Tensor["N", "N"], b: po.Tensor["N"], x: po.Tensor["N"], y: po.Tensor["N"]):
    """A becomes L and U with L*U = A; L*y = b; U*x = y."""
    for i in range(N):
        for j in range(i):
            w = A[i, j]
            for k in range(j):
                w -= A[i, k] * A[k, j]
            A[i, j] = w / A[j, j]
        for j in range(i, N):
            w = A[i, j]
            for k in range(i):
                w -= A[i, k] * A[k, j]
            A[i, j] = w
    for i in range(N):
        w = b[i]
        for j in range(i):
            w -= A[i, j] * y[j]
        y[i] = w
    for i in range(N - 1, -1, -1):
        w = y[i]
        for j in range(i + 1, N):
            w -= A[i, j] * x[j]
        x[i] = w / A[i, i]


@po.kernel
def trisolv(L: po.Tensor["N", "N"], b: po.Tensor["N"], x: po.Tensor["N"]):
    """L*x = b with a lower triangular L."""
    for i in range(N):
        x[i] = b[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] = x[i] / L[i, i]
