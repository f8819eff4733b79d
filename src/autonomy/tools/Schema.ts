// JSON Schema, in the few words that the tools of a goal need.

export const text = (description: string) => ({ type: "string", description })
export const list = (items: unknown, description: string) => ({ type: "array", items, description })
export const object = (properties: Readonly<Record<string, unknown>>, required: ReadonlyArray<string>) => ({
  type: "object",
  properties,
  required
})
