"""The walk over a program in program order, as generated Python: loops, guards, waits and clocks.

The source is built from our own affine trees, with every variable renamed, so it contains no text of the user's.  One
generated function runs the whole program; per instance it finds the cost of instances of this kind (a dictionary keyed
by what the cost depends on), the latest of the stream's own clock and the waits, and the completion.  With a handler it
also calls it for every instance, in program order, with extents, evaluated bases, loop variables and the reach of every
wait.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from polyopt.machine import Machine
from polyopt.sets import Affine, Constraint, var
from polyopt.simulator._affine import condition_source, is_within, source
from polyopt.simulator._limits import watched_numbers
from polyopt.simulator._memory import View
from polyopt.simulator._plan import LoopPlan, OperandPlan, Plan, SitePlan
from polyopt.simulator._timing import Cost, CostModel, Pool

__all__ = ["Handler", "Log", "walk_program", "walk_source"]

Handler = Callable[[SitePlan, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]], None]
"""handler(site, extents, numbers of the views, loop variables, instances covered by each wait)."""

DEPTH = 14
"""Python nests at most 20 loops: deeper ones go into inner functions, this many levels each."""


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """All instances in program order: site number, end, the instance that it waited for last (-1: none), start.

    costs: per site, the kinds of instances with their counts.  starts and at are kept for events only.
    """

    sites: array[int]
    ends: array[float]
    binding: array[int]
    starts: array[float]
    at: list[tuple[int, ...]]
    costs: tuple[tuple[Cost, ...], ...]
    pool: Pool


def walk_program(plan: Plan, *, handler: Handler | None = None, keep_events: bool = False) -> Log:
    """Walk `plan` in program order.  Raises ProgramError on a broken limit or a view outside its array."""
    machine = plan.machine
    models = [CostModel(s, machine) for s in plan.sites]
    tables: list[dict[Any, Cost]] = [{} for _ in plan.sites]
    log = Log(array("l"), array("d"), array("q"), array("d"), [], (), Pool(machine.startup_ns))

    def miss(number: int, key: Any, at: tuple[int, ...]) -> Cost:
        cost = models[number].cost(dict(zip(plan.sites[number].loops, at, strict=True)))
        tables[number][key] = cost
        return cost

    views = [[View(o) for o in s.operands] for s in plan.sites]

    def outside(number: int, extents: tuple[int, ...], numbers: tuple[int, ...], at: tuple[int, ...]) -> None:
        site = plan.sites[number]
        for view in views[number]:
            view.strided(site, extents, numbers, dict(zip(site.loops, at, strict=True)))

    text = walk_source(plan, with_handler=handler is not None, keep_events=keep_events)
    scope: dict[str, Any] = {}
    exec(compile(text, f"<walk of {plan.program.name}>", "exec"), scope)
    scope["walk"](plan.sites, tables, miss, outside, log, handler)
    costs = tuple(tuple(t.values()) for t in tables)
    return Log(log.sites, log.ends, log.binding, log.starts, log.at, costs, log.pool)


def walk_source(plan: Plan, *, with_handler: bool, keep_events: bool) -> str:
    """The generated function `walk(sites, tables, miss, outside, log, handler)`."""
    return _Writer(plan, plan.machine, with_handler, keep_events).text()


class _Writer:
    """Writes the function line by line."""

    def __init__(self, plan: Plan, machine: Machine, with_handler: bool, keep_events: bool) -> None:
        self.plan = plan
        self.machine = machine
        self.with_handler = with_handler
        self.keep_events = keep_events
        self.lines: list[str] = []
        self.names: dict[str, str] = {}
        self.numbers = {s.name: s.number for s in plan.sites}
        self.queues = {q: k for k, q in enumerate(dict.fromkeys(s.instr.queue for s in plan.sites))}
        self.targets = self.waited_for()
        self.marks = self.marked()

    # -- waits ----------------------------------------------------------------------------------------------------
    def target(self, name: str) -> str | None:
        """The suffix of the lists that log a wait's site or queue; None for a queue that runs nothing."""
        if name in self.numbers:
            return f"s{self.numbers[name]}"
        return f"q{self.queues[name]}" if name in self.queues else None

    def waited_for(self) -> set[str]:
        found = (self.target(w.site) for s in self.plan.sites for w in s.instr.waits)
        return {t for t in found if t is not None}

    def marked(self) -> dict[int, list[str]]:
        """Loop number -> targets of which the instances before each iteration must be known."""
        found: dict[int, list[str]] = {}

        def visit(node: LoopPlan | SitePlan, loops: Mapping[str, LoopPlan]) -> None:
            if isinstance(node, LoopPlan):
                for inner in node.body:
                    visit(inner, {**loops, node.var: node})
                return
            for w in node.instr.waits:
                t = self.target(w.site)
                if w.loop is not None and t is not None and t not in found.setdefault(loops[w.loop].number, []):
                    found[loops[w.loop].number].append(t)

        for node in self.plan.body:
            visit(node, {})
        return found

    # -- the function ---------------------------------------------------------------------------------------------
    def text(self) -> str:
        self.line(0, "def walk(sites, tables, miss, outside, log, handler):")
        state = self.state()
        for name, value in state.items():
            self.line(1, f"{name} = {value}")
        self.state_names = ", ".join(state)
        for node in self.plan.body:
            self.node(node, 1, 0)
        if not self.plan.body:
            self.line(1, "pass")
        return "\n".join(self.lines) + "\n"

    def state(self) -> dict[str, str]:
        """Every variable of the function with its first value."""
        state = {"g": "0", "take": "log.pool.take", "sites_append": "log.sites.append"}
        state.update(ends_append="log.ends.append", binding_append="log.binding.append")
        if self.keep_events:
            state.update(starts_append="log.starts.append", at_append="log.at.append")
        for k in self.queues.values():
            state.update({f"t{k}": repr(float(self.machine.startup_ns)), f"b{k}": "-1"})
        for t in sorted(self.targets):
            state.update({f"ends_{t}": "[]", f"ids_{t}": "[]"})
        for s in self.plan.sites:
            state[f"find{s.number}"] = f"tables[{s.number}].get"
            if self.with_handler:
                state[f"site{s.number}"] = f"sites[{s.number}]"
        for loop, targets in sorted(self.marks.items()):
            state.update({f"marks{loop}_{t}": "[]" for t in targets})
        return state

    def line(self, level: int, text: str) -> None:
        self.lines.append("    " * level + text)

    def node(self, node: LoopPlan | SitePlan, level: int, depth: int) -> None:
        if isinstance(node, SitePlan):
            self.site(node, level)
        elif depth and depth % DEPTH == 0:
            self.line(level, f"def inner{node.number}():")
            self.line(level + 1, f"nonlocal {self.state_names}")
            self.loop(node, level + 1, depth)
            self.line(level, f"inner{node.number}()")
        else:
            self.loop(node, level, depth)

    def loop(self, loop: LoopPlan, level: int, depth: int) -> None:
        targets = self.marks.get(loop.number, [])
        for t in targets:
            self.line(level, f"marks{loop.number}_{t} = []")
        bounds = f"{source(loop.lower, self.names)}, {source(loop.upper, self.names)}"
        outer = self.names
        self.names = {**outer, loop.var: f"v{loop.number}"}
        self.line(level, f"for v{loop.number} in range({bounds}, {loop.step}):")
        for t in targets:
            self.line(level + 1, f"marks{loop.number}_{t}.append(len(ends_{t}))")
        for node in loop.body:
            self.node(node, level + 1, depth + 1)
        if not loop.body:
            self.line(level + 1, "pass")
        self.names = outer

    # -- one instruction ------------------------------------------------------------------------------------------
    def site(self, site: SitePlan, level: int) -> None:
        if site.guards:
            self.line(level, f"if {' and '.join(condition_source(c, self.names) for c in site.guards)}:")
            level += 1
        extents = [self.extent(site, k, level) for k in range(len(site.extents))]
        empty = [n for n in extents if not n.isdigit()]
        if any(n.isdigit() and int(n) < 1 for n in extents):
            self.line(level, "pass")
            return
        if empty:
            self.line(level, f"if {' and '.join(f'{n} > 0' for n in empty)}:")
            level += 1
        at = tuple_source([self.names[v] for v in site.loops])
        numbers = tuple_source(self.view_numbers(site)) if site.spec.kind != "general" else "()"
        if not self.with_handler:
            self.bounds(site, extents, numbers, at, level)
        self.cost(site, extents, at, level)
        reaches = self.start(site, level)
        self.finish(site, at, level)
        if self.with_handler:
            arguments = f"{tuple_source(extents)}, {numbers}, {at}, {tuple_source(reaches)}"
            self.line(level, f"handler(site{site.number}, {arguments})")

    def extent(self, site: SitePlan, k: int, level: int) -> str:
        """A constant, or the name of a variable that now holds the extent."""
        expr = site.extents[k]
        if expr.is_constant:
            return str(max(0, expr.const))
        self.line(level, f"x{k} = {source(expr, self.names)}")
        return f"x{k}"

    def view_numbers(self, site: SitePlan) -> list[str]:
        return [source(n, self.names) for v in site.all_views for n in (*v.base, v.copy)]

    def bounds(self, site: SitePlan, extents: list[str], numbers: str, at: str, level: int) -> None:
        """Check the corners of unmasked strided views, unless they are inside for all loop variables."""
        if site.masks_operands or site.spec.kind == "general":
            return
        checks: list[str] = []
        for operand in site.operands:
            if not operand.indices:
                checks += self.corner_checks(site, operand)
        if checks:
            self.line(level, f"if {' or '.join(checks)}:")
            self.line(level + 1, f"outside({site.number}, {tuple_source(extents)}, {numbers}, {at})")

    def corner_checks(self, site: SitePlan, operand: OperandPlan) -> list[str]:
        checks = []
        for axis, base in enumerate(operand.base):
            low = high = base
            for steps, extent in zip(operand.steps, site.extents, strict=True):
                if steps[axis] > 0:
                    high = high + (extent - 1) * steps[axis]
                elif steps[axis] < 0:
                    low = low + (extent - 1) * steps[axis]
            if not is_within(low, high, operand.array.shape[axis], site.ranges):
                limit = operand.array.shape[axis]
                checks += [f"{source(low, self.names)} < 0", f"{source(high, self.names)} >= {limit}"]
        return checks

    def cost(self, site: SitePlan, extents: list[str], at: str, level: int) -> None:
        """Set c to the cost of this kind of instance and count it."""
        parts = [n for n in extents if not n.isdigit()] + [source(e, self.names) for e in key_parts(site)]
        key = parts[0] if len(parts) == 1 else tuple_source(parts)
        self.line(level, f"k = {key}")
        self.line(level, f"c = find{site.number}(k)")
        self.line(level, "if c is None:")
        self.line(level + 1, f"c = miss({site.number}, k, {at})")
        self.line(level, "c.count += 1")

    def start(self, site: SitePlan, level: int) -> list[str]:
        """Set t to the earliest start and b to the instance that decides it; how far each wait reaches."""
        queue = self.queues[site.instr.queue]
        self.line(level, f"t = t{queue}")
        self.line(level, f"b = b{queue}")
        reaches: list[str] = []
        for k, wait in enumerate(site.instr.waits):
            target = self.target(wait.site)
            if target is None:
                reaches.append("0")
                continue
            reaches.append(f"n{k}")
            self.line(level, f"n{k} = {self.reach(site, k, target)}")
            self.line(level, f"if n{k}:")
            self.line(level + 1, f"w = ends_{target}[n{k} - 1] + {float(self.machine.semaphore_ns)!r}")
            self.line(level + 1, "if w > t:")
            self.line(level + 2, "t = w")
            self.line(level + 2, f"b = ids_{target}[n{k} - 1]")
        return reaches

    def reach(self, site: SitePlan, k: int, target: str) -> str:
        wait = site.instr.waits[k]
        if wait.loop is None:
            return f"len(ends_{target})"
        loop = self.names[wait.loop][1:]
        marks = f"marks{loop}_{target}"
        if wait.distance == 1:
            return f"{marks}[-1]"
        return f"{marks}[-{wait.distance}] if len({marks}) > {wait.distance - 1} else {marks}[0]"

    def finish(self, site: SitePlan, at: str, level: int) -> None:
        queue = self.queues[site.instr.queue]
        if site.engine is None:
            self.line(level, f"t, t{queue}, w = take(t, c.ns, g)")
            self.line(level, "if w >= 0:")
            self.line(level + 1, "b = w")
            self.line(level, f"e = t{queue} + {float(self.machine.transfer.latency_ns)!r}")
        else:
            self.line(level, f"e = t{queue} = t + c.ns")
        self.line(level, f"b{queue} = g")
        self.line(level, f"sites_append({site.number})")
        self.line(level, "ends_append(e)")
        self.line(level, "binding_append(b)")
        if self.keep_events:
            self.line(level, "starts_append(t)")
            self.line(level, f"at_append({at})")
        for target in (f"s{site.number}", f"q{queue}"):
            if target in self.targets:
                self.line(level, f"ends_{target}.append(e)")
                self.line(level, f"ids_{target}.append(g)")
        self.line(level, "g += 1")


def tuple_source(parts: list[str]) -> str:
    """Python text of a tuple."""
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def key_parts(site: SitePlan) -> list[Affine]:
    """What an instance's cost and limits depend on, apart from extents and constants."""
    parts: list[Affine] = []
    if site.spec.kind == "compute":
        for operand in site.operands:
            numbers = (*operand.base, operand.copy)
            for k in watched_numbers(operand):
                n = numbers[k]
                if k == len(operand.base):
                    n = n % operand.array.copies if operand.array.copies > 1 else Affine()
                if not n.is_constant:
                    parts.append(n)
    if site.masks_operands:
        parts += [p for c in site.mask for p in mask_parts(site, c)]
    return list(dict.fromkeys(parts))


def mask_parts(site: SitePlan, condition: Constraint) -> list[Affine]:
    """What a constraint's truth depends on besides lanes: one number when it is linear in them, else loop variables."""
    if condition.expr.is_linear_in(site.lanes):
        rest = condition.expr.substitute(dict.fromkeys(site.lanes, 0))
        return [] if rest.is_constant else [rest]
    return [var(v) for v in sorted(condition.expr.variables()) if v in site.loops]
