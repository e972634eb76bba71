"""Work in a child process: its value or its error comes back, and it always ends."""

from __future__ import annotations

import os

import pytest

from polyopt.errors import BudgetError, InputError
from polyopt.sets._child import run_in_child


def for_ever() -> str:
    while True:
        pass


def vanish() -> str:
    os._exit(0)


def refuse() -> str:
    raise InputError("no such thing", help="name another", id="nothing")


def test_the_value_comes_back_however_long_it_is() -> None:
    assert run_in_child(lambda: "x" * 1_000_000, "work", cpu_s=5) == "x" * 1_000_000


def test_an_error_comes_back_whole() -> None:
    with pytest.raises(InputError, match="no such thing") as caught:
        run_in_child(refuse, "work", cpu_s=5)
    assert caught.value.diagnostic.help == "name another"


def test_it_runs_in_another_process() -> None:
    assert run_in_child(os.getpid, "work", cpu_s=5) != os.getpid()


def test_work_that_never_ends_is_ended() -> None:
    with pytest.raises(BudgetError, match="scheduling S took more than 1 s of processor time"):
        run_in_child(for_ever, "scheduling S", cpu_s=1)


def test_a_child_that_says_nothing_is_no_answer() -> None:
    with pytest.raises(BudgetError, match="work took more"):
        run_in_child(vanish, "work", cpu_s=5)


def test_no_process_is_left_behind() -> None:
    run_in_child(os.getpid, "work", cpu_s=5)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
