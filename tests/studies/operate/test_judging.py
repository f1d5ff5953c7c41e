"""Who judges whom, what nobody may judge, and groups that no answer connects."""

from dataclasses import replace

import pytest
from playing import check_replay, one_answer

from dopl_core import cli, studies
from dopl_core.studies import Arm, Ask, Store, access
from dopl_core.studies.exchange import bundle
from dopl_core.studies.model.errors import ReplayError
from dopl_core.studies.replay.replay import replay

STATES = ("Low", "High")
APART = "[Ann]\ngroup = North\n[Bo]\ngroup = South"


def made(store: Store, *links: str, **rules: object) -> str:
    """Eight people in two wards, and a first round of 12 answers."""
    arms = [
        Arm(f"p{n}", f"P{n}", ("North", "South")[n % 2], STATES[n // 4], {"risk": "high"})
        for n in range(8)
    ]
    own = {"title": "Wards", "budget": 4, "sitting": 12, "practice": False}
    study = studies.create_study(store, studies.from_roster(arms, STATES, **(own | rules)))
    for name in links:
        access.invite(store, study, name)
    return study


def answer_all(store: Store, study: str, name: str) -> int:
    count = 0
    while isinstance(ask := studies.next_duel(store, study, name), Ask):
        count += studies.answer(store, ask.impression, "left", too_fast_ms=0).saved
    return count


def warnings(store: Store, study: str) -> str:
    return " ".join(studies.judging_warnings(studies.judging(store, study), "patient"))


def test_without_limits_everybody_judges_everybody_and_nothing_is_warned_of(store: Store) -> None:
    study = made(store, "Ann", "Bo")
    found = studies.judging(store, study)
    assert [studies.judge_text(one, found, "patient") for one in found.judges] == [
        "Ann: everybody.",
        "Bo: everybody.",
    ]
    assert found.columns == {"group": ("North", "South")}  # all have the same risk
    assert warnings(store, study) == ""


def test_limits_are_told_in_words_before_there_is_a_link(sqlite_store: Store) -> None:
    store, study = sqlite_store, made(sqlite_store, "Ann")
    studies.limit_annotator(store, study, "Bo", {"group": ["North", "South"]}, ["p0", "p1"])
    studies.limit_annotator(store, study, "Panel", {}, ["p2"])
    found = studies.judging(store, study)
    assert [studies.judge_text(one, found, "patient") for one in found.judges] == [
        "Ann: everybody.",
        "Bo: group North or South, never p0 or p1. 6 of 8 patients. No link.",
        "Panel: never p2. 7 of 8 patients. No link.",
    ]
    studies.limit_annotator(store, study, "bo", {"group": ["South"]})  # in place of the one before
    studies.limit_annotator(store, study, "Panel", {})
    assert studies.coming_config(store, study).annotator_limits == "[bo]\ngroup = South"


def test_comparisons_that_nobody_may_judge_are_counted_and_the_round_can_end(store: Store) -> None:
    study = made(store, "Ann", "Bo", annotator_limits=APART)
    found = studies.judging(store, study)
    assert (found.open_duels, found.unjudged > 0) == (12, True)
    assert f"Nobody may judge {found.unjudged} of the 12 open comparisons." in warnings(
        store, study
    )
    given = answer_all(store, study, "Ann") + answer_all(store, study, "Bo")
    assert given + found.unjudged == 12
    assert wait_of(store, study, "Ann") == "unjudged"
    access.invite(store, study, "Cy")
    assert studies.judging(store, study).unjudged == 0
    assert wait_of(store, study, "Ann") == "limits"
    access.revoke(store, study, "Cy")
    assert studies.judging(store, study).unjudged == found.unjudged
    assert wait_of(store, study, "Ann") == "unjudged"
    assert studies.close_duels(store, study)
    assert studies.advance(store, study)


def wait_of(store: Store, study: str, name: str) -> str:
    wait = studies.next_duel(store, study, name)
    assert isinstance(wait, studies.Waiting)
    return wait.reason


def test_colleagues_who_only_lack_a_link_are_named(sqlite_store: Store) -> None:
    limits = "[Ann]\ngroup = North\n[Bo]\nnever = p0\n[Di]\nnever = p0,p1,p2,p3,p4,p5,p6"
    store, study = sqlite_store, made(sqlite_store, annotator_limits=limits)
    found = studies.judging(store, study)
    lacking, rest = found.judges[1].lacking, found.unnamed
    assert 0 < rest < lacking < 12
    told, _ = studies.judging_warnings(studies.judging(store, study), "patient")
    assert told.startswith("Nobody with a link may judge 12 of the 12 open comparisons. Ann may ")
    assert f" Bo may judge {lacking} of them but has no link: invite Bo." in told
    assert f" Nobody else may judge the other {rest}. Let somebody judge more people" in told
    assert "Di" not in told
    connect = "Invite Bo: they may judge people of several of these groups."
    assert warnings(store, study).endswith(connect)
    access.invite(store, study, "Ann")
    access.invite(store, study, "Bo")
    assert f"Nobody may judge {rest} of the 12 open comparisons. Let " in warnings(store, study)
    assert connect not in warnings(store, study)
    access.revoke(store, study, "Bo")
    studies.limit_annotator(store, study, "Bo", {"group": ["North", "South"]})
    told, _ = studies.judging_warnings(studies.judging(store, study), "patient")
    assert told.endswith(" of them but has no link: invite Bo.")  # then nothing is left


def test_groups_that_nobody_may_connect_are_told_at_once(store: Store) -> None:
    study = made(store, "Ann", "Bo", annotator_limits=APART)
    assert "group: no answer connects “North” and “South”." in warnings(store, study)
    assert warnings(store, study).endswith("Let somebody judge people of all these groups.")
    access.invite(store, study, "Cy")
    assert "connects" not in warnings(store, study)


def test_groups_that_no_answer_has_connected_are_told_with_who_may(sqlite_store: Store) -> None:
    store, study = sqlite_store, made(sqlite_store, "Ann", "Bo", "Cy", sitting=40)
    studies.change_settings(store, study, annotator_limits=APART)
    given = answer_all(store, study, "Ann") + answer_all(store, study, "Bo")
    assert given >= 10
    assert warnings(store, study).endswith("Ask Cy for answers about both.")
    answer_all(store, study, "Cy")
    assert "connects" not in warnings(store, study)
    studies.exclude(store, study, "Cy")
    assert "no answer connects" in warnings(store, study)


def test_past_answers_connect_groups(sqlite_store: Store) -> None:
    store, study = sqlite_store, made(sqlite_store, "Ann", "Bo", annotator_limits=APART)
    studies.add_answers(store, study, b"annotator,winner,loser,when\nModel,p0,p1,\n")
    assert "connects" not in warnings(store, study)


def test_somebody_who_may_see_one_person_is_asked_nothing_and_told_of(sqlite_store: Store) -> None:
    study = made(sqlite_store, "Ann", annotator_limits="[Ann]\nnever = p0,p1,p2,p3,p4,p5,p6")
    assert "Ann may judge 1 patient, so we ask them nothing." in warnings(sqlite_store, study)
    assert isinstance(studies.next_duel(sqlite_store, study, "Ann"), studies.Waiting)


def test_dopl_settings_sets_limits_at_once(
    tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOPL_DATABASE_URL", f"sqlite:///{tmp_path}/studies.db")
    store = studies.open_store()
    study = made(store, "Ann")
    cli.main(["settings", study, "annotator_limits=[Ann]\ngroup = North"])
    assert "at once" in capsys.readouterr().out
    assert studies.judging(store, study).judges[0].people == 4
    cli.main(["settings", study, "reason_every=2", "annotator_limits=[Ann]\ngroup = South"])
    said = capsys.readouterr().out
    assert f"{study}: annotator_limits changed; at once\n" in said
    assert f"{study}: reason_every changed; from the next list on\n" in said
    with pytest.raises(SystemExit, match='never = "p99": the roster has no such id'):
        cli.main(["settings", study, "annotator_limits=[Ann]\nnever = p99"])


def clinic_of_12(store: Store, **rules: object) -> str:
    """Twelve people in two wards; each of the two colleagues knows one ward."""
    arms = [
        Arm(f"p{n}", f"P{n}", "", STATES[n % 3 == 0], {"ward": ("North", "South")[n % 2]})
        for n in range(12)
    ]
    limits = "[Ann]\nward = North\n[Bo]\nward = South"
    own = {"title": "Wards", "budget": 6, "sitting": 30, "answers": 12, "practice": False}
    own |= {"annotator_limits": limits}
    study = studies.create_study(store, studies.from_roster(arms, STATES, **(own | rules)))
    for name in ("Ann", "Bo"):
        access.invite(store, study, name)
    return study


def unjudged(store: Store, study: str) -> tuple[int, int]:
    found = studies.judging(store, study)
    return found.unjudged, found.open_duels


def next_list(store: Store, study: str, wards: dict[str, dict[str, str]] | None = None) -> None:
    """Somebody answers, everybody is reported as they were, and the next list is made."""
    one_answer(store, study, "Bo")
    studies.close_duels(store, study)
    if not studies.advance(store, study):
        states = {f"p{n}": STATES[n % 3 == 0] for n in range(12)}
        studies.observe(store, study, states, wards)
        studies.advance(store, study)


def test_with_limited_pairs_somebody_may_judge_each_comparison(sqlite_store: Store) -> None:
    store, study = sqlite_store, clinic_of_12(sqlite_store, limited_pairs=True)
    assert unjudged(store, study) == (0, 30)
    next_list(store, study)
    assert unjudged(store, study) == (0, 12)
    moved = {"p0": {"ward": "South"}, "p2": {"ward": "South"}, "p1": {"ward": "North"}}
    next_list(store, study, moved)  # the report counts
    assert unjudged(store, study) == (0, 12)
    check_replay(store, study)
    exported = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    again = studies.import_bundle(store, exported)
    assert studies.export_bundle(store, again) == exported
    access.invite(store, again, "Ann")  # bundles have no links
    next_list(store, again)
    assert unjudged(store, again) == (0, 12)
    check_replay(store, again)


def test_pairs_are_limited_from_the_next_list_on_and_the_warning_says_so(
    sqlite_store: Store,
) -> None:
    store, study = sqlite_store, clinic_of_12(sqlite_store, answers=0)
    one_answer(store, study, "Bo")
    before = unjudged(store, study)
    assert (before[0] >= 10, before[1]) == (True, 29)
    remedy = "Choose “Ask only what they may judge” on Invite"
    assert remedy in warnings(store, study)
    studies.limit_pairs(store, study, True)
    assert unjudged(store, study) == before
    assert remedy not in warnings(store, study)
    next_list(store, study)
    assert unjudged(store, study) == (0, 5)  # as many as the list of six asks for
    studies.limit_pairs(store, study, False)
    next_list(store, study)
    assert unjudged(store, study)[0] > 0
    check_replay(store, study)


def test_the_first_round_is_drawn_anew_until_somebody_has_answered(store: Store) -> None:
    study = clinic_of_12(store, annotator_limits="")
    shown = studies.next_duel(store, study, "Cy")  # stays: it may be on the screen
    assert isinstance(shown, Ask)
    studies.limit_pairs(store, study, True)  # nobody is limited: nothing is drawn
    assert studies.get_study(store, study).asked == 30
    for name, ward in (("Ann", "North"), ("Bo", "South")):
        studies.limit_annotator(store, study, name, {"ward": [ward]})
    assert studies.get_study(store, study).asked == 31
    assert unjudged(store, study) == (1, 31)  # the pair on the screen of Cy, who has no link
    exported = studies.export_bundle(store, study)
    studies.delete_study(store, study)
    assert studies.export_bundle(store, studies.import_bundle(store, exported)) == exported
    assert studies.answer(store, own_open(store, study, "Cy"), "left", too_fast_ms=0).saved
    asked = studies.get_study(store, study).asked
    studies.limit_annotator(store, study, "Bo", {})
    assert studies.get_study(store, study).asked == asked
    check_replay(store, study)
    next_list(store, study)
    check_replay(store, study)
    studies.replay_bundle(studies.export_bundle(store, study, without_names=True))


def own_open(store: Store, study: str, name: str) -> int:
    """The comparison on somebody's screen."""
    ask = studies.next_duel(store, study, name)
    assert isinstance(ask, Ask)
    return ask.impression


def test_a_first_round_that_was_drawn_otherwise_is_refused(sqlite_store: Store) -> None:
    store, study = sqlite_store, clinic_of_12(sqlite_store)
    studies.limit_pairs(store, study, True)
    log = bundle.read(studies.export_bundle(store, study))
    drawn = [duel for duel in log.queue or () if duel.ratings]
    assert min(duel.place[2] for duel in drawn) == 30
    other = replace(drawn[0], sides=drawn[1].sides)
    queue = [other if duel == drawn[0] else duel for duel in log.queue or ()]
    replay(log)
    with pytest.raises(ReplayError, match="another pair would be asked"):
        replay(replace(log, queue=queue))


def test_a_first_round_with_newcomers_stays_as_it_was_drawn(sqlite_store: Store) -> None:
    store, study = sqlite_store, clinic_of_12(sqlite_store)
    studies.join(store, study, [Arm("p12", "P12", "", STATES[0], {"ward": "North"})])
    before = unjudged(store, study)
    studies.limit_pairs(store, study, True)
    assert unjudged(store, study) == before
    check_replay(store, study)


def test_pairs_replay_after_an_annotator_with_a_limit_was_erased(sqlite_store: Store) -> None:
    store, study = sqlite_store, clinic_of_12(sqlite_store)
    studies.limit_pairs(store, study, True)
    next_list(store, study)
    studies.erase_annotator(store, study, "Ann")
    check_replay(store, study)
    next_list(store, study)
    check_replay(store, study)
    assert unjudged(store, study)[0] == 0
    found = studies.replay_study(store, study)
    assert found.judged is not None
    assert len(found.judged) == 1  # Bo
