"""Leases, exactly one answer, undo, practice and repeats, on both databases."""

import pytest
import sqlalchemy as sa
from playing import ROSTER, STATES, Clock, clinic, cpap, play

from dopl_core import studies
from dopl_core.studies import Ask, Finished, Store, StudyError, Waiting
from dopl_core.studies.store import blobs, tables


def ask(store: Store, study: str, name: str) -> Ask:
    found = studies.next_duel(store, study, name)
    assert isinstance(found, Ask), found
    return found


def say(store: Store, found: Ask, outcome: str = "left") -> studies.Receipt:
    return studies.answer(store, found.impression, outcome, response_ms=700, too_fast_ms=0)


def events(store: Store, study: str) -> list[str]:
    with store.read() as connection:
        e = tables.events.c
        query = sa.select(e.kind).where(e.study == study).order_by(e.seq)
        return list(connection.execute(query).scalars())


def answer_all(store: Store, study: str, name: str = "Ann") -> studies.Receipt:
    """Answer until the plan is due; the last receipt."""
    while True:
        receipt = say(store, ask(store, study, name))
        if receipt.plan_due:
            return receipt


def test_an_open_duel_comes_back_on_reload(store: Store) -> None:
    study = studies.create_study(store, cpap())
    first = ask(store, study, "Ann")
    assert ask(store, study, "Ann") == first
    assert events(store, study).count("shown") == 1


def test_two_people_are_never_shown_the_same_duel_where_one_rating_is_wanted(store: Store) -> None:
    study = studies.create_study(store, cpap())
    duels = [ask(store, study, f"person {n}").duel for n in range(6)]
    assert len(set(duels)) == 6
    late = studies.next_duel(store, study, "one more")
    assert isinstance(late, Waiting)
    assert late.reason == "others"


def test_a_duel_wanting_three_ratings_goes_to_three_people_once_each(store: Store) -> None:
    study = studies.create_study(store, cpap(ratings=3))
    people = ["Ann", "Bob", "Cy", "Di"]
    seen: dict[int, list[str]] = {}
    for _ in range(20):
        for name in people:
            found = studies.next_duel(store, study, name)
            if isinstance(found, Ask):
                seen.setdefault(found.duel, []).append(name)
                say(store, found)
    assert len(seen) == 6
    assert all(len(names) == len(set(names)) == 3 for names in seen.values())


def test_an_answer_is_saved_and_the_next_duel_is_another(store: Store) -> None:
    study = studies.create_study(store, cpap())
    first = ask(store, study, "Ann")
    receipt = say(store, first)
    assert (receipt.status, receipt.saved, receipt.plan_due) == ("saved", True, False)
    second = ask(store, study, "Ann")
    assert second.duel != first.duel
    assert (second.done, second.total, second.own) == (1, 6, 1)


def test_a_second_answer_to_one_impression_is_ignored_and_says_so(store: Store) -> None:
    study = studies.create_study(store, cpap())
    first = ask(store, study, "Ann")
    say(store, first, "left")
    before = studies.load_learner(store, study).state()
    again = say(store, first, "right")
    assert again.status == "already"
    assert not again.saved
    assert "already" in studies.RECEIPTS[again.status]
    assert blobs.digest(studies.load_learner(store, study).state()) == blobs.digest(before)


def test_a_click_too_soon_after_showing_does_nothing(store: Store, clock: Clock) -> None:
    study = studies.create_study(store, cpap())
    first = ask(store, study, "Ann")
    clock.wait(0.1)
    assert studies.answer(store, first.impression, "left").status == "too_fast"
    assert "answered" not in events(store, study)
    clock.wait(0.4)
    assert studies.answer(store, first.impression, "left").status == "saved"


def test_a_duel_goes_to_others_when_its_lease_has_run_out(store: Store, clock: Clock) -> None:
    study = studies.create_study(store, cpap(lease_seconds=60))
    left = ask(store, study, "Ann")
    assert ask(store, study, "Bob").duel != left.duel
    clock.wait(61)
    assert ask(store, study, "Cy").duel == left.duel
    assert "expired" in events(store, study)


