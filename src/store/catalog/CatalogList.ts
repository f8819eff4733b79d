// Listing by filter and cursor. Newest created first: an order that no update changes, so a page can be continued
// whatever happens meanwhile, without a row twice or left out. Every query walks an index and stops at the limit.
import type { SQLInputValue } from "node:sqlite"
import { ListInvalid } from "../StoreErrors.ts"
import { limits } from "../StoreLimits.ts"
import { type CatalogDatabase, shownRow } from "./CatalogDatabase.ts"
import { type CatalogRow, type ConversationStatus, statuses } from "./CatalogRow.ts"

export interface ListRequest {
  readonly state?: ConversationStatus
  /** A label's key, or `key=value`. */
  readonly label?: string
  /** A piece of the title, the labels or the id, in any case. */
  readonly q?: string
  readonly limit?: number
  readonly cursor?: string
}

export interface ListPage {
  readonly items: ReadonlyArray<CatalogRow>
  readonly next_cursor?: string
  /** The catalog is being filled from the logs: conversations may be missing. */
  readonly rebuilding?: true
}

interface Place {
  readonly createdMs: number
  readonly conversationId: string
}

export const encodeCursor = ({ conversationId, createdMs }: Place): string =>
  Buffer.from(`${createdMs} ${conversationId}`).toString("base64url")

const decodeCursor = (cursor: string): Place => {
  const text = Buffer.from(cursor, "base64url").toString("latin1")
  const [, createdMs, conversationId] = /^(\d{1,16}) ([A-Za-z0-9_-]{1,64})$/.exec(text) ?? []
  if (conversationId === undefined) throw new ListInvalid({ field: "cursor", reason: "it was not made by this server" })
  return { createdMs: Number(createdMs), conversationId }
}

const limitOf = (limit: number | undefined): number => {
  if (limit === undefined) return limits.listItemsDefault
  if (Number.isInteger(limit) && limit >= 1 && limit <= limits.listItemsMax) return limit
  throw new ListInvalid({ field: "limit", reason: `it must be a whole number from 1 to ${limits.listItemsMax}` })
}

/** Where the ordered walk happens: the labels have an index of their own in the same order. */
interface Query {
  from: string
  readonly created: string
  readonly id: string
  readonly where: Array<string>
  readonly values: Array<SQLInputValue>
}

const overAll = (): Query => ({
  from: "conversations AS c",
  created: "c.created_ms",
  id: "c.conversation_id",
  where: [],
  values: []
})

const overLabel = (label: string): Query => {
  if (label.length > 2 * limits.labelCharsMax + 1) throw new ListInvalid({ field: "label", reason: "it is too long" })
  const at = label.indexOf("=")
  return {
    from: "labels AS l CROSS JOIN conversations AS c ON c.conversation_id = l.conversation_id",
    created: "l.created_ms",
    id: "l.conversation_id",
    where: [at < 0 ? "l.key = ?" : "l.key = ? AND l.value = ?"],
    values: at < 0 ? [label] : [label.slice(0, at), label.slice(at + 1)]
  }
}

/** The index of pieces knows pieces of three characters and more. */
const PIECE_CHARS = 3
/** With more matches than this, walking in order meets enough of them soon. */
const FEW_MATCHES = 2000

const byText = (catalog: CatalogDatabase, query: Query, text: string): void => {
  if (text.length > limits.queryCharsMax) {
    throw new ListInvalid({ field: "q", reason: `it may have ${limits.queryCharsMax} characters` })
  }
  const wanted = text.toLowerCase()
  query.where.push("instr(c.search, ?) > 0")
  query.values.push(wanted)
  if ([...wanted].length < PIECE_CHARS || wanted.includes("\0")) return
  const phrase = `"${wanted.replaceAll('"', '""')}"`
  const found = catalog
    .statement("SELECT rowid FROM search WHERE search MATCH ? LIMIT ?")
    .all(phrase, FEW_MATCHES + 1)
    .map((record) => record["rowid"] as number)
  if (found.length > FEW_MATCHES) return
  // Few enough to start from them and sort.
  const label = query.from.startsWith("labels") ? "JOIN labels AS l ON l.conversation_id = c.conversation_id" : ""
  query.from = `json_each(?) AS m CROSS JOIN conversations AS c ON c.id = m.value ${label}`
  query.values.unshift(JSON.stringify(found))
}

const build = (catalog: CatalogDatabase, request: ListRequest): Query => {
  const { cursor, label, q, state } = request
  const query = label === undefined ? overAll() : overLabel(label)
  if (state !== undefined) {
    if (!statuses.includes(state)) throw new ListInvalid({ field: "state", reason: `"${state}" is not a state` })
    query.where.push("c.state = ?")
    query.values.push(state)
  }
  if (cursor !== undefined) {
    const { conversationId, createdMs } = decodeCursor(cursor)
    query.where.push(`(${query.created}, ${query.id}) < (?, ?)`)
    query.values.push(createdMs, conversationId)
  }
  if (q !== undefined && q !== "") byText(catalog, query, q)
  return query
}

/** Finds the rows by index alone, then reads only those that are shown. */
const sqlOf = ({ created, from, id, where }: Query): string => {
  const condition = where.length === 0 ? "" : `WHERE ${where.join(" AND ")}`
  return `SELECT fold, damaged FROM conversations WHERE id IN (
    SELECT c.id FROM ${from} ${condition} ORDER BY ${created} DESC, ${id} DESC LIMIT ?
  ) ORDER BY created_ms DESC, conversation_id DESC`
}

export const listRows = (catalog: CatalogDatabase, request: ListRequest): ListPage => {
  const limit = limitOf(request.limit)
  const query = build(catalog, request)
  const found = catalog.statement(sqlOf(query)).all(...query.values, limit + 1)
  const items = found
    .slice(0, limit)
    .map((record) => shownRow(record["fold"] as string, record["damaged"] as string | null))
  const last = items[items.length - 1]
  if (found.length <= limit || last === undefined) return { items }
  const next = encodeCursor({ createdMs: last.created_ms, conversationId: last.conversation_id })
  return { items, next_cursor: next }
}
