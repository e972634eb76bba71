"""Work in a child process that ends: for isl calls that an operation budget does not bound.

isl's scheduler solves its integer programs by cutting planes, and that search counts no operations: a program of two
statements at N = 7 keeps it busy for ever.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import warnings
from collections.abc import Callable
from typing import TypeVar

from polyopt.errors import BudgetError

__all__ = ["run_in_child"]

T = TypeVar("T")

WALL_PER_CPU = 10
"""Seconds on the clock for each of processor time, on a busy machine: after that the child counts as stuck."""


def run_in_child(work: Callable[[], T], phase: str, *, cpu_s: int) -> T:
    """The value of `work()`, computed in a forked process and sent back pickled; what it raises is raised here.

    Raises BudgetError when it takes more than `cpu_s` seconds of processor time, or when no process can be started.
    Where the operating system cannot fork, the work is done here, without that limit.
    """
    if not hasattr(os, "fork"):
        return work()
    reading, writing = os.pipe()
    try:
        child = _fork()
    except OSError as error:
        os.close(reading)
        os.close(writing)
        raise BudgetError(f"{phase} needs a process of its own: {error}", help="allow more processes") from error
    if child == 0:
        _answer(work, writing, cpu_s)
    os.close(writing)
    try:
        answer = _read_all(reading, cpu_s * WALL_PER_CPU)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):  # someone else waits for our children
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    try:
        done, value = pickle.loads(answer)  # from our own child
    except (EOFError, pickle.UnpicklingError) as error:  # nothing, or cut off
        raise BudgetError(
            f"{phase} took more than {cpu_s} s of processor time",
            help="fix sizes, split the program, or keep its order",
        ) from error
    if not done:
        raise value
    result: T = value
    return result


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # "multi-threaded": a child that gets stuck is ended
        return os.fork()


def _answer(work: Callable[[], T], writing: int, cpu_s: int) -> None:
    """The child: write (done, value or exception) and leave without any clean-up, which is the parent's."""
    import resource  # not on every operating system

    status = 1
    try:
        _, most_s = resource.getrlimit(resource.RLIMIT_CPU)
        allowed_s = cpu_s if most_s == resource.RLIM_INFINITY else min(cpu_s, most_s)
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (allowed_s, most_s))
        answer: tuple[bool, T | Exception]
        try:
            answer = True, work()
        except Exception as error:  # sent to the parent, which raises it
            answer = False, error
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe)
        status = 0
    finally:
        os._exit(status)


def _read_all(reading: int, wall_s: float) -> bytes:
    """What comes through the pipe until it is closed; nothing when it does not end in time."""
    pieces: list[bytes] = []
    while select.select([reading], [], [], wall_s)[0]:
        piece = os.read(reading, 1 << 16)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
    return b""