def test_a_late_answer_counts_if_nobody_answered_meanwhile(store: Store, clock: Clock) -> None:
    study = studies.create_study(store, cpap(lease_seconds=60))
    mine = ask(store, study, "Ann")
    clock.wait(61)
    other = ask(store, study, "Bob")
    assert other.duel == mine.duel
    assert say(store, mine).status == "late"
    # Bob is too late now, and gets another duel.
    assert say(store, other).status == "taken"
    assert ask(store, study, "Bob").duel != mine.duel


def test_a_late_answer_is_refused_if_somebody_answered_meanwhile(
    store: Store, clock: Clock
) -> None:
    study = studies.create_study(store, cpap(lease_seconds=60))
    mine = ask(store, study, "Ann")
    clock.wait(61)
    say(store, ask(store, study, "Bob"), "right")
    wins = studies.load_learner(store, study).counts.wins()
    assert say(store, mine).status == "taken"
    assert (studies.load_learner(store, study).counts.wins() == wins).all()
    assert "refused" in events(store, study)  # the click is kept all the same


def test_somebody_who_comes_back_late_gets_the_duel_they_left(store: Store, clock: Clock) -> None:
    study = studies.create_study(store, cpap(lease_seconds=60))
    mine = ask(store, study, "Ann")
    clock.wait(200)
    back = ask(store, study, "Ann")
    assert (back.impression, back.duel) == (mine.impression, mine.duel)
    assert say(store, back).status == "saved"


def test_a_skipped_duel_does_not_come_back_and_weighs_nothing(store: Store) -> None:
    study = studies.create_study(store, cpap())
    skipped = ask(store, study, "Ann")
    assert say(store, skipped, "skip").saved
    duels = []
    while isinstance(found := studies.next_duel(store, study, "Ann"), Ask):
        duels.append(found.duel)
        say(store, found, "skip")
    assert skipped.duel not in duels
    assert studies.load_learner(store, study).counts.total() == 0
    assert studies.get_study(store, study).plan_due  # nobody can tell: the study goes on


def test_a_tie_counts_half_each_and_only_where_allowed(store: Store) -> None:
    study = studies.create_study(store, cpap(ties_allowed=True))
    say(store, ask(store, study, "Ann"), "tie")
    wins = studies.load_learner(store, study).counts.wins()
    assert sorted(wins[wins > 0].tolist()) == [0.5, 0.5]
    strict = studies.create_study(store, cpap())
    with pytest.raises(StudyError, match='"tie" is not one of left, right, skip'):
        say(store, ask(store, strict, "Ann"), "tie")


def test_the_last_rating_of_an_episode_says_that_a_plan_is_due(store: Store) -> None:
    study = studies.create_study(store, cpap())
    assert answer_all(store, study).plan_due
    waiting = studies.next_duel(store, study, "Ann")
    assert isinstance(waiting, Waiting)
    assert (waiting.reason, waiting.plan_due) == ("plan", True)
    assert studies.advance(store, study)
    assert ask(store, study, "Ann").episode == 2


def test_the_learner_after_an_undo_never_saw_the_answer(store: Store) -> None:
    study = studies.create_study(store, cpap())
    say(store, ask(store, study, "Ann"))
    before = blobs.digest(studies.load_learner(store, study).state())
    mine = ask(store, study, "Ann")
    say(store, mine, "right")
    back = studies.undo(store, study, "Ann")
    assert back is not None
    assert back.duel == mine.duel
    assert back.impression != mine.impression
    assert blobs.digest(studies.load_learner(store, study).state()) == before
    assert events(store, study)[-2:] == ["undone", "shown"]
    assert ask(store, study, "Ann") == back
    assert say(store, back, "left").saved


def test_an_undone_answer_can_be_given_to_nobody_twice(store: Store) -> None:
    study = studies.create_study(store, cpap())
    mine = ask(store, study, "Ann")
    say(store, mine)
    studies.undo(store, study, "Ann")
    assert say(store, mine).status == "already"


