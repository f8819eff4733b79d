// The page in a real browser, driven: Debian's chromium, signed in as a person is, with everything that went wrong in it
// written down.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Browser, type BrowserContext, chromium as driver, type Page } from "playwright-core"
import { Client } from "#src/client/Client.ts"
import { chromium } from "./chromium.ts"
import type { ServerProcess } from "./server/Process.ts"

export { chromium }

export const wide = { width: 1440, height: 900 } as const
export const phone = { width: 390, height: 844 } as const

export interface OpenPage {
  readonly page: Page
  readonly context: BrowserContext
  /** Errors of scripts and refused loads, and requests to anywhere but the server. */
  readonly troubles: Array<string>
}

export class PageWorld {
  readonly place = mkdtempSync(join(tmpdir(), "echs-page-"))
  readonly data = join(this.place, "data")
  private browser: Browser | undefined
  private readonly clients: Array<Client> = []

  /** The product's own client beside the page, for what people do elsewhere. */
  async client(server: ServerProcess): Promise<Client> {
    const client = await Client.connect({ endpoint: { url: server.url, token: server.token } })
    this.clients.push(client)
    return client
  }

  async open(
    server: ServerProcess,
    options: { readonly size?: typeof wide | typeof phone; readonly token?: string; readonly hash?: string } = {}
  ): Promise<OpenPage> {
    this.browser ??= await driver.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] })
    const context = await this.browser.newContext({
      viewport: options.size ?? wide,
      hasTouch: options.size === phone,
      reducedMotion: "reduce"
    })
    const page = await context.newPage()
    const troubles: Array<string> = []
    page.on("pageerror", (error) => troubles.push(error.message))
    page.on("console", (message) => {
      // Lost connections are said by the browser itself, and expected where a server is killed.
      if (message.type() === "error" && !/WebSocket|ERR_CONNECTION/.test(message.text())) troubles.push(message.text())
    })
    page.on("request", (request) => {
      if (!request.url().startsWith(server.url)) troubles.push(`a request to ${request.url()}`)
    })
    const { ticket } = await this.ticket(server, options.token ?? server.token)
    await page.goto(`${server.url}/#ticket=${ticket}&to=${options.hash ?? "/inbox"}`)
    await page.waitForSelector(".rail")
    return { page, context, troubles }
  }

  private async ticket(server: ServerProcess, token: string): Promise<{ readonly ticket: string }> {
    const response = await fetch(`${server.url}/v1/tickets`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` }
    })
    return (await response.json()) as { readonly ticket: string }
  }

  async close(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.close()))
    await this.browser?.close()
    rmSync(this.place, { recursive: true, force: true, maxRetries: 5 })
  }
}
