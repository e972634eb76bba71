# ruff: noqa: B007, F821, UP037  (kernels are parsed, never executed: sizes in bounds and shapes are no variables of Python)
# mypy: ignore-errors
"""The programs of the suite `main`, written as loops the way a user writes them."""

from math import exp, inf

from polyopt.frontend import ANNOTATIONS, Tensor, kernel

int32 = ANNOTATIONS["int32"]

__all__ = [
    "attention",
    "batched_matmul",
    "conv2d",
    "depthwise_conv",
    "embedding_bag",
    "jacobi_2d",
    "layer_norm",
    "llama_block",
    "lu",
    "matmul",
    "max_pool",
    "prefix_sum",
    "softmax",
    "swiglu",
    "triangular_solve",
]


@kernel(reassociate=True)
def matmul(A: Tensor["M", "K"], B: Tensor["K", "N"], C: Tensor["M", "N"]):
    for i in range(M):
        for j in range(N):
            C[i, j] = 0.0
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@kernel(reassociate=True)
def batched_matmul(A: Tensor["B", "M", "K"], X: Tensor["B", "K", "N"], C: Tensor["B", "M", "N"]):
    for b in range(B):
        for i in range(M):
            for j in range(N):
                C[b, i, j] = 0.0
                for k in range(K):
                    C[b, i, j] += A[b, i, k] * X[b, k, j]


@kernel(reassociate=True)
def conv2d(X: Tensor["B", "C", "2*H", "2*W"], F: Tensor["D", "C", 3, 3], Y: Tensor["B", "D", "H", "W"]):
    """3 x 3, stride 2, a row and a column of zeros around the image."""
    padded: Tensor["B", "C", "2*H + 1", "2*W + 1"]
    for b in range(B):
        for c in range(C):
            for h in range(2 * H + 1):
                for w in range(2 * W + 1):
                    padded[b, c, h, w] = 0.0
            for h in range(2 * H):
                for w in range(2 * W):
                    padded[b, c, h + 1, w + 1] = X[b, c, h, w]
    for b in range(B):
        for d in range(D):
            for h in range(H):
                for w in range(W):
                    Y[b, d, h, w] = 0.0
                    for c in range(C):
                        for r in range(3):
                            for s in range(3):
                                Y[b, d, h, w] += F[d, c, r, s] * padded[b, c, 2 * h + r, 2 * w + s]


@kernel(reassociate=True)
def depthwise_conv(X: Tensor["C", "H + 2", "W + 2"], F: Tensor["C", 3, 3], Y: Tensor["C", "H", "W"]):
    for c in range(C):
        for h in range(H):
            for w in range(W):
                Y[c, h, w] = 0.0
                for r in range(3):
                    for s in range(3):
                        Y[c, h, w] += F[c, r, s] * X[c, h + r, w + s]


@kernel(reassociate=True)
def softmax(X: Tensor["M", "N"], Y: Tensor["M", "N"]):
    largest: Tensor["M"]
    total: Tensor["M"]
    for i in range(M):
        largest[i] = -inf
        for j in range(N):
            largest[i] = max(largest[i], X[i, j])
        total[i] = 0.0
        for j in range(N):
            Y[i, j] = exp(X[i, j] - largest[i])
            total[i] += Y[i, j]
        for j in range(N):
            Y[i, j] = Y[i, j] / total[i]


@kernel(reassociate=True)
def layer_norm(X: Tensor["M", "N"], gain: Tensor["N"], bias: Tensor["N"], Y: Tensor["M", "N"]):
    mean: Tensor["M"]
    variance: Tensor["M"]
    for i in range(M):
        mean[i] = 0.0
        for j in range(N):
            mean[i] += X[i, j]
        mean[i] = mean[i] / N
        variance[i] = 0.0
        for j in range(N):
            variance[i] += (X[i, j] - mean[i]) ** 2
        for j in range(N):
            Y[i, j] = (X[i, j] - mean[i]) * rsqrt(variance[i] / N + 1e-5) * gain[j] + bias[j]


