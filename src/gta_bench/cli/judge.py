"""`gta judge`: a judge as an instrument that is itself measured."""

from gta_bench.cli.lazy import LazyGroup

COMMANDS = {
    "attack": ("gta_bench.cli.judge_attack:attack", "Works that try to talk a judge into a score."),
    "floor": ("gta_bench.cli.judge_floor:floor", "What a judge gives to systems that do nothing."),
}

judge = LazyGroup(
    name="judge", commands_table=COMMANDS, help="Measure a judge: attacks on it, and its floor."
)
