"""`gta judge`: a judge as an instrument that is itself measured."""

from gta_bench.cli.lazy import LazyGroup

COMMANDS = {
    "label": ("gta_bench.cli.judge_label:label", "A page on which people label leaves, blind."),
    "calibrate": ("gta_bench.cli.judge_calibrate:calibrate", "A run's judges against people."),
    "attack": ("gta_bench.cli.judge_attack:attack", "Works that try to talk a judge into a score."),
    "floor": ("gta_bench.cli.judge_floor:floor", "What a judge gives to systems that do nothing."),
}

judge = LazyGroup(
    name="judge",
    commands_table=COMMANDS,
    help="Measure a judge: against people, against others, under attack.",
)
