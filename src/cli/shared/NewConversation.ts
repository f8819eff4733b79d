// Options that create a conversation, shared by `send`, `steer` and `chat`, and the request made from them.
import { resolve } from "node:path"
import type { Client, ConversationItem } from "../../client/Client.ts"
import type { OptionTable, Values } from "../VerbSpec.ts"

export const creationOptions = {
  model: { type: "string", short: "m", value: "MODEL", help: "model of a new conversation, as provider/name" },
  title: { type: "string", value: "TEXT", help: "title of a new conversation" },
  workspace: {
    type: "string",
    short: "w",
    value: "DIRECTORY",
    help: "workspace of a new conversation (default: this directory)"
  },
  "unsafe-workspace": { type: "boolean", help: "allow a home or system directory as the workspace" },
  instructions: { type: "string", value: "TEXT", help: "instructions for the agent of a new conversation" }
} as const satisfies OptionTable

/** The server keeps this many characters of a label. */
const labelCharsMax = 128

/** Marks conversations with the directory they were started for, so that they can be found from there. */
export const directoryLabel = (directory: string): Readonly<Record<string, string>> => ({
  directory: directory.slice(-labelCharsMax)
})

/** The newest conversations that were started for the directory. */
export const conversationsIn = async (
  client: Client,
  directory: string,
  limit: number
): Promise<ReadonlyArray<ConversationItem>> => {
  const label = `directory=${directoryLabel(directory)["directory"]}`
  return (await client.call("conversation.list", { label, limit })).items
}

type Creation = Partial<Values<typeof creationOptions>>

export const createConversation = async (
  client: Client,
  values: Creation,
  workingDirectory: string
): Promise<string> => {
  const { model, title, workspace, instructions } = values
  const directory = resolve(workingDirectory, workspace ?? "")
  const { conversation_id: id } = await client.call("conversation.create", {
    workspace: directory,
    labels: directoryLabel(directory),
    ...(values["unsafe-workspace"] === true ? { unsafe_workspace: true } : {}),
    ...(model === undefined ? {} : { model }),
    ...(title === undefined ? {} : { title }),
    ...(instructions === undefined ? {} : { instructions })
  })
  return id
}
