// Conversations and the directories they were started for, so that a command finds those of where it runs.
import type { Client, ConversationItem } from "../../client/Client.ts"

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

/** The one of the directory in which something happened last; closed ones are left out. */
export const latestIn = async (client: Client, directory: string): Promise<ConversationItem | undefined> => {
  const items = await conversationsIn(client, directory, 50)
  return items
    .filter(({ state }) => state !== "closed" && state !== "archived")
    .toSorted((left, right) => right.updated_ms - left.updated_ms)[0]
}
