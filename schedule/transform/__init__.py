"""Transformations of schedule trees: plain functions from tree to tree, legal by the judge or refused with the witness.

    from polyopt.schedule import original_tree, transform

    tree = original_tree(scop)
    tree = transform.skew(scop, tree, "i", by="t")
    tree = transform.tile(scop, tree, "t", {"t": 4, "i": 32})

Each takes the program, the tree and where to apply it: a loop by its name (or by the path of its band and its name), a
band by one of its loops, by a mark above it or by its path, a sequence by its path.
"""

from polyopt.schedule.transform._edit import Loop
from polyopt.schedule.transform._legal import require_legal
from polyopt.schedule.transform.auto import AutoSchedule, auto
from polyopt.schedule.transform.contract import Contraction, contract
from polyopt.schedule.transform.diamond import diamond
from polyopt.schedule.transform.distribute import distribute_loop
from polyopt.schedule.transform.expand import expand
from polyopt.schedule.transform.fuse import fuse
from polyopt.schedule.transform.interchange import interchange
from polyopt.schedule.transform.parallel import parallel, vectorise
from polyopt.schedule.transform.reorder import reorder
from polyopt.schedule.transform.reverse import reverse
from polyopt.schedule.transform.scale import scale
from polyopt.schedule.transform.separate import separate
from polyopt.schedule.transform.shift import shift
from polyopt.schedule.transform.sink import sink
from polyopt.schedule.transform.skew import skew
from polyopt.schedule.transform.split import index_set_split, peel, split_loop
from polyopt.schedule.transform.strip_mine import strip_mine
from polyopt.schedule.transform.tile import tile
from polyopt.schedule.transform.unroll import unroll, unroll_and_jam

__all__ = [
    "AutoSchedule",
    "Contraction",
    "Loop",
    "auto",
    "contract",
    "diamond",
    "distribute_loop",
    "expand",
    "fuse",
    "index_set_split",
    "interchange",
    "parallel",
    "peel",
    "reorder",
    "require_legal",
    "reverse",
    "scale",
    "separate",
    "shift",
    "sink",
    "skew",
    "split_loop",
    "strip_mine",
    "tile",
    "unroll",
    "unroll_and_jam",
    "vectorise",
]
