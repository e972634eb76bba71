"""What a workload is, the suites, and how one is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType

from polyopt.errors import InputError, PolyoptError, nearest
from polyopt.frontend import from_function
from polyopt.ir import Scop
from polyopt.pipeline import compile, with_dtype
from polyopt.report import RunReport

__all__ = ["SUITES", "Workload", "run_workload", "select_workloads"]

WORKLOADS = "polyopt.bench.workloads"


@dataclass(frozen=True, slots=True)
class Workload:
    """The kernel `function` of the module of workloads at fixed sizes.  init: tensor -> how it is filled."""

    name: str
    function: str
    sizes: Mapping[str, int]
    init: Mapping[str, str]

    def scop(self) -> Scop:
        """The program, filled as `init` says."""
        scop = from_function(getattr(import_module(WORKLOADS), self.function))
        return replace(scop, tensors=tuple(replace(t, init=self.init.get(t.name, t.init)) for t in scop.tensors))


def _workload(name: str, init: Mapping[str, str] | None = None, **sizes: int) -> Workload:
    return Workload(name, name.replace("-", "_"), MappingProxyType(sizes), MappingProxyType(init or {}))


DOMINANT = "diagonally_dominant"
SCALED = dict.fromkeys(("wq", "wk", "wv", "wo", "gate", "up", "down"), "uniform(-0.06, 0.06)")
"""Weights as large as 1 / sqrt(hidden), as in a trained model."""


SUITES: Mapping[str, tuple[Workload, ...]] = MappingProxyType(
    {
        "main": (
            _workload("matmul", M=1000, N=777, K=513),
            _workload("batched-matmul", B=6, M=200, N=130, K=70),
            _workload("conv2d", B=2, C=24, D=40, H=13, W=13),
            _workload("depthwise-conv", C=64, H=30, W=30),
            _workload("softmax", M=200, N=1000),
            _workload("layer-norm", M=150, N=520),
            _workload("attention", H=4, T=384),
            _workload("swiglu", M=130, D=128, F=352),
            _workload("llama-block", SCALED, T=65, F=688),
            _workload("jacobi-2d", N=130, T=6),
            _workload("triangular-solve", {"L": DOMINANT}, N=97, R=64),
            _workload("lu", {"A": DOMINANT}, N=65),
            _workload("embedding-bag", V=1000, D=130, B=50, L=10),
            _workload("max-pool", C=64, H=27, W=27),
            _workload("prefix-sum", M=128, N=300),
        )
    }
)
"""Suite name -> its workloads."""


def select_workloads(suite: str, only: Sequence[str] = ()) -> tuple[Workload, ...]:
    """The workloads of `suite`, or those named in `only`.  Raises InputError naming the nearest known name."""
    if suite not in SUITES:
        raise InputError(
            f"unknown suite {suite!r}{nearest(suite, SUITES)}", help=f"suites: {', '.join(SUITES)}", id="suite"
        )
    known = {w.name: w for w in SUITES[suite]}
    for name in only:
        if name not in known:
            raise InputError(
                f"suite {suite} has no workload {name!r}{nearest(name, known)}",
                help=f"workloads: {', '.join(known)}",
                id="suite",
            )
    return tuple(w for w in SUITES[suite] if not only or w.name in only)


def run_workload(workload: Workload, target: str, *, dtype: str | None = None, seed: int = 0) -> RunReport | str:
    """The report of one workload, or the diagnostic of what polyopt refused; InputError and bugs are raised."""
    scop = workload.scop()
    scop = with_dtype(scop, dtype) if dtype else scop
    try:
        return compile(scop, target, workload.sizes).run_report(workload.sizes, seed=seed)
    except InputError:
        raise
    except PolyoptError as error:
        if error.exit_status == 4:
            raise
        return str(error.diagnostic)
