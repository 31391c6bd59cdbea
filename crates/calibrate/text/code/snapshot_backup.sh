#!/usr/bin/env bash
#
# snapshot-backup: hard-linked rsync snapshots with grandfather-father-son rotation.
#
#   snapshot-backup [-n] [-c FILE] create     make a new snapshot
#   snapshot-backup [-n] [-c FILE] prune      thin out old snapshots
#   snapshot-backup      [-c FILE] verify     compare the newest with the source
#
# Unchanged files are hard links into the previous snapshot and cost no space.

set -Eeuo pipefail
shopt -s nullglob

readonly PROGRAM=${0##*/}
config=/etc/snapshot-backup.conf
dry_run=false

# Defaults; the configuration file may override them.
SOURCES=(/etc /home)
TARGET=/srv/backup/$(hostname -s)
EXCLUDES=('.cache/' 'node_modules/' '*.tmp' 'lost+found/')
KEEP_DAILY=7
KEEP_WEEKLY=5
KEEP_MONTHLY=12
MIN_FREE_PERCENT=10

log()  { printf '%(%F %T)T %s\n' -1 "$*" >&2; }
die()  { log "error: $*"; exit 1; }
run()  { if $dry_run; then log "would run: ${*@Q}"; else "$@"; fi; }

usage() {
    # The comment block at the top of this file is the manual.
    sed -n '3,/^$/s/^# \{0,1\}//p' "$0"
    exit "${1:-0}"
}

trap 'log "line $LINENO: \"$BASH_COMMAND\" failed with status $?"' ERR

take_lock() {
    exec 9>"$TARGET/.lock"
    flock --nonblock 9 || die "another run is still in progress"
}

check_space() {
    local used
    used=$(df --output=pcent "$TARGET" | tail -n 1 | tr -dc '0-9')
    if (( 100 - used < MIN_FREE_PERCENT )); then
        log "only $((100 - used))% free, pruning first"
        prune
    fi
}

# Prints the names of complete snapshots, oldest first.
snapshots() {
    local path
    for path in "$TARGET"/20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-9]*; do
        [[ -d $path && $path != *.partial ]] && printf '%s\n' "${path##*/}"
    done
    return 0
}

create() {
    local name partial latest status=0
    name=$(date +%Y-%m-%dT%H%M%S)
    partial=$TARGET/$name.partial
    latest=$(snapshots | tail -n 1)

    local -a options=(--archive --acls --xattrs --hard-links --numeric-ids
                      --delete --delete-excluded --relative --stats)
    local pattern
    for pattern in "${EXCLUDES[@]}"; do
        options+=(--exclude="$pattern")
    done
    if [[ -n $latest ]]; then
        options+=(--link-dest="$TARGET/$latest")
    fi

    check_space
    run mkdir -p "$partial"
    run rsync "${options[@]}" "${SOURCES[@]}" "$partial/" || status=$?
    case $status in
        0)  ;;
        24) log "some files vanished while being copied; that is normal" ;;
        *)  die "rsync ended with status $status; $partial is kept for inspection" ;;
    esac

    # A snapshot carries its final name only once it is complete.
    run mv -T "$partial" "$TARGET/$name"
    run ln -sfn "$name" "$TARGET/latest"
    log "created $name"
}

# Keeps the newest snapshot of each of the latest N periods.
#   $1: date format of a period   $2: N   stdin: names, newest first
newest_per_period() {
    local format=$1 limit=$2 name period previous='' kept=0
    while IFS= read -r name; do
        period=$(date -d "${name%%T*}" +"$format")
        [[ $period == "$previous" ]] && continue
        previous=$period
        (( ++kept > limit )) && break
        printf '%s\n' "$name"
    done
    return 0
}

prune() {
    local -A keep=()
    local name newest_first
    newest_first=$(snapshots | sort -r)
    [[ -z $newest_first ]] && return

    while IFS= read -r name; do
        keep[$name]=1
    done < <(
        newest_per_period %F       "$KEEP_DAILY"   <<<"$newest_first"
        newest_per_period %G-W%V   "$KEEP_WEEKLY"  <<<"$newest_first"
        newest_per_period %Y-%m    "$KEEP_MONTHLY" <<<"$newest_first"
    )

    while IFS= read -r name; do
        if [[ -z ${keep[$name]:-} ]]; then
            log "removing $name"
            run rm -rf --one-file-system -- "${TARGET:?}/$name"
        fi
    done <<<"$newest_first"
}

verify() {
    local latest differences
    latest=$(snapshots | tail -n 1)
    [[ -n $latest ]] || die "there is no snapshot yet"
    differences=$(rsync --archive --checksum --dry-run --relative --itemize-changes \
        "${EXCLUDES[@]/#/--exclude=}" "${SOURCES[@]}" "$TARGET/$latest/" | grep -c '^>f' || true)
    log "$differences files differ from $latest"
    (( differences == 0 ))
}

while getopts ':c:nh' flag; do
    case $flag in
        c) config=$OPTARG ;;
        n) dry_run=true ;;
        h) usage ;;
        :) die "option -$OPTARG needs an argument" ;;
        *) usage 2 >&2 ;;
    esac
done
shift $((OPTIND - 1))

if [[ -r $config ]]; then
    # shellcheck source=/dev/null
    source "$config"
fi

[[ -d $TARGET ]] || die "$TARGET does not exist; is the disk mounted?"
case ${1:-} in
    create | prune | verify) take_lock; "$1" ;;
    '') usage 2 >&2 ;;
    *)  die "unknown command '$1'; try $PROGRAM -h" ;;
esac
