"""HTML from the templates of this package; everything filled in is escaped."""

from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from gta_bench.errors import counted
from gta_bench.reports.tables import short
from gta_bench.web.task_view import score_text

TEMPLATES = "templates"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("gta_bench.web", TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(counted=counted, score=score_text, short=short)
    return environment


def render(template: str, **values: object) -> str:
    """The template with its values; a name that it uses and was not given is an error."""
    return _environment().get_template(template).render(values)


def asset(name: str) -> str:
    """A style sheet or script that lies beside the templates, as text."""
    return (files("gta_bench.web") / TEMPLATES / name).read_text(encoding="utf-8")