@kernel(reassociate=True)
def attention(Q: Tensor["H", "T", 64], K: Tensor["H", "T", 64], V: Tensor["H", "T", 64], Y: Tensor["H", "T", 64]):
    """Causal: position i looks at positions 0..i."""
    S: Tensor["H", "T", "T"]
    largest: Tensor["H", "T"]
    total: Tensor["H", "T"]
    for h in range(H):
        for i in range(T):
            for j in range(i + 1):
                S[h, i, j] = 0.0
                for d in range(64):
                    S[h, i, j] += Q[h, i, d] * K[h, j, d]
            largest[h, i] = -inf
            for j in range(i + 1):
                largest[h, i] = max(largest[h, i], S[h, i, j])
            total[h, i] = 0.0
            for j in range(i + 1):
                S[h, i, j] = exp((S[h, i, j] - largest[h, i]) * 0.125)
                total[h, i] += S[h, i, j]
            for d in range(64):
                Y[h, i, d] = 0.0
                for j in range(i + 1):
                    Y[h, i, d] += S[h, i, j] * V[h, j, d]
                Y[h, i, d] = Y[h, i, d] / total[h, i]


@kernel(reassociate=True)
def swiglu(
    X: Tensor["M", "D"], gate: Tensor["D", "F"], up: Tensor["D", "F"], down: Tensor["F", "D"], Y: Tensor["M", "D"]
):
    G: Tensor["M", "F"]
    U: Tensor["M", "F"]
    for i in range(M):
        for f in range(F):
            G[i, f] = 0.0
            U[i, f] = 0.0
            for d in range(D):
                G[i, f] += X[i, d] * gate[d, f]
                U[i, f] += X[i, d] * up[d, f]
            G[i, f] = silu(G[i, f]) * U[i, f]
    for i in range(M):
        for d in range(D):
            Y[i, d] = 0.0
            for f in range(F):
                Y[i, d] += G[i, f] * down[f, d]


