"""Tune the tile sizes of one workload by measuring on the simulator, with Optuna.

    python examples/autotune.py --workload matmul --trials 40 --store tune.db

Tile sizes follow from the lane limits of the machine's instructions and from how much scratchpad there is.  Each
trial compiles for a machine with smaller limits: whatever fits that one fits the real one, on which the program is then
timed.  Trials are kept in an SQLite file: started again with the same file, the search goes on where it was.
Needs `pip install 'polyopt[tune]'`.
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
from polyopt.machine import InstructionSpec, LaneSpec, Machine, machine
from polyopt.pipeline import compile, with_dtype
from polyopt.simulator import simulate

SHARES = (0.125, 0.25, 0.5, 1.0)
"""Parts of the scratchpad that a trial may use."""


def limited(real: Machine, opcode: str, lanes: Mapping[str, int], share: float) -> Machine:
    """`real` with smaller lanes of one instruction and a part of its scratchpad."""

    def limit(spec: InstructionSpec) -> InstructionSpec:
        if spec.name != opcode:
            return spec
        return replace(spec, lanes=tuple(LaneSpec(lane.name, lanes.get(lane.name, lane.max)) for lane in spec.lanes))

    memories = tuple(
        replace(m, bytes_per_partition=int(m.bytes_per_partition * share) // 64 * 64) if m.kind == "scratchpad" else m
        for m in real.memories
    )
    return replace(real, instructions=tuple(limit(s) for s in real.instructions), memories=memories)


def choose(trial: optuna.Trial, spec: InstructionSpec) -> dict[str, int]:
    """A limit for every lane that has one, in eighths of the machine's own."""
    found: dict[str, int] = {}
    for lane in spec.lanes:
        if lane.max is not None:
            step = max(1, lane.max // 8)
            found[lane.name] = trial.suggest_int(lane_name(spec, lane), step, lane.max, step=step)
    return found


def lane_name(spec: InstructionSpec, lane: LaneSpec) -> str:
    return f"{spec.name}.{lane.name}"


def measure(scop: Scop, sizes: Mapping[str, int], real: Machine, smaller: Machine) -> float:
    """Modelled time on `real`, in nanoseconds, of the program that is made for `smaller`."""
    program = compile(scop, smaller, sizes).program
    return simulate(program, real, None, sizes, timing_only=True).time_ns


def tune(
    workload: Workload, scop: Scop, real: Machine, opcode: str, trials: int, store: str, seed: int
) -> optuna.Study:
    """Run trials until the study in `store` has `trials` finished ones."""
    spec = real.spec(opcode)
    baseline = measure(scop, workload.sizes, real, real)

    def objective(trial: optuna.Trial) -> float:
        lanes = choose(trial, spec)
        share = trial.suggest_categorical("scratchpad", SHARES)
        try:
            return measure(scop, workload.sizes, real, limited(real, opcode, lanes, share))
        except (CapacityError, UnsupportedError) as error:
            raise optuna.TrialPruned(error.message) from error

    def show(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        value = f"{trial.value / 1e3:.2f} us" if trial.value is not None else "does not fit"
        best = min((t.value for t in study.trials if t.value is not None), default=baseline)
        print(f"[{trial.number + 1}/{trials}] {value}, best {best / 1e3:.2f} us, untuned {baseline / 1e3:.2f} us")

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    name = f"{workload.name} on {real.name}, {opcode}"
    study = optuna.create_study(study_name=name, storage=f"sqlite:///{store}", load_if_exists=True)
    done = len(study.get_trials(states=(optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)))
    study.sampler = optuna.samplers.TPESampler(seed=seed + done)
    if done:
        print(f"{done} trials found in {store}")
    else:
        largest = {lane_name(spec, lane): lane.max for lane in spec.lanes if lane.max is not None}
        study.enqueue_trial({**largest, "scratchpad": SHARES[-1]})
    study.optimize(objective, n_trials=max(0, trials - done), callbacks=[show])
    return study


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Tune tile sizes against the simulator.")
    parser.add_argument("--workload", default="matmul", help="a workload of the suite main")
    parser.add_argument("--target", default="trn2")
    parser.add_argument("--dtype", default=None)
    parser.add_argument("--opcode", default="matmul", help="the instruction whose lanes are limited")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--store", default="tune.db", help="SQLite file; an existing one is continued")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    (workload,) = select_workloads("main", [options.workload])
    scop = workload.scop() if options.dtype is None else with_dtype(workload.scop(), options.dtype)
    real = machine(options.target)
    study = tune(workload, scop, real, options.opcode, options.trials, options.store, options.seed)
    if not any(t.value is not None for t in study.trials):
        print("no trial fits the machine")
        return 1
    print(f"best: {study.best_value / 1e3:.2f} us with {study.best_params}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
