// `echs open`: shows the page of a running server in the browser. The address holds a ticket that works once and for
// thirty seconds, behind "#", where it is sent to nobody; the page trades it for a session.
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { exitCode, type Verb } from "../Verb.ts"

export interface OpenParts extends RemoteParts {
  /** False where there is no browser to open. */
  readonly openBrowser: (url: string) => Promise<boolean>
}

const pageAddress = (url: string, ticket: string, conversationId: string | undefined): string => {
  const to = conversationId === undefined ? "" : `&to=/c/${conversationId}`
  return new URL(`/#ticket=${ticket}${to}`, url.replace(/^ws/, "http")).href
}

export const make = (parts: OpenParts): Verb =>
  makeRemoteVerb(parts, {
    name: "open",
    takes: "[CONVERSATION]",
    positionals: { min: 0, max: 1 },
    options: { print: { type: "boolean", help: "print the address and open nothing" } },
    example: "echs open",
    notes: ["The address signs one browser in. It works once and expires after 30 seconds."],
    run: async ({ answer, client, positionals: [named], values }) => {
      const conversationId = named === undefined ? undefined : await findConversation(client, named)
      const { expires_ms, ticket, url } = await client.ticket()
      const address = pageAddress(url, ticket, conversationId)
      const isOpened = values.print !== true && (await parts.openBrowser(address))
      const words = isOpened ? "opened in the browser" : "open this address in a browser within 30 seconds"
      answer({ url: address, expires_ms, opened: isOpened }, () => `${words}: ${address}\n`)
      return exitCode.done
    }
  })
