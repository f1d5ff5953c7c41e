"""Roles: every service call has a row, and everybody is refused what their role does not allow."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from playing import cpap

from dopl_core import studies
from dopl_core.studies import ALL_STUDIES, NOBODY, Actor, Ask, RefusedError, Role, Store, access
from dopl_core.studies.model.actors import COMMAND_LINE, ROLES
from dopl_core.studies.roles import CALLS
from dopl_core.studies.store import tables

# As the owners' guide says: what each role may call, apart from the door and list_studies.
READER = {"get_study", "read_lists", "epoch_list", "download", "print_list"}
ANNOTATOR = {
    *("get_study", "next_duel", "answer", "undo", "agree", "skip_practice", "own_answers"),
    *("change", "flag", "give_reason"),
    *("arrival", "round_end", "load_learner", "photo_addresses", "answers", "withdraw"),
}
OWNER_ONLY = {
    *("create_study", "import_bundle", "list_unreadable", "change_settings", "add_history"),
    *("add_answers", "pause_study", "reopen_study", "close_study", "delete_study", "rehearse"),
    *("export_bundle", "replay_study", "seal_study", "add_member", "remove_member"),
    *("list_members", "read_audit", "audit_days", "keep_audit", "forget_audit"),
    *("access.make_owner_key", "access.first_owner_key"),
    *("erase_person", "erase_annotator", "erase_everybody", "due_erasures", "retain"),
}
GUARDED = [name for name, row in CALLS.items() if row.scope not in ("open", "mine")]
EVERYWHERE = [name for name in GUARDED if CALLS[name].scope == "all"]
ALLOWED: dict[Role, set[str]] = {
    "owner": set(GUARDED),
    "coordinator": set(GUARDED) - OWNER_ONLY - (ANNOTATOR - READER)
    | {"load_learner", "photo_addresses", "answers"},
    "reader": READER,
    "annotator": ANNOTATOR,
}


def modules() -> Iterator[tuple[str, Any]]:
    """The interface: each module and the prefix of its calls."""
    yield "", studies
    yield "access.", access
    for name in (*studies._ANALYSIS, "cards"):
        yield f"{name}.", getattr(studies, name)


def service_calls() -> dict[str, Callable[..., Any]]:
    """Every public function of the interface whose first argument is the database."""
    found = {}
    for prefix, module in modules():
        for name, one in vars(module).items():
            if name.startswith("_") or not inspect.isfunction(one):
                continue
            is_own = prefix == "" or inspect.unwrap(one).__module__ == module.__name__
            if is_own and next(iter(inspect.signature(one).parameters), "") == "store":
                found[prefix + name] = one
    return found


def somebody(role: Role, study: str) -> Actor:
    return Actor("Ann", "signed in", {study: frozenset([role])})


def arguments(call: Callable[..., Any], study: str, impression: int) -> list[Any]:
    """Arguments for a call: the study or the impression, Ann as annotator, else nothing."""
    first = {"study": study, "impression": impression}
    given = []
    for parameter in list(inspect.signature(call).parameters.values())[1:]:
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            given.append(
                first.get(parameter.name, "Ann" if parameter.name == "annotator" else None)
            )
    return given


@pytest.fixture
def impression(sqlite_store: Store) -> tuple[str, int]:
    """A study, and a duel of it that is shown to Ann."""
    study = studies.create_study(sqlite_store, cpap())
    ask = studies.next_duel(sqlite_store, study, "Ann")
    assert isinstance(ask, Ask)
    return study, ask.impression


def test_every_service_call_has_a_row_and_is_guarded() -> None:
    calls = service_calls()
    assert calls.keys() == CALLS.keys()
    for name, call in calls.items():
        assert hasattr(call, "is_guarded") == (CALLS[name].scope != "open"), name


def test_the_door_is_all_that_is_open() -> None:
    assert {name for name, row in CALLS.items() if row.scope == "open"} == {
        "access." + name
        for name in (
            *("has_owner_key", "is_owner", "begin_session", "begin_member_session", "end_session"),
            *("session_actor", "has_session", "find_invite", "refuse_link", "refuse_page"),
            *("check_without_id",),
            *("take_seat", "has_seat"),
        )
    }


def test_nobody_else_may_call_anything(sqlite_store: Store, impression: tuple[str, int]) -> None:
    """As nobody, as each role of this study that does not allow it, as each role of another."""
    store = sqlite_store
    other = studies.create_study(store, cpap())
    before = everything(store)
    for name, call in service_calls().items():
        if name not in GUARDED:
            continue
        refused = [NOBODY, *(somebody(role, other) for role in ROLES)]
        refused += [somebody(role, impression[0]) for role in ROLES if name not in ALLOWED[role]]
        if name in EVERYWHERE:  # an owner of one study does not own all
            refused.append(somebody("owner", impression[0]))
        for actor in refused:
            with pytest.raises(RefusedError, match="This needs the role"):
                call(store.acting_as(actor), *arguments(call, *impression))
    assert everything(store) == before


@pytest.mark.parametrize("role", ROLES)
def test_a_role_opens_its_calls(
    sqlite_store: Store, impression: tuple[str, int], role: Role
) -> None:
    calls = service_calls()
    for name in ALLOWED[role]:
        call = calls[name]

        def stub(*args: Any, **_: Any) -> str:
            return "called"

        stub.__signature__ = inspect.signature(call)  # type: ignore[attr-defined]
        row = CALLS[name]
        about = type(row)(row.may, row.act, row.look, row.scope, row.own)  # without its words
        place = ALL_STUDIES if row.scope == "all" else impression[0]
        actor = somebody(role, place)
        given = arguments(call, *impression)
        assert access._gated(stub, about)(sqlite_store.acting_as(actor), *given) == "called"


def everything(store: Store) -> str:
    """The content of all tables but the audit trail."""
    with store.read() as connection:
        rows = [
            connection.execute(sa.select(table)).all()
            for table in tables.metadata.sorted_tables
            if table.name != "audit"
        ]
    return str(rows)


def test_everybody_sees_the_studies_in_which_they_have_a_role(store: Store) -> None:
    one, two = (studies.create_study(store, cpap()) for _ in range(2))

    def seen(actor: Actor) -> set[str]:
        return {study.id for study in studies.list_studies(store.acting_as(actor))}

    assert seen(NOBODY) == set()
    assert seen(COMMAND_LINE) == {one, two}
    for role in ROLES:
        assert seen(somebody(role, one)) == {one}
        assert seen(somebody(role, ALL_STUDIES)) == {one, two}


def test_an_annotator_answers_and_asks_only_about_themselves(store: Store) -> None:
    study = studies.create_study(store, cpap())
    ann, bob = (
        store.acting_as(Actor(name, "link", {study: frozenset(["annotator"])}))
        for name in ("Ann", "Bob")
    )
    for own, name in ((ann, "Ann"), (bob, "Bob")):
        ask = studies.next_duel(own, study, name)
        assert isinstance(ask, Ask)
        assert studies.answer(own, ask.impression, "left", too_fast_ms=0).saved
        assert len(studies.own_answers(own, study, name)) == 1
    assert set(studies.answers(ann, study, "Ann").annotator) == {"Ann"}
    for call in (studies.own_answers, studies.undo, studies.arrival, studies.answers):
        with pytest.raises(RefusedError):
            call(ann, study, "Bob")
    with pytest.raises(RefusedError):
        studies.answers(ann, study)
    with pytest.raises(RefusedError):
        studies.change(ann, ask.impression, "Bob", "right")
    assert studies.undo(ann, study, "Ann") is not None


def test_an_impression_is_found_by_a_process_that_did_not_show_it(store: Store) -> None:
    study, other = (studies.create_study(store, cpap()) for _ in range(2))
    ask = studies.next_duel(store, study, "Ann")
    assert isinstance(ask, Ask)
    store.shown_in.clear()
    with pytest.raises(RefusedError):
        studies.answer(store.acting_as(somebody("annotator", other)), ask.impression, "left")
    with pytest.raises(RefusedError):
        studies.answer(store.acting_as(somebody("annotator", study)), 10**6, "left")
    mine = store.acting_as(somebody("annotator", study))
    assert studies.answer(mine, ask.impression, "left", too_fast_ms=0).saved


def test_views_of_a_store_share_what_it_knows(sqlite_store: Store) -> None:
    view = sqlite_store.acting_as(NOBODY)
    assert sqlite_store.actor is None
    assert view.actor is NOBODY
    assert view.engine is sqlite_store.engine
    view.clock = lambda: 5.0
    assert sqlite_store.now() == 5000
