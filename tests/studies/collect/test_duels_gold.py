"""Plain pairs: asked at their rate, never twice, and never learnt from."""

import pytest
from playing import cpap

from dopl_core import studies
from dopl_core.studies import Ask, Store
from dopl_core.studies.collect import practice


def test_plain_pairs_come_at_their_rate_and_are_not_learnt(store: Store) -> None:
    study = studies.create_study(store, cpap(gold_every=3, horizon=4))
    learnt = []
    purposes = []
    while isinstance(found := studies.next_duel(store, study, "Ann"), Ask):
        purposes.append(found.purpose)
        better = "left" if found.left.state_number > found.right.state_number else "right"
        studies.answer(store, found.impression, better, too_fast_ms=0)
        if found.purpose == "gold":
            assert abs(found.left.state_number - found.right.state_number) == 2  # Low, High
            assert found.expected == ""
        else:
            learnt.append(found)
    assert [n for n, purpose in enumerate(purposes) if purpose == "gold"][:3] == [3, 7, 11]
    assert studies.load_learner(store, study).counts.total() == len(learnt) == 12
    states = [state.label for state in studies.get_study(store, study).config.states]
    [ann] = studies.annotators(studies.answers(store, study), states).itertuples()
    assert (ann.gold, ann.correct) == (purposes.count("gold"), 1.0)
    content = studies.export_bundle(store, study)
    studies.replay_study(store, study)
    studies.delete_study(store, study)
    studies.import_bundle(store, content)
    assert studies.export_bundle(store, study) == content


@pytest.mark.parametrize(("states", "gap"), [(2, 1), (3, 2), (4, 2), (5, 3), (7, 4), (10, 6)])
def test_a_pair_is_plain_from_two_thirds_of_the_whole_way_on(states: int, gap: int) -> None:
    assert practice.plain_gap(states) == gap


def test_nobody_is_asked_a_plain_pair_twice(store: Store) -> None:
    study = studies.create_study(store, cpap(gold_every=1, horizon=4, ratings=2))
    shown = []
    for name in ("Ann", "Bob"):
        while isinstance(found := studies.next_duel(store, study, name), Ask):
            studies.answer(store, found.impression, "left", too_fast_ms=0)
            if found.purpose == "gold":
                shown.append((name, found.duel))
    assert len(set(shown)) == len(shown) > 4
    studies.replay_study(store, study)
