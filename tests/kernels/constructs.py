"""Kernels for the Python front end, one construct or combination each; the tests also run them as plain Python."""

# ruff: noqa: UP037


def gemm(A: po.float32["M", "K"], B: po.float32["K", "N"], C: po.float32["M", "N"]):
    """Initialise, then accumulate."""
    for i in range(M):
        for j in range(N):
            C[i, j] = 0.0
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


def scaled_gemm(
    alpha: po.float64, beta: po.float64, A: po.float64["M", "K"], B: po.float64["K", "N"], C: po.float64["M", "N"]
):
    for i in range(M):
        for j in range(N):
            C[i, j] *= beta
        for k in range(K):
            for j in range(N):
                C[i, j] += alpha * A[i, k] * B[k, j]


def heat(A: po.float32[2, "N"], W: po.float32[3], T: int):
    for t in range(T):
        for i in range(1, N - 1):
            A[(t + 1) % 2, i] = W[0] * A[t % 2, i - 1] + W[1] * A[t % 2, i] + W[2] * A[t % 2, i + 1]


def descending(A: po.float32["N + 1"]):
    for i in range(N, 0, -1):
        A[i] = A[i - 1] + i


def descending_by_three(A: po.float32["N + 3"], order: po.float32["N + 3"], s: po.float32[()]):
    s[()] = 0
    for i in range(N + 2, 1, -3):
        s[()] += 1
        order[i] = s[()]
        A[i] = A[i - 2] - A[i]


def ascending_by_two(A: po.float32["N"]):
    for i in range(1, N, 2):
        A[i] = A[i - 1] * 2


def triangle(L: po.float64["N", "N"], x: po.float64["N"], b: po.float64["N"]):
    for i in range(N):
        x[i] = b[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] /= 2 + abs(L[i, i])


def clipped(x: po.float32["N"], y: po.float32["N"]):
    for i in range(N):
        y[i] = 0.0
        for j in range(max(0, i - 2), min(N, i + 3)):
            y[i] += x[j]


def affine_guards(x: po.float32["N"], y: po.float32["N"]):
    for i in range(N):
        if i == 0 or i == N - 1:
            y[i] = x[i]
        elif i % 2 == 0 and not (i == 4 or i > 8):
            y[i] = x[i - 1]
        elif 2 <= i < 8 != i:
            y[i] = x[i + 1] * 3
        else:
            y[i] = 0 - x[i]


def not_equal(x: po.float32["N"], y: po.float32["N", "N"]):
    for i in range(N):
        for j in range(N):
            if i != j:
                y[i, j] = x[i] * x[j]
            else:
                y[i, j] = 1
            if i - j:
                y[i, j] += 1


def guarded_element(x: po.float32["N"], y: po.float32["N"]):
    for i in range(N):
        if x[i] > 0:
            y[i] = x[i]


def choice_of_one_target(x: po.float32["N"], y: po.float32["N"]):
    for i in range(N):
        if x[i] > 0.5:
            y[i] = x[i]
        elif x[i] > 0:
            y[i] = 0.5
        else:
            y[i] = 0.0


def choice_of_reductions(x: po.float32["N"], s: po.float32[()]):
    s[()] = 0.0
    for i in range(N):
        if x[i] > 0:
            s[()] += x[i]
        else:
            s[()] -= x[i]


def masked_reductions(x: po.float32["N"], total: po.float32[()], product: po.float32[()], largest: po.float32[()]):
    total[()] = 0.0
    product[()] = 1.0
    largest[()] = -inf
    for i in range(N):
        if x[i] > 0:
            total[()] += x[i]
            product[()] *= x[i]
            largest[()] = max(largest[()], x[i])


def branches_change_the_condition(x: po.float32["N"], y: po.float32["N"]):
    for i in range(N):
        if x[i] > 0:
            x[i] = 0 - x[i]
            y[i] = x[i]
        else:
            y[i] = 1
            x[i] += 2


def loop_below_a_changing_condition(x: po.float32["N + 1"]):
    if x[0] > -5:
        for i in range(N):
            x[i] = -7
    if x[N] > 0:
        x[N] = 3


def nested_conditions(x: po.float32["N"], y: po.float32["N"], z: po.float32["N"]):
    for i in range(N):
        if i > 0 and x[i - 1] > 0 and i < 5:
            z[i] = x[i - 1]
            if y[i] < x[i]:
                z[i] += 1
                y[i] = z[i]
            if i % 2:
                z[i] = -1


