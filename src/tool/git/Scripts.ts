// Git as scripts have it: found once, and then without a way to any other program, its own included. A git that git
// starts works in another repository, such as a submodule, whose settings nobody looked at; so it cannot be started.

/** Where no program is. */
const nowhere = "/dev/null"

const find = `
echs_git=$(command -v git) || { echo 'there is no git here' >&2; exit 127; }
case "$echs_git" in /*) ;; *) echo 'git is not where programs are' >&2; exit 127 ;; esac
`

/** Becomes git with these arguments. */
export const gitAlone = `${find}
PATH=${nowhere}; GIT_EXEC_PATH=${nowhere}; export PATH GIT_EXEC_PATH
exec "$echs_git" "$@"
`

/**
 * `git`, which cannot start another, but for worktrees, which are made by several; and \`stage PATH…\`, which is \`git add
 * --all\` without a look into submodules: of those the commit they are at is staged.
 */
export const prelude = `${find}
git() {
  case "$1" in
    worktree) "$echs_git" "$@" ;;
    *) PATH=${nowhere} GIT_EXEC_PATH=${nowhere} "$echs_git" "$@" ;;
  esac
}
echs_links() {
  git ls-files -z --stage -- "$@" | tr '\\000\\n' '\\n\\000' | sed -n 's/^160000 [^	]*	//p' | tr '\\000\\n' '\\n\\000'
}
echs_specs() {
  for echs_path in "$@"; do printf ':(literal)%s\\000' "$echs_path"; done
  echs_links . | tr '\\000\\n' '\\n\\000' | sed 's/^/:(exclude,literal)/' | tr '\\000\\n' '\\n\\000'
}
stage() {
  if [ "$(echs_links . | wc -c)" -eq 0 ]; then git add --all -- "$@"; return; fi
  echs_specs "$@" |
    (GIT_LITERAL_PATHSPECS=0; export GIT_LITERAL_PATHSPECS; git add --all --pathspec-from-file=- --pathspec-file-nul) || return
  echs_links "$@" | git update-index -z --add --remove --stdin
}
`

/** Exit code of a script that found other settings than those that were looked at. */
export const changedSettings = 90

/** Goes no further unless the settings, with those switched off that are so for whoever looked, are the same. */
export const sameSettings = `
echs_listed=$(GIT_CONFIG_COUNT=$ECHS_SWITCHED_OFF; export GIT_CONFIG_COUNT; git config --list --includes -z | sha256sum)
[ "\${echs_listed%% *}" = "$ECHS_SETTINGS" ] || exit ${changedSettings}
`
