"""A history looked at before it is played: all of it must fit together."""

from collections import Counter

from dopl_core.environments import brief
from dopl_core.studies.history import (
    History,
    HistoryError,
    Impression,
    Move,
    Place,
    Sides,
    as_counted,
)
from dopl_core.studies.vocabulary import ANSWERS, CREDIT, EVENTS, LEARNT, SAID, TRUST


def check(history: History) -> None:
    """Refuse what does not fit together; places are named as in a bundle's files."""
    _check_log(history)
    _check_trust(history)
    _check_epochs(history)
    _check_impressions(history)
    _check_outcomes(history)
    _check_answers_used(history)
    if not 0 <= history.given <= history.asked:
        raise HistoryError(f"study.json: {history.given} ratings given of {history.asked} asked")


def _check_log(history: History) -> None:
    """Each event has what its kind has, and a plan was made with all that it should have known."""
    late = SAID if history.config.world == "observed" else ()
    needed = [n for n, e in enumerate(history.events, 1) if EVENTS[e.kind] and e.kind not in late]
    known = 0  # of `needed`, those before this event
    planned = past = False
    for seq, event in enumerate(history.events, start=1):
        where = f"events.csv row {seq + 1}"
        if (event.impression is not None) != (event.kind in _OF_IMPRESSIONS):
            raise HistoryError(f"{where}: {event.kind} is about an impression, or should not be")
        if event.impression is not None and not 0 <= event.impression < len(history.impressions):
            raise HistoryError(f"{where}: impression {event.impression + 1} is not in duels.csv")
        outcomes = _OUTCOMES.get(event.kind, (None,))
        if event.outcome not in outcomes:
            raise HistoryError(f'{where}: {event.kind} with the outcome "{event.outcome or ""}"')
        if event.kind == "planned":
            heard = event.content.get("heard", seq - 1)
            if not isinstance(heard, int) or not 0 <= heard < seq:
                raise HistoryError(
                    f"{where}: heard is {brief(heard)}: the number of an event needed"
                )
            if known and heard < needed[known - 1]:
                raise HistoryError(f"{where}: the plan does not know of event {needed[known - 1]}")
        if event.kind == "flagged" and not all(
            isinstance(event.content.get(what), str) for what in ("comment", "arm")
        ):
            raise HistoryError(f"{where}: a flag without the comment and the arm it is about")
        if event.kind == "history_added" and (planned or past):
            raise HistoryError(f"{where}: past records, which come once and before the first plan")
        planned, past = planned or event.kind == "planned", past or event.kind == "history_added"
        known += known < len(needed) and needed[known] == seq


def _check_trust(history: History) -> None:
    """People who are here are excluded, and those who are excluded included again."""
    names = {person.name for person in history.annotators}
    out: set[str] = set()
    for seq, event in enumerate(history.events, start=1):
        if event.kind in TRUST:
            name = event.annotator or ""
            if name not in names or (name in out) == (event.kind == "person_excluded"):
                raise HistoryError(
                    f'events.csv row {seq + 1}: {event.kind}: "{name[:80]}" cannot be'
                )
            out ^= {name}


# Kinds of events that are about an impression, and the outcomes that events have.
_OF_IMPRESSIONS = ("shown", "answered", "refused", "expired", "undone", "flagged")
_OUTCOMES = {"answered": ANSWERS, "refused": ANSWERS, "undone": (*ANSWERS, None)}


def _check_epochs(history: History) -> None:
    config, episode, moves = history.config, history.episode, history.moves
    most = episode * config.horizon
    least = most if config.world == "simulated" else max(most - config.horizon + 1, 0)
    places = (divmod(number, config.horizon) for number in range(len(moves)))
    ordered = all((m.episode - 1, m.epoch) == place for m, place in zip(moves, places, strict=True))
    if not ordered or not least <= len(moves) <= most:
        raise HistoryError(
            f"transitions.csv: the epochs are not those of {episode} plans with {config.horizon} "
            "epochs each, in order"
        )
    source = "simulated" if config.world == "simulated" else "owner"
    for number, move in enumerate(moves, start=1):
        where = f"transitions.csv: epoch ({move.episode}, {move.epoch})"
        if move.next_states is None and (number < len(moves) or source == "simulated"):
            raise HistoryError(f"{where} has no next states")
        if move.next_states is not None and move.source != source:
            raise HistoryError(f'{where} has the source "{move.source}", not "{source}"')
        if move.helped is not None and source == "simulated":
            raise HistoryError(f"{where}: others are helped than those on the list")
        for arm in move.columns or ():
            history.coming.arm_number(arm)
    if len(history.configs) != episode:
        raise HistoryError(
            f"events.csv: {len(history.configs)} plans were made, plans.csv has {episode}"
        )


