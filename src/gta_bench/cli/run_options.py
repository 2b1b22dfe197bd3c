"""The options that `gta run` has for both datasets, read into one request."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from gta_bench.agents.catalog import DEFAULT_AGENT
from gta_bench.agents.loop import MAX_TURNS
from gta_bench.cli.harness import harness_options
from gta_bench.cli.options import backend_options
from gta_bench.cli.output import say
from gta_bench.cli.places import PLACE
from gta_bench.cli.product import product_options, refuse_with_product
from gta_bench.cli.targets import run_targets
from gta_bench.cli.tooling import tooling_options
from gta_bench.cluster.backend import Backend
from gta_bench.cluster.choice import open_backend
from gta_bench.harnesses.choice import Harness
from gta_bench.harnesses.product import Product
from gta_bench.records.plan import worthwhile_places
from gta_bench.records.run import Images
from gta_bench.runs.store import StorePath
from gta_bench.settings import Settings
from gta_bench.tasks.models import NO_MODEL
from gta_bench.tasks.tooling import Tooling

Command = Callable[..., None]
SAMPLING = ("max_tokens", "temperature")
BUDGET = ("max_connections", "max_retries", "timeout", "cost_usd", "hours")

OPTIONS = (
    click.option("--model", "models", multiple=True, help="provider/model or a name of gta.toml."),
    click.option(
        "--agent",
        default=DEFAULT_AGENT,
        show_default=True,
        help="toolcalling, react, react-upstream, silent or pkg.mod:function; gold for GTA-Atomic.",
    ),
    click.option("--out", type=PLACE, required=True, help="The run's folder, or s3://…."),
    click.option("--tasks", help="A range of positions (0:10) or a list of ids (3,5,7)."),
    click.option("--epochs", type=click.IntRange(1), default=1, show_default=True),
    click.option(
        "--images",
        type=click.Choice(["path", "attached"]),
        default="path",
        show_default=True,
        help="What the model is shown of images; published runs show paths.",
    ),
    click.option(
        "--max-turns",
        type=click.IntRange(1),
        default=MAX_TURNS,
        show_default=True,
        help="Decisions in a task, and in each round of feedback.",
    ),
    click.option(
        "--max-connections", type=click.IntRange(1), help="Model calls at once, over all workers."
    ),
    click.option(
        "--max-cost",
        "cost_usd",
        type=click.FloatRange(0, min_open=True),
        help="USD that the run may spend: then no more units begin.",
    ),
    click.option(
        "--max-hours",
        "hours",
        type=click.FloatRange(0, min_open=True),
        help="Hours after which no more units begin.",
    ),
    click.option("--max-retries", type=click.IntRange(0), help="Retries of a failed model call."),
    click.option("--timeout", type=click.IntRange(1), help="Seconds for one model call."),
    click.option("--max-tokens", type=click.IntRange(1), help="Longest reply, in tokens."),
    click.option("--temperature", type=click.FloatRange(0), help="Sampling temperature."),
    backend_options,
    tooling_options,
    product_options,
    harness_options,
)


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What the options ask for; `budget` and `sampling` override settings where given."""

    models: tuple[str, ...]
    agent: str
    out: StorePath
    tasks: str | None
    epochs: int
    images: Images
    max_turns: int
    workers: int | None
    cluster: str | None
    budget: Mapping[str, float | None]
    sampling: Mapping[str, float | None]
    tooling: Tooling
    product: Product | None
    harness: Harness | None

    @property
    def overrides(self) -> dict[str, float | None]:
        """What beats the settings file."""
        return {f"budget.{name}": value for name, value in self.budget.items()}

    def check(self, **others: bool) -> None:
        """Refuse what means nothing to a product, these options and `others` by their names."""
        given = {
            **others,
            "--model": bool(self.models),
            "--harness": self.harness is not None,
            "--tools, --tape or --control": not self.tooling.plain,
        }
        refuse_with_product(self.product, given)

    @contextmanager
    def backend(self, units: int) -> Iterator[Backend]:
        """Where so many units are run; who gains nothing by it is told so."""
        places = self.workers or 0
        if places > 1 and worthwhile_places(units, places) < places:
            say(
                f"{units} units are soon run by one process, which holds many model calls at once; "
                "--workers and --cluster are for thousands of units, or for tools and harnesses "
                "that need whole cores."
            )
        with open_backend(self.workers, self.cluster) as backend:
            yield backend

    def systems(self, settings: Settings) -> Iterator[tuple[StorePath, dict[str, Any]]]:
        """The fields of a `SystemRun` for each system, with the folder of its run."""
        targets = (
            run_targets(self.out, self.models, self.agent, settings, self.harness)
            if self.product is None
            else [(self.out, NO_MODEL)]
        )
        given = {name: value for name, value in self.sampling.items() if value is not None}
        for target, model in targets:
            yield (
                target,
                {
                    "model": model._replace(settings=model.settings.model_copy(update=given)),
                    "agent": self.agent,
                    "images": self.images,
                    "tasks": self.tasks,
                    "epochs": self.epochs,
                    "settings": settings,
                    "max_turns": self.max_turns,
                    "tooling": self.tooling,
                    "product": self.product,
                    "harness": self.harness,
                },
            )


def run_options(command: Command) -> Command:
    """The shared options, given to the command as one `wanted`."""

    @wraps(command)
    def with_request(*args: Any, **kwargs: Any) -> None:
        sampling = {name: kwargs.pop(name) for name in SAMPLING}
        budget = {name: kwargs.pop(name) for name in BUDGET}
        fields = RunRequest.__dataclass_fields__
        own = {name: kwargs.pop(name) for name in fields if name in kwargs}
        wanted = RunRequest(**own, budget=budget, sampling=sampling)
        command(*args, wanted=wanted, **kwargs)

    full: Command = with_request
    for option in reversed(OPTIONS):
        full = option(full)
    return full
