"""Everything the app and the command line do with studies: one function for each thing.

Each call is one short transaction (or a read), committed when it returns, and safe from many
threads and processes at once. Nothing here knows of a web page.

    store = open_store()                                  # DOPL_DATABASE_URL, else dopl.db
    config = from_environment("cpap", horizon=5)          # a simulated world
    config = from_roster(read_roster(path, states), states, title=..., budget=8)   # an observed one
    past = read_history(path, config)                     # records of before, if there are some
    study = create_study(store, config, past)             # its id; first duels, and plan, are made

    match next_duel(store, study, "Ann"):
        case Ask() as ask: receipt = answer(store, ask.impression, "left", response_ms=840)
        case Waiting() as wait: ...                       # wait.reason; wait.plan_due: advance()
        case Finished(): ...
    if receipt.plan_due: advance(store, study)            # slow: in a process of its own
    undo(store, study, "Ann")                             # the duel once more, or None
    own_answers(store, study, "Ann"); change(...); flag(...)     # look back; tell the owner
    arrival, round_end                                    # what they are told before and after
    read_lists(store, study)                              # whom to help, why, and what came of it
    observe(store, study, {"p1": "Low", "p2": None}, helped=["p1"], week=3)   # None: unknown
    report = read_report(path, config)                    # the same from CSV, with fresh columns
    correct(store, study, 2, {"p1": "High"})              # what was reported wrongly
    join(store, study, [Arm(...)]); leave(store, study, ["p2"]); change_settings(store, study, ...)
    keep_photos(store, study, read_photos(path, config).photos)      # a zip, named by their ids
    exclude(store, study, "Ann"); include(...)            # whose answers the next plan counts
    close_duels(store, study)                             # wait no longer for missing ratings

    export_bundle(store, study) -> bytes; import_bundle(store, path or bytes) -> id
    export_bundle(store, study, pseudonyms=True)          # without the names of those who answer
    replay_bundle(path or bytes), replay_study(store, study)     # all again, and compared

    epoch_list, present_states                            # a simulated list, where everyone is
    answers, plans, agreement, annotators, beliefs, transitions              # tables to look at
    pause_study, reopen_study, close_study, delete_study, list_studies, get_study

Episodes (plans) count from 1, epochs of an episode and duels of an epoch from 0. What is wrong
with an argument is said in a StudyError, with a file in a CsvError, with the database in a
StoreError, all ValueErrors; nothing has changed then.

`advance` is worth calling whenever `plan_due` is true anywhere: the first caller makes the plan,
all others return at once, and a process that died is replaced.

A skip is a rating given without weight: a duel that nobody can tell never holds up a study.
"""

from dopl_core.studies.asking import answer, next_duel, skip_practice, undo
from dopl_core.studies.catalogue import (
    Study,
    Unreadable,
    close_study,
    coming_config,
    delete_study,
    get_study,
    last_event,
    list_studies,
    list_unreadable,
    pause_study,
    reopen_study,
)
from dopl_core.studies.config import Arm, StudyConfig, engine_for, from_environment, from_roster
from dopl_core.studies.csvtext import CsvError
from dopl_core.studies.exchange import (
    export_bundle,
    import_bundle,
    replay_bundle,
    replay_study,
)
from dopl_core.studies.fold import load_learner
from dopl_core.studies.insights import (
    Helped,
    agreement,
    annotators,
    answers,
    beliefs,
    epoch_list,
    excluded,
    plans,
    present_states,
    sureness,
    transitions,
)
from dopl_core.studies.lists import (
    LIST_COLUMNS,
    Listed,
    WeekList,
    list_rows,
    read_lists,
    report_words,
)
from dopl_core.studies.own import (
    Arrival,
    Own,
    RoundEnd,
    arrival,
    change,
    flag,
    flags,
    own_answers,
    round_end,
)
from dopl_core.studies.owner import (
    change_settings,
    correct,
    exclude,
    include,
    join,
    leave,
    observe,
)
from dopl_core.studies.photos import count_photos, keep_photos, read_photos, remove_photos
from dopl_core.studies.records import Records, read_history
from dopl_core.studies.replies import Ask, Finished, Receipt, Side, Waiting
from dopl_core.studies.roster import Report, read_report, read_roster, states_in
from dopl_core.studies.running import add_history, advance, close_duels, create_study
from dopl_core.studies.store import Store, StoreError, StudyError, open_store

__all__ = [
    "LIST_COLUMNS",
    "Arm",
    "Arrival",
    "Ask",
    "CsvError",
    "Finished",
    "Helped",
    "Listed",
    "Own",
    "Receipt",
    "Records",
    "Report",
    "RoundEnd",
    "Side",
    "Store",
    "StoreError",
    "Study",
    "StudyConfig",
    "StudyError",
    "Unreadable",
    "Waiting",
    "WeekList",
    "add_history",
    "advance",
    "agreement",
    "annotators",
    "answer",
    "answers",
    "arrival",
    "beliefs",
    "change",
    "change_settings",
    "close_duels",
    "close_study",
    "coming_config",
    "correct",
    "count_photos",
    "create_study",
    "delete_study",
    "engine_for",
    "epoch_list",
    "exclude",
    "excluded",
    "export_bundle",
    "flag",
    "flags",
    "from_environment",
    "from_roster",
    "get_study",
    "import_bundle",
    "include",
    "join",
    "keep_photos",
    "last_event",
    "leave",
    "list_rows",
    "list_studies",
    "list_unreadable",
    "load_learner",
    "next_duel",
    "observe",
    "open_store",
    "own_answers",
    "pause_study",
    "plans",
    "present_states",
    "read_history",
    "read_lists",
    "read_photos",
    "read_report",
    "read_roster",
    "remove_photos",
    "reopen_study",
    "replay_bundle",
    "replay_study",
    "report_words",
    "round_end",
    "skip_practice",
    "states_in",
    "sureness",
    "transitions",
    "undo",
]
