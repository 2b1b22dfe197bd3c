#!/usr/bin/env bash
# Fetch the data that the tests read into a new folder, for GTA_DATA:
#   scripts/test_data.sh FOLDER URL
# GTA-Atomic comes from its publisher. URL is this project's archive of the rest: 20 tasks of
# GTA-Workflow, stored predictions for them, and the published leaderboards.
set -euo pipefail
folder=$1 url=$2
digest=24b420bc941b4573528b635ac3e6ff5394fc59f40bcb9b27b14d5e299a22536a
here=$(dirname "$0")/..

mkdir -p "$folder"
"$here/.venv/bin/gta" data fetch atomic --data "$folder/gta_atomic"
# The tests compare with what was published, and the receipt was not.
rm "$folder/gta_atomic/fetched.json"
archive=$(mktemp)
trap 'rm -f "$archive"' EXIT
curl --fail --silent --show-error --location --retry 3 --output "$archive" "$url"
echo "$digest  $archive" | sha256sum --check --quiet
tar --extract --file "$archive" --directory "$folder"
