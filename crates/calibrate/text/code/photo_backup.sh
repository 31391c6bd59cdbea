#!/usr/bin/env bash
# Copies new photos from a camera card to dated folders, verifies them, and only then offers to clear the card.
set -euo pipefail
shopt -s nullglob nocaseglob

target=${PHOTO_DIR:-$HOME/Pictures/archive}
log=$target/backup.log
card=""
dry_run=false

usage() {
    cat <<EOF
usage: ${0##*/} [-n] [-t FOLDER] CARD
  -n         show what would be copied
  -t FOLDER  archive (now: $target)
EOF
}

say() { printf '%s %s\n' "$(date +%T)" "$*" | tee -a "$log" >&2; }

cleanup() {
    local status=$?
    rm -f "${list:-}"
    if ((status != 0)); then
        say "stopped with status $status; nothing was removed from the card"
    fi
}
trap cleanup EXIT

while getopts ":nt:h" option; do
    case $option in
        n) dry_run=true ;;
        t) target=$OPTARG log=$OPTARG/backup.log ;;
        h) usage; exit 0 ;;
        :) echo "-$OPTARG needs a value" >&2; exit 2 ;;
        *) usage >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
card=${1:?"which card? try ${0##*/} -h"}
[[ -d $card/DCIM ]] || { echo "$card has no folder DCIM" >&2; exit 1; }
mkdir -p "$target"

day_of() {
    # The date in the picture counts, that of the file is a fallback.
    exiftool -s3 -d '%Y/%m-%d' -DateTimeOriginal "$1" 2>/dev/null || date -r "$1" '+%Y/%m-%d'
}

list=$(mktemp)
copied=0 known=0
for photo in "$card"/DCIM/*/*.{jpg,cr3,nef,mov}; do
    folder=$target/$(day_of "$photo")
    name=$(basename "$photo")
    if [[ -e $folder/$name ]] && cmp -s "$photo" "$folder/$name"; then
        ((known += 1))
        continue
    fi
    # Cameras begin to count again: never replace another picture of the same name.
    suffix=1
    while [[ -e $folder/$name ]]; do
        name="${name%%.*}_$suffix.${photo##*.}"
        ((suffix += 1))
    done
    if $dry_run; then
        echo "$photo -> $folder/$name"
        continue
    fi
    mkdir -p "$folder"
    cp --preserve=timestamps "$photo" "$folder/.$name.part"
    mv "$folder/.$name.part" "$folder/$name"
    printf '%s\t%s\n' "$photo" "$folder/$name" >> "$list"
    ((copied += 1))
done

$dry_run && exit 0
sync
while IFS=$'\t' read -r from to; do
    cmp "$from" "$to" || { say "$to differs from the card"; exit 1; }
done < "$list"
say "$copied copied and verified, $known known already"

if ((copied > 0)) && [[ -t 0 ]]; then
    read -rp "Clear the card? [y/N] " answer
    if [[ $answer == [yY] ]]; then
        find "$card/DCIM" -type f -delete
        say "card cleared"
    fi
fi
