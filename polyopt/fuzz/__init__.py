"""Random programs and schedules against independent answers (line 10).  Needs hypothesis: extra `fuzz`.

Source of the ideas: Claessen and Hughes, "QuickCheck", ICFP 2000; Chen, Cheung and Yiu, "Metamorphic testing", 1998;
Le, Afshari and Su, "Compiler validation via equivalence modulo inputs", PLDI 2014.
"""

from polyopt.fuzz._campaign import Campaign, Failure, put_to, replay, run_campaign
from polyopt.fuzz._case import Case, read_case, write_case
from polyopt.fuzz._cases import cases
from polyopt.fuzz._features import FEATURES, features
from polyopt.fuzz._oracles import ORACLES

__all__ = [
    "FEATURES",
    "ORACLES",
    "Campaign",
    "Case",
    "Failure",
    "cases",
    "features",
    "put_to",
    "read_case",
    "replay",
    "run_campaign",
    "write_case",
]