def test_undo_reaches_back_answer_by_answer_to_the_plan_and_no_further(store: Store) -> None:
    study = studies.create_study(store, cpap())
    assert studies.undo(store, study, "Ann") is None
    answer_all(store, study)
    studies.advance(store, study)
    waiting = ask(store, study, "Ann")
    assert not waiting.can_undo
    assert studies.undo(store, study, "Ann") is None
    say(store, waiting)
    second = ask(store, study, "Ann")
    say(store, second)
    undone = [studies.undo(store, study, "Ann"), studies.undo(store, study, "Ann")]
    assert [found.duel for found in undone if found] == [second.duel, waiting.duel]
    assert studies.undo(store, study, "Ann") is None
    # Both are open, the one undone last on top.
    assert ask(store, study, "Ann").duel == waiting.duel
    assert studies.get_study(store, study).given == 0


def test_spaces_around_a_name_make_no_other_person(store: Store) -> None:
    study = studies.create_study(store, cpap())
    first = ask(store, study, " Ann")
    assert ask(store, study, "Ann ") == first
    say(store, first)
    assert studies.undo(store, study, "  Ann") is not None


def test_undo_touches_only_ones_own_answers(store: Store) -> None:
    study = studies.create_study(store, cpap())
    say(store, ask(store, study, "Ann"))
    assert studies.undo(store, study, "Bob") is None
    assert studies.get_study(store, study).answers == 1


def test_practice_comes_first_is_recorded_and_never_learnt(store: Store) -> None:
    study = studies.create_study(store, cpap(practice=True))
    gaps: list[int] = []
    for _ in range(3):
        found = ask(store, study, "Ann")
        assert found.purpose == "practice"
        assert found.expected in ("left", "right")
        sides = [found.left, found.right]
        better, worse = sides if found.expected == "left" else reversed(sides)
        gaps.append(better.state_number - worse.state_number)
        say(store, found, found.expected)
    assert gaps == [2, 2, 1]  # two are plain, one is hard
    assert ask(store, study, "Ann").purpose == "policy"
    assert ask(store, study, "Bob").purpose == "practice"
    assert studies.load_learner(store, study).counts.total() == 0
    frame = studies.answers(store, study, "Ann")
    assert (frame.purpose == "practice").sum() == 3


def test_practice_can_be_skipped(store: Store) -> None:
    study = studies.create_study(store, cpap(practice=True))
    assert ask(store, study, "Ann").purpose == "practice"
    studies.skip_practice(store, study, "Ann")
    assert ask(store, study, "Ann").purpose == "policy"
    assert events(store, study).count("practice_skipped") == 1


def test_repeats_show_ones_own_duel_with_sides_swapped_and_are_not_learnt(store: Store) -> None:
    study = studies.create_study(store, cpap(horizon=5, repeat_every=3))
    say(store, ask(store, study, "Bob"))
    shown = []
    for _ in range(5):
        shown.append(ask(store, study, "Ann"))
        say(store, shown[-1], "left")
    assert [found.purpose for found in shown] == ["policy"] * 3 + ["repeat", "policy"]
    assert (shown[3].left, shown[3].right) == (shown[0].right, shown[0].left)
    assert studies.load_learner(store, study).counts.total() == 5
    # Left both times, sides swapped: not the same arm.
    people = studies.annotators(studies.answers(store, study)).set_index("annotator")
    assert people.consistency["Ann"] == 0.0


def test_repeats_begin_when_others_answer_too_and_never_come_two_in_a_row(store: Store) -> None:
    study = studies.create_study(store, cpap(horizon=10, repeat_every=2))
    purposes = []
    for number in range(12):
        if number == 6:
            say(store, ask(store, study, "Bob"))
        found = ask(store, study, "Ann")
        say(store, found)
        purposes.append(found.purpose)
    once = ["repeat", "policy", "policy"]
    assert purposes == ["policy"] * 6 + once + once


def test_no_duel_is_repeated_twice_when_repeats_become_more_frequent(store: Store) -> None:
    study = studies.create_study(store, cpap(horizon=3, repeat_every=2))
    say(store, ask(store, study, "Bob"))
    studies.change_settings(store, study, repeat_every=1)  # from the next plan on
    again = []
    for _ in range(18):
        if isinstance(studies.next_duel(store, study, "Ann"), Waiting):
            studies.advance(store, study)
        found = ask(store, study, "Ann")
        say(store, found)
        again += [found.duel] * (found.purpose == "repeat")
    assert len(again) == len(set(again)) > 3


