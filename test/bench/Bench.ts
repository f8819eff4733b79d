// What a benchmark is: a file `test/bench/<name>.bench.ts` that exports `run`. It measures and answers with rows; how
// rows are shown, and what the exit code says, belongs to run.ts.

export interface Row {
  readonly name: string
  readonly value: number
  /** Of the value: "appends/s", "ms", "bytes", … */
  readonly unit: string
  /** The row of the same run that this one is compared with. */
  readonly baseline?: string
  /** Value divided by the value of the baseline. */
  readonly ratio?: number
  /** What was aimed at, as a ratio where the row has one, else as a value. */
  readonly target?: number
  /** Whether the target was reached; the benchmark says so, since "more is better" is not always true. */
  readonly met?: boolean
}

export interface BenchContext {
  /** An empty directory of its own, removed afterwards. */
  readonly directory: string
  /** One line of progress, to standard error. */
  readonly progress: (line: string) => void
}

export interface Bench {
  readonly run: (context: BenchContext) => Promise<ReadonlyArray<Row>>
}

export interface Report {
  readonly bench: string
  readonly commit: string
  readonly node: string
  readonly rows: ReadonlyArray<Row>
}
