// Ids of what an operation makes. The same key makes the same ids, however long ago the first time was.
import { createHash } from "node:crypto"
import type { OperationContext } from "./Context.ts"

/** A new id; the same one when the same key comes again. */
export const idFor = ({ idempotency, newId }: Pick<OperationContext, "idempotency" | "newId">, what: string): string =>
  idempotency === undefined
    ? newId()
    : createHash("sha256").update(`${what}\n${idempotency.key}`).digest("hex").slice(0, 32)
