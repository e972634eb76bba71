"""Trees with extension and expansion nodes: instances that run again, groups that run as one."""

from __future__ import annotations

import pytest

from polyopt.errors import InputError
from polyopt.ir import Scop
from polyopt.schedule import Verdict, check, replay
from tests.unit.schedule._scops import program


def stencil(produce: str = "F[j] = X[j]", consume: str = "G[i] = F[i] + F[i + 1]") -> Scop:
    """A producer and a consumer that reads two neighbours of it."""
    return program(
        "X[N + 1] float32 inout; F[N + 1] float32 inout; G[N + 1] float32 inout",
        ("f", "[j] : 0 <= j <= N", "[0, j]", produce),
        ("g", "[i] : 0 <= i < N", "[1, i]", consume),
        params="N",
        context="N >= 2",
    )


def overlapped(extra: int = 4, begin: str = "4t", first: str = "f[j]", second: str = "g[i]") -> str:
    """Tiles of 4 of the consumer; each runs what it needs of the producer by itself."""
    return f"""
domain: "[N] -> {{ g[i] : 0 <= i < N }}"
child:
  schedule: "[N] -> [{{ g[i] -> [floor(i/4)] }}]"
  child:
    extension: "[N] -> {{ [t] -> f[j] : {begin} <= j <= 4t + {extra} and 0 <= j <= N }}"
    child:
      sequence:
      - filter: "[N] -> {{ {first} }}"
        child:
          schedule: "[N] -> [{{ {first} -> [{first[2]}] }}]"
      - filter: "[N] -> {{ {second} }}"
        child:
          schedule: "[N] -> [{{ {second} -> [{second[2]}] }}]"
"""


def grouped(first: str = "f[j]", second: str = "g[i]") -> str:
    """One group of f[k + 1] and g[k] for each k."""
    return f"""
domain: "[N] -> {{ K[k] : -1 <= k < N }}"
child:
  schedule: "[N] -> [{{ K[k] -> [(k)] }}]"
  child:
    contraction: "[N] -> {{ f[j] -> K[j - 1] : 0 <= j <= N; g[i] -> K[i] }}"
    expansion: "[N] -> {{ K[k] -> f[k + 1]; K[k] -> g[k] : k >= 0 }}"
    child:
      sequence:
      - filter: "[N] -> {{ {first} }}"
      - filter: "[N] -> {{ {second} }}"
"""


def shown(scop: Scop, tree: str) -> tuple[Verdict, bool | None]:
    verdict = check(scop, tree)
    replayed = replay(scop, verdict, tree)
    return verdict, replayed.differs if replayed is not None else None


@pytest.mark.parametrize("extra", [4, 5, 9])
def test_a_producer_may_run_again(extra: int) -> None:
    assert check(stencil(), overlapped(extra)).verdict == "legal"
    assert check(stencil(), overlapped(extra), at={"N": 7}).verdict == "legal"


def test_a_tile_that_lacks_a_producer_is_refused() -> None:
    with pytest.raises(InputError, match=r"gives no order vector to f\[4\]"):
        check(stencil(), overlapped(3))


def test_a_producer_that_is_only_run_by_the_next_tile_is_illegal() -> None:
    verdict, differs = shown(stencil(), overlapped(4, begin="4t + 1 - 4*(1 - min(t, 1))"))
    assert verdict.verdict == "legal"  # every tile but the first begins one later: still all that it needs
    verdict, differs = shown(stencil(), overlapped(9, first="g[i]", second="f[j]"))
    assert (verdict.verdict, differs) == ("illegal", True)
    assert str(verdict.witness) == "flow dependence f[0] -> g[0] on F[0] with N = 2"


@pytest.mark.parametrize("produce", ["F[j] += X[j]", "F[j] = F[j]*2.0"])
def test_an_instance_that_reads_what_it_wrote_may_not_run_again(produce: str) -> None:
    verdict, differs = shown(stencil(produce), overlapped())
    assert (verdict.verdict, differs) == ("illegal", True)
    assert str(verdict.witness) == "flow dependence f[4] -> f[4] on F[4] with N = 5"
    assert verdict.reason.endswith("it runs at [0, 0, 4] and again later, and reads what it wrote")


def test_a_maximum_may_be_taken_twice() -> None:
    assert check(stencil("F[j] = max(F[j], X[j])"), overlapped()).verdict == "legal"


def test_what_a_repeated_instance_reads_must_stay() -> None:
    """The consumer overwrites what the second run of the producer reads."""
    verdict, differs = shown(stencil(consume="X[i + 1] = F[i] + F[i + 1]"), overlapped())
    assert (verdict.verdict, differs) == ("illegal", True)
    assert str(verdict.witness) == "anti dependence f[4] -> g[3] on X[4] with N = 5"


def test_what_a_repeated_instance_writes_must_not_come_late() -> None:
    verdict, _ = shown(stencil(consume="F[i + 1] = F[i]*2.0"), overlapped())
    assert verdict.verdict == "illegal"


