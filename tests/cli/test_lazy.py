import click
from click.testing import CliRunner

from gta_bench.cli import COMMANDS, app
from gta_bench.cli.lazy import LazyGroup


def test_every_command_of_the_table_can_be_imported_and_has_help() -> None:
    context = click.Context(app)
    for name in COMMANDS:
        command = app.get_command(context, name)
        assert command is not None
        assert command.get_short_help_str()


def test_help_lists_the_commands_in_the_tables_order() -> None:
    said = CliRunner().invoke(app, ["--help"]).stdout
    places = [said.index(f"\n  {name} ") for name in COMMANDS]
    assert places == sorted(places)


def test_a_table_may_name_a_module_that_is_never_imported() -> None:
    group = LazyGroup(name="g", commands_table={"far": ("no.such.module:x", "Far away.")})
    assert "Far away." in CliRunner().invoke(group, ["--help"]).stdout


def test_an_unknown_command_is_none() -> None:
    assert app.get_command(click.Context(app), "unknown") is None
    assert CliRunner().invoke(app, ["unknown"]).exit_code == 2
