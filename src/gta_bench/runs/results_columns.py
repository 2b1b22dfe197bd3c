"""The columns of the results tables; docs/reference/results.md is written from here."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Column(NamedTuple):
    """A column: its name, its type in DuckDB's words, and what it means."""

    name: str
    type: str
    meaning: str


RUN: Final = (Column("run", "VARCHAR", "The run's folder, as it was given."),)
UNIT: Final = (
    *RUN,
    Column("task", "VARCHAR", "The task's id."),
    Column("epoch", "INTEGER", "Which repetition of the task, from 1."),
)
RUNS: Final = (
    *RUN,
    Column("dataset", "VARCHAR", "`atomic` or `workflow`."),
    Column("dataset_digest", "VARCHAR", "Digest of the dataset's files."),
    Column("mode", "VARCHAR", "`step`, `end-to-end` or `workflow`."),
    Column("model", "VARCHAR", "The model that was asked."),
    Column("agent", "VARCHAR", "The agent that drove it, or `harness`."),
    Column("harness", "VARCHAR", "The foreign system, its command or function."),
    Column("tools", "VARCHAR", "`local`, a server's address, or `own`."),
    Column("network", "VARCHAR", "What a harness could reach."),
    Column("scoring_version", "INTEGER", "Version of the scoring rules."),
    Column("leaf_threshold", "DOUBLE", "Workflow: score from which a leaf succeeds."),
    Column("root_threshold", "DOUBLE", "Workflow: score from which a task succeeds."),
    Column("n", "INTEGER", "Units with a score; Workflow: units that were run to their end."),
    Column("n_units", "INTEGER", "Units that the run has in all. Rankable only if n equals it."),
    Column("manifest", "VARCHAR", "`run.json`, as JSON."),
    Column("scores", "VARCHAR", "The pooled scores of `scores.json` without units, as JSON."),
)
COUNTS: Final = (
    *("inst_hits", "inst_total", "call_total", "tool_hits", "arg_hits", "arg_typed_sum"),
    *("answer_total", "answer_sum", "image_sum", "answer_i_total", "malformed"),
)
COMPAT_COUNTS: Final = tuple(name for name in COUNTS if name not in ("arg_typed_sum", "malformed"))
SAMPLES: Final = (
    *UNIT,
    Column("category", "VARCHAR", "Workflow: the task's category."),
    Column("failure", "VARCHAR", "Why the unit has no score through no fault of the system."),
    Column("first_causes", "VARCHAR[]", "First causes of what failed (Atomic)."),
    Column("seconds", "DOUBLE", "How long the unit took."),
    Column("model_calls", "BIGINT", "Calls of the system's model."),
    Column("input_tokens", "BIGINT", "Tokens of these calls."),
    Column("output_tokens", "BIGINT", "Tokens of their replies."),
    Column("cost_usd", "DOUBLE", "What they cost; NULL where no price is known."),
    Column("calls_done", "INTEGER", "Tool calls that gave a result."),
    Column("calls_error", "INTEGER", "Tool calls that failed."),
    Column("calls_unavailable", "INTEGER", "Tool calls that this machine could not serve."),
    Column("leaves", "INTEGER", "Workflow: leaves of the task."),
    Column("kinds", "VARCHAR[]", "Workflow: endings of the deliverables' names."),
    Column("tool_categories", "VARCHAR[]", "Workflow: categories of the tools that were called."),
    *(Column(f"strict_{name}", "DOUBLE", "Atomic, strict: see Scoring.") for name in COUNTS),
    *(
        Column(f"compat_{name}", "DOUBLE", "Atomic, as upstream counts it.")
        for name in COMPAT_COUNTS
    ),
)
VERDICTS: Final = (
    *UNIT,
    Column("leaf", "VARCHAR", "The leaf's id."),
    Column("judge", "VARCHAR", "The judge, with the options that can move a verdict."),
    Column("repeat", "INTEGER", "Which of its verdicts on the leaf, from 1."),
    Column("weight", "DOUBLE", "The leaf's part of the root, 0 to 1; NULL if nothing weighs."),
    Column("compat_weight", "DOUBLE", "The same by upstream's rule, where nothing is 0."),
    Column("requirement_sha256", "VARCHAR", "Digest of the leaf's requirement."),
    Column("value", "DOUBLE", "The score, 0 to 10; NULL where there is none."),
    Column("cause", "VARCHAR", "Why there is no score."),
    Column("compat", "DOUBLE", "What upstream's rule reads in the reply."),
    Column("reason", "VARCHAR", "The judge's words."),
    Column("evidence", "VARCHAR", "Digest of what the judge was shown."),
    Column("prompts", "VARCHAR", "Digest of its prompts."),
    Column("model", "VARCHAR", "The name by which the provider answered."),
    Column("input_tokens", "BIGINT", "The leaf's part of its call."),
    Column("cached_tokens", "BIGINT", "Of these, read from the provider's cache."),
    Column("output_tokens", "BIGINT", "The leaf's part of the reply."),
    Column("cost_usd", "DOUBLE", "The leaf's part of the cost."),
)
FAILURES: Final = (
    *UNIT,
    Column("judge", "VARCHAR", "Workflow: whose verdict; NULL for Atomic."),
    Column("place", "VARCHAR", "`step 2`, `task`, or the leaf's id."),
    Column("cause", "VARCHAR", "The first cause; see Why it failed."),
    Column("detail", "VARCHAR", "What was seen."),
)
TABLES: Final[Mapping[str, tuple[Column, ...]]] = {
    "runs": RUNS,
    "samples": SAMPLES,
    "verdicts": VERDICTS,
    "failures": FAILURES,
}
ABOUT: Final[Mapping[str, str]] = {
    "runs": "One row for each run.",
    "samples": "One row for each unit: a task in an epoch.",
    "verdicts": "One row for each leaf, judge and repeat: the newest verdict of each.",
    "failures": "One row for each step, task or leaf that failed, with its first cause.",
}
