#!/bin/bash
# Submits an array job that quantizes a model, and a job that merges the parts:
#
#   examples/slurm/submit.sh f16.gguf q4.gguf Q4_K_M [PARTS]
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
cd "$OLDPWD"

export SOURCE=$1 OUT=$2 TYPE=$3 PARTS=${4:-8}
array=$(sbatch --parsable --array="1-$PARTS" "$here/quantize.sbatch")
# The merge waits for all tasks, and is canceled if one of them fails.
sbatch --dependency="afterok:$array" --kill-on-invalid-dep=yes "$here/merge.sbatch"
