"""Forty weeks of a clinic with everything that can happen in it."""

import random

import pytest
from playing import STATES, Clock, check_replay

from dopl_core import studies
from dopl_core.studies import Arm, Ask, Store, StudyError
from dopl_core.studies.store import blobs, log_reader

ERASED = (13, 26, 27, 34, 36)  # weeks in which somebody is erased, or withdraws


class Clinic:
    """A clinic as it is: every ordinary event, drawn by lot, week after week."""

    def __init__(self, store: Store, clock: Clock, seed: int = 0) -> None:
        self.store, self.clock, self.rng = store, clock, random.Random(seed)
        roster = [
            Arm(f"p{n}", f"Patient {n}", ("north", "south")[n % 2], self.rng.choice(STATES))
            for n in range(20)
        ]
        rules = {"budget": 6, "answers": 10, "sitting": 15, "horizon": 1, "engine": "lagrangian"}
        rules |= {"once_in": 2, "wait_after_joining": 1, "most_times": 30, "fair_column": "group"}
        config = studies.from_roster(roster, STATES, title="Clinic", practice=False, **rules)
        rows = [
            f"{arm},{week},{self.rng.choice(STATES)},{self.rng.randint(0, 1)}"
            for arm in ("p0", "p1", "gone")
            for week in range(8)
        ]
        text = "id,when,state,helped\n" + "\n".join(rows)
        past = studies.read_history(text.encode(), config)
        self.study = studies.create_study(store, config, past)
        self.next_id, self.left = 20, ["p7"]
        self.weeks = self.gone = 0
        self.freed: list[tuple[int, bool]] = []  # (week, by lot) of places that leavers had
        self.team = ["Ann", "Bob"]

    def answer(self, count: int) -> None:
        for _ in range(count):
            self.clock.wait(self.rng.uniform(1, 5))
            name = self.rng.choice(self.team)
            found = studies.next_duel(self.store, self.study, name)
            if isinstance(found, Ask):
                outcome = self.rng.choice(("left", "right", "skip"))
                studies.answer(self.store, found.impression, outcome, too_fast_ms=0)
                if self.rng.random() < 0.1:
                    studies.undo(self.store, self.study, name)

    def week(self, number: int) -> None:
        store, study, rng = self.store, self.study, self.rng
        self.answer(rng.randint(2, 9))
        if number % 5 == 2:
            self.change_list()
        if number in (7, 15, 22, 33):
            self.mistake(number)
        if number == 22:  # the report of the week before was wrong as well
            studies.undo_report(store, study, self.weeks)
            self.weeks -= 1
            self.report()
        if number % 3 == 0 and self.next_id < 32:
            new = Arm(f"p{self.next_id}", "New", "north", rng.choice([*STATES, ""]))
            studies.join(store, study, [new])
            self.next_id += 1
        self.report({new.id: rng.choice(STATES)} if number % 6 == 0 and number < 36 else {})
        if number == 4:
            studies.keep_photos(store, study, {"p1": b"one"})
        if number % 4 == 1 and self.gone < 9:
            self.gone += 1
            who = rng.choice(sorted(set(studies.present_states(store, study)) - set(self.left)))
            if number == 33:  # somebody with a random place
                who = next(one.id for one in self.list().listed if one.by_lot)
            self.note_place(who)
            studies.leave(store, study, [who])
            self.left.append(who)
        if number in (10, 20, 30):
            back = self.left.pop(1)
            studies.join(store, study, [Arm(back, "Back", "south", "Low")])
        if number in (5, 11, 17, 23, 29, 35):
            self.correct(rng.randint(1, self.weeks))
        if number in ERASED:
            self.erase(number)
        if number in (12, 24):
            budget, by_lot = {12: (4, 1), 24: (7, 2)}[number]
            studies.change_settings(store, study, budget=budget, by_lot=by_lot)

    def erase(self, number: int) -> None:
        """A person is erased who is present or has left; an annotator withdraws, and one comes."""
        if number == 26:  # replay follows the plans before it from then on
            how: list[str] = []
            check_replay(self.store, self.study, how.append)
            assert how[0].startswith("Everything is reproduced to the bit.")
        if number % 2:
            gone = self.team.pop(0)
            self.team.append(f"Cy {number}")
            studies.withdraw(self.store, self.study, gone, answers=number == 27)
            return
        here = set(studies.present_states(self.store, self.study)) - set(self.left)
        who = self.left.pop(1) if number == 34 else min(here)
        self.note_place(who)
        studies.erase_person(self.store, self.study, who, answers=number == 26)

    def report(self, newcomers: dict[str, str] | None = None) -> None:
        """Report the open week; newcomers are reported at once."""
        states: dict[str, str | None] = {
            arm: None if self.rng.random() < 0.05 else self.rng.choice(STATES)
            for arm in studies.present_states(self.store, self.study)
        }
        helped = [one.id for one in self.list().listed if self.rng.random() > 0.1]
        news = {arm: {"hours": str(self.weeks)} for arm in list(states)[: self.weeks % 3]}
        said = states | (newcomers or {})
        self.weeks += 1
        studies.observe(self.store, self.study, said, news, helped=helped, week=self.weeks)
        studies.advance(self.store, self.study)
        assert not {*helped} & {one.id for one in self.list().listed}  # at most once in two weeks

    def mistake(self, number: int) -> None:
        """A wrong report is undone, after the next list was made, changed and answered."""
        before = studies.read_lists(self.store, self.study)
        self.report()
        if number % 2:
            self.change_list()
            self.answer(4)
        studies.undo_report(self.store, self.study, self.weeks)
        self.weeks -= 1
        assert studies.read_lists(self.store, self.study) == before

    def list(self) -> studies.WeekList:
        return studies.read_lists(self.store, self.study, last=1)[-1]

    def note_place(self, arm: str) -> None:
        """Remember the place on the open list of somebody who is about to go."""
        self.freed += [(self.weeks, one.by_lot) for one in self.list().listed if one.id == arm]

    def change_list(self) -> None:
        week = self.list()
        off, on = week.listed[0].id, week.reserve[-1].id
        change = {"remove": [off], "add": [on], "because": "the owner knows better"}
        studies.change_list(self.store, self.study, **change)

    def correct(self, week: int) -> None:
        for arm in studies.present_states(self.store, self.study):
            try:
                state = self.rng.choice(STATES)
                studies.correct(self.store, self.study, week, {arm: state}, {arm: True})
            except StudyError:
                continue  # not there then, or reported like this
            return


