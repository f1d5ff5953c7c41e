"""Every error that a study raises for a person to read; all are ValueErrors."""

from dopl_core.wording import gettext_noop


class StoreError(ValueError):
    """The database cannot be used as it is; says what is wrong and what to do.

    The text may name hosts, users and folders of the server: show it to the owner only.
    public: what everybody may be told
    """

    public = ""


class LockedError(StoreError):
    """Others keep the database locked for now; nothing was changed, and one may try again."""


class BackupNeededError(StoreError):
    """Tables are not brought up to date before somebody confirms that there is a backup."""

    public = "The database is being updated. Please come back later."


class ReplacedError(StoreError):
    """Another database, or an older state of it, took its place under a running program."""

    public = gettext_noop(
        "The database was replaced while the app was running. Nothing is saved until the owner "
        "starts the app again."
    )


class StudyError(ValueError):
    """A request to a study that makes no sense; says which and why."""


class LogError(ValueError):
    """A study log that contradicts itself; says where and why."""


class CsvError(ValueError):
    """A file that cannot be used; says which file, which row, and why."""


class AmbiguousDatesError(CsvError):
    """Dates that can be read with the day or the month first; the owner has to say."""


class ReplayError(ValueError):
    """A recorded result that replay does not reproduce; says where they differ."""
