"""A matrix product as plain loops, compiled for the simulated accelerator and run there."""

import numpy as np

import polyopt as po


@po.kernel(reassociate=True)
def gemm(A: po.Tensor["M", "K"], B: po.Tensor["K", "N"], C: po.Tensor["M", "N"]):
    for i in range(M):
        for j in range(N):
            C[i, j] = 0.0
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    a, b = rng.random((512, 300), np.float32), rng.random((300, 200), np.float32)
    compiled = po.compile(gemm, target="trn2", at={"M": 512, "K": 300, "N": 200})
    out = compiled.run(A=a, B=b)
    print("largest difference from numpy:", float(abs(out["C"] - a @ b).max()))
    for name, verdict in compiled.verdicts.items():
        print(f"{name}: {verdict.level}")
