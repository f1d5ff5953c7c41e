"""Databases that can be stopped and started while the app runs."""

from pathlib import Path

from own_postgresql import OwnPostgreSQL


class SQLite:
    """A file that is moved away."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "dopl.db"
        self.url = f"sqlite:///{self.file}"
        self.secrets = (str(folder), "sqlite", "dopl.db")

    def stop(self) -> None:
        self.file.rename(self.file.with_name("elsewhere"))

    def start(self) -> None:
        self.file.with_name("elsewhere").rename(self.file)

    def end(self) -> None:
        pass


class PostgreSQL(OwnPostgreSQL):
    """A server that is stopped."""

    def __init__(self, _: Path) -> None:
        super().__init__()
        self.url = self.url.format("postgres")
        self.secrets = (self.name, str(self.folder), "postgres", "connection", "socket")
