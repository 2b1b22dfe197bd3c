"""The kinds of stored runs, each with the command that made it."""

STEP = ("run", "atomic", "--mode", "step")
END = ("run", "atomic", "--mode", "end-to-end")
WORKFLOW = ("run", "workflow", "--model", "scripted")
ASKED = ("--model", "scripted")
STRICT, KIND = "openai-api/local/strict", "openai-api/local/kind"
TAPE = ("--tape", "data/tape")
# Leaves a table like that of the scripted model, without asking any.
HARNESS = "sh -c 'printf \"name\\nquokka\\n\" > {workspace}/outputs/animals.csv; echo Done.'"
BRIDGE = ("--agent-bridge", "tests.legacy.agents:bare", "--harness-version", "1.0")

# Runs that are made by one command; `--out runs/KIND` is added.
ATOMIC_RUNS = {
    "step": (*STEP, *ASKED),
    "step-react": (
        *(*STEP, *ASKED, "--agent", "react", "--images", "attached"),
        *("--temperature", "0.5", "--max-tokens", "99"),
    ),
    "step-upstream": (*STEP, *ASKED, "--agent", "react-upstream", "--tasks", "0,2"),
    "step-gold": (*STEP, "--agent", "gold"),
    "end-to-end": (*END, *ASKED, "--max-turns", "5"),
    "replayed": (*END, *ASKED, *TAPE),
    "recorded": (*END, *ASKED, "--tape", "recorded-tape", "--tape-mode", "record"),
    "corrupted": (*END, *ASKED, *TAPE, "--control", "corrupt-replies", "--control-seed", "3"),
    "disturbed": (*END, *ASKED, *TAPE, "--control", "faults=0.5", "--control", "distractors=1"),
    "no-tools": (*END, *ASKED, "--control", "no-tools"),
    "epochs": (*END, *ASKED, *TAPE, "--epochs", "2"),
    "gold": (*END, "--agent", "gold"),
    "silent": (*END, "--agent", "silent"),
    "atomic-bridge": (*END, *ASKED, *BRIDGE),
    "shards": (*END, *ASKED, *TAPE, "--workers", "2", "--max-connections", "2"),
}
WORKFLOW_RUNS = {
    "workflow": (*WORKFLOW, "--judge", "strict"),
    "workflow-epochs": (*WORKFLOW, "--judge", "strict", "--epochs", "2", "--tasks", "1"),
    "two-judges": (*WORKFLOW, "--judge", "strict", "--judge", "kind"),
    "feedback": (*WORKFLOW, "--judge", "strict", "--feedback-rounds", "1", "--feedback", "reason"),
    "workflow-silent": ("run", "workflow", "--agent", "silent", "--judge", "strict"),
    "harness": ("run", "workflow", "--harness", HARNESS, "--judge", "strict"),
    "workflow-bridge": (*WORKFLOW, *BRIDGE, "--judge", "strict"),
    "workflow-shards": (
        *(*WORKFLOW, "--judge", "strict", "--workers", "2", "--max-connections", "2"),
    ),
}
# Products behind HTTP: a kind of run that the version before made.
PRODUCTS = ("atomic-product", "product")
# Results of elsewhere, and the commands that bring them into a run.
IMPORTS = {
    "import-folder": ("import", "folder", "sources/folder"),
    "import-atomic-folder": ("import", "folder", "sources/answers", "--dataset", "atomic"),
    "import-pack": ("import", "pack", "sources/pack/pack.json", "--model", "m"),
    "import-step": ("import", "opencompass", "sources/step.json", "--mode", "step"),
    "import-end-to-end": ("import", "opencompass", "sources/end.json", "--mode", "end-to-end"),
    "import-workflow": (
        *("import", "opencompass", "sources/stored", "--dataset", "workflow"),
        *("--harness", "lagent"),
    ),
}
# Unfinished runs, by the finished one whose command and scores they share.
UNFINISHED = {
    "step-killed": "step",
    "step-interrupted": "step",
    "step-failed": "step",
    "end-to-end-killed": "end-to-end",
    "epochs-killed": "epochs",
    "workflow-killed": "workflow",
    "judging-killed": "workflow",
    "feedback-killed": "feedback",
    "shards-killed": "shards",
    "shards-failed": "shards",
    "shards-unmerged": "shards",
}
RUNS = {**ATOMIC_RUNS, **WORKFLOW_RUNS}
PANEL = '[judge]\nrepeats = 2\npanel = "mean"\n'
SETTINGS = {"two-judges": PANEL, "judged": PANEL}


def command(kind: str, out: str | None = None) -> tuple[str, ...]:
    """The command that made the run, with the folder that it goes to."""
    return (*RUNS[kind], "--out", out or f"runs/{kind}")


def alone(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The same command in one process, which may go on with the work of several."""
    at = parts.index("--workers") if "--workers" in parts else len(parts)
    return (*parts[:at], *parts[at + 2 :])


# Runs with as many tasks as the boards have, and the bundles that were made of them.
BUNDLES = {"atomic": ("boards/step", "boards/end-to-end"), "workflow": ("boards/workflow",)}
BOARDS = ("boards/step", "boards/end-to-end", "boards/other", "boards/workflow")
ATTACK = (
    *("judge", "attack", "--judge", "scripted/honest", "--payload", "order"),
    *("--carrier", "csv cell", "--out", "attack", "--json"),
)
# Workflow runs that no judge has seen.
UNJUDGED = ("bridge", "import-folder", "import-pack")
READ = (*RUNS, *PRODUCTS, *IMPORTS, *UNFINISHED, "judged", "bridge")
# What is said of several runs, with the runs that it needs.
TOGETHER = {
    "compare step": ("compare", "runs/step", "runs/step-gold", "--json"),
    "compare workflow": ("compare", "runs/workflow", "runs/workflow-silent", "--json"),
    "compare in words": ("compare", "runs/workflow", "runs/harness"),
    "compare judges": ("compare", "runs/workflow", "runs/judged"),
    "compare modes": ("compare", "runs/step", "runs/end-to-end"),
    "compare datasets": ("compare", "runs/step", "runs/workflow"),
    "report controls": (
        *("report", "runs/replayed", "runs/corrupted", "runs/disturbed", "runs/no-tools"),
        *("--format", "markdown"),
    ),
    "report both": ("report", "runs/end-to-end", "runs/shards", "runs/workflow", "runs/product"),
    "report round": ("report", "runs/feedback", "runs/feedback/rounds/2"),
    "report parquet": ("report", "exports/parquet"),
    "tape diff": ("tape", "diff", "recorded-tape"),
    "attack": ATTACK,
    "judges": ("judge", "list", "runs/judged"),
    "drift": ("judge", "drift", "runs/judged", "runs/judged", "--judge", STRICT, "--json"),
    "cascade": ("judge", "cascade", "runs/judged", "--cheap", KIND, "--strong", STRICT, "--json"),
    "calibrate": ("judge", "calibrate", "runs/judged", "--json"),
    "calibrate in words": ("judge", "calibrate", "runs/judged"),
    "labels": ("judge", "label", "runs/judged", "--export", "labels.csv"),
}
