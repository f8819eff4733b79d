// `instructions` of the settings: where the user's own instruction file lies, and whether agents are told those of projects.
import { isAbsolute } from "node:path"

export interface InstructionSettings {
  /** The user's own file; the usual place where it is left out, none where it is null. */
  readonly user?: string | null
  /** Whether AGENTS.md and CLAUDE.md of projects are told; they are where it is left out. */
  readonly project?: boolean
}

type Invalid = (setting: string, reason: string) => Error

const isSettings = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const instructionsOf = (value: unknown, invalid: Invalid): InstructionSettings => {
  if (value === undefined) return {}
  if (!isSettings(value)) throw invalid("instructions", "it must be an object")
  const { project, user, ...others } = value
  const [unknown] = Object.keys(others)
  if (unknown !== undefined)
    throw invalid("instructions", `there is no setting "${unknown}"; there are "user" and "project"`)
  if (user !== undefined && user !== null && !(typeof user === "string" && isAbsolute(user)))
    throw invalid("instructions.user", "it must be an absolute path, or null for none")
  if (project !== undefined && typeof project !== "boolean")
    throw invalid("instructions.project", "it must be true or false")
  return {
    ...(user === undefined ? {} : { user: user as string | null }),
    ...(project === undefined ? {} : { project })
  }
}
