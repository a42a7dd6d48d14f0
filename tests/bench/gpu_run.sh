#!/bin/sh
# Run scripts with the wheels of .gpu/wheels: gpu_run.sh "command" "command" ...
set -u
cd "$(dirname "$0")/../.."
site=${TMPDIR:-/tmp}/kda-gpu-site
[ -d "$site" ] || python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target "$site" .gpu/wheels/*.whl
export PYTHONPATH="$PWD:$site" PYTHONUNBUFFERED=1
for command in "$@"; do
    echo "== $command"
    start=$(date +%s)
    timeout 280 sh -c "$command"
    echo "== exit $? after $(($(date +%s) - start)) s"
done
