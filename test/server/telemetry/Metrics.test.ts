// Goal: what Prometheus reads is well formed and bounded, and is of this server alone. Method: counts by hand, read as text.
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { describe, expect, it } from "vitest"
import { circuitGauges, type Gauge, Metrics, plainGauges } from "#src/server/telemetry/Metrics.ts"

const textOf = (metrics: Metrics, given: ReadonlyArray<Gauge> = []): string => {
  const { counted, gauges } = metrics.read(given)
  return PrometheusMetrics.formatUnsafe(counted) + PrometheusMetrics.formatUnsafe(gauges)
}

describe("metrics", () => {
  it("count by name and labels, with quotes and line ends escaped", () => {
    const metrics = new Metrics()
    metrics.count("requests_total")
    metrics.count("requests_total", {}, 4)
    metrics.count("errors_total", { code: 'a"b\\c\nd', op: "x" })
    expect(textOf(metrics)).toBe(
      '# TYPE requests_total counter\nrequests_total 5\n# TYPE errors_total counter\nerrors_total{code="a\\"b\\\\c\\nd",op="x"} 1\n'
    )
  })

  it("keep a thousand series of one name, and count the others together", () => {
    const metrics = new Metrics()
    for (let number = 0; number < 1_500; number++) metrics.count("errors_total", { code: `c${number}` })
    metrics.count("errors_total", { code: "c7" })
    const lines = textOf(metrics).trimEnd().split("\n")
    expect(lines).toHaveLength(1 + 1_000 + 1)
    expect(lines).toContain('errors_total{code="c7"} 2')
    expect(lines).toContain("errors_total 500")
  })

  it("sum times into buckets that grow", () => {
    const metrics = new Metrics()
    for (const valueMs of [0.5, 1, 3, 99, 700_000]) metrics.observe("run_ms", valueMs)
    const lines = textOf(metrics).trimEnd().split("\n")
    expect(lines.slice(0, 4)).toEqual([
      "# TYPE run_ms histogram",
      'run_ms_bucket{le="1"} 2',
      'run_ms_bucket{le="5"} 3',
      'run_ms_bucket{le="10"} 3'
    ])
    expect(lines.slice(-4)).toEqual([
      'run_ms_bucket{le="600000"} 4',
      'run_ms_bucket{le="+Inf"} 5',
      "run_ms_sum 700103.5",
      "run_ms_count 5"
    ])
  })

  it("show gauges as they are when they are read, each name once with its series", () => {
    const circuits = { one: { circuit: "open", held: 3 }, two: { circuit: "closed", held: 0 } } as never
    const metrics = new Metrics()
    const gauges = [...plainGauges({ connections: 2 }), ...circuitGauges(circuits)]
    const expected = `# TYPE connections gauge
connections 2
# TYPE provider_circuit_open gauge
provider_circuit_open{provider="one"} 1
provider_circuit_open{provider="two"} 0
# TYPE provider_calls_held gauge
provider_calls_held{provider="one"} 3
provider_calls_held{provider="two"} 0
`
    expect(textOf(metrics, gauges)).toBe(expected)
    expect(textOf(metrics, gauges)).toBe(expected)
  })

  it("of two servers in one process are apart", () => {
    const [one, other] = [new Metrics(), new Metrics()]
    one.count("requests_total")
    expect(textOf(other)).toBe("")
  })
})
