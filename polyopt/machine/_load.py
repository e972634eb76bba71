"""Machine descriptions from YAML: schema-checked, unknown keys refused with the nearest known one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import yaml

from polyopt.errors import InputError, MachineFileError, nearest
from polyopt.machine._cost import CostFormula
from polyopt.machine._model import (
    TAGS,
    Engine,
    Figure,
    InstructionSpec,
    LaneSpec,
    Machine,
    Memory,
    OperandSpec,
    Transfer,
)
from polyopt.machine._pattern import Body, operand_refs, parse_body, scalar_refs
from polyopt.registry import Registry

__all__ = ["load_machine", "machine", "machine_names"]

Node = Mapping[str, Any]

MEMORY_KINDS = ("device", "scratchpad", "accumulator")
INSTRUCTION_KINDS = ("compute", "transfer", "general")
ACCUMULATES = ("never", "flag")

MACHINES = Registry("polyopt.machines", {"trn2": "polyopt.machine.data:trn2"})


def machine_names() -> tuple[str, ...]:
    """The names of all installed machines, sorted."""
    return MACHINES.names()


@cache
def machine(name: str) -> Machine:
    """The machine called `name`, or described by the YAML file at that path.

    Raises InputError naming the nearest known machine, MachineFileError on a malformed description.
    """
    if name in MACHINES.names():
        locate = cast("Callable[[], Path]", MACHINES.load(name))
        return load_machine(locate())
    if name.endswith((".yaml", ".yml")):
        return load_machine(Path(name))
    raise InputError(
        f"unknown target {name!r}{nearest(name, MACHINES.names())}",
        help="`polyopt targets` lists the machines; a path to a .yaml description works too",
        id="target",
    )


def load_machine(path: Path) -> Machine:
    """Read one description file."""
    try:
        data = yaml.safe_load(path.read_text())
    except OSError as error:
        raise InputError(
            f"cannot read the machine file {path}: {error.strerror}", help="give a file that you may read"
        ) from error
    except yaml.YAMLError as error:
        raise MachineFileError(f"{path}: malformed YAML: {error}", help="mend the YAML at this place") from error
    return _Loader(str(path)).machine(data)


class _Loader:
    """Reads one description and collects its figures by path."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.figures: list[tuple[str, Figure]] = []
        self.memories: tuple[str, ...] = ()
        self.streams: tuple[str, ...] = ()
        self.dtypes: tuple[str, ...] = ()

    def machine(self, data: Any) -> Machine:
        keys = ("machine", "title", "dtypes", "peaks", "memories", "engines", "transfer")
        more = ("semaphore_ns", "startup_ns", "instructions")
        node = self.mapping(data, (*keys, *more), (*keys, *more), "")
        memories = tuple(self.memory(n, m) for n, m in self.table(node["memories"], "memories"))
        self.memories, self.dtypes = tuple(m.name for m in memories), tuple(node["dtypes"])
        engines = tuple(self.engine(n, e) for n, e in self.table(node["engines"], "engines"))
        transfer = self.transfer(node["transfer"])
        self.streams = (*(e.name for e in engines), *transfer.queues)
        peaks = {d: self.figure(f, f"peaks.{d}") for d, f in self.table(node["peaks"], "peaks")}
        self.names(peaks, self.dtypes, "peaks")
        specs = tuple(self.instruction(n, s) for n, s in self.table(node["instructions"], "instructions"))
        return Machine(
            name=str(node["machine"]),
            title=str(node["title"]),
            memories=memories,
            engines=engines,
            transfer=transfer,
            instructions=specs,
            peaks=MappingProxyType(peaks),
            dtypes=self.dtypes,
            semaphore_ns=self.figure(node["semaphore_ns"], "semaphore_ns"),
            startup_ns=self.figure(node["startup_ns"], "startup_ns"),
            figures=tuple(self.figures),
        )

    def memory(self, name: str, data: Any) -> Memory:
        optional = ("partitions", "bytes_per_partition", "bank_bytes", "align_bytes", "starts", "bytes_per_ns")
        node = self.mapping(data, ("kind", *optional), ("kind",), f"memories.{name}")

        def number(key: str, default: float) -> float:
            return self.figure(node[key], f"memories.{name}.{key}") if key in node else default

        self.one_of(node["kind"], MEMORY_KINDS, f"memories.{name}.kind")
        return Memory(
            name=name,
            kind=node["kind"],
            partitions=int(number("partitions", 1)),
            bytes_per_partition=int(number("bytes_per_partition", 0)),
            bank_bytes=int(number("bank_bytes", 0)),
            align_bytes=int(number("align_bytes", 1)),
            starts=tuple((int(c), tuple(int(x) for x in s)) for c, s in node.get("starts", ())),
            bytes_per_ns=number("bytes_per_ns", 0.0),
        )

    def engine(self, name: str, data: Any) -> Engine:
        keys = ("clock_ghz", "overhead_cycles", "reads", "writes")
        node = self.mapping(data, keys, ("clock_ghz", "reads", "writes"), f"engines.{name}")
        overhead = node.get("overhead_cycles")
        return Engine(
            name=name,
            clock_ghz=self.figure(node["clock_ghz"], f"engines.{name}.clock_ghz"),
            reads=self.names(node["reads"], self.memories, f"engines.{name}.reads"),
            writes=self.names(node["writes"], self.memories, f"engines.{name}.writes"),
            overhead_cycles=int(self.figure(overhead, f"engines.{name}.overhead_cycles")) if overhead else 0,
        )

    def transfer(self, data: Any) -> Transfer:
        keys = ("queues", "engines", "bytes_per_ns", "descriptor_ns", "latency_ns", "reads", "writes")
        node = self.mapping(data, keys, keys, "transfer")
        return Transfer(
            queues=tuple(node["queues"]),
            engines=int(self.figure(node["engines"], "transfer.engines")),
            bytes_per_ns=self.figure(node["bytes_per_ns"], "transfer.bytes_per_ns"),
            descriptor_ns=self.figure(node["descriptor_ns"], "transfer.descriptor_ns"),
            latency_ns=self.figure(node["latency_ns"], "transfer.latency_ns"),
            reads=self.names(node["reads"], self.memories, "transfer.reads"),
            writes=self.names(node["writes"], self.memories, "transfer.writes"),
        )

    def instruction(self, name: str, data: Any) -> InstructionSpec:
        where = f"instructions.{name}"
        needed = ("engines", "lanes", "forms", "operands", "cycles", "source", "tag")
        more = ("kind", "ops", "scalars", "accumulate", "accumulate_dtype", "maskable")
        node = self.mapping(data, (*needed, *more), needed, where)
        self.one_of(node["tag"], TAGS, f"{where}.tag")
        kind, accumulate = node.get("kind", "compute"), node.get("accumulate", "never")
        self.one_of(kind, INSTRUCTION_KINDS, f"{where}.kind")
        self.one_of(accumulate, ACCUMULATES, f"{where}.accumulate")
        lanes = tuple(self.lane(n, m, where) for n, m in self.table(node["lanes"], f"{where}.lanes"))
        ops = {k: tuple(v) for k, v in self.table(node.get("ops", {}), f"{where}.ops")}
        scalars = tuple(node.get("scalars", ()))
        label = f"{self.where}: {where}"
        forms = tuple(parse_body(t, ops=ops, scalars=scalars, where=label) for t in node["forms"])
        names = tuple(lane.name for lane in lanes)
        specified = self.table(node["operands"], f"{where}.operands")
        operands = tuple(self.operand(n, o, names, f"{where}.operands.{n}") for n, o in specified)
        for form in forms:
            self.form(form, tuple(o.name for o in operands), names, where)
        formula = CostFormula(str(node["cycles"]))
        formula.check(names, tuple(o.name for o in operands), label)
        self.figures.append((f"{where}.cycles", Figure(0.0, formula.text, str(node["source"]), str(node["tag"]))))
        return InstructionSpec(
            name=name,
            engines=self.names(node["engines"], self.streams, f"{where}.engines"),
            lanes=lanes,
            forms=forms,
            operands=operands,
            cycles=formula,
            kind=kind,
            accumulate=accumulate,
            accumulate_dtype=str(node.get("accumulate_dtype", "float32")),
            maskable=bool(node.get("maskable", False)),
            source=str(node["source"]),
            tag=str(node["tag"]),
        )

    def lane(self, name: str, limit: Any, where: str) -> LaneSpec:
        if limit is not None and (type(limit) is not int or limit < 1):
            raise MachineFileError(f"{self.where}: {where}.lanes.{name} is {limit!r}, expected a count or null")
        return LaneSpec(name, limit)

    def form(self, form: Body, operands: tuple[str, ...], lanes: tuple[str, ...], where: str) -> None:
        """Every operand, scalar and lane of a body is declared."""
        refs = (form.target, *operand_refs(form.value))
        used = [*(r.name for r in refs), *(r.name for r in scalar_refs(form.value))]
        self.names(used, operands, f"{where}.forms: an operand")
        self.names([n for r in refs for n in r.lanes], lanes, f"{where}.forms: a lane")

    def operand(self, name: str, data: Any, lanes: tuple[str, ...], where: str) -> OperandSpec:
        keys = ("memories", "partition", "dtypes", "single_bank")
        node = self.mapping(data, keys, ("memories", "dtypes"), where)
        partition = node.get("partition")
        if partition is not None:
            self.one_of(partition, lanes, f"{where}.partition")
        return OperandSpec(
            name=name,
            memories=self.names(node["memories"], self.memories, f"{where}.memories"),
            partition=partition,
            dtypes=self.names(node["dtypes"], self.dtypes, f"{where}.dtypes"),
            single_bank=bool(node.get("single_bank", False)),
        )

    def figure(self, data: Any, path: str) -> float:
        keys = ("value", "unit", "source", "tag")
        node = self.mapping(data, keys, keys, path)
        self.one_of(node["tag"], TAGS, f"{path}.tag")
        if isinstance(node["value"], bool) or not isinstance(node["value"], (int, float)):
            raise MachineFileError(f"{self.where}: {path}.value is {node['value']!r}, expected a number")
        figure = Figure(float(node["value"]), str(node["unit"]), str(node["source"]), str(node["tag"]))
        self.figures.append((path, figure))
        return figure.value

    def mapping(self, data: Any, known: Iterable[str], needed: Iterable[str], path: str) -> Node:
        if not isinstance(data, Mapping):
            raise MachineFileError(
                f"{self.where}: {path or 'the file'} is not a mapping", help="write key: value lines"
            )
        for key in data:
            if key not in tuple(known):
                raise MachineFileError(f"{self.where}: unknown key {path}.{key}{nearest(str(key), known)}")
        for key in needed:
            if key not in data:
                raise MachineFileError(
                    f"{self.where}: {path or 'the file'} lacks the key {key!r}",
                    help="add it; polyopt/machine/data/trn2.yaml shows all of them",
                )
        return data

    def table(self, data: Any, path: str) -> Iterable[tuple[str, Any]]:
        """The entries of a mapping whose keys are free names."""
        if not isinstance(data, Mapping):
            raise MachineFileError(f"{self.where}: {path} is not a mapping", help="write key: value lines")
        return data.items()

    def names(self, data: Iterable[str], known: Iterable[str], path: str) -> tuple[str, ...]:
        """A list of known names."""
        for name in data:
            self.one_of(name, known, path)
        return tuple(data)

    def one_of(self, value: Any, known: Iterable[str], path: str) -> None:
        if value not in tuple(known):
            raise MachineFileError(f"{self.where}: {path} is {value!r}{nearest(str(value), known)}")
