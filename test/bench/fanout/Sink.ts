// The parent's side of a sink: starts it, hears how far it is, waits for it.
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import type { SinkPlan, SinkReport } from "./subscribers.ts"

const running = new Set<ChildProcess>()
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL")
})

export class Sink {
  /** What the slowest connection has got, and what all have. */
  least = 0
  total = 0
  readonly connections: number
  private readonly child: ChildProcess
  private wake: () => void = () => undefined
  private latency: ((report: Extract<SinkReport, { readonly type: "latency" }>) => void) | undefined

  private constructor(child: ChildProcess, connections: number) {
    this.child = child
    this.connections = connections
    running.add(child)
    child.on("exit", () => running.delete(child))
    child.on("message", (report: SinkReport) => this.take(report))
  }

  static async open(plan: SinkPlan): Promise<Sink> {
    const child = fork(fileURLToPath(new URL("./subscribers.ts", import.meta.url)), [JSON.stringify(plan)])
    const sink = new Sink(child, plan.connections)
    const ready = new Promise<void>((resolve) => {
      child.on("message", (report: SinkReport) => {
        if (report.type === "ready") resolve()
      })
    })
    await Promise.race([
      ready,
      once(child, "exit").then(() => {
        throw new Error("the sink ended before it was ready")
      })
    ])
    return sink
  }

  private take(report: SinkReport): void {
    if (report.type === "progress") {
      this.least = report.least
      this.total = report.total
      this.wake()
    }
    if (report.type === "latency") this.latency?.(report)
  }

  /** Resolves at the next news, or soon. */
  news(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, 50)
      this.wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  async until(isMet: () => boolean): Promise<void> {
    while (!isMet()) await this.news()
  }

  /** Latencies since the last time this was asked. */
  latencies(): Promise<Extract<SinkReport, { readonly type: "latency" }>> {
    return new Promise((resolve) => {
      this.latency = resolve
      this.child.send("latency")
    })
  }

  /** Has every connection send this. */
  send(frame: unknown): void {
    this.child.send(JSON.stringify(frame))
  }

  async close(): Promise<void> {
    if (!running.has(this.child)) return
    this.child.kill("SIGKILL")
    await once(this.child, "exit")
  }
}