def test_real_people_are_asked_again_by_default(store: Store) -> None:
    arms = studies.read_roster(ROSTER, STATES)
    assert studies.from_roster(arms, STATES, title="T", budget=2).repeat_every == 10
    assert studies.from_roster(arms, STATES, title="T", budget=2, repeat_every=0).repeat_every == 0


def test_a_paused_study_shows_nothing_new_but_takes_what_was_shown(store: Store) -> None:
    study = studies.create_study(store, cpap())
    mine = ask(store, study, "Ann")
    studies.pause_study(store, study)
    waiting = studies.next_duel(store, study, "Bob")
    assert isinstance(waiting, Waiting)
    assert waiting.reason == "paused"
    assert say(store, mine).saved
    studies.reopen_study(store, study)
    assert isinstance(studies.next_duel(store, study, "Bob"), Ask)


def test_a_closed_study_is_finished_until_it_is_reopened(store: Store) -> None:
    study = studies.create_study(store, cpap())
    say(store, ask(store, study, "Ann"))
    studies.close_study(store, study)
    assert studies.next_duel(store, study, "Ann") == Finished(own=1)
    assert not studies.advance(store, study)
    studies.reopen_study(store, study)
    assert isinstance(studies.next_duel(store, study, "Ann"), Ask)


def test_a_study_of_two_episodes_is_finished_after_them(store: Store) -> None:
    study = studies.create_study(store, cpap(episodes=2))
    answer_all(store, study)
    studies.advance(store, study)
    while not isinstance(found := studies.next_duel(store, study, "Ann"), Finished):
        assert isinstance(found, Ask)
        say(store, found)
    assert not studies.advance(store, study)
    assert studies.get_study(store, study).waits_for == "nobody"


def test_sessions_are_numbered_by_long_rests(store: Store, clock: Clock) -> None:
    study = studies.create_study(store, cpap())
    for rest in (5, 5, 3600):
        say(store, ask(store, study, "Ann"))
        clock.wait(rest)
    say(store, ask(store, study, "Ann"))
    assert studies.answers(store, study).session.tolist() == [1, 1, 1, 2]


def test_cards_show_the_rosters_columns(store: Store) -> None:
    study = studies.create_study(store, clinic())
    found = ask(store, study, "Ann")
    by_arm = {"p1": "Ada", "p2": "Bo", "p3": "Cy", "p4": "Di"}
    assert found.left.label == by_arm[found.left.arm]
    assert set(found.left.columns) == {"age", "hours"}


def test_unknown_things_are_refused_and_change_nothing(store: Store) -> None:
    study = studies.create_study(store, cpap())
    before = events(store, study)
    with pytest.raises(StudyError, match='no study "nope"'):
        studies.next_duel(store, "nope", "Ann")
    with pytest.raises(StudyError, match="impression 999 was never shown"):
        studies.answer(store, 999, "left")
    with pytest.raises(StudyError, match="was never shown"):
        studies.answer(store, 2**70, "left")
    with pytest.raises(StudyError, match="at most 200"):
        studies.next_duel(store, study, "A" * 201)
    with pytest.raises(StudyError, match="cannot be kept"):
        studies.next_duel(store, study, "A\0")
    with pytest.raises(StudyError, match="no name"):
        studies.next_duel(store, study, "  ")
    found = ask(store, study, "Ann")
    with pytest.raises(StudyError, match='"up" is not one of'):
        studies.answer(store, found.impression, "up")
    with pytest.raises(StudyError, match="cannot be negative"):
        studies.answer(store, found.impression, "left", response_ms=-1)
    assert events(store, study) == [*before, "joined", "shown"]
    for read in (studies.get_study, studies.load_learner, studies.epoch_list, studies.answers):
        with pytest.raises(StudyError, match='no study "nope"'):
            read(store, "nope")


def test_events_are_numbered_without_gaps_whatever_happens(store: Store, clock: Clock) -> None:
    study = studies.create_study(store, cpap(ratings=2, lease_seconds=5))
    play(store, study, 120, people=("Ann", "Bob", "Cy"), clock=clock)
    with store.read() as connection:
        e = tables.events.c
        numbers = connection.execute(
            sa.select(e.seq).where(e.study == study).order_by(e.seq)
        ).scalars()
        assert list(numbers) == list(range(1, len(events(store, study)) + 1))