def check_everything_happened(clinic: Clinic) -> None:
    """In forty weeks."""
    kinds = [event.kind for event in log_reader.read_log(clinic.store, clinic.study).events]
    reported_at_once = kinds.count("arms_joined") - 12 - 3
    assert 2 <= reported_at_once <= 6  # where that is not where they were when they joined
    assert kinds.count("report_undone") == 5
    assert kinds.count("list_changed") == 8 + 3 + len(clinic.freed)  # the next in line move up
    assert kinds.count("arms_left") == 9 + 2
    assert kinds.count("erased") == len(ERASED)
    assert kinds.count("corrected") == 6
    assert kinds.count("settings_changed") == 2
    assert kinds.count("photos_added") == 1
    weeks = studies.read_lists(clinic.store, clinic.study)
    lots = [sum(one.by_lot for one in week.listed) for week in weeks]
    for week, by_lot in clinic.freed:
        lots[week] += by_lot
    assert lots == [0] * 14 + [1] * 12 + [2] * 15
    assert {by_lot for _, by_lot in clinic.freed} == {True, False}


@pytest.mark.long
def test_forty_weeks_of_a_clinic_replay_to_the_bit_and_survive_export_and_import(
    store: Store, clock: Clock
) -> None:
    clinic = Clinic(store, clock)
    clinic.answer(6)
    studies.close_duels(store, clinic.study)
    studies.advance(store, clinic.study)
    weeks = 40 if store.engine.dialect.name == "sqlite" else 16  # where each takes twice as long
    for number in range(weeks):
        clinic.week(number)
    study = clinic.study
    assert studies.get_study(store, study).episode == weeks + 1
    if weeks == 40:
        check_everything_happened(clinic)
    check_replay(store, study)
    exported = studies.export_bundle(store, study)
    learner = blobs.digest(studies.load_learner(store, study).state())
    before = studies.get_study(store, study)
    lists = studies.read_lists(store, study)
    studies.delete_study(store, study)
    assert studies.import_bundle(store, exported) == study
    assert studies.export_bundle(store, study) == exported
    assert blobs.digest(studies.load_learner(store, study).state()) == learner
    assert studies.get_study(store, study) == before
    assert studies.read_lists(store, study) == lists
    clinic.week(41)  # and it goes on
    check_replay(store, study)
