# Sourced by bin/demo, bin/test and bin/lint (POSIX sh): makes the virtual environment and installs
# kda-tui into it from this checkout. Quick when nothing changed since the last time.
#
#   root       the checkout (set by the script that sources this file)
#   KDA_VENV   where the virtual environment goes         default: .venv in the checkout
#   KDA_PYTHON the interpreter to use                      default: the newest of python3.14 to 3.11
#
# Messages go to standard error. After `prepare EXTRAS` the interpreter is in $python.

: "${root:?set root to the checkout before sourcing this file}"

say() { printf 'kda: %s\n' "$*" >&2; }

stop() {
    say "$*"
    exit 3
}

# A folder counts as usable when a file in it can be written and executed.
runs_programs() {
    probe=$1/.kda-probe.$$
    { printf '#!/bin/sh\nexit 0\n' >"$probe"; } 2>/dev/null || return 1
    chmod u+x "$probe"
    if "$probe" 2>/dev/null; then verdict=0; else verdict=1; fi
    rm -f "$probe"
    return $verdict
}

# Moves what would be written to an unusable /tmp or home into the checkout (.local, ignored by git).
choose_folders() {
    if ! runs_programs "${TMPDIR:-/tmp}"; then
        mkdir -p "$root/.local/tmp"
        say "${TMPDIR:-/tmp} cannot run programs; temporary files go to $root/.local/tmp"
        TMPDIR=$root/.local/tmp
        export TMPDIR
    fi
    if [ -z "${HOME:-}" ] || ! mkdir -p "$HOME/.cache" 2>/dev/null || ! [ -w "$HOME/.cache" ]; then
        say "the home folder is not writable; caches and state go to $root/.local"
        XDG_CACHE_HOME=$root/.local/cache
        XDG_STATE_HOME=$root/.local/state
        XDG_DATA_HOME=$root/.local/share
        PIP_CACHE_DIR=$XDG_CACHE_HOME/pip
        UV_CACHE_DIR=$XDG_CACHE_HOME/uv
        mkdir -p "$XDG_CACHE_HOME" "$XDG_STATE_HOME" "$XDG_DATA_HOME"
        export XDG_CACHE_HOME XDG_STATE_HOME XDG_DATA_HOME PIP_CACHE_DIR UV_CACHE_DIR
    fi
}

is_recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Prints the interpreter to build on, or nothing. A name on the PATH may be a stand-in that does not run.
find_python() {
    for name in "${KDA_PYTHON:-}" python3.14 python3.13 python3.12 python3.11 python3 python; do
        if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1 && is_recent "$name"; then
            command -v "$name"
            return
        fi
    done
}

has_compiler() {
    for name in ${KDA_CXX:-g++ clang++}; do
        if printf '#include <cmath>\nint main() { return 0; }\n' |
            "$name" -x c++ -fsyntax-only - >/dev/null 2>&1; then
            return 0
        fi
    done
    return 1
}

# Prints a pip wheel, or a pip command, that can install into an environment without pip.
borrow_pip() {
    for command in "$1 -m pip" pip3 pip; do
        if PIP_USER=0 $command download -q --no-deps --no-input -d "$venv/.pip" pip >/dev/null 2>&1; then
            break
        fi
    done
    for wheel in "$venv"/.pip/pip-*.whl /usr/share/python-wheels/pip-*.whl; do
        if [ -f "$wheel" ]; then
            printf '%s\n' "$wheel"
            return
        fi
    done
    for name in python3.14 python3.13 python3.12 python3.11 python3.10 python3 python; do
        wheel=$("$name" -c 'import ensurepip, glob, os
print(*glob.glob(os.path.join(os.path.dirname(ensurepip.__file__), "_bundled", "pip-*.whl")))' 2>/dev/null) || continue
        if [ -f "$wheel" ]; then
            printf '%s\n' "$wheel"
            return
        fi
    done
}

make_environment() {
    if [ -d "$venv" ]; then
        if [ ! -f "$venv/pyvenv.cfg" ] && [ -n "$(ls -A "$venv")" ]; then
            stop "$venv is not a virtual environment; remove it, or set KDA_VENV to another folder"
        fi
        rm -rf "$venv"
    fi
    base=$(find_python)
    if [ -z "$base" ]; then
        command -v uv >/dev/null 2>&1 ||
            stop "no Python 3.11 or newer was found; install python3.11 or later (or uv) and run this again"
        say "no Python 3.11 or newer on the PATH; uv brings one"
        uv venv --python '>=3.11' "$venv" || stop "uv could not make $venv"
        return
    fi
    say "making $venv with $base"
    if "$base" -m venv "$venv" >/dev/null 2>&1 && "$python" -m pip --version >/dev/null 2>&1; then
        return
    fi
    rm -rf "$venv"
    if command -v uv >/dev/null 2>&1; then
        uv venv -q --python "$base" "$venv" || stop "uv could not make $venv"
        return
    fi
    "$base" -m venv --without-pip "$venv" >/dev/null 2>&1 ||
        stop "$base has no venv module; install python3-venv (or uv) and run this again"
    say "$base has no ensurepip; looking for a pip elsewhere"
    wheel=$(borrow_pip "$base")
    [ -n "$wheel" ] || stop "no pip was found for $venv; install python3-venv, python3-pip or uv and run this again"
    "$python" "$wheel/pip" install -q --no-input "$wheel" ||
        stop "pip could not be installed into $venv from $wheel"
}

install() {
    if "$python" -m pip --version >/dev/null 2>&1; then
        PIP_USER=0 "$python" -m pip install -q --no-input --disable-pip-version-check -e "$root$1"
    elif command -v uv >/dev/null 2>&1; then
        uv pip install -q --python "$python" -e "$root$1"
    else
        stop "$venv has no pip; remove it and run this again"
    fi
}

# prepare EXTRAS: EXTRAS is a comma-separated list of optional dependencies, or nothing.
prepare() {
    extras=$1
    venv=${KDA_VENV:-$root/.venv}
    python=$venv/bin/python
    stamp=$venv/.kda-installed
    unset PYTHONHOME
    choose_folders
    is_recent "$python" || make_environment
    if ! has_compiler; then
        extras=${extras:+$extras,}compiler
        KDA_CXX=zig
        export KDA_CXX
    fi
    # One line per installation: the project file's checksum, the checkout, and the extras.
    line="$(cksum <"$root/pyproject.toml") $root [$extras]"
    if [ -f "$stamp" ] && grep -qxF "$line" "$stamp"; then
        return
    fi
    case $extras in
        *compiler*) say "no C++ compiler was found; the ziglang package (about 100 MB) stands in for it" ;;
    esac
    say "installing kda-tui${extras:+ [$extras]} into $venv (once, about a minute)"
    install "${extras:+[$extras]}" ||
        stop "the installation failed (see above); behind a proxy set https_proxy or PIP_INDEX_URL, then run this again"
    printf '%s\n' "$line" >>"$stamp"
}