def test_a_call_does_not_run_twice() -> None:
    scop = program(
        "X[4] float32 inout; Y[4] float32 inout; Z[4] float32 inout",
        ("c", "[j] : 0 <= j < 1", "[0, j]", "{may_read: [X], may_write: [Y]}"),
        ("g", "[i] : 0 <= i < 2", "[1, i]", "Z[i] = Z[i] + 1.0"),
        params="",
    )
    tree = """
domain: "{ g[i] : 0 <= i < 2 }"
child:
  schedule: "[{ g[i] -> [i] }]"
  child:
    extension: "{ [t] -> c[j] : 0 <= j < 1 }"
    child:
      sequence:
      - filter: "{ c[j] }"
        child:
          schedule: "[{ c[j] -> [j] }]"
      - filter: "{ g[i] }"
"""
    assert check(scop, tree).verdict == "illegal"


def test_groups_run_as_one() -> None:
    assert check(stencil(), grouped()).verdict == "legal"
    verdict, differs = shown(stencil(), grouped("g[i]", "f[j]"))
    assert (verdict.verdict, differs) == ("illegal", True)
    assert str(verdict.witness) == "flow dependence f[1] -> g[0] on F[1] with N = 2"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[t] -> f[j]", "[t, u] -> f[j]", "has 2 iterations in front, the bands above it have 1 loops"),
        (" f[j]", " h[j]", "names 'h', which is no statement"),
        ('schedule: "[N] -> [{ f[j] -> [j] }]"', 'schedule: "[N] -> [{ f[j] -> [j] : j > 2 }]"', "says nothing about"),
        ('- filter: "[N] -> { g[i] }"', '- filter: "[N] -> { g[i] : i > 1 }"', "no child of a sequence runs"),
    ],
)
def test_incomplete_trees(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        check(stencil(), overlapped().replace(old, new))
    assert message in caught.value.message


def test_an_expansion_that_forgets_a_group_is_refused() -> None:
    with pytest.raises(InputError, match="says nothing about"):
        check(stencil(), grouped().replace("K[k] -> f[k + 1];", "K[k] -> f[k + 1] : k >= 0;"))


def test_every_run_counts_where_more_than_a_value_is_at_stake() -> None:
    """A maximum may be taken twice, but not once more after something was added to it."""
    scop = stencil("F[j] = max(F[j], X[j])", "F[i + 1] += G[i]")
    verdict, _ = shown(scop, overlapped())
    assert verdict.verdict == "illegal"
    assert verdict.witness is not None
    assert (verdict.witness.source.statement, verdict.witness.sink.statement) == ("f", "g")


def test_children_of_a_set_node_run_in_any_order() -> None:
    assert check(stencil(), overlapped()).verdict == "legal"
    assert check(stencil(), overlapped().replace("sequence:", "set:")).verdict == "illegal"


def test_an_extension_below_a_sequence() -> None:
    """The positions of the sequences above stand between the iterations of the bands."""
    tree = """
domain: "[N] -> { g[i] : 0 <= i < N }"
child:
  sequence:
  - filter: "[N] -> { g[i] : i < 4 }"
  - filter: "[N] -> { g[i] : i >= 4 }"
"""
    below = """
    child:
      schedule: "[N] -> [{ g[i] -> [floor(i/4)] }]"
      child:
        extension: "[N] -> { [t] -> f[j] : 4t <= j <= 4t + 4 and 0 <= j <= N }"
        child:
          sequence:
          - filter: "[N] -> { f[j] }"
          - filter: "[N] -> { g[i] }"
"""
    first, second = tree.rstrip().rsplit("\n", 1)
    assert check(stencil(), first + below + second + below).verdict == "legal"
    late = below.replace('          - filter: "[N] -> { f[j] }"\n', "") + '          - filter: "[N] -> { f[j] }"\n'
    assert check(stencil(), first + late + second + late).verdict == "illegal"


def test_an_extension_below_a_sequence_below_a_band() -> None:
    tree = """
domain: "[N] -> { g[i] : 0 <= i < N }"
child:
  schedule: "[N] -> [{ g[i] -> [floor(i/8)] }]"
  child:
    sequence:
    - filter: "[N] -> { g[i] : (i mod 8) < 4 }"
    - filter: "[N] -> { g[i] : (i mod 8) >= 4 }"
"""
    below = """
      child:
        schedule: "[N] -> [{ g[i] -> [floor(i/4)] }]"
        child:
          extension: "[N] -> { [t, u] -> f[j] : 2t <= u <= 2t + 1 and 4u <= j <= 4u + 4 and 0 <= j <= N }"
          child:
            sequence:
            - filter: "[N] -> { f[j] }"
            - filter: "[N] -> { g[i] }"
"""
    first, second = tree.rstrip().rsplit("\n", 1)
    assert check(stencil(), first + below + second + below).verdict == "legal"
