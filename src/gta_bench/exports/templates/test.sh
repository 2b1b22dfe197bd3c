#!/bin/sh
# The work of one task, imported and scored by the same commands as any finished result.
set -eu
tests=$$(cd "$$(dirname "$$0")" && pwd)
workspace=$${GTA_WORKSPACE:-/workspace}
logs=$${GTA_LOGS:-/logs/verifier}
scratch=$$(mktemp -d)
trap 'rm -rf "$$scratch"' EXIT
delivered="$$scratch/delivered/$task"
mkdir -p "$$delivered" "$$logs"
# A link could show the verifier's own files, which have the answers.
find "$$workspace/final.txt" "$$workspace/outputs" -type l -exec rm -f {} + 2>/dev/null || true
if [ -f "$$workspace/final.txt" ]; then cp "$$workspace/final.txt" "$$delivered/final.txt"; fi
if [ -d "$$workspace/outputs" ]; then cp -R "$$workspace/outputs" "$$delivered/outputs"; fi
gta import folder "$$scratch/delivered" --dataset $dataset --data "$$tests/data" --out "$$scratch/run"
# Exit code 1 says that something has no score; what has one is in the scores all the same.
gta score "$$scratch/run" --json$judging > "$$logs/scores.json" || [ $$? -eq 1 ]
python3 - "$$logs" <<'PYTHON'
import json, pathlib, sys

logs = pathlib.Path(sys.argv[1])
scores = json.loads((logs / "scores.json").read_text(encoding="utf-8"))
value = $value
if value is None:
    sys.exit("The task has no score: see scores.json.")
(logs / "reward.json").write_text(json.dumps({"reward": value / $most}), encoding="utf-8")
PYTHON
