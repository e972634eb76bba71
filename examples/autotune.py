"""Tune the tile sizes of one workload by measuring on the simulator, with Optuna.

    python examples/autotune.py --workload matmul --trials 40 --store tune.db

Every trial limits the tiles of some loops, and the blocks of tiles that share a copy, through the option of the mapping
pass, `map{tiles=i:64,j:256,j_b:512}`; the mapping chooses the rest.  The first trial is the mapping without limits.
Trials are kept in an SQLite file: started again with the same file, the search goes on where it was.  The best one is
verified with values at the end.  Needs `pip install 'polyopt[tune]'`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace

import optuna

from polyopt.bench import Workload, select_workloads
from polyopt.errors import CapacityError, UnsupportedError
from polyopt.ir import Scop
from polyopt.ir.mapping import kernels
from polyopt.machine import Machine, machine
from polyopt.passes import Pass
from polyopt.pipeline import Compiled, Map, compile, default_pipeline, with_dtype
from polyopt.simulator import simulate

STEPS = 8
"""A limit is so many eighths of what the mapping takes without one."""


def pipeline(tiles: Mapping[str, int]) -> tuple[Pass, ...]:
    """The default pipeline with limits of tile sizes."""
    words = tuple(f"{name}:{size}" for name, size in tiles.items())
    return tuple(replace(p, tiles=words) if isinstance(p, Map) else p for p in default_pipeline())


def tunable(compiled: Compiled) -> dict[str, int]:
    """`statement.loop` -> its largest sensible limit: the tile taken without limits, for a block all points."""
    found: dict[str, int] = {}
    for kernel in kernels(compiled.mapping.nodes):
        tiled = {loop.dim for loop in kernel.loops}
        for dim in kernel.dims:
            if dim.tile > 1:
                found[f"{kernel.statement.name}.{dim.name}"] = dim.tile
            if dim.name in tiled and dim.extent_hint > 2 * dim.tile > 2:
                found[f"{kernel.statement.name}.{dim.name}_b"] = dim.extent_hint
    return found


def choose(trial: optuna.Trial, largest: Mapping[str, int]) -> dict[str, int]:
    """A limit for each loop."""
    eighths = {name: trial.suggest_int(name, 1, STEPS) for name in largest}
    return {name: max(1, largest[name] * k // STEPS) for name, k in eighths.items() if k < STEPS}


def tune(workload: Workload, scop: Scop, real: Machine, trials: int, store: str, seed: int) -> optuna.Study:
    """Run trials until the study in `store` has `trials` finished ones."""
    sizes = workload.sizes
    largest = tunable(compile(scop, real, sizes))

    def objective(trial: optuna.Trial) -> float:
        tiles = choose(trial, largest)
        trial.set_user_attr("tiles", tiles)
        try:
            program = compile(scop, real, sizes, passes=pipeline(tiles)).program
        except (CapacityError, UnsupportedError) as error:
            raise optuna.TrialPruned(error.message) from error
        return simulate(program, real, None, sizes, timing_only=True).time_ns

    def show(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        value = f"{trial.value / 1e3:.2f} us" if trial.value is not None else "does not fit"
        best = min((t.value for t in study.trials if t.value is not None), default=float("nan"))
        print(f"[{trial.number + 1}/{trials}] {value}, best {best / 1e3:.2f} us")

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    name = f"{workload.name} on {real.name}, tiles"
    study = optuna.create_study(study_name=name, storage=f"sqlite:///{store}", load_if_exists=True)
    done = len(study.get_trials(states=(optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)))
    study.sampler = optuna.samplers.TPESampler(seed=seed + done)
    if done:
        print(f"{done} trials found in {store}")
    else:
        study.enqueue_trial(dict.fromkeys(largest, STEPS))
    study.optimize(objective, n_trials=max(0, trials - done), callbacks=[show])
    return study


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Tune tile sizes against the simulator.")
    parser.add_argument("--workload", default="matmul", help="a workload of the suite main")
    parser.add_argument("--target", default="trn2")
    parser.add_argument("--dtype", default=None)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--store", default="tune.db", help="SQLite file; an existing one is continued")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    (workload,) = select_workloads("main", [options.workload])
    scop = workload.scop() if options.dtype is None else with_dtype(workload.scop(), options.dtype)
    real = machine(options.target)
    study = tune(workload, scop, real, options.trials, options.store, options.seed)
    finished = [t for t in study.trials if t.value is not None]
    if not finished:
        print("no trial fits the machine")
        return 1
    best = study.best_trial
    tiles: dict[str, int] = best.user_attrs["tiles"]
    print(f"without limits: {finished[0].value / 1e3:.2f} us")
    limits = ", ".join(f"{n}:{v}" for n, v in tiles.items())
    print(f"best: {study.best_value / 1e3:.2f} us with {limits or 'no limits'}")
    report = compile(scop, real, workload.sizes, passes=pipeline(tiles)).run_report(workload.sizes)
    print(f"verified: {'ok' if report.ok else 'WRONG'}, largest error {report.max_abs_error:.3g}")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
