"""Practice duels have a known better side."""

from playing import clinic, cpap

from dopl_core.studies.collect.practice import better_side, practice_duels


def test_practice_duels_follow_the_owners_order_of_states() -> None:
    for seed in range(20):
        config = clinic(seed=seed, practice=True)
        for duel in practice_duels(config).tolist():
            better = better_side(config, tuple(duel))
            assert better == ("left" if duel[1] > duel[3] else "right")
        simulated = cpap(seed=seed, practice=True, ordered=True)
        for duel in practice_duels(simulated).tolist():
            assert better_side(simulated, tuple(duel)) == ("left" if duel[1] > duel[3] else "right")
