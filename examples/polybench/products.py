"""Chains of products.  Definitions: PolyBench/C 4.2 (L.-N. Pouchet and T. Yuki), written as loops of our own."""

import polyopt as po


@po.kernel
def two_mm(
    alpha: po.Tensor,
    beta: po.Tensor,
    A: po.Tensor["NI", "NK"],
    B: po.Tensor["NK", "NJ"],
    C: po.Tensor["NJ", "NL"],
    D: po.Tensor["NI", "NL"],
    E: po.Tensor["NI", "NJ"],
):
    """E = alpha*A*B; D = E*C + beta*D."""
    for i in range(NI):
        for j in range(NJ):
            E[i, j] = 0.0
            for k in range(NK):
                E[i, j] += alpha * A[i, k] * B[k, j]
    for i in range(NI):
        for j in range(NL):
            D[i, j] *= beta
            for k in range(NJ):
                D[i, j] += E[i, k] * C[k, j]


@po.kernel
def three_mm(
    A: po.Tensor["NI", "NK"],
    B: po.Tensor["NK", "NJ"],
    C: po.Tensor["NJ", "NM"],
    D: po.Tensor["NM", "NL"],
    E: po.Tensor["NI", "NJ"],
    F: po.Tensor["NJ", "NL"],
    G: po.Tensor["NI", "NL"],
):
    """E = A*B; F = C*D; G = E*F."""
    for i in range(NI):
        for j in range(NJ):
            E[i, j] = 0.0
            for k in range(NK):
                E[i, j] += A[i, k] * B[k, j]
    for i in range(NJ):
        for j in range(NL):
            F[i, j] = 0.0
            for k in range(NM):
                F[i, j] += C[i, k] * D[k, j]
    for i in range(NI):
        for j in range(NL):
            G[i, j] = 0.0
            for k in range(NJ):
                G[i, j] += E[i, k] * F[k, j]


@po.kernel
def atax(A: po.Tensor["M", "N"], x: po.Tensor["N"], y: po.Tensor["N"], Ax: po.Tensor["M"]):
    """y = A'*(A*x)."""
    for i in range(N):
        y[i] = 0.0
    for i in range(M):
        Ax[i] = 0.0
        for j in range(N):
            Ax[i] += A[i, j] * x[j]
        for j in range(N):
            y[j] += A[i, j] * Ax[i]


@po.kernel
def bicg(A: po.Tensor["N", "M"], p: po.Tensor["M"], r: po.Tensor["N"], s: po.Tensor["M"], q: po.Tensor["N"]):
    """s = A'*r; q = A*p."""
    for i in range(M):
        s[i] = 0.0
    for i in range(N):
        q[i] = 0.0
        for j in range(M):
            s[j] += r[i] * A[i, j]
            q[i] += A[i, j] * p[j]


@po.kernel
def doitgen(A: po.Tensor["NR", "NQ", "NP"], C: po.Tensor["NP", "NP"]):
    """A[r, q, :] = A[r, q, :]*C for every r and q."""
    total: po.Tensor["NP"]
    for r in range(NR):
        for q in range(NQ):
            for p in range(NP):
                total[p] = 0.0
                for s in range(NP):
                    total[p] += A[r, q, s] * C[s, p]
            for p in range(NP):
                A[r, q, p] = total[p]


@po.kernel
def mvt(A: po.Tensor["N", "N"], x1: po.Tensor["N"], x2: po.Tensor["N"], y1: po.Tensor["N"], y2: po.Tensor["N"]):
    """x1 += A*y1; x2 += A'*y2."""
    for i in range(N):
        for j in range(N):
            x1[i] += A[i, j] * y1[j]
    for i in range(N):
        for j in range(N):
            x2[i] += A[j, i] * y2[j]
