"""The messages between the host and the launcher inside the jail."""

from typing import Literal, TypedDict

Profile = Literal["snippet", "program", "program-unwalled"]

# Foreign code starts only after this line was written to stderr, so any failure without it is the
# jail's fault and not the code's.
READY = b"gta-bench jail: ready\n"
SETUP_FAILED = 70
NOT_STARTED = 127


class LimitOrders(TypedDict):
    """Numbers for setrlimit; None leaves a limit as it is."""

    cpu_seconds: int
    memory_bytes: int | None
    file_bytes: int
    open_files: int
    processes: int | None


class LandlockOrders(TypedDict):
    """Paths for Landlock."""

    read: list[str]
    work: list[str]
    devices: list[str]


class Orders(TypedDict):
    """What the launcher gets as its argument.

    `user` is the user to change to, None to keep the current one. `parent` is the process to die
    with, None if a PID namespace takes care of that. `profile` names the system-call filter.
    Without `argv` the launcher runs a snippet, whose `SnippetRequest` comes on stdin.
    """

    user: int | None
    parent: int | None
    limits: LimitOrders
    landlock: LandlockOrders | None
    profile: Profile | None
    forks: bool
    argv: list[str] | None
    environment: dict[str, str]
    scratch: str
    reply_bytes: int


class SnippetRequest(TypedDict):
    """A snippet: trusted driver, foreign code, and files (base64) for the scratch folder."""

    driver: str
    code: str
    files: dict[str, str]
