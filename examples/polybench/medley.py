"""Image and graph programs.  Definitions: PolyBench/C 4.2 (L.-N. Pouchet and T. Yuki), written as loops of our own."""

import math

import polyopt as po


@po.kernel
def deriche(alpha: po.Tensor, image: po.Tensor["W", "H"], out: po.Tensor["W", "H"]):
    """Deriche's recursive smoothing, forwards and backwards along both axes."""
    y1: po.Tensor["W", "H"]
    y2: po.Tensor["W", "H"]
    e = math.exp(-alpha)
    k = (1.0 - e) * (1.0 - e) / (1.0 + 2.0 * alpha * e - math.exp(2.0 * alpha))
    a2 = k * e * (alpha - 1.0)
    a3 = k * e * (alpha + 1.0)
    a4 = -k * e * e
    b1 = math.exp(-0.6931471805599453 * alpha)
    b2 = -e * e
    for i in range(W):
        xm1 = 0.0
        ym1 = 0.0
        ym2 = 0.0
        for j in range(H):
            y1[i, j] = k * image[i, j] + a2 * xm1 + b1 * ym1 + b2 * ym2
            xm1 = image[i, j]
            ym2 = ym1
            ym1 = y1[i, j]
    for i in range(W):
        xp1 = 0.0
        xp2 = 0.0
        yp1 = 0.0
        yp2 = 0.0
        for j in range(H - 1, -1, -1):
            y2[i, j] = a3 * xp1 + a4 * xp2 + b1 * yp1 + b2 * yp2
            xp2 = xp1
            xp1 = image[i, j]
            yp2 = yp1
            yp1 = y2[i, j]
    for i in range(W):
        for j in range(H):
            out[i, j] = y1[i, j] + y2[i, j]
    for j in range(H):
        tm1 = 0.0
        um1 = 0.0
        um2 = 0.0
        for i in range(W):
            y1[i, j] = k * out[i, j] + a2 * tm1 + b1 * um1 + b2 * um2
            tm1 = out[i, j]
            um2 = um1
            um1 = y1[i, j]
    for j in range(H):
        tp1 = 0.0
        tp2 = 0.0
        up1 = 0.0
        up2 = 0.0
        for i in range(W - 1, -1, -1):
            y2[i, j] = a3 * tp1 + a4 * tp2 + b1 * up1 + b2 * up2
            tp2 = tp1
            tp1 = out[i, j]
            up2 = up1
            up1 = y2[i, j]
    for i in range(W):
        for j in range(H):
            out[i, j] = y1[i, j] + y2[i, j]


@po.kernel
def floyd_warshall(path: po.int32["N", "N"]):
    """Lengths of shortest paths between all nodes."""
    for k in range(N):
        for i in range(N):
            for j in range(N):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])


@po.kernel
def nussinov(seq: po.int32["N"], table: po.int32["N", "N"]):
    """Most base pairs in a fold of each part of a sequence of bases 0 to 3; two bases pair when their sum is 3."""
    for i in range(N - 1, -1, -1):
        for j in range(i + 1, N):
            table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < N:
                table[i, j] = max(table[i, j], table[i + 1, j])
                if i < j - 1:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0))
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
