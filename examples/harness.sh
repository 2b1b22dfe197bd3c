#!/bin/sh
# A harness as a shell script: it reads its task, calls a tool by MCP with curl, leaves a file.
#
#   gta run workflow --harness "sh examples/harness.sh {task_file} {workspace}" --out runs/mine
set -eu
task_file=$1
workspace=$2

call() {
    curl --silent --fail "$GTA_MCP_URL" \
        --header "Authorization: Bearer $GTA_MCP_TOKEN" \
        --header "Content-Type: application/json" \
        --header "Accept: application/json, text/event-stream" \
        --data "$1"
}

# The prompt lies beside the JSON as plain text.
head -n 1 "$(dirname "$task_file")/task.txt" > "$workspace/outputs/request.txt"
ls "$workspace/inputs" > "$workspace/outputs/inputs.txt"

reply=$(call '{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
               "params": {"name": "Calculator", "arguments": {"expression": "6 * 7"}}}')
number=$(printf '%s' "$reply" | sed -n 's/.*"text" *: *"\([0-9.]*\)".*/\1/p')

# The answer to the user; what is printed would serve as well.
echo "The answer is $number." > "$workspace/final.txt"
