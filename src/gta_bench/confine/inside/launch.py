"""First code inside the jail: obey the orders, then become the program or run the snippet."""

import json
import os
import signal
import sys
from typing import cast

from gta_bench.confine.inside import landlock, privileges, seccomp, snippet
from gta_bench.confine.inside.protocol import NOT_STARTED, READY, SETUP_FAILED, Orders


def main(text: str) -> None:
    """Entry point; `text` is the JSON of the orders."""
    orders = cast(Orders, json.loads(text))
    try:
        close_doors(orders)
        if orders["argv"] is not None:
            privileges.limit_processor_time(orders["limits"]["cpu_seconds"])
            if orders["profile"] is not None:
                seccomp.install(orders["profile"], forks=orders["forks"])
    except OSError as exc:
        sys.stderr.write(f"{exc.strerror or exc}\n")
        sys.stderr.flush()
        os._exit(SETUP_FAILED)
    if orders["argv"] is not None:
        become(orders["argv"], orders["environment"])
    snippet.run(
        profile=orders["profile"],
        scratch=orders["scratch"],
        cpu_seconds=orders["limits"]["cpu_seconds"],
        reply_bytes=orders["reply_bytes"],
    )


def close_doors(orders: Orders) -> None:
    """Everything but the system-call filter, which would stop imports that start a helper."""
    privileges.set_limits(orders["limits"])
    walls = orders["landlock"]
    if walls is not None:
        landlock.restrict(read=walls["read"], work=walls["work"], devices=walls["devices"])
    if orders["user"] is not None:
        # Under Landlock, Python may lie below a home that only root can enter.
        privileges.become_user(orders["user"], may_enter=walls is not None)
    elif walls is not None and os.geteuid() == 0:
        privileges.drop_capabilities()
    if orders["parent"] is not None:  # last, for whoever becomes another user is forgotten
        privileges.die_with(orders["parent"])


def become(argv: list[str], environment: dict[str, str]) -> None:
    """Replace this process by the program."""
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and a program would inherit it
        signal.signal(ignored, signal.SIG_DFL)
    os.write(2, READY)
    try:
        os.execvpe(argv[0], argv, environment)
    except OSError as exc:
        os.write(2, f"{argv[0]}: {exc.strerror}\n".encode())
    os._exit(NOT_STARTED)
