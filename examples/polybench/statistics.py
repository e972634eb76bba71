"""Data mining.  Definitions: PolyBench/C 4.2 (L.-N. Pouchet and T. Yuki), written as loops of our own."""

import math

import polyopt as po


@po.kernel(context="N >= 2")
def covariance(data: po.Tensor["N", "M"], cov: po.Tensor["M", "M"], mean: po.Tensor["M"]):
    """Covariances of the columns; data is centred."""
    for j in range(M):
        mean[j] = 0.0
        for i in range(N):
            mean[j] += data[i, j]
        mean[j] = mean[j] / N
    for i in range(N):
        for j in range(M):
            data[i, j] -= mean[j]
    for i in range(M):
        for j in range(i, M):
            cov[i, j] = 0.0
            for k in range(N):
                cov[i, j] += data[k, i] * data[k, j]
            cov[i, j] = cov[i, j] / (N - 1)
            cov[j, i] = cov[i, j]


@po.kernel(context="N >= 2 and M >= 1")
def correlation(data: po.Tensor["N", "M"], corr: po.Tensor["M", "M"], mean: po.Tensor["M"], stddev: po.Tensor["M"]):
    """Correlations of the columns; a column that hardly varies counts with deviation 1; data is normalised."""
    for j in range(M):
        mean[j] = 0.0
        for i in range(N):
            mean[j] += data[i, j]
        mean[j] = mean[j] / N
    for j in range(M):
        stddev[j] = 0.0
        for i in range(N):
            stddev[j] += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
        stddev[j] = math.sqrt(stddev[j] / N)
        stddev[j] = 1.0 if stddev[j] <= 0.1 else stddev[j]
    for i in range(N):
        for j in range(M):
            data[i, j] = (data[i, j] - mean[j]) / (math.sqrt(1.0 * N) * stddev[j])
    for i in range(M - 1):
        corr[i, i] = 1.0
        for j in range(i + 1, M):
            corr[i, j] = 0.0
            for k in range(N):
                corr[i, j] += data[k, i] * data[k, j]
            corr[j, i] = corr[i, j]
    corr[M - 1, M - 1] = 1.0