def scalar_locals(x: po.float64["N"], y: po.float64["N"]):
    for i in range(N):
        t = 0.0
        for j in range(i, N):
            t += x[j]
        u = t * t
        y[i] = u - t


def softmax(X: po.float32["M", "N"], Y: po.float32["M", "N"]):
    for i in range(M):
        m = -inf
        for j in range(N):
            m = max(m, X[i, j])
        s = 0.0
        for j in range(N):
            Y[i, j] = exp(X[i, j] - m)
            s += Y[i, j]
        for j in range(N):
            Y[i, j] /= s


def local_tensors(A: po.float32["M", "K"], B: po.float32["K", "N"], D: po.float32["N", "M"], E: po.float32["M", "M"]):
    T: po.float32["M", "N"]
    n: po.int32 = 0
    for i in range(M):
        for j in range(N):
            T[i, j] = 0.0
            for k in range(K):
                T[i, j] += A[i, k] * B[k, j]
            n += 1
    for i in range(M):
        for j in range(M):
            E[i, j] = n
            for k in range(N):
                E[i, j] += T[i, k] * D[k, j]


def gather(x: po.float32["N + 2"], index: po.int32["N"], y: po.float32["N"]):
    for i in range(N):
        j = index[i]
        y[i] = x[index[i] + 2] + x[1 + j] * x[j]


def scatter(x: po.float32["N"], index: po.int32["N"], y: po.float32["N"]):
    for i in range(N):
        y[i] = 0.0
    for i in range(N):
        y[index[i]] += x[i]


def values(x: po.float64["N"], y: po.float64["N", 8]):
    for i in range(N):
        y[i, 0] = x[i] if i < 3 else -x[i]
        y[i, 1] = min(x[i], 0.25, i) ** 2
        y[i, 2] = max(i, 2) + i // 2 - (i + 1) % 3
        y[i, 3] = i * i + N
        y[i, 4] = 1.5 if 0 < x[i] <= 0.5 or not (x[i] < 0 and i > 1) else 2
        y[i, 5] = abs(x[i]) + math.sqrt(abs(x[i])) + math.sin(x[i]) * math.cos(x[i]) - math.tanh(x[i])
        y[i, 6] = math.exp(x[i]) / math.log(abs(x[i]) + 2)
        y[i, 7] = (3 if i < 2 else i) - +x[i] + (1 if i % 2 == 0 else 0)


def deep(A: po.float32["N", "N", "N"], s: po.float32["N"]):
    pass
    for i in range(N):
        s[i] = 0
        for j in range(N - 1, i - 1, -1):
            for k in range(0, j - i + 1, 2):
                if k <= i:
                    A[i, j, k] += A[k, j, i] + s[i]
                s[i] = A[j, i, k] * 0.5 - s[i]
        for j in range(i):
            s[i] += s[j]


def sizes_as_names(A: po.float32[M, N + 1, 2], B: "po.float32[M, 2 * N]"):
    for i in range(M):
        for j in range(2 * N):
            B[i, j] = A[i, j // 2, j % 2] + A[i, j // 2 + 1, (j + 1) % 2]


def selected_subscripts(x: po.float32["N"], y: po.float32["N"]):
    for i in range(N):
        y[i] = x[i - 1 if i > 0 else N - 1] + x[min(i + 1, N - 1)] + x[max(i - 2, 0)]


@po.kernel(context="N >= 1")
def padded(x: po.float32["N"], y: po.float32["N + 4"], z: po.float32["N", "N"]):
    for i in range(N + 4):
        y[i] = x[i - 2] if 2 <= i < N + 2 else 0.0
    for i in range(N):
        for j in range(N):
            z[i, j] = 1 + (x[i + j] * 2 if i + j < N else 0 if i == j else -x[i + j - N])


def conditions_that_protect_reads(x: po.float32["N"], y: po.float32["N"]):
    for i in range(N):
        if i > 0 and x[i - 1] > 0:
            y[i] = x[i - 1]
        elif not (i == N - 1 or x[i + 1] < 0):
            y[i] = x[i + 1]
        else:
            y[i] = 3


def scan(x: po.float32["N"], y: po.float32["N"]):
    for i in range(N):
        y[i] = x[i] + (y[i - 1] if i > 0 else 0)
