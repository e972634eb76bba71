"""Stencils in time.  Definitions: PolyBench/C 4.2 (L.-N. Pouchet and T. Yuki), written as loops of our own."""

import polyopt as po


@po.kernel(context="T >= 1 and N >= 3")
def adi(T: int, u: po.Tensor["N", "N"]):
    """Heat in a square by alternating directions: implicit along columns, then along rows, in each step."""
    v: po.Tensor["N", "N"]
    p: po.Tensor["N", "N"]
    q: po.Tensor["N", "N"]
    a = -1.0 * N * N / T
    b = 1.0 + 2.0 * N * N / T
    d = -0.5 * N * N / T
    e = 1.0 + 1.0 * N * N / T
    for t in range(T):
        for i in range(1, N - 1):
            v[0, i] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = v[0, i]
            for j in range(1, N - 1):
                p[i, j] = -a / (a * p[i, j - 1] + b)
                q[i, j] = (-d * u[j, i - 1] + (1.0 + 2.0 * d) * u[j, i] - d * u[j, i + 1] - a * q[i, j - 1]) / (
                    a * p[i, j - 1] + b
                )
            v[N - 1, i] = 1.0
            for j in range(N - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in range(1, N - 1):
            u[i, 0] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = u[i, 0]
            for j in range(1, N - 1):
                p[i, j] = -d / (d * p[i, j - 1] + e)
                q[i, j] = (-a * v[i - 1, j] + (1.0 + 2.0 * a) * v[i, j] - a * v[i + 1, j] - d * q[i, j - 1]) / (
                    d * p[i, j - 1] + e
                )
            u[i, N - 1] = 1.0
            for j in range(N - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


@po.kernel(context="NX >= 1")
def fdtd_2d(ex: po.Tensor["NX", "NY"], ey: po.Tensor["NX", "NY"], hz: po.Tensor["NX", "NY"], source: po.Tensor["T"]):
    """Electric and magnetic field in two dimensions by finite differences; a source drives one edge."""
    for t in range(T):
        for j in range(NY):
            ey[0, j] = source[t]
        for i in range(1, NX):
            for j in range(NY):
                ey[i, j] -= 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(NX):
            for j in range(1, NY):
                ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(NX - 1):
            for j in range(NY - 1):
                hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


@po.kernel
def heat_3d(T: int, A: po.Tensor["N", "N", "N"], B: po.Tensor["N", "N", "N"]):
    """Heat in a cube, two half steps in each step."""
    for t in range(T):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                for k in range(1, N - 1):
                    B[i, j, k] = (
                        0.125 * (A[i + 1, j, k] - 2.0 * A[i, j, k] + A[i - 1, j, k])
                        + 0.125 * (A[i, j + 1, k] - 2.0 * A[i, j, k] + A[i, j - 1, k])
                        + 0.125 * (A[i, j, k + 1] - 2.0 * A[i, j, k] + A[i, j, k - 1])
                        + A[i, j, k]
                    )
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                for k in range(1, N - 1):
                    A[i, j, k] = (
                        0.125 * (B[i + 1, j, k] - 2.0 * B[i, j, k] + B[i - 1, j, k])
                        + 0.125 * (B[i, j + 1, k] - 2.0 * B[i, j, k] + B[i, j - 1, k])
                        + 0.125 * (B[i, j, k + 1] - 2.0 * B[i, j, k] + B[i, j, k - 1])
                        + B[i, j, k]
                    )


@po.kernel
def jacobi_1d(T: int, A: po.Tensor["N"], B: po.Tensor["N"]):
    """Means of three neighbours, two half steps in each step."""
    for t in range(T):
        for i in range(1, N - 1):
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, N - 1):
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])


@po.kernel
def jacobi_2d(T: int, A: po.Tensor["N", "N"], B: po.Tensor["N", "N"]):
    """Means of five neighbours, two half steps in each step."""
    for t in range(T):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])


@po.kernel
def seidel_2d(T: int, A: po.Tensor["N", "N"]):
    """Means of nine neighbours, in place."""
    for t in range(T):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                A[i, j] = (
                    A[i - 1, j - 1]
                    + A[i - 1, j]
                    + A[i - 1, j + 1]
                    + A[i, j - 1]
                    + A[i, j]
                    + A[i, j + 1]
                    + A[i + 1, j - 1]
                    + A[i + 1, j]
                    + A[i + 1, j + 1]
                ) / 9.0