@kernel(reassociate=True)
def llama_block(
    X: Tensor["T", 256],
    norm1: Tensor[256],
    norm2: Tensor[256],
    wq: Tensor[256, 4, 64],
    wk: Tensor[256, 2, 64],
    wv: Tensor[256, 2, 64],
    wo: Tensor[4, 64, 256],
    cosine: Tensor["T", 32],
    sine: Tensor["T", 32],
    gate: Tensor[256, "F"],
    up: Tensor[256, "F"],
    down: Tensor["F", 256],
    Y: Tensor["T", 256],
):
    """Norm, grouped-query attention with rotary positions, residual, norm, gated MLP, residual."""
    scale: Tensor["T"]
    N: Tensor["T", 256]
    for t in range(T):
        scale[t] = 0.0
        for e in range(256):
            scale[t] += X[t, e] * X[t, e]
        for e in range(256):
            N[t, e] = X[t, e] * rsqrt(scale[t] / 256 + 1e-5) * norm1[e]

    q: Tensor["T", 4, 64]
    k: Tensor["T", 2, 64]
    v: Tensor["T", 2, 64]
    for t in range(T):
        for h in range(4):
            for d in range(64):
                q[t, h, d] = 0.0
                for e in range(256):
                    q[t, h, d] += N[t, e] * wq[e, h, d]
        for g in range(2):
            for d in range(64):
                k[t, g, d] = 0.0
                v[t, g, d] = 0.0
                for e in range(256):
                    k[t, g, d] += N[t, e] * wk[e, g, d]
                    v[t, g, d] += N[t, e] * wv[e, g, d]

    rq: Tensor["T", 4, 64]
    rk: Tensor["T", 2, 64]
    for t in range(T):
        for d in range(32):
            for h in range(4):
                rq[t, h, d] = q[t, h, d] * cosine[t, d] - q[t, h, d + 32] * sine[t, d]
                rq[t, h, d + 32] = q[t, h, d + 32] * cosine[t, d] + q[t, h, d] * sine[t, d]
            for g in range(2):
                rk[t, g, d] = k[t, g, d] * cosine[t, d] - k[t, g, d + 32] * sine[t, d]
                rk[t, g, d + 32] = k[t, g, d + 32] * cosine[t, d] + k[t, g, d] * sine[t, d]

    S: Tensor[4, "T", "T"]
    largest: Tensor[4, "T"]
    total: Tensor[4, "T"]
    A: Tensor["T", 4, 64]
    for h in range(4):
        for i in range(T):
            for j in range(i + 1):
                S[h, i, j] = 0.0
                for d in range(64):
                    S[h, i, j] += rq[i, h, d] * rk[j, h // 2, d]
            largest[h, i] = -inf
            for j in range(i + 1):
                largest[h, i] = max(largest[h, i], S[h, i, j])
            total[h, i] = 0.0
            for j in range(i + 1):
                S[h, i, j] = exp((S[h, i, j] - largest[h, i]) * 0.125)
                total[h, i] += S[h, i, j]
            for d in range(64):
                A[i, h, d] = 0.0
                for j in range(i + 1):
                    A[i, h, d] += S[h, i, j] * v[j, h // 2, d]
                A[i, h, d] = A[i, h, d] / total[h, i]

    R: Tensor["T", 256]
    for t in range(T):
        for e in range(256):
            R[t, e] = X[t, e]
            for h in range(4):
                for d in range(64):
                    R[t, e] += A[t, h, d] * wo[h, d, e]

    scale2: Tensor["T"]
    N2: Tensor["T", 256]
    for t in range(T):
        scale2[t] = 0.0
        for e in range(256):
            scale2[t] += R[t, e] * R[t, e]
        for e in range(256):
            N2[t, e] = R[t, e] * rsqrt(scale2[t] / 256 + 1e-5) * norm2[e]

    G: Tensor["T", "F"]
    U: Tensor["T", "F"]
    for t in range(T):
        for f in range(F):
            G[t, f] = 0.0
            U[t, f] = 0.0
            for e in range(256):
                G[t, f] += N2[t, e] * gate[e, f]
                U[t, f] += N2[t, e] * up[e, f]
            G[t, f] = silu(G[t, f]) * U[t, f]
    for t in range(T):
        for e in range(256):
            Y[t, e] = R[t, e]
            for f in range(F):
                Y[t, e] += G[t, f] * down[f, e]


@kernel
def jacobi_2d(A: Tensor["N", "N"], T: int):
    """The border stays as it is."""
    B: Tensor["N", "N"]
    for i in range(N):
        for j in range(N):
            B[i, j] = A[i, j]
    for t in range(T):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])


@kernel(reassociate=True)
def triangular_solve(L: Tensor["N", "N"], B: Tensor["N", "R"], X: Tensor["N", "R"]):
    """Forward substitution for several right-hand sides."""
    for i in range(N):
        for r in range(R):
            X[i, r] = B[i, r]
            for j in range(i):
                X[i, r] -= L[i, j] * X[j, r]
            X[i, r] = X[i, r] / L[i, i]


@kernel
def lu(A: Tensor["N", "N"]):
    """In place, without pivoting."""
    for k in range(N):
        for i in range(k + 1, N):
            A[i, k] = A[i, k] / A[k, k]
        for i in range(k + 1, N):
            for j in range(k + 1, N):
                A[i, j] -= A[i, k] * A[k, j]


@kernel(reassociate=True)
def embedding_bag(table: Tensor["V", "D"], words: int32["B", "L"], Y: Tensor["B", "D"]):
    for b in range(B):
        for d in range(D):
            Y[b, d] = 0.0
            for n in range(L):
                Y[b, d] += table[words[b, n], d]


@kernel
def max_pool(X: Tensor["C", "2*H + 1", "2*W + 1"], Y: Tensor["C", "H", "W"]):
    """3 x 3 windows, stride 2."""
    for c in range(C):
        for h in range(H):
            for w in range(W):
                Y[c, h, w] = -inf
                for r in range(3):
                    for s in range(3):
                        Y[c, h, w] = max(Y[c, h, w], X[c, 2 * h + r, 2 * w + s])


@kernel
def prefix_sum(X: Tensor["M", "N"], Y: Tensor["M", "N"]):
    for i in range(M):
        for j in range(N):
            Y[i, j] = X[i, j]
        for j in range(1, N):
            Y[i, j] += Y[i, j - 1]
