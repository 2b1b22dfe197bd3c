"""`gta judge`: a judge as an instrument that is itself measured."""

from gta_bench.cli.lazy import LazyGroup

COMMANDS = {
    "label": ("gta_bench.cli.judge_label:label", "A page on which people label leaves, blind."),
    "list": ("gta_bench.cli.judge_drift:list_judges", "The judges of a run, with digests."),
    "bridge": ("gta_bench.cli.judge_drift:bridge", "Works of a run to compare judges on."),
    "drift": ("gta_bench.cli.judge_drift:drift", "Two judges, or one at two dates."),
    "cascade": ("gta_bench.cli.judge_drift:cascade", "A cheap judge first: saving and error."),
    "calibrate": ("gta_bench.cli.judge_calibrate:calibrate", "A run's judges against people."),
    "attack": ("gta_bench.cli.judge_attack:attack", "Works that try to talk a judge into a score."),
    "floor": ("gta_bench.cli.judge_floor:floor", "What a judge gives to systems that do nothing."),
}

judge = LazyGroup(
    name="judge",
    commands_table=COMMANDS,
    help="Measure a judge: against people, against others, under attack.",
)
