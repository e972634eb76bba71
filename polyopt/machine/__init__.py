"""Machine descriptions and instruction specifications as data (layer 2)."""

from polyopt.machine._cost import CostFormula, OperandKind
from polyopt.machine._load import load_machine, machine, machine_names
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
from polyopt.machine._pattern import (
    Body,
    IndexRef,
    MaskRef,
    OperandRef,
    OpRef,
    Pattern,
    ScalarRef,
    operand_refs,
    scalar_refs,
)

__all__ = [
    "TAGS",
    "Body",
    "CostFormula",
    "Engine",
    "Figure",
    "IndexRef",
    "InstructionSpec",
    "LaneSpec",
    "Machine",
    "MaskRef",
    "Memory",
    "OpRef",
    "OperandKind",
    "OperandRef",
    "OperandSpec",
    "Pattern",
    "ScalarRef",
    "Transfer",
    "load_machine",
    "machine",
    "machine_names",
    "operand_refs",
    "scalar_refs",
]
