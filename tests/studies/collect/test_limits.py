"""Nobody is shown a card that the owner keeps from them: by no way, and from the next click on."""

import random
from contextlib import suppress

import pandas as pd
import pytest
from playing import Clock, check_replay

from dopl_core import studies
from dopl_core.studies import Ask, Store, StudyConfig, StudyError, Waiting, access
from dopl_core.studies.collect.photos import photo_addresses

STATES = ("Low", "Fair", "High")
WARDS = {f"p{n}": ("North", "South")[n % 2] for n in range(10)}
NORTH = {arm for arm, ward in WARDS.items() if ward == "North"}
ANN = "[Ann]\nunit = North"


def ward_clinic(**rules: object) -> StudyConfig:
    """Ten people in two wards, in all states."""
    rows = "".join(f"{arm},{STATES[n % 3]},{w}\n" for n, (arm, w) in enumerate(WARDS.items()))
    arms = studies.read_roster(f"id,state,unit\n{rows}".encode(), STATES)
    own = {"title": "Wards", "budget": 4, "answers": 20, "sitting": 0, "practice": False}
    return studies.from_roster(arms, STATES, **(own | {"repeat_every": 0} | rules))


def made(store: Store, **rules: object) -> str:
    return studies.create_study(store, ward_clinic(**rules))


def pair(one: Ask | studies.Own) -> set[str]:
    return {one.left.arm, one.right.arm}


def shown(store: Store, study: str, name: str = "Ann", participant: str = "") -> Ask:
    ask = studies.next_duel(store, study, name, participant)
    assert isinstance(ask, Ask)
    return ask


def answer(store: Store, ask: Ask) -> studies.Receipt:
    return studies.answer(store, ask.impression, "left", too_fast_ms=0)


def answer_all(store: Store, study: str, name: str = "Ann", participant: str = "") -> list[Ask]:
    """Everything that somebody is asked in this round."""
    asked = []
    while isinstance(ask := studies.next_duel(store, study, name, participant), Ask):
        asked.append(ask)
        answer(store, ask)
    return asked


def test_a_limited_annotator_judges_the_people_of_their_groups_only(store: Store) -> None:
    study = made(store, annotator_limits=f"{ANN}\nnever = p0")
    told = studies.arrival(store, study, "Ann")
    asked = answer_all(store, study)
    assert asked
    assert set.union(*map(pair, asked)) <= NORTH - {"p0"}
    assert told is not None
    assert told.answers == len(asked)
    rest = studies.next_duel(store, study, "Ann")
    assert isinstance(rest, Waiting)
    assert (rest.reason, rest.plan_due) == ("unjudged", False)  # there are no colleagues yet
    access.invite(store, study, "Bo")
    assert isinstance(rest := studies.next_duel(store, study, "Ann"), Waiting)
    assert rest.reason == "limits"
    others = answer_all(store, study, "Bo")
    assert len(asked) + len(others) == studies.get_study(store, study).asked
    assert isinstance(last := studies.next_duel(store, study, "Ann"), Waiting)
    assert last.reason == "owner"
    check_replay(store, study)


@pytest.mark.parametrize("participant", ["", "5f3a"])
def test_names_that_look_alike_and_participants_of_a_link_are_limited(
    sqlite_store: Store, participant: str
) -> None:
    study = made(sqlite_store, annotator_limits="[ann ]\nunit = North")
    asked = answer_all(sqlite_store, study, "Ann", participant)
    assert set.union(*map(pair, asked)) <= NORTH


def test_a_limit_holds_at_once_and_the_answer_on_the_screen_still_counts(store: Store) -> None:
    study = made(store, reason_every=1)
    answer(store, first := crossing(store, study))
    studies.give_reason(store, first.impression, "Ann", text="p1 walks again")
    on_screen = crossing(store, study)
    studies.limit_annotator(store, study, "Ann", {"unit": ["North"]})
    again = studies.next_duel(store, study, "Ann")  # the page is loaded again
    assert not isinstance(again, Ask) or pair(again) <= NORTH
    assert answer(store, on_screen).status == "late"
    assert all(pair(one) <= NORTH for one in studies.own_answers(store, study, "Ann"))
    file = studies.answers(store, study, "Ann")
    assert people_in(file) <= NORTH
    kept = file[file.left_arm.isna()]
    assert set(kept.outcome) == {"left"}  # that they answered, and when, stays theirs to see
    assert kept[["left_state", "right_state", "loser_arm", "reason"]].isna().all(axis=None)
    assert len(file) == len(studies.answers(store, study))
    assert people_in(studies.answers(store, study)) - NORTH
    assert studies.change(store, on_screen.impression, "Ann", "right") is False
    assert studies.undo(store, study, "Ann") is None
    studies.limit_annotator(store, study, "Ann", {})
    assert studies.own_answers(store, study, "Ann")[0].impression == on_screen.impression
    assert studies.change(store, on_screen.impression, "Ann", "right")
    check_replay(store, study)


def people_in(file: pd.DataFrame) -> set[str]:
    """The ids in a file of answers."""
    sides = ["left_arm", "right_arm", "winner_arm", "loser_arm"]
    return set(file[sides].stack().dropna())


def crossing(store: Store, study: str) -> Ask:
    """The next pair on Ann's screen that is not of the North alone."""
    while pair(ask := shown(store, study)) <= NORTH:
        answer(store, ask)
    return ask


