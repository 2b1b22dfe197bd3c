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
if [ -d "$$workspace/outputs" ]; then cp -R "$$workspace/outputs" "$$delivered/outputs" || echo "Some files could not be copied." >&2; fi
# Settings and modules in the workspace are the agent's.
cd "$$scratch"
gta import folder delivered --dataset $dataset --data "$$tests/data" --out run
# Exit code 1 says that something has no score, and then there is no reward.
gta score run --json$judging > "$$logs/scores.json" || [ $$? -eq 1 ]
python3 -m gta_bench.exports.harbor_reward run "$$logs"