def _check_impressions(history: History) -> None:
    moves = {(move.episode, move.epoch): move for move in history.moves}
    names = {person.name for person in history.annotators}
    most = max(c.ratings for c in (history.config, history.now, *history.configs.values()))
    sides: dict[tuple[Place, str], Sides] = {}
    ratings: Counter[tuple[Place, str]] = Counter()
    people: set[tuple[Place, str, str]] = set()
    for number, shown in enumerate(history.impressions, start=2):
        where = f"duels.csv row {number}"
        key = (shown.place, shown.purpose)
        if shown.annotator not in names:
            raise HistoryError(f'{where}: annotator "{shown.annotator[:80]}" is not in study.json')
        if sides.setdefault(key, shown.sides) != shown.sides:
            raise HistoryError(f"{where}: the duel has other sides than before")
        _check_purpose(where, shown, history)
        if shown.place[0]:
            _check_sides(where, shown, moves.get(shown.place[:2]), history)
        if shown.outcome != "undone":
            if (*key, shown.annotator) in people:
                raise HistoryError(f"{where}: shown to the same person before")
            people.add((*key, shown.annotator))
        if shown.purpose in LEARNT and shown.outcome in ANSWERS:
            ratings[key] += 1
            wanted = most
            if shown.place[0] == history.episode:
                wanted = history.closed.get(shown.place, history.now.ratings)
            if ratings[key] > wanted:
                raise HistoryError(f"{where}: the duel has more than {wanted} ratings")


def _check_purpose(where: str, shown: Impression, history: History) -> None:
    """What comes before the first plan is about those of the beginning."""
    first = shown.purpose in ("practice", "sitting")
    if (first and shown.place[0]) or (shown.purpose == "policy" and not shown.place[0]):
        raise HistoryError(f"{where}: a duel of episode {shown.place[0]} for {shown.purpose}")
    if not shown.place[0] and max(shown.sides[0], shown.sides[2]) >= history.config.n_arms:
        raise HistoryError(f"{where}: an arm that was not there yet")


def _check_sides(where: str, shown: Impression, move: Move | None, history: History) -> None:
    if move is None:
        raise HistoryError(f"{where}: the epoch is not in transitions.csv")
    only_listed = history.configs[move.episode].answers < history.configs[move.episode].budget
    left_arm, left_state, right_arm, right_state = shown.sides
    for arm, state in ((left_arm, left_state), (right_arm, right_state)):
        there = arm < len(move.states) and move.states[arm] == state
        if not there or (only_listed and arm not in move.arms):
            raise HistoryError(
                f"{where}: transitions.csv has no such arm helped in that state then"
            )


def _check_outcomes(history: History) -> None:
    """The log and the impressions say the same of every answer."""
    said: dict[int, str | None] = {}
    for seq, event in enumerate(history.events, start=1):
        if event.impression is not None and event.kind in _OUTCOME:
            if event.annotator != history.impressions[event.impression].annotator:
                raise HistoryError(f"events.csv row {seq + 1}: an impression of another person's")
            before = said.get(event.impression)
            twice = event.kind == "answered" and before in ANSWERS
            if twice or (event.kind == "undone" and event.outcome not in (None, before)):
                raise HistoryError(
                    f'events.csv row {seq + 1}: {event.kind} "{event.outcome}", when the answer '
                    f'was "{before or ""}"'
                )
            kind = _OUTCOME[event.kind]
            said[event.impression] = event.outcome if event.kind == "answered" else kind
    for place, shown in enumerate(history.impressions):
        if shown.purpose != "practice" and said.get(place) != shown.outcome:
            raise HistoryError(
                f'duels.csv row {place + 2}: outcome is "{shown.outcome or ""}", the log has '
                f'"{said.get(place) or ""}"'
            )


# What an impression's outcome is after an event; an answer's is its own.
_OUTCOME = {"shown": None, "answered": None, "expired": "expired", "undone": "undone"}


def _check_answers_used(history: History) -> None:
    """As many answers as each plan says had come before it."""
    said: Counter[str | None] = Counter()
    out: set[str | None] = set()
    plans = iter(enumerate(history.plans, start=2))
    for _, event in as_counted(history.events):
        if event.kind == "planned":
            number, plan = next(plans)
            count = sum(answers for name, answers in said.items() if name not in out)
            if plan.answers != count:
                raise HistoryError(
                    f"plans.csv row {number}: made with {plan.answers} answers, duels.csv has "
                    f"{count} from before it"
                )
        elif event.kind in SAID and event.outcome in CREDIT and event.impression is not None:
            learnt = history.impressions[event.impression].purpose in LEARNT
            said[event.annotator] += learnt * (1 if event.kind == "answered" else -1)
        elif event.kind in TRUST:
            out ^= {event.annotator}
