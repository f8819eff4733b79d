// `fetch_url`: reads a page of the open Internet as text. Every address on the way, redirects included, is checked before
// it is connected to; a page that leads to another host is not followed, for the policy speaks about hosts.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { defineTool } from "../../DefineTool.ts"
import { promisedOutcome } from "../../PromiseWork.ts"
import type { Tool } from "../../Tool.ts"
import type { SignalContext, ToolOutcome } from "../../ToolPort.ts"
import { aPath, flag, optional } from "../ToolSchema.ts"
import { FetchFailed, FetchRefused, type Resolve, resolveBySystem, type Target, targetOf } from "./Guard.ts"
import { readHtml } from "./Html.ts"
import { fetchLimits } from "./Limits.ts"
import { type Dial, fetchPage, type Page } from "./Request.ts"

export interface FetchOptions {
  readonly version?: string
  readonly resolve?: Resolve
  readonly dial?: Dial
  readonly certificates?: string
  /** Less than the limit, for tests. */
  readonly timeoutMs?: number
}

type FetchErrorCode =
  | "address_refused"
  | "fetch_failed"
  | "fetch_timeout"
  | "not_text"
  | "http_error"
  | "too_many_redirects"

const failed = (code: FetchErrorCode, message: string, more: Partial<ToolOutcome> = {}): ToolOutcome => ({
  status: code === "address_refused" ? "sandbox_violation" : "error",
  error: { code, message, retryable: false, source: "tool" },
  ...more
})

const straight: Dial = (address, port) => ({ host: address, port })

interface Arrived {
  readonly target: Target
  readonly page: Page
}

type Journey = Arrived | { readonly elsewhere: string } | { readonly tooFar: true }

/** Where a page leads. A whole address stays as it was written: how it is written is looked at too. */
const ledTo = (location: string, from: URL): string => {
  if (!URL.canParse(location, from)) throw new FetchFailed("the page leads to something that is no address")
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(location) ? location : new URL(location, from).href
}

const travel = async (url: string, options: FetchOptions, signal: AbortSignal): Promise<Journey> => {
  const { certificates, dial = straight, resolve = resolveBySystem, version = "" } = options
  const request = {
    dial,
    signal,
    userAgent: `echs${version === "" ? "" : `/${version}`}`,
    ...(certificates === undefined ? {} : { certificates })
  }
  let next = url
  for (let hop = 0; hop <= fetchLimits.redirectsMax; hop++) {
    const target = await targetOf(next, resolve)
    if (target.url.hostname !== new URL(url).hostname) return { elsewhere: target.url.href }
    const page = await fetchPage(target, request)
    if (page.location === undefined) return { target, page }
    next = ledTo(page.location, target.url)
  }
  return { tooFar: true }
}

const isText = (type: string): boolean =>
  type === "" ||
  /^(text\/|application\/([a-z0-9.+-]*[+.-])?(json|xml|javascript|ecmascript|yaml|x-yaml|toml|graphql|x-ndjson|sql|x-sh)\b)/.test(
    type
  )

const decode = (body: Buffer, type: string): string => {
  const charset = /charset\s*=\s*"?([a-z0-9_:-]{1,40})/.exec(type)?.[1] ?? "utf-8"
  try {
    return new TextDecoder(charset).decode(body)
  } catch {
    return new TextDecoder().decode(body)
  }
}

const shown = ({ page, target }: Arrived, asItIs: boolean): ToolOutcome => {
  const type = page.type.toLowerCase()
  const { href } = target.url
  const isBinary = !isText(type) || page.body.subarray(0, 4096).includes(0)
  if (isBinary) return failed("not_text", `${href} is ${type === "" ? "no text" : type}, ${page.body.length} bytes`)
  const raw = decode(page.body, type).toWellFormed()
  const isHtml = /^(text\/html|application\/xhtml\+xml)\b/.test(type)
  const { text, title } = isHtml && !asItIs ? readHtml(raw, target.url) : { text: raw, title: "" }
  const facts = [`${page.status}`, type === "" ? "no type" : type, `${page.body.length} bytes`]
  const head = `${href} (${facts.join(", ")}${page.isCut ? ", cut there" : ""})`
  const output = [head, ...(title === "" ? [] : [title]), "", text].join("\n")
  if (page.status >= 200 && page.status < 300) return { status: "success", output }
  return failed("http_error", `${href} answers ${page.status}`, { output })
}

const outcomeOf = (journey: Journey, asItIs: boolean): ToolOutcome => {
  if ("tooFar" in journey) {
    return failed("too_many_redirects", `it leads on more than ${fetchLimits.redirectsMax} times`)
  }
  if ("elsewhere" in journey) {
    const output = `It leads to another host, ${journey.elsewhere}\nCall fetch_url with that address to go there.`
    return { status: "success", output }
  }
  return shown(journey, asItIs)
}

const input = Schema.Struct({
  url: aPath("the whole address, such as https://example.org/page"),
  raw: optional(flag("HTML as it is, instead of its text"))
})

const run = async (
  { raw, url }: typeof input.Type,
  context: Pick<SignalContext, "signal">,
  options: FetchOptions
): Promise<ToolOutcome> => {
  const timeoutMs = options.timeoutMs ?? fetchLimits.timeoutMs
  const late = AbortSignal.timeout(timeoutMs)
  const signal = AbortSignal.any([late, context.signal])
  try {
    const stopped = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(new FetchFailed("it was stopped")), { once: true })
    })
    const journey = await Promise.race([travel(url, options, signal), stopped])
    return outcomeOf(journey, raw === true)
  } catch (error) {
    if (error instanceof FetchRefused) return failed("address_refused", error.message)
    if (late.aborted) return failed("fetch_timeout", `it took more than ${timeoutMs} ms`)
    if (error instanceof FetchFailed) return failed("fetch_failed", error.message)
    throw error
  }
}

export const makeFetchUrl = (options: FetchOptions = {}): Tool =>
  defineTool({
    name: "fetch_url",
    description:
      "Reads a page of the Internet by its http or https address and returns its text. A page that leads to another host is not followed: call it again with that address.",
    input,
    effect_class: "idempotent",
    mutating: false,
    timeout_ms: fetchLimits.timeoutMs + 5000,
    access: ({ url }) => ({ url }),
    preview: ({ url }) => Effect.succeed({ title: "fetch a page", detail: url }),
    run: (given, context) => promisedOutcome(context, (signaled) => run(given, signaled, options))
  })
