// Divides a plan among those who make it: trees, which the launcher opens and mounts by descriptor with all that is
// protected inside them, and what the sandbox lays out by itself in a root that only it can change.
import { dirname, relative } from "node:path"
import type { Identity, InnerPlace, Tree } from "./Launcher.ts"
import { stagedAt } from "./Launcher.ts"
import type { Mount } from "./Places.ts"
import { sandboxLimits } from "./SandboxLimits.ts"
import { systemLinks } from "./System.ts"

export interface Layout {
  readonly trees: ReadonlyArray<Tree>
  /** What the sandbox mounts, in order. */
  readonly args: ReadonlyArray<string>
}

interface DraftTree extends Tree {
  readonly inner: Array<InnerPlace>
}

const isSame = (mount: Mount): mount is Mount & { readonly kind: "writable" | "readonly" } =>
  mount.kind === "writable" || mount.kind === "readonly"

/** The place that a mount lies in: the deepest one above it. */
const aboveOf = ({ at }: Mount, byPath: ReadonlyMap<string, Mount>): Mount | undefined => {
  for (let way = dirname(at); way !== dirname(way); way = dirname(way)) {
    const found = byPath.get(way)
    if (found !== undefined) return found
  }
  return undefined
}

/** In a tree it is the launcher's to make, unless it may be written to and the tree may not. */
const isInner = (mount: Mount, tree: Tree | undefined): boolean =>
  tree !== undefined && !(mount.kind === "writable" && tree.kind === "readonly")

const sandboxArguments = (mount: Mount): ReadonlyArray<string> => {
  const { at, kind } = mount
  if (kind === "system") return ["--ro-bind", at, at]
  if (kind === "blank") return ["--ro-bind", "/dev/null", at]
  const bytes = kind === "private" ? sandboxLimits.temporaryBytesMax : sandboxLimits.hiddenBytesMax
  return ["--size", String(bytes), "--tmpfs", at]
}

/** Owners are translated when the command runs as somebody else than the owner of a tree that is its own. */
const ownerOf = (mount: Mount, identity: Identity | undefined, own: ReadonlyArray<string>): Identity | undefined => {
  const isOwn = mount.own === true || own.includes(mount.at)
  if (identity === undefined || mount.file === undefined || !isOwn) return undefined
  const { gid, uid } = mount.file
  return uid === identity.uid && gid === identity.gid ? undefined : { uid, gid }
}

export const layOut = (
  mounts: ReadonlyArray<Mount>,
  options: {
    /** Whom the command runs as, when that is not whoever runs the server. */
    readonly identity: Identity | undefined
    /** The places that belong to the command. */
    readonly own: ReadonlyArray<string>
  }
): Layout => {
  const trees: Array<DraftTree> = []
  const args: Array<string> = []
  const treeOf = new Map<Mount, DraftTree>()
  const byPath = new Map(mounts.map((mount) => [mount.at, mount]))
  for (const mount of mounts) {
    const above = aboveOf(mount, byPath)
    const around = above === undefined ? undefined : treeOf.get(above)
    const tree = isInner(mount, around) ? around : undefined
    const { at, file, kind } = mount
    if (tree !== undefined && file !== undefined && kind !== "system") {
      tree.inner.push({ way: relative(tree.path, at), kind, file })
      if (isSame(mount)) treeOf.set(mount, tree)
    } else if (isSame(mount) && file !== undefined) {
      const owner = ownerOf(mount, options.identity, options.own)
      const draft: DraftTree = {
        path: at,
        kind: mount.kind,
        file,
        inner: [],
        ...(owner === undefined ? {} : { owner })
      }
      treeOf.set(mount, draft)
      args.push("--bind", stagedAt(trees.push(draft) - 1), at)
    } else args.push(...sandboxArguments(mount))
  }
  return { trees, args }
}

/** Closes what nothing may be written to, once everything lies in its place. */
export const sealArguments = (mounts: ReadonlyArray<Mount>, layout: Layout): ReadonlyArray<string> => {
  const inner = new Set(layout.trees.flatMap(({ inner, path }) => inner.map(({ way }) => `${path}/${way}`)))
  const empty = mounts.filter(({ at, kind }) => kind === "empty" && !inner.has(at)).map(({ at }) => at)
  return [...["/dev", ...empty].flatMap((at) => ["--remount-ro", at]), "--remount-ro", "/"]
}

export const linkArguments = (): ReadonlyArray<string> => systemLinks().flatMap(({ at, to }) => ["--symlink", to, at])
