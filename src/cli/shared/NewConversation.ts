// Options that create a conversation, shared by `send`, `steer` and `chat`, and the request made from them.
import { resolve } from "node:path"
import type { Client } from "../../client/Client.ts"
import type { OptionTable, Values } from "../VerbSpec.ts"
import { directoryLabel } from "./Directory.ts"

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
