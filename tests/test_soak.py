"""Five minutes of the attacks that `make soak` repeats for an hour."""

import os

import pytest

from soak import ATTACKS

SECONDS = float(os.environ.get("SOAK_SECONDS", "300"))
"""Time of all attacks together."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_by_chance_lose_nothing_and_get_nothing_wrong(name):
    attack = ATTACKS[name]
    attack.run(0, SECONDS * attack.share / sum(one.share for one in ATTACKS.values()))
    assert not attack.failures, "\n".join(attack.failures)
