// What a supervisor knows of a child before it runs: data, not behavior. The defaults are those of the process
// supervisors this design follows: three restarts within five seconds, then whoever is above decides.

export type RestartKind =
  /** Started again however it ended. */
  | "permanent"
  /** Started again only when it crashed. */
  | "transient"
  /** Never started again. */
  | "temporary"

export interface RestartIntensity {
  /** Restarts allowed… */
  readonly restartsMax: number
  /** …within any window of this length. */
  readonly withinMs: number
}

export interface ChildSpec {
  readonly id: string
  /** Where it runs in the tree of fibers: the names of the branches above it, from the root. */
  readonly under: ReadonlyArray<string>
  readonly restart: RestartKind
  /** How long an interrupted child may take to clean up before it is left behind. */
  readonly shutdownMs: number
  readonly intensity: RestartIntensity
}

export const defaultIntensity: RestartIntensity = { restartsMax: 3, withinMs: 5_000 }

export const childSpec = (id: string, overrides: Partial<Omit<ChildSpec, "id">> = {}): ChildSpec => ({
  id,
  under: [],
  restart: "transient",
  shutdownMs: 5_000,
  intensity: defaultIntensity,
  ...overrides
})
