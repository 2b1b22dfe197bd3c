"""`gta task`: write and check tasks of your own."""

from gta_bench.cli.lazy import LazyGroup

TASK_COMMANDS = {
    "new": (".task_lint:new_command", "Write a small task that runs and scores at once."),
    "from-trace": (".task_trace:from_trace_command", "Make draft tasks from traces of agents."),
    "lint": (".task_lint:lint_command", "Find mistakes in tasks, without a model."),
    "preview": (".task_pilot:preview", "Show a task as the system and the judge will see it."),
    "pilot": (".task_pilot:pilot", "Try tasks with gold, empty, cheating and wrong work."),
}

task = LazyGroup(
    name="task", commands_table=TASK_COMMANDS, help="Write and check tasks of your own."
)
