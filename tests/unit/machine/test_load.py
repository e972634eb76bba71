"""Machine files: what is read, and what is refused with the nearest known name."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from polyopt.errors import InputError, MachineFileError
from polyopt.ir.dtypes import DTYPES
from polyopt.machine import TAGS, load_machine, machine, machine_names, operand_refs, scalar_refs
from polyopt.machine.data import trn2

DATA: dict[str, Any] = yaml.safe_load(trn2().read_text())


def changed(path: str, value: Any = None, *, remove: bool = False) -> dict[str, Any]:
    """The description of trn2 with one entry set or removed."""
    data = copy.deepcopy(DATA)
    *outer, last = path.split(".")
    node = data
    for key in outer:
        node = node[key]
    if remove:
        del node[last]
    else:
        node[last] = value
    return data


def load(tmp_path: Path, data: Any) -> Any:
    path = tmp_path / "m.yaml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False))
    return load_machine(path)


@pytest.fixture
def refused(tmp_path: Path) -> Any:
    """The message with which a description is refused; the file is named in it."""

    def refuse(data: Any) -> str:
        with pytest.raises(MachineFileError) as caught:
            load(tmp_path, data)
        message = caught.value.message
        assert str(tmp_path / "m.yaml") in message
        return message.removeprefix(f"{tmp_path / 'm.yaml'}: ")

    return refuse


@pytest.mark.parametrize("name", machine_names())
def test_every_machine_says_where_its_figures_come_from(name: str) -> None:
    target = machine(name)
    assert target.name == name
    paths = [path for path, _ in target.figures]
    assert len(set(paths)) == len(paths)
    for _, figure in target.figures:
        assert figure.tag in TAGS and figure.source and figure.unit
    for spec in target.instructions:
        assert spec.source and spec.tag in TAGS
        assert f"instructions.{spec.name}.cycles" in paths


@pytest.mark.parametrize("name", machine_names())
def test_every_machine_is_of_one_piece(name: str) -> None:
    """Names in one section are those of another; lanes, operands and scalars of a body are declared."""
    target = machine(name)
    memories = {m.name for m in target.memories}
    streams = {e.name for e in target.engines} | set(target.transfer.queues)
    assert set(target.dtypes) <= set(DTYPES)
    assert set(target.peaks) <= set(target.dtypes)
    for engine in target.engines:
        assert set(engine.reads) | set(engine.writes) <= memories
        assert engine.clock_ghz > 0
    for spec in target.instructions:
        assert spec.engines and set(spec.engines) <= streams
        lanes = {lane.name for lane in spec.lanes}
        operands = {o.name for o in spec.operands}
        for o in spec.operands:
            assert set(o.memories) <= memories
            assert o.dtypes and set(o.dtypes) <= set(target.dtypes)
            assert o.partition is None or o.partition in lanes
        for form in spec.forms:
            used = {r.name for r in operand_refs(form.value)} | {form.target.name}
            used |= {r.name for r in scalar_refs(form.value)}
            assert used <= operands
            assert {n for r in (*operand_refs(form.value), form.target) for n in r.lanes} <= lanes


def test_figures_are_those_of_the_file() -> None:
    target = machine("trn2")
    figures = dict(target.figures)
    assert figures["engines.tensor.clock_ghz"].value == 2.4 == target.engine("tensor").clock_ghz
    assert figures["memories.psum.bank_bytes"].value == 2048 == target.memory("psum").bank_bytes
    assert target.memory_of_kind("accumulator") == target.memory("psum")
    assert target.memory_of_kind("cache") is None
    assert target.engine("tensor").overhead_cycles == 0
    assert target.spec("matmul").lane("n").max == 512
    assert target.spec("matmul").operand("W").partition == "k"
    assert target.spec("dma").lane("p").max is None


def test_a_machine_is_read_once_and_also_from_a_path(tmp_path: Path) -> None:
    assert machine("trn2") is machine("trn2")
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(changed("machine", "mine")))
    assert machine(str(path)).name == "mine"


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(InputError, match="unknown target 'trn'; did you mean 'trn2'") as caught:
        machine("trn")
    assert "`polyopt targets` lists the machines" in str(caught.value)
    with pytest.raises(InputError, match=r"cannot read the machine file none\.yaml: No such file"):
        machine("none.yaml")


def test_names_are_asked_for_with_the_nearest_known() -> None:
    target = machine("trn2")
    with pytest.raises(InputError, match="machine trn2 has no instruction 'mamul'; did you mean 'matmul'"):
        target.spec("mamul")
    target.require_dtype("bfloat16")
    with pytest.raises(InputError, match="target trn2 has no dtype 'float64'") as caught:
        target.require_dtype("float64")
    assert "it has: float32, bfloat16" in str(caught.value)


# -- refused ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("titel", "unknown key .titel; did you mean 'title'?"),
        ("memories.sbuf.partition", "unknown key memories.sbuf.partition; did you mean 'partitions'?"),
        ("memories.sbuf.partitions.unti", "unknown key memories.sbuf.partitions.unti; did you mean 'unit'?"),
        ("engines.vector.clock", "unknown key engines.vector.clock; did you mean 'clock_ghz'?"),
        ("transfer.latency", "unknown key transfer.latency; did you mean 'latency_ns'?"),
        ("instructions.matmul.lane", "unknown key instructions.matmul.lane; did you mean 'lanes'?"),
        (
            "instructions.matmul.operands.O.memory",
            "unknown key instructions.matmul.operands.O.memory; did you mean 'memories'?",
        ),
        ("peaks.float32.values", "unknown key peaks.float32.values; did you mean 'value'?"),
        ("semaphore_ns.sources", "unknown key semaphore_ns.sources; did you mean 'source'?"),
    ],
)
def test_unknown_keys_name_the_nearest_known(path: str, message: str, refused: Any) -> None:
    assert refused(changed(path, 1)) == message


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("transfer", "the file lacks the key 'transfer'"),
        ("memories.sbuf.kind", "memories.sbuf lacks the key 'kind'"),
        ("engines.vector.reads", "engines.vector lacks the key 'reads'"),
        ("transfer.queues", "transfer lacks the key 'queues'"),
        ("instructions.copy.source", "instructions.copy lacks the key 'source'"),
        ("instructions.copy.operands.A.dtypes", "instructions.copy.operands.A lacks the key 'dtypes'"),
        ("startup_ns.tag", "startup_ns lacks the key 'tag'"),
    ],
)
def test_missing_keys_are_named(path: str, message: str, refused: Any) -> None:
    assert refused(changed(path, remove=True)) == message


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("startup_ns.tag", "guess", "startup_ns.tag is 'guess'"),
        ("startup_ns.value", "many", "startup_ns.value is 'many', expected a number"),
        ("startup_ns.value", True, "startup_ns.value is True, expected a number"),
        ("startup_ns", 3, "startup_ns is not a mapping"),
        ("instructions.copy.tag", "measure", "instructions.copy.tag is 'measure'; did you mean 'measured'?"),
        ("instructions.copy.engines", ["vektor"], "instructions.copy.engines is 'vektor'; did you mean 'vector'?"),
        (
            "instructions.copy.operands.A.memories",
            ["sbuff"],
            "instructions.copy.operands.A.memories is 'sbuff'; did you mean 'sbuf'?",
        ),
        ("memories.sbuf.kind", "scratch", "memories.sbuf.kind is 'scratch'; did you mean 'scratchpad'?"),
        ("engines.vector.reads", ["psom"], "engines.vector.reads is 'psom'; did you mean 'psum'?"),
        ("transfer.writes", ["hbm2"], "transfer.writes is 'hbm2'; did you mean 'hbm'?"),
        ("peaks.float64", DATA["peaks"]["float32"], "peaks is 'float64'; did you mean 'float"),
        ("instructions.dma.kind", "transfers", "instructions.dma.kind is 'transfers'; did you mean 'transfer'?"),
        ("instructions.matmul.accumulate", "flags", "instructions.matmul.accumulate is 'flags'; did you mean 'flag'?"),
        ("instructions.matmul.lanes.m", "128", "instructions.matmul.lanes.m is '128', expected a count or null"),
        ("instructions.matmul.lanes", ["m"], "instructions.matmul.lanes is not a mapping"),
        ("instructions", [], "instructions is not a mapping"),
        (
            "instructions.copy.operands.A.partition",
            "q",
            "instructions.copy.operands.A.partition is 'q'; known: f, p",
        ),
        (
            "instructions.copy.operands.A.dtypes",
            ["bfloat"],
            "instructions.copy.operands.A.dtypes is 'bfloat'; did you mean 'bfloat16'?",
        ),
        ("instructions.copy.forms", ["O[p, f] = B[p, f]"], "instructions.copy.forms: an operand is 'B'; known: A, O"),
        ("instructions.copy.forms", ["O[p, f] = A[p, g]"], "instructions.copy.forms: a lane is 'g'; known: f, p"),
        ("instructions.copy.cycles", "max(64, f", "instructions.copy: cannot read the cost formula 'max(64, f'"),
        ("instructions.copy.cycles", "64 * g", "instructions.copy: '64 * g': unknown name 'g'; known: f, p, points"),
        (
            "instructions.copy.cycles",
            "1 if A.size == 'x' else 2",
            "instructions.copy: \"1 if A.size == 'x' else 2\": operands have .dtype and .memory, not .size",
        ),
        ("instructions.copy.cycles", "f ** 2", "instructions.copy: 'f ** 2': cannot read 'f ** 2'"),
        ("instructions.copy.forms", ["O[p, f] ="], "instructions.copy: cannot read the body 'O[p, f] ='"),
        ("instructions.copy.forms", ["O[p, f] -= A[p, f]"], "instructions.copy: 'O[p, f] -= A[p, f]': only += and *="),
        ("instructions.copy.forms", ["O[p, f]"], "instructions.copy: 'O[p, f]' is not one assignment"),
        ("instructions.copy.forms", ["O[p, f] = a"], "instructions.copy: cannot read 'a' in 'O[p, f] = a'"),
        ("instructions.copy.forms", ["O[p, 2] = A[p, f]"], "instructions.copy: cannot read '2' in 'O[p, 2] = A[p, f]'"),
        (
            "instructions.copy.forms",
            ["O[p] = op.reduce(A[p, f])"],
            "instructions.copy: 'O[p] = op.reduce(A[p, f])': write slot.reduce(X[...]) with a declared operator slot",
        ),
    ],
)
def test_wrong_values_are_named(path: str, value: Any, message: str, refused: Any) -> None:
    assert refused(changed(path, value)).startswith(message)


def test_files_that_are_no_descriptions(tmp_path: Path, refused: Any) -> None:
    assert refused("[1, 2]") == "the file is not a mapping"
    assert refused("a: [1").startswith("malformed YAML: ")
    with pytest.raises(InputError, match="cannot read the machine file"):
        load_machine(tmp_path)
