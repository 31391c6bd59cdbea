#!/bin/bash
# Quantizes a model as an array job, and merges the parts when all are done:
#
#   examples/slurm/submit.sh f16.gguf q4.gguf Q4_K_M [PARTS]
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
cd "$OLDPWD"

export SOURCE=$1 OUT=$2 TYPE=$3 PARTS=${4:-8}
array=$(sbatch --parsable --array="1-$PARTS" "$here/quantize.sbatch")
# Merging waits for all tasks; if one fails for good, it is not done.
sbatch --dependency="afterok:$array" --kill-on-invalid-dep=yes "$here/merge.sbatch"
