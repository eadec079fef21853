# Sourced by the scripts beside it: steps that are silent while they succeed.
#
#   step NAME COMMAND [ARG…]   run it, print one line with its time, and its output only if it failed
#   finish                     print the summary; the exit status of the script
#   note TEXT                  inside a step: a line that is shown even if the step succeeds
#
# It also defines root (the top of the tree, where the scripts run) and cache (for tools and big files).

set -u -o pipefail
export LC_ALL=C
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 2
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}
work=$(mktemp -d "${TMPDIR:-/tmp}/wick-scripts.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT

script=${0##*/}
steps=0
failures=()
started=$(date +%s%N)

seconds_since() {
  local ms=$((($(date +%s%N) - $1) / 1000000))
  printf '%d.%d s' $((ms / 1000)) $((ms % 1000 / 100))
}

note() { printf '%s\n' "$*" >>"$work/notes"; }

step() {
  local name=$1 begin
  shift
  begin=$(date +%s%N)
  steps=$((steps + 1))
  : >"$work/notes"
  printf '%-58s' "$name"
  if "$@" >"$work/log" 2>&1 </dev/null; then
    printf 'ok    %9s\n' "$(seconds_since "$begin")"
  else
    printf 'FAIL  %9s\n' "$(seconds_since "$begin")"
    sed 's/^/    /' "$work/log"
    failures+=("$name")
  fi
  sed 's/^/    note: /' "$work/notes"
}

finish() {
  if ((${#failures[@]} == 0)); then
    printf '%s: all %d steps passed in %s\n' "$script" "$steps" "$(seconds_since "$started")"
    return 0
  fi
  printf '%s: %d of %d steps FAILED in %s:' "$script" "${#failures[@]}" "$steps" "$(seconds_since "$started")"
  printf ' [%s]' "${failures[@]}"
  printf '\n'
  return 1
}

# git, also where the tree belongs to another user than the one who runs the script.
git_here() { git -c safe.directory="$root" "$@"; }

# The files of the tree, NUL-separated: what git tracks or would track; all of them where there is no git.
tree_files() {
  if git_here rev-parse >/dev/null 2>&1; then
    git_here ls-files -z --cached --others --exclude-standard |
      while IFS= read -r -d '' f; do if [[ -f $f ]]; then printf '%s\0' "$f"; fi; done
  else
    find . -type f -not -path './.git/*' -printf '%P\0'
  fi
}

# The packages other programs import, and the tests of them: all but the command and the scripts.
# attacks starts the built command as processes: it runs in the plain tests.
library_packages() { go list ./... | grep -vE '/(attacks|cmd|docs|scripts)(/|$)'; }

# The folders of modules other than the root's: they keep frameworks and peers out of the library's go.mod.
other_modules() { tree_files | tr '\0' '\n' | grep -E '/go\.mod$' | xargs -r -n1 dirname; }
