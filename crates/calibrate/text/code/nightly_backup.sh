#!/usr/bin/env bash
#
# nightly_backup.sh - hard-linked snapshots over ssh, plus a database dump.
#
# Every run creates DEST/YYYY-MM-DD_HHMMSS. Files that did not change since the previous
# snapshot are hard links into it, so a month of history costs little more than one copy.
#
# Usage: nightly_backup.sh [-n] [-v] [-c FILE] {run|list|verify|prune}

set -Eeuo pipefail
shopt -s nullglob
umask 077

readonly PROG=${0##*/}
readonly STAMP_GLOB='[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]_[0-9][0-9][0-9][0-9][0-9][0-9]'

CONFIG=/etc/nightly_backup.conf
DRY_RUN=0
VERBOSE=0

# Defaults; the configuration file may override any of these.
DEST=/srv/backup
SOURCES=(/etc /home /var/www)
EXCLUDES=('*.tmp' '.cache/' 'node_modules/' 'target/debug/')
REMOTE=''                 # user@host; empty means the local machine
PG_DATABASES=()
KEEP_DAILY=14
KEEP_WEEKLY=8
MIN_FREE_MB=2048
MAIL_TO=''

workdir=''
partial=''
started=$SECONDS

# --- messages -----------------------------------------------------------------

log() {
    printf '%(%F %T)T %-5s %s\n' -1 "$1" "${*:2}" >&2
}
info()  { log INFO "$@"; }
warn()  { log WARN "$@"; }
debug() { (( VERBOSE )) && log DEBUG "$@" || true; }
die()   { log ERROR "$@"; exit 1; }

usage() {
    cat <<EOF
Usage: $PROG [options] COMMAND

Commands:
  run      take a snapshot, then prune
  list     show the snapshots and their sizes
  verify   compare the newest snapshot with its checksums
  prune    only remove snapshots that have outlived their purpose

Options:
  -c FILE  read settings from FILE (now: $CONFIG)
  -n       dry run: say what would happen
  -v       chatter
  -h       this help
EOF
}

# --- traps --------------------------------------------------------------------

on_error() {
    local status=$? line=$1 cmd=$2
    log ERROR "line $line: '$cmd' returned $status"
    notify "backup FAILED on ${HOSTNAME}" "line $line: $cmd (status $status)"
}

cleanup() {
    local status=$?
    trap - EXIT ERR
    if [[ -n $partial && -d $partial ]]; then
        warn "removing unfinished snapshot ${partial##*/}"
        rm -rf -- "$partial"
    fi
    [[ -z $workdir ]] || rm -rf -- "$workdir"
    exit "$status"
}

trap 'on_error "$LINENO" "$BASH_COMMAND"' ERR
trap cleanup EXIT
trap 'log WARN "interrupted"; exit 130' INT
trap 'log WARN "terminated"; exit 143' TERM HUP

notify() {
    [[ -n $MAIL_TO ]] || return 0
    command -v mail >/dev/null || { warn "no mail command, cannot tell $MAIL_TO"; return 0; }
    printf '%s\n' "$2" | mail -s "$1" "$MAIL_TO" || warn 'mail was not accepted'
}

# --- helpers ------------------------------------------------------------------

need() {
    local tool missing=()
    for tool in "$@"; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    (( ${#missing[@]} == 0 )) || die "please install: ${missing[*]}"
}

# Prints the snapshots from oldest to newest; the names sort like the dates they carry.
snapshots() {
    local dir
    for dir in "$DEST"/$STAMP_GLOB/; do
        printf '%s\n' "${dir%/}"
    done
}

newest() { snapshots | tail -n 1; }

lock() {
    exec 9>"$DEST/.lock"
    flock --nonblock 9 || die "another $PROG holds $DEST/.lock"
}

check_space() {
    local free_kb
    free_kb=$(df --output=avail -k -- "$DEST" | tail -n 1)
    (( free_kb / 1024 >= MIN_FREE_MB )) \
        || die "only $(( free_kb / 1024 )) MB left on $DEST, want $MIN_FREE_MB"
}

retry() {
    local -i attempts=$1 pause=$2 n=1
    shift 2
    until "$@"; do
        (( n < attempts )) || return 1
        warn "attempt $n of $attempts failed: $1; next in ${pause}s"
        sleep "$pause"
        n+=1
        pause=$(( pause * 2 ))
    done
}

# --- the parts of a backup ----------------------------------------------------

dump_databases() {
    local db target=$1
    (( ${#PG_DATABASES[@]} )) || return 0
    need pg_dump
    mkdir -p -- "$target"
    for db in "${PG_DATABASES[@]}"; do
        debug "dumping $db"
        pg_dump --format=custom --compress=6 --file="$target/$db.dump" "$db"
    done
}

# rsync reports 24 when a file vanished while it was being read: normal on a live machine.
copy_tree() {
    local status=0
    rsync "$@" || status=$?
    case $status in
        0)  ;;
        24) warn 'some files vanished during the copy' ;;
        *)  return "$status" ;;
    esac
}

cmd_run() {
    need rsync flock sha256sum
    lock
    check_space

    local previous final pattern src
    local -a opts=(--archive --hard-links --numeric-ids --relative --delete)
    previous=$(newest)
    printf -v final '%s/%(%F_%H%M%S)T' "$DEST" -1
    [[ -z $previous ]] || opts+=("--link-dest=$previous/files")
    for pattern in "${EXCLUDES[@]}"; do opts+=("--exclude=$pattern"); done
    (( VERBOSE )) && opts+=(--stats)

    local -a from=()
    for src in "${SOURCES[@]}"; do from+=("${REMOTE:+$REMOTE:}$src"); done

    if (( DRY_RUN )); then
        info "would copy ${from[*]} to $final, based on ${previous:-nothing}"
        return
    fi

    workdir=$(mktemp -d)
    partial=$DEST/.partial.$$
    mkdir -p -- "$partial/files"
    dump_databases "$partial/databases"
    retry 3 20 copy_tree "${opts[@]}" "${from[@]}" "$partial/files/" || die 'copying failed for good'

    ( cd "$partial" && find . -type f -print0 | sort -z | xargs -0 -r sha256sum ) >"$workdir/SHA256SUMS"
    mv -- "$workdir/SHA256SUMS" "$partial/"
    mv -T -- "$partial" "$final"      # same file system, hence atomic
    partial=''
    ln -sfn -- "${final##*/}" "$DEST/latest"

    prune
    info "snapshot ${final##*/} complete after $(( SECONDS - started )) s"
}

# Keeps the last KEEP_DAILY snapshots and, beyond these, the newest one of each of KEEP_WEEKLY weeks.
prune() {
    local -a all
    local -A weeks=()
    local -i i age=0
    local week day
    mapfile -t all < <(snapshots)
    for (( i = ${#all[@]} - 1; i >= 0; i--, age++ )); do
        (( age >= KEEP_DAILY )) || continue
        day=${all[i]##*/}
        week=$(date -d "${day%_*}" +%G-W%V)
        if [[ -z ${weeks[$week]:-} ]] && (( ${#weeks[@]} < KEEP_WEEKLY )); then
            weeks[$week]=1
            debug "keeping $day for $week"
            continue
        fi
        if (( DRY_RUN )); then
            info "would delete $day"
        else
            info "deleting $day"
            rm -rf -- "${all[i]}"
        fi
    done
}

cmd_prune() { need flock; lock; prune; }

cmd_list() {
    local -a all
    mapfile -t all < <(snapshots)
    (( ${#all[@]} )) || { info "no snapshots in $DEST"; return; }
    # One du call for all, so that shared files count only where they first appear.
    du -sh -- "${all[@]}"
}

cmd_verify() {
    local snap
    snap=$(newest)
    [[ -n $snap ]] || die 'nothing to verify'
    if ( cd "$snap" && sha256sum --check --quiet SHA256SUMS ); then
        info "${snap##*/} is intact"
    else
        notify "backup DAMAGED on ${HOSTNAME}" "$snap does not match its checksums"
        die "${snap##*/} is damaged"
    fi
}

main() {
    local opt
    while getopts ':c:nvh' opt; do
        case $opt in
            c) CONFIG=$OPTARG ;;
            n) DRY_RUN=1 ;;
            v) VERBOSE=1 ;;
            h) usage; exit 0 ;;
            :) die "-$OPTARG wants an argument" ;;
            *) usage >&2; exit 2 ;;
        esac
    done
    shift $(( OPTIND - 1 ))

    # shellcheck source=/dev/null
    [[ ! -r $CONFIG ]] || source "$CONFIG"
    [[ -d $DEST ]] || die "$DEST does not exist; is the disk mounted?"

    case ${1:-} in
        run|list|verify|prune) "cmd_$1" ;;
        '') usage >&2; exit 2 ;;
        *)  die "unknown command: $1" ;;
    esac
}

main "$@"