def test_photos_and_names_on_the_list_are_kept_too(sqlite_store: Store) -> None:
    store, study = sqlite_store, made(sqlite_store, annotator_limits=ANN, tell_results=True)
    studies.keep_photos(store, study, dict.fromkeys(WARDS, b"photo"))
    assert photo_addresses(store, study, "Ann", WARDS).keys() == NORTH
    assert photo_addresses(store, study, "Bo", WARDS).keys() == WARDS.keys()
    actor = studies.Actor("Ann", "link", {study: frozenset(["annotator"])})
    with pytest.raises(studies.RefusedError):
        studies.photo_addresses(store.acting_as(actor), study, "", WARDS)
    assert set(studies.round_end(store, study, "Ann").listed) <= NORTH
    assert set(studies.round_end(store, study, "Bo").listed) - NORTH


def test_a_report_that_moves_somebody_moves_their_card(sqlite_store: Store) -> None:
    store, study = sqlite_store, made(sqlite_store, annotator_limits=ANN)
    moved = {arm: {"unit": "South"} for arm in ("p0", "p2", "p4")}
    studies.observe(store, study, dict.fromkeys(WARDS, "Low"), moved)
    studies.advance(store, study)
    asked = answer_all(store, study)
    assert all(pair(ask) == {"p6", "p8"} for ask in asked)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[Ann]\nnever = p77", r'never = "p77": the roster has no such id'),
        ("[Ann]\nward = North", r'"ward" is not a column of the roster. Use one of: group, unit'),
        ("[Ann]\nunit = Nroth", r'unit = "Nroth" is not one of North, South'),
        ("[Ann]\nunit = North\n[ANN]\nunit = South", r"\[ANN\] is given twice"),
    ],
)
def test_a_misspelt_limit_is_refused_and_nothing_changes(
    sqlite_store: Store, text: str, error: str
) -> None:
    with pytest.raises(StudyError, match=error):
        made(sqlite_store, annotator_limits=text)
    study = made(sqlite_store)
    before = studies.last_event(sqlite_store, study)
    with pytest.raises(StudyError, match=error):
        studies.change_settings(sqlite_store, study, annotator_limits=text)
    assert studies.last_event(sqlite_store, study) == before
    assert answer_all(sqlite_store, study)


def test_a_simulated_world_has_nobody_to_keep_away() -> None:
    with pytest.raises(StudyError, match="simulated world has no people"):
        studies.from_environment("cpap", annotator_limits="[Ann]\nnever = 1")


def test_each_is_asked_for_what_they_can_answer(store: Store) -> None:
    study = made(store, annotator_limits="[Ann]\nunit = North\n[Bo]\nunit = South", ratings=2)
    for name in ("Ann", "Bo", "Cy", "Di"):
        access.invite(store, study, name)
    asked = {one.link: one.asked for one in studies.due(store, study)}
    assert sum(asked.values()) == studies.get_study(store, study).asked
    for name in ("Ann", "Bo"):
        told = studies.arrival(store, study, name)
        assert told is not None
        assert 0 < asked[name] <= told.answers == len(answer_all(store, study, name))
        assert {one.link: one.asked for one in studies.due(store, study)}[name] == 0


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.long) for n in (0, 2))])
def test_no_way_leads_to_a_kept_card(sqlite_store: Store, clock: Clock, seed: int) -> None:
    """Random limits that change, random clicks, reports, repeats, plain pairs, practice, undo."""
    store, rng = sqlite_store, random.Random(seed)
    rules = {"repeat_every": 2, "gold_every": 3, "practice": True, "ratings": 2, "sitting": 12}
    study = made(store, seed=seed, answers=10, limited_pairs=seed > 0, **rules)
    studies.keep_photos(store, study, dict.fromkeys(WARDS, b"photo"))
    seen: dict[str, int] = {}
    for click in range(120):
        clock.wait(rng.choice((1, 1, 1, 130)))
        name = rng.choice(("Ann", "Bo", "Cy"))
        if rng.random() < 0.08:
            wards, kept = rng.sample(("North", "South"), rng.randint(0, 2)), rng.sample([*WARDS], 3)
            new = ({"unit": wards} if wards else {}, rng.choice((kept, [])))
            with suppress(StudyError):  # it says this already
                studies.limit_annotator(store, study, name, *new)
        allowed = may_see(studies.coming_config(store, study), name)
        found = studies.next_duel(store, study, name)
        if isinstance(found, Ask):
            assert pair(found) <= allowed
            seen[found.purpose] = seen.get(found.purpose, 0) + 1
            if rng.random() < 0.9:
                answer(store, found)
        if rng.random() < 0.2 and (again := studies.undo(store, study, name)):
            assert pair(again) <= allowed
        if click % 4 == 0:
            assert all(pair(one) <= allowed for one in studies.own_answers(store, study, name))
            assert photo_addresses(store, study, name, WARDS).keys() <= allowed
            assert people_in(studies.answers(store, study, name)) <= allowed
        if click % 40 == 39:
            studies.close_duels(store, study)
            if not studies.advance(store, study):
                studies.observe(store, study, {arm: rng.choice(STATES) for arm in WARDS})
                studies.advance(store, study)
    assert seen.keys() >= {"practice", "sitting", "policy", "repeat", "gold"}
    check_replay(store, study)
    before, bundle = studies.judging(store, study), studies.export_bundle(store, study)
    studies.delete_study(store, study)
    assert studies.judging(store, studies.import_bundle(store, bundle)).people == before.people


def may_see(config: StudyConfig, name: str) -> set[str]:
    """Read from the setting by another way than the product does."""
    kept: set[str] = set()
    part = ""
    for line in config.annotator_limits.splitlines():
        key, _, cells = line.partition(" = ")
        part = line if line.startswith("[") else part
        if part == f"[{name}]" and key == "never":
            kept |= set(cells.split(","))
        elif part == f"[{name}]" and key == "unit":
            kept |= {arm for arm, ward in WARDS.items() if ward not in cells.split(",")}
    return set(WARDS) - kept
