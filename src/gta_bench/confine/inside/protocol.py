"""What the two sides of the wall say to each other."""

from typing import Literal, TypedDict

Profile = Literal["snippet", "program", "program-unwalled"]

# Foreign code starts only after this line has gone to stderr, so whatever goes wrong without it
# is the jail's fault and not the code's.
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
    """What the far side is told in its argument.

    `user` is whom to become, None to stay. `parent` is the process to die with, None where a PID
    namespace sees to it. `profile` names the system-call filter. Without `argv` a snippet is run,
    whose `Request` comes on stdin.
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
    """A snippet: our driver, the foreign code, and files (base64) for the scratch folder."""

    driver: str
    code: str
    files: dict[str, str]
