"""All thirty kernels with sizes to try them at, and what polyopt finds out about each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from examples.polybench import blas, medley, products, solvers, statistics, stencils
from polyopt.errors import LegalityError
from polyopt.frontend import Kernel, from_function
from polyopt.ir import Scop
from polyopt.pipeline import compile as compile_scop
from polyopt.report import RunReport
from polyopt.schedule import (
    Replay,
    ScheduleTree,
    Verdict,
    bands,
    check,
    compute_dependences,
    compute_schedule,
    original_tree,
    read_tree,
    replay,
    transform,
)
from polyopt.sets import Affine, affine
from polyopt.verify import Certificate, certify

__all__ = ["KERNELS", "Case", "Judged", "Refuted", "illegal_variant", "judge", "run", "tiled"]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel and small odd sizes for it.  init: tensor -> how it is filled, where numbers around 0 do not suit."""

    kernel: Kernel
    sizes: Mapping[str, int]
    init: Mapping[str, str]

    @property
    def name(self) -> str:
        return str(self.kernel.function.__name__)

    def scop(self) -> Scop:
        scop = from_function(self.kernel)
        return replace(scop, tensors=tuple(replace(t, init=self.init.get(t.name)) for t in scop.tensors))


def _case(kernel: Kernel, init: Mapping[str, str] | None = None, **sizes: int) -> Case:
    return Case(kernel, MappingProxyType(sizes), MappingProxyType(dict(init or {})))


_DOMINANT = "diagonally_dominant"


KERNELS: tuple[Case, ...] = (
    _case(statistics.correlation, N=9, M=7),
    _case(statistics.covariance, N=9, M=7),
    _case(blas.gemm, NI=7, NJ=9, NK=5),
    _case(blas.gemver, N=9),
    _case(blas.gesummv, N=9),
    _case(blas.symm, M=7, N=5),
    _case(blas.syr2k, N=7, M=5),
    _case(blas.syrk, N=7, M=5),
    _case(blas.trmm, M=7, N=5),
    _case(products.two_mm, NI=5, NJ=7, NK=3, NL=9),
    _case(products.three_mm, NI=5, NJ=7, NK=3, NL=9, NM=11),
    _case(products.atax, M=7, N=9),
    _case(products.bicg, M=7, N=9),
    _case(products.doitgen, NR=3, NQ=5, NP=7),
    _case(products.mvt, N=9),
    _case(solvers.cholesky, {"A": _DOMINANT}, N=7),
    _case(solvers.durbin, N=9),
    _case(solvers.gramschmidt, M=9, N=5),
    _case(solvers.lu, {"A": _DOMINANT}, N=7),
    _case(solvers.ludcmp, {"A": _DOMINANT}, N=7),
    _case(solvers.trisolv, {"L": _DOMINANT}, N=9),
    _case(medley.deriche, W=7, H=5),
    _case(medley.floyd_warshall, {"path": "integers(0, 99)"}, N=7),
    _case(medley.nussinov, {"seq": "integers(0, 3)"}, N=9),
    _case(stencils.adi, T=3, N=7),
    _case(stencils.fdtd_2d, T=3, NX=7, NY=5),
    _case(stencils.heat_3d, T=3, N=5),
    _case(stencils.jacobi_1d, T=5, N=11),
    _case(stencils.jacobi_2d, T=3, N=7),
    _case(stencils.seidel_2d, T=3, N=7),
)

TILE = 4


@dataclass(frozen=True, slots=True)
class Refuted:
    """An order with the entries `dim` of all vectors reversed, the judge's verdict, and the replay of its witness."""

    dim: int
    verdict: Verdict
    replayed: Replay | None


@dataclass(frozen=True, slots=True)
class Judged:
    """Dependences and verdicts of one kernel; times include the dependences where they are needed.

    tiles: the number of loops that are tiled together, of each band of isl's tree.
    """

    statements: int
    edges: int
    dependences_ms: float
    original_ms: float
    isl_ms: float
    rung: str
    isl: Verdict
    tiled: Verdict
    tiles: tuple[int, ...]
    refuted: Refuted | None
    certificate: Certificate


def judge(case: Case) -> Judged:
    """Everything about one kernel that needs no machine."""
    scop = case.scop()
    compute_dependences.cache_clear()
    begin = time.perf_counter()
    edges = len(compute_dependences(scop))
    dependences_ms = _since_ms(begin)
    compute_dependences.cache_clear()
    begin = time.perf_counter()
    check(scop, original_tree(scop))
    original_ms = _since_ms(begin)
    found = compute_schedule(scop)
    compute_dependences.cache_clear()
    begin = time.perf_counter()
    isl = check(scop, found.tree)
    isl_ms = _since_ms(begin)
    tree, tiles = tiled(scop, read_tree(scop, found.tree))
    return Judged(
        statements=len(scop.statements),
        edges=edges,
        dependences_ms=dependences_ms,
        original_ms=original_ms,
        isl_ms=isl_ms,
        rung=found.rung,
        isl=isl,
        tiled=check(scop, tree),
        tiles=tiles,
        refuted=illegal_variant(scop),
        certificate=certify(scop, found.tree),
    )


def _since_ms(begin: float) -> float:
    return (time.perf_counter() - begin) * 1e3


def tiled(scop: Scop, tree: ScheduleTree) -> tuple[ScheduleTree, tuple[int, ...]]:
    """Every band of a tree in tiles of 4 by 4 by ...: all of its loops where they are permutable, else the most inner
    ones that are.
    """
    tiles: list[int] = []
    for path, band in sorted(bands(tree), key=lambda found: len(found[0]), reverse=True):
        for skipped in range(len(band.members)):
            names = band.names()[skipped:]
            try:
                tree = transform.tile(scop, tree, path, dict.fromkeys(names, TILE))
            except LegalityError:
                continue
            tiles.append(len(names))
            break
    return tree, tuple(tiles)


def illegal_variant(scop: Scop) -> Refuted | None:
    """The order of the program with its outermost loops reversed, or the first inner ones that matter."""
    for dim, vectors in _reversals(scop):
        verdict = check(scop, vectors)
        if verdict.witness is not None:
            return Refuted(dim, verdict, replay(scop, verdict, vectors))
    return None


def _reversals(scop: Scop) -> Iterator[tuple[int, dict[str, Sequence[Affine]]]]:
    length = scop.order_length()
    padded = {s.name: (*s.order, *[affine(0)] * (length - len(s.order))) for s in scop.statements}
    for dim in range(length):
        yield dim, {n: [-e if k == dim else e for k, e in enumerate(v)] for n, v in padded.items()}


def run(case: Case, target: str = "trn2") -> RunReport:
    """The kernel compiled, simulated and verified at its sizes."""
    return compile_scop(case.scop(), target, case.sizes).run_report()
