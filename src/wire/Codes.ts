/**
 * Codes of the wire, one table each: errors, close codes, and what an error code means to
 * HTTP and to the exit code of a command.
 */

export const errorCodes = {
  unauthorized: { http: 401, exit: 4 },
  bad_request: { http: 400, exit: 2 },
  not_found: { http: 404, exit: 5 },
  invalid_state: { http: 409, exit: 6 },
  already_decided: { http: 409, exit: 6 },
  idempotency_conflict: { http: 409, exit: 6 },
  limit_exceeded: { http: 429, exit: 1 },
  budget_exhausted: { http: 402, exit: 6 },
  busy: { http: 503, exit: 1 },
  read_only: { http: 503, exit: 1 },
  internal: { http: 500, exit: 1 }
} as const

export type ErrorCode = keyof typeof errorCodes

export interface WireError {
  readonly code: ErrorCode
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>>
}

export const closeCodes = {
  /** The server goes away; reconnect. */
  goingAway: 1001,
  notAuthorised: 4001,
  notFound: 4004,
  helloMissing: 4008,
  /** A message was too big, or too many were malformed. */
  abusive: 4009,
  tooManyConnections: 4013,
  /** The reader is too far behind; resume from the cursor. */
  tooFarBehind: 4014
} as const

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  noServer: 3,
  notAuthorised: 4,
  notFound: 5,
  refused: 6,
  interrupted: 130
} as const
