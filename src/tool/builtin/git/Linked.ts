// Worktrees that the pursuit of a goal makes: their repository lies in the workspace above, where a command of theirs
// reaches nothing. Git itself is let in there, for these worktrees alone; any other file that names a repository is not
// followed, for whoever wrote it chose where it leads.
import { lstat, readFile } from "node:fs/promises"
import { basename, dirname, join } from "node:path"

const bytesMax = 8_192

/** The repository of a worktree of ours, by its root without links; nothing for any other directory. */
export const repositoryOfWorktree = async (root: string): Promise<string | undefined> => {
  const [worktrees, own] = [dirname(root), dirname(dirname(root))]
  if (basename(worktrees) !== "worktrees" || basename(own) !== ".echs") return undefined
  const repository = join(dirname(own), ".git")
  try {
    const [link, directory] = await Promise.all([lstat(join(root, ".git")), lstat(repository)])
    if (!link.isFile() || link.size > bytesMax || !directory.isDirectory()) return undefined
    const named = (await readFile(join(root, ".git"), "utf8")).trim()
    return named === `gitdir: ${join(repository, "worktrees", basename(root))}` ? repository : undefined
  } catch {
    return undefined
  }
}
