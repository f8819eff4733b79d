// What git is asked for a checkpoint, as shell scripts: names of files stay inside them, whatever bytes they are made of.
// The repository of the person gives its objects and takes a ref; its index, its HEAD and its branches are not touched,
// and its attributes do not apply, so that files come back byte for byte. For the same reason our index does not begin as a
// copy of the person's, whose blobs may have gone through a filter. Submodules and nested repositories are left out.

/** How scripts end when git did not fail. */
export const exits = { noGit: 127, tooMany: 75, changed: 76 } as const

/**
 * `$1` the private git directory, `$2` the git directory of the person's working tree or nothing, `$3` the same for all its
 * worktrees, `$4` largest file in KiB, `$5` most files.
 */
const common = `
notes="$1/echs" own=$2 repo=$3 largest=$4 most=$5
[ ! -e "$1/index.lock" ] || rm -f "$1/index.lock"
shift 5
count() { tr -dc '\\000' | wc -c; }
those() { xargs -0 -n 250 sh -c 'for f do shift; set -- "$@" "./$f"; done; '"exec find \\"\\$@\\" -maxdepth 0 $1 -print0" sh 2>/dev/null; }
small="-type l -o -type f ! -size +\${largest}k"
inrepo() {
  if [ -z "$repo" ]; then git "$@"; return; fi
  (unset GIT_WORK_TREE GIT_OBJECT_DIRECTORY; GIT_DIR=$repo; export GIT_DIR; git "$@")
}
with_index() { (GIT_INDEX_FILE=$1; export GIT_INDEX_FILE; shift; git "$@"); }
one_by_one() {
  xargs -0 -n 1 env PATH=/dev/null GIT_EXEC_PATH=/dev/null "$echs_git" update-index --add --remove --replace -- 2>/dev/null
}
record() {
  git diff-files -z --name-only --relative --ignore-submodules=all -- . >"$notes/changed" &
  git ls-files -z --others --exclude-standard -- . >"$notes/new" || exit 1
  wait $! || exit 1
  if [ ! -f "$GIT_DIR/index" ] && [ -f "$own/index" ]; then
    with_index "$own/index" ls-files -z -c -i --exclude-standard -- . >>"$notes/new" 2>/dev/null
  fi
  left=0
  if [ ! -s "$notes/changed" ] && [ ! -s "$notes/new" ] && [ -s "$notes/tree" ]; then read -r tree <"$notes/tree"; return; fi
  rm -f "$notes/tree"
  cat "$notes/changed" "$notes/new" >"$notes/all"
  total=$(count <"$notes/all")
  [ $((total)) -le "$most" ] || exit ${exits.tooMany}
  if [ "$total" -gt 0 ]; then
    those "\\\\( $small \\\\)" <"$notes/all" >"$notes/small"
    if [ "$(count <"$notes/small")" -ne "$total" ]; then
      left=$(those "! -type d ! \\\\( $small \\\\)" <"$notes/all" | count)
      git update-index -z --force-remove --stdin <"$notes/changed" || exit 1
    fi
    if [ -s "$notes/small" ]; then
      git update-index -z --add --remove --replace --stdin <"$notes/small" 2>/dev/null || one_by_one <"$notes/small"
    fi
  fi
  tree=$(git write-tree --missing-ok) || exit 1
  printf '%s\\n' "$tree" >"$notes/tree"
}
`

/** After the arguments of all: `$1` the ref, `$2` what the commit says. Prints tree, commit and how many were left out. */
export const takeScript = `${common}
keep() {
  commit=$(git commit-tree "$tree" \${old:+-p "$old"} -m "$said" </dev/null 2>/dev/null) &&
    inrepo update-ref --no-deref "$ref" "$commit" "$old" 2>/dev/null
}
record
ref=$1 said=$2
read -r lastref lasttree commit 2>/dev/null <"$notes/last" || lastref=
if [ "$lastref $lasttree" != "$ref $tree" ]; then
  old=
  [ "$lastref" != "$ref" ] || old=$commit
  keep || { old=$(inrepo rev-parse -q --verify "$ref^{commit}"); keep; } || exit 1
  printf '%s %s %s\\n' "$ref" "$tree" "$commit" >"$notes/last"
fi
printf '%s %s %s\\n' "$tree" "$commit" "$left"
`

/** \`$1\` the tree to go back to, \`$2\` most files shown, \`$3\` most bytes of the difference. */
export const previewScript = `${common}
record
git cat-file -e "$1^{tree}" || exit 1
printf '%s\\n' "$tree"
git diff-tree -r --no-renames --relative --raw "$tree" "$1" | wc -l | tr -d ' '
git diff-tree -r --no-renames --relative --raw --abbrev=4 "$tree" "$1" | head -n "$2"
printf '\\n'
git diff-tree -r -p --no-renames --relative --no-ext-diff --no-textconv --no-color "$tree" "$1" | head -c "$3"
`

/**
 * \`$1\` the tree to go back to, \`$2\` the tree that was seen. Git refuses, and changes nothing, where a file is not what was
 * recorded or where one that was left out is in the way. What the rules of the tree ignore was not part of it: it stays.
 */
export const restoreScript = `${common}
record
[ "$tree" = "$2" ] || exit ${exits.changed}
git diff-tree -r -z --no-renames --relative --name-only "$tree" "$1" >"$notes/paths" || exit 1
git diff-tree -r -z --no-renames --relative --name-only --diff-filter=D "$tree" "$1" >"$notes/gone" || exit 1
those "-type f ! -perm -004" <"$notes/paths" >"$notes/private"
rm -f "$notes/tree"
git read-tree -m -u "$tree" "$1" || exit 1
if [ -s "$notes/private" ]; then xargs -0 chmod go= <"$notes/private" 2>/dev/null; fi
if [ -s "$notes/gone" ]; then
  xargs -0 -n 500 sh -c 'for f do printf "./%s\\\\000" "$f"; done' sh <"$notes/gone" |
    (GIT_LITERAL_PATHSPECS=0; export GIT_LITERAL_PATHSPECS; git check-ignore -z --no-index --stdin) >"$notes/kept"
  if [ -s "$notes/kept" ]; then
    with_index "$notes/index" read-tree "$tree" &&
      with_index "$notes/index" checkout-index -z -q -f --stdin <"$notes/kept"
    rm -f "$notes/index"
  fi
fi
count <"$notes/paths"
`
