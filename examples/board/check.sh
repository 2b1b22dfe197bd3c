#!/bin/bash
# Check the bundles that a pull request adds: check.sh BASE HEAD COMMENT.
# BASE is the commit of the board that is checked out, HEAD is that of the pull request, COMMENT is
# the file to write. Exits with 1 if the pull request is refused.
set -euo pipefail
base=$1 head=$2 comment=$3
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

refuse() {
  printf '%s\n' '<!-- gta-bench:leaderboard -->' '## Submission refused: 1 problem' '' \
    "- **files**: $1" > "$comment"
  cat "$comment"
  exit 1
}

files=()
# A line of `git diff --raw -z` is: old mode, new mode, old digest, new digest, status; then a path.
while IFS= read -r -d '' line && IFS= read -r -d '' path; do
  read -r _ mode _ _ status <<< "$line"
  # The text of a refusal names no path: it is the submitter's.
  [[ $path =~ ^submissions/[a-z0-9][a-z0-9._-]{0,99}\.zip$ && $status == A && $mode == 100644 ]] ||
    refuse "a submission only adds files such as \`submissions/my-model.zip\`; this one adds, changes or removes something else. Maintainers merge other changes."
  git cat-file blob "$head:$path" > "$new/${path#submissions/}"
  files+=("$new/${path#submissions/}")
done < <(git diff --raw -z --no-renames "$base...$head")
[ ${#files[@]} -gt 0 ] || refuse "it adds no bundle; add one of \`gta leaderboard submit\`."

code=0
gta leaderboard check "${files[@]}" --board submissions --markdown "$comment" || code=$?
# A failure of our own leaves no comment.
[ -f "$comment" ] || refuse "it could not be checked; the log of the job says why."
cat "$comment"
exit "$code"
