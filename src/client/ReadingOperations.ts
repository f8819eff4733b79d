// Operations that change nothing and take no idempotency key. Written by `npm run schemas` from the list of operations:
// the client loads no schemas, so it cannot read the list itself.
export const readingOperations: ReadonlySet<string> = new Set([
  "conversation.list",
  "conversation.get",
  "conversation.prompt",
  "approval.list",
  "agent.list",
  "subscribe",
  "unsubscribe",
  "attention.subscribe",
  "attention.list",
  "harness.list",
  "terminal.attach",
  "terminal.input",
  "terminal.resize",
  "policy.get",
  "policy.test",
  "policy.set",
  "grant.list",
  "token.list",
  "token.create",
  "token.remove",
  "server.info",
  "server.stop",
  "server.fibers",
  "stats"
])
